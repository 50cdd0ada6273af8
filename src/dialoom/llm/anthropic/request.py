"""The body of a request for one message."""

from collections.abc import Sequence

import msgspec

from dialoom.llm.anthropic.history import Fields, Wire, wire_system, wire_turns
from dialoom.llm.messages import Message
from dialoom.llm.options import ChatOptions, ToolSpec
from dialoom.llm.profile import WireProfile
from dialoom.llm.question import question_of
from dialoom.llm.wire.writing import writing_json

_COUNTED = ("model", "system", "messages", "tools", "tool_choice", "thinking", "output_config")
"""The only fields that a count takes: any other is refused."""


def message_body(
    messages: Sequence[Message], options: ChatOptions, *, profile: WireProfile, provider: str
) -> bytes:
    """Return the JSON body that asks for one answer. Raises `UsageError` when that is no JSON."""
    said = question_of(messages, options)
    with writing_json():
        asked = _asked(said, options, profile=profile, provider=provider)
        return msgspec.json.encode({**asked, **options.extra_body})


def count_body(
    messages: Sequence[Message], options: ChatOptions, *, profile: WireProfile, provider: str
) -> bytes:
    """Return the JSON body that asks how long the same question is; errors as in `message_body`."""
    said = question_of(messages, options)
    with writing_json():
        asked = {**_asked(said, options, profile=profile, provider=provider), **options.extra_body}
        return msgspec.json.encode({name: asked[name] for name in _COUNTED if name in asked})


def _asked(
    messages: Sequence[Message], options: ChatOptions, *, profile: WireProfile, provider: str
) -> Fields:
    system = wire_system(messages)
    turns = wire_turns(messages, provider, tool_files=profile.tool_files)
    tools = [_wire_tool(tool) for tool in options.tools]
    if options.cache is not None:
        mark: Fields = {"type": "ephemeral", "ttl": options.cache}
        # a mark covers all before it: tools come first, then the instructions, then the turns
        _mark_last(system or tools, mark)
        _mark_last(turns[-1].content if turns else [], mark)
    fields: Fields = {
        "model": options.model,
        "max_tokens": options.max_tokens or profile.default_max_tokens,
        "system": system or None,
        "messages": turns,
        "stream": profile.streaming,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "stop_sequences": list(options.stop) or None,
        "tools": tools or None,
        "tool_choice": _tool_choice(options),
        "thinking": _thinking(options),
        "output_config": _output_config(options, profile) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _mark_last(blocks: Sequence[Wire], mark: Fields) -> None:
    """Put a cache mark on the last block that may carry one."""
    fit = [block for block in blocks if isinstance(block, dict) and block.get("type") != "thinking"]
    if fit:
        fit[-1]["cache_control"] = mark


def _wire_tool(tool: ToolSpec) -> Fields:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": tool.parameters}


def _tool_choice(options: ChatOptions) -> Fields | None:
    if not options.tools:
        return None
    asked = {None: None, "auto": "auto", "none": "none", "required": "any"}[options.tool_choice]
    if options.parallel_tool_calls is None or asked == "none":
        return {"type": asked} if asked else None
    return {"type": asked or "auto", "disable_parallel_tool_use": not options.parallel_tool_calls}


def _thinking(options: ChatOptions) -> Fields | None:
    if options.reasoning is None:
        return None
    return {"type": "disabled" if options.reasoning == "off" else "adaptive"}


def _output_config(options: ChatOptions, profile: WireProfile) -> Fields:
    fields: Fields = {}
    if options.reasoning not in {None, "off"}:
        fields["effort"] = options.reasoning
    if options.response_schema is not None and profile.structured_mode == "native":
        fields["format"] = {"type": "json_schema", "schema": options.response_schema}
    return fields
