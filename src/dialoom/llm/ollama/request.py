"""What goes to `/api/chat`: a projection of the messages, which are never changed."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.files import FilePart, cannot_take
from dialoom.llm.json_values import fields_of
from dialoom.llm.messages import Message, ToolCall
from dialoom.llm.options import ChatOptions, ToolSpec
from dialoom.llm.pairing import paired
from dialoom.llm.profile import WireProfile
from dialoom.llm.question import question_of
from dialoom.llm.wire.render import render_said
from dialoom.llm.wire.tool_files import with_files_shown
from dialoom.llm.wire.writing import writing_json

_Fields = dict[str, object]


def ollama_body(
    messages: Sequence[Message], options: ChatOptions, profile: WireProfile, *, num_ctx: int | None
) -> bytes:
    """Return the JSON body that asks for one answer. Raises `UsageError` when that is no JSON.

    This wire cannot force a tool call: `tool_choice` is sent only as having no tools for `none`.
    """
    said = question_of(messages, options)
    pictures = [kind for kind in profile.tool_files if kind.startswith("image/")]
    shown = with_files_shown(paired(said), pictures)
    fields: _Fields = {
        "model": options.model,
        "messages": [wire for message in shown for wire in _wire_messages(message)],
        "stream": profile.streaming,
        "format": options.response_schema or ("json" if options.json_mode else None),
        "tools": [_wire_tool(tool) for tool in _offered(options)] or None,
        "think": False if options.reasoning == "off" else options.reasoning,
        "options": _model_options(options, num_ctx) or None,
        **{name: value for name, value in options.extra_body.items() if name != "options"},
    }
    with writing_json():
        return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})


def _offered(options: ChatOptions) -> tuple[ToolSpec, ...]:
    return () if options.tool_choice == "none" else options.tools


def _model_options(options: ChatOptions, num_ctx: int | None) -> _Fields:
    own: Mapping[str, object] = {
        "num_ctx": num_ctx,
        "num_predict": options.max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "seed": options.seed,
        "stop": list(options.stop) or None,
        **fields_of(options.extra_body.get("options")),
    }
    return {name: value for name, value in own.items() if value is not None}


def _wire_tool(tool: ToolSpec) -> _Fields:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _wire_messages(message: Message) -> Iterator[_Fields]:
    if message.role == "tool":
        for result in message.tool_results:
            seen = {"images": [part.base64 for part in result.files]} if result.files else {}
            yield {
                "role": "tool",
                "content": replace_surrogates(result.content),
                "tool_name": result.name or "",
                "tool_call_id": result.call_id,
                **seen,
            }
        return
    fields: _Fields = {"role": message.role, "content": render_said(message)}
    if message.role == "user" and message.files:
        fields["images"] = [_wire_picture(part) for part in message.files]
    if message.role == "assistant" and message.tool_calls:
        fields["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
    yield fields


def _wire_picture(part: FilePart) -> str:
    if part.kind != "image":
        raise cannot_take(part, "Ollama's own wire")
    return part.base64


def _wire_call(call: ToolCall) -> _Fields:
    return {"id": call.id, "function": {"name": call.name, "arguments": call.arguments or {}}}
