"""What goes to `/responses`: a projection of the messages, which are never changed."""

from collections.abc import Iterator, Sequence

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.files import FilePart
from dialoom.llm.messages import Message, OpaquePart, RefusalPart, TextPart, ToolCall, ToolCallPart
from dialoom.llm.openai.request import effort, named_file, spoken_audio, tool_fields
from dialoom.llm.openai.response_format import text_format
from dialoom.llm.options import ChatOptions, ToolSpec
from dialoom.llm.pairing import paired
from dialoom.llm.profile import WireProfile
from dialoom.llm.question import question_of
from dialoom.llm.wire.render import render_text
from dialoom.llm.wire.tool_files import with_files_shown
from dialoom.llm.wire.writing import writing_json

_Fields = dict[str, object]


def responses_body(
    messages: Sequence[Message], options: ChatOptions, profile: WireProfile, *, provider: str
) -> bytes:
    """Return the JSON body that asks for one answer. Raises `UsageError` when that is no JSON.

    Nothing is kept on the server. This wire knows neither `stop` nor `seed`, so they are not sent.
    """
    said = question_of(messages, options)
    with writing_json():
        fields = _asked(said, options, profile, provider=provider)
        return msgspec.json.encode({**fields, **options.extra_body})


def _asked(
    messages: Sequence[Message], options: ChatOptions, profile: WireProfile, *, provider: str
) -> _Fields:
    said = with_files_shown(paired(messages), profile.tool_files)
    fields: _Fields = {
        "model": options.model,
        "input": [item for message in said for item in _items(message, profile, provider)],
        "stream": profile.streaming,
        "store": False,
        # models that do not reason refuse the word
        "include": ["reasoning.encrypted_content"] if profile.replay_reasoning != "never" else None,
        "max_output_tokens": options.max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "text": text_format(options),
        "reasoning": {"effort": effort(options)} if options.reasoning else None,
        **(tool_fields(options, _wire_tool) if options.tools else {}),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _wire_tool(tool: ToolSpec) -> _Fields:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }


def _items(message: Message, profile: WireProfile, provider: str) -> Iterator[object]:
    match message.role:
        case "tool":
            for result in message.tool_results:
                output = _with_files(replace_surrogates(result.content), result.files)
                yield {"type": "function_call_output", "call_id": result.call_id, "output": output}
        case "assistant":
            yield from _assistant_items(message, provider)
        case "system":
            yield {"role": profile.system_role, "content": render_text(message)}
        case "user":
            yield {"role": "user", "content": _with_files(render_text(message), message.files)}


def _with_files(words: str, files: Sequence[FilePart]) -> str | list[_Fields]:
    """Return `words`; only behind files they stand in a list, which not every server reads."""
    if not files:
        return words
    spoken: list[_Fields] = [{"type": "input_text", "text": words}] if words else []
    return [*map(_wire_file, files), *spoken]


def _assistant_items(message: Message, provider: str) -> Iterator[object]:
    """Give the items in the order they came; what only its own provider understands goes to it alone."""
    for part in message.parts:
        match part:
            case TextPart() | RefusalPart() if part.text:
                yield {"role": "assistant", "content": replace_surrogates(part.text)}
            case ToolCallPart():
                yield _wire_call(part.call)
            case OpaquePart() if part.provider == provider:
                yield msgspec.Raw(part.block.encode())
            case _:
                pass


def _wire_file(part: FilePart) -> _Fields:
    match part.kind:
        case "image":
            return {"type": "input_image", "image_url": part.data_url}
        case "audio":
            return {"type": "input_audio", "input_audio": spoken_audio(part)}
        case "document":
            return {"type": "input_file", **named_file(part)}


def _wire_call(call: ToolCall) -> _Fields:
    arguments = msgspec.json.encode(call.arguments or {}).decode()
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}
