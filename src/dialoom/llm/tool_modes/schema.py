"""One schema for "call this tool so, or answer", and the words that explain it."""

from collections.abc import Sequence

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.json_values import fields_of, items_of
from dialoom.llm.options import ChatOptions, ToolSpec

TOOL, ARGUMENTS, FINAL = "tool", "arguments", "final"
_Node = dict[str, object]


def step_schema(options: ChatOptions) -> _Node:
    """Return the schema of one step: a call of any of the tools, or a final answer where one is allowed.

    Each tool's own schema may refer to places inside itself; those references are rewritten, and so is the
    caller's `response_schema`, which then is the schema of the final answer.
    """
    definitions: _Node = {}
    branches = [
        _closed({TOOL: {"const": tool.name}, ARGUMENTS: _placed(dict(tool.parameters), definitions)})
        for tool in options.tools
    ]
    if options.tool_choice != "required":
        final: object = {"type": "string"}
        if options.response_schema is not None:
            final = _placed(dict(options.response_schema), definitions)
        branches.append(_closed({FINAL: final}))
    schema: _Node = branches[0] if len(branches) == 1 else {"anyOf": branches}
    return {**schema, "$defs": definitions} if definitions else schema


def shape_schema(tools: Sequence[ToolSpec]) -> _Node:
    """Return what tells a step from other JSON, without looking at the arguments: they are checked later."""
    call: _Node = {
        "properties": {TOOL: {"enum": [tool.name for tool in tools]}, ARGUMENTS: {"type": "object"}},
        "required": [TOOL, ARGUMENTS],
    }
    return {"type": "object", "anyOf": [call, {"required": [FINAL]}]}


def instruction(options: ChatOptions) -> str:
    """Return how to take a step, for the model to read."""
    lines = ["Reply with one JSON object and nothing else. You can use these tools:"]
    for tool in options.tools:
        schema = msgspec.json.encode(tool.parameters).decode()
        lines.append(f"- {tool.name}: {' '.join(tool.description.split())} Arguments: {schema}")
    lines.append("To use a tool, reply like this:")
    lines += [msgspec.json.encode(_sample(tool)).decode() for tool in options.tools]
    if options.tool_choice != "required":
        lines.append('When you know the answer, reply like this:\n{"final":"..."}')
    return "\n".join(lines)


def _sample(tool: ToolSpec) -> _Node:
    named = fields_of(tool.parameters.get("properties"))
    return {TOOL: tool.name, ARGUMENTS: dict.fromkeys(named, "...")}


def _closed(properties: _Node) -> _Node:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _placed(schema: _Node, definitions: _Node) -> _Node:
    """Return the schema, or a reference to its place in `definitions` when it refers to its own parts."""
    place = f"#/$defs/part{len(definitions)}"
    try:
        moved = _moved(schema, place)
    except RecursionError as error:
        raise UsageError("a tool's schema is nested too deep; make it flatter") from error
    if moved == schema:
        return schema
    definitions[f"part{len(definitions)}"] = moved
    return {"$ref": place}


def _moved(value: object, place: str) -> object:
    if items_of(value):
        return [_moved(item, place) for item in items_of(value)]
    return {name: _pointed(name, each, place) for name, each in fields_of(value).items()} or value


def _pointed(name: str, value: object, place: str) -> object:
    if name == "$ref" and isinstance(value, str) and value.startswith("#"):
        return place + value[1:]
    return _moved(value, place)
