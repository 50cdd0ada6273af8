"""The words and options that ask a model for a value of a schema, and for a better one."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from dialoom.llm.json_schema import Violation
from dialoom.llm.messages import Message, assistant, system, tool_result, user
from dialoom.llm.options import ChatOptions, ToolSpec
from dialoom.llm.response import ChatResponse
from dialoom.llm.structured.result import StructuredMode

AskedIn = StructuredMode | Literal["both"]
"""`both`: by the server's schema and in words, for a provider of which nothing is known."""

TOOL_NAME = "answer"


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A question whose answer is to match a schema."""

    schema: Mapping[str, object]
    messages: tuple[Message, ...]
    options: ChatOptions


def asked_in(asking: Asking, mode: AskedIn) -> Asking:
    """Return the question as one mode asks it; tools of the caller's are left out."""
    tool = ToolSpec(name=TOOL_NAME, description="Give the answer.", parameters=asking.schema)
    options = msgspec.structs.replace(
        asking.options,
        tools=(tool,) if mode == "tool" else (),
        tool_choice="required" if mode == "tool" else None,
        parallel_tool_calls=None,
        response_schema=asking.schema if mode in {"native", "both"} else None,
    )
    messages = asking.messages
    if mode in {"prompt", "both"}:
        messages = instructed(messages, _instruction(asking.schema))
    return msgspec.structs.replace(asking, messages=messages, options=options)


def instructed(messages: tuple[Message, ...], instruction: str) -> tuple[Message, ...]:
    """Return the messages with an instruction at the end of the leading system message, or in a new one.

    Many chat templates read a system message only when it is the first and the only one.
    """
    if messages and messages[0].role == "system":
        first = msgspec.structs.replace(
            messages[0], parts=(*messages[0].parts, *system(f"\n\n{instruction}").parts)
        )
        return (first, *messages[1:])
    return (system(instruction), *messages)


def repair_of(
    asking: Asking, mode: AskedIn, response: ChatResponse, violations: tuple[Violation, ...]
) -> Asking:
    """Return the question with the answer that did not match and what is wrong with it."""
    problems = "\n".join(f"- {each.path}: {each.message}" for each in violations)
    said = response.message
    complaint = f"That answer does not match the schema:\n{problems}\n"
    if said.tool_calls:
        again = (*_results(said, f"{complaint}Call {TOOL_NAME} again with the whole corrected answer."),)
    elif mode == "tool":
        again = (user(f"{complaint}Call {TOOL_NAME} with the whole corrected answer."),)
    else:
        again = (user(complaint + _instruction(asking.schema)),)
    if not said.parts:
        said = assistant("(no answer)")
    return msgspec.structs.replace(asking, messages=(*asking.messages, said, *again))


def _results(said: Message, complaint: str) -> list[Message]:
    return [tool_result(call.id, complaint, name=call.name, is_error=True) for call in said.tool_calls]


def _instruction(schema: Mapping[str, object]) -> str:
    text = msgspec.json.encode(schema).decode()
    return f"Reply with one JSON value and nothing else. It must match this JSON Schema:\n{text}"
