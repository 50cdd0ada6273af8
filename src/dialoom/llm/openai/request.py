"""What goes to `/chat/completions`: a projection of the messages, which are never changed."""

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.files import FilePart
from dialoom.llm.messages import Message, ToolCall
from dialoom.llm.openai.response_format import response_format
from dialoom.llm.options import ChatOptions, ToolSpec
from dialoom.llm.pairing import paired
from dialoom.llm.profile import WireProfile
from dialoom.llm.question import question_of
from dialoom.llm.wire.render import render_said, render_text
from dialoom.llm.wire.tool_files import with_files_shown
from dialoom.llm.wire.writing import writing_json

_Fields = dict[str, object]
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


def chat_body(messages: Sequence[Message], options: ChatOptions, profile: WireProfile) -> bytes:
    """Return the JSON body that asks for one answer. Raises `UsageError` when that is no JSON."""
    said = question_of(messages, options)
    with writing_json():
        return msgspec.json.encode({**_asked(said, options, profile), **options.extra_body})


def _asked(messages: Sequence[Message], options: ChatOptions, profile: WireProfile) -> _Fields:
    fields: _Fields = {
        "model": options.model,
        "messages": list(_wire_history(messages, profile)),
        "stream": profile.streaming,
        "stream_options": {"include_usage": True} if profile.streaming and profile.usage_in_stream else None,
        profile.max_tokens_field: options.max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "stop": list(options.stop) or None,
        "seed": options.seed,
        "response_format": response_format(options),
        "reasoning_effort": effort(options),
        **(tool_fields(options, _wire_tool) if options.tools else {}),
    }
    return {name: value for name, value in fields.items() if value is not None}


def effort(options: ChatOptions) -> str | None:
    """Return how much is to be thought, in the words of OpenAI's wires."""
    return "none" if options.reasoning == "off" else options.reasoning


def tool_fields(options: ChatOptions, wire_tool: Callable[[ToolSpec], _Fields]) -> _Fields:
    """Return the fields about tools, each of them written by `wire_tool`."""
    return {
        "tools": [wire_tool(tool) for tool in options.tools],
        "tool_choice": options.tool_choice,
        "parallel_tool_calls": options.parallel_tool_calls,
    }


def _wire_tool(tool: ToolSpec) -> _Fields:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _wire_history(messages: Sequence[Message], profile: WireProfile) -> Iterator[_Fields]:
    """Give the messages of the wire. What the tools of a round show follows behind all of its results.

    A tool message may hold no picture there, and no other message may stand between two of them.
    """
    seen: list[_Fields] = []
    for message in with_files_shown(paired(messages), profile.tool_files):
        if seen and message.role != "tool":
            yield {"role": "user", "content": seen}
            seen = []
        yield from _wire_messages(message, profile)
        seen += _wire_seen(message) if message.role == "tool" else []
    if seen:
        yield {"role": "user", "content": seen}


def _wire_seen(message: Message) -> Iterator[_Fields]:
    """Give the files of tool results, with words that say whose they are."""
    for result in message.tool_results:
        if result.files:
            words = f"[what {result.name or 'the tool'} returned to the call {result.call_id}]"
            yield {"type": "text", "text": replace_surrogates(words)}
            yield from map(_wire_file, result.files)


def _wire_messages(message: Message, profile: WireProfile) -> Iterator[_Fields]:
    match message.role:
        case "tool":
            for result in message.tool_results:
                content = replace_surrogates(result.content)
                yield {"role": "tool", "tool_call_id": result.call_id, "content": content}
        case "assistant":
            yield _wire_assistant(message, profile)
        case "system":
            yield {"role": profile.system_role, "content": render_text(message)}
        case "user":
            named = {"name": _NOT_IN_NAMES.sub("_", message.name)[:64]} if message.name else {}
            yield {"role": "user", "content": _wire_content(message), **named}


def _wire_content(message: Message) -> str | list[_Fields]:
    """Return the words of a user; only beside files they stand in a list, which not every server reads."""
    words = render_text(message)
    if not message.files:
        return words
    files = [_wire_file(part) for part in message.files]
    return [*files, {"type": "text", "text": words}] if words else files


def _wire_file(part: FilePart) -> _Fields:
    match part.kind:
        case "image":
            return {"type": "image_url", "image_url": {"url": part.data_url}}
        case "audio":
            return {"type": "input_audio", "input_audio": spoken_audio(part)}
        case "document":
            return {"type": "file", "file": named_file(part)}


def spoken_audio(part: FilePart) -> _Fields:
    """Return a recording as both of OpenAI's wires want it, by the usual name of its format."""
    form = part.media_type.partition("/")[2].removeprefix("x-")
    return {"data": part.base64, "format": "mp3" if form == "mpeg" else form}


def named_file(part: FilePart) -> _Fields:
    """Return a document as both of OpenAI's wires want it: one without a name is refused."""
    return {"filename": part.name or "document", "file_data": part.data_url}


def _wire_assistant(message: Message, profile: WireProfile) -> _Fields:
    fields: _Fields = {"role": "assistant", "content": render_said(message) or None}
    calls = message.tool_calls
    if calls:
        fields["tool_calls"] = [_wire_call(call) for call in calls]
    elif fields["content"] is None:
        fields["content"] = ""
    replay = profile.replay_reasoning
    replayed = replay in {"always", "required"} or (replay == "tool_calls" and bool(calls))
    thought = replace_surrogates(message.reasoning) if replayed else ""
    if (thought or replay == "required") and profile.reasoning_fields:
        fields[profile.reasoning_fields[0]] = thought
    return fields


def _wire_call(call: ToolCall) -> _Fields:
    # Servers parse the arguments of earlier calls, and one that is no JSON object breaks every later request.
    arguments = msgspec.json.encode(call.arguments or {}).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
