"""The questions of an examination. Each gives one finding, whatever the server does."""

import re

from dialoom.base.text import one_line
from dialoom.llm.doctor.probing import Probing
from dialoom.llm.doctor.report import Finding
from dialoom.llm.errors import ProviderError
from dialoom.llm.json_schema import JsonSchema, extract_json
from dialoom.llm.messages import user
from dialoom.llm.options import ToolSpec
from dialoom.llm.response import ChatResponse

_THINK = re.compile(r"<(think|thinking|reasoning)>")
_WINDOW = re.compile(
    r"(?:context (?:size|length|window)|maximum context length is|max_model_len)[^0-9]{0,20}(\d{3,8})",
    re.IGNORECASE,
)
_CODE = {
    "type": "object",
    "properties": {"code": {"enum": ["zebra-7"]}},
    "required": ["code"],
    "additionalProperties": False,
}
_ADD = ToolSpec(
    name="add",
    description="Add two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)
MARKER = "The secret word is: butterfly-42."


async def probe_models(probing: Probing) -> tuple[Finding, int | None]:
    """Find the model on the server's list, with the context window in tokens that the list tells."""
    try:
        models = await probing.provider.models()
    except ProviderError as error:
        return Finding(probe="models", verdict="no", detail=_said(error)), None
    named = next((model for model in models if model.id == probing.model), None)
    window = named.context_window if named else None
    if probing.model is None:
        return Finding(probe="models", verdict="yes", detail=f"{len(models)} listed"), None
    if named is None:
        detail = f"{len(models)} listed, {one_line(probing.model, 60)} is not among them"
        return Finding(probe="models", verdict="partly", detail=detail), None
    return Finding(probe="models", verdict="yes", detail=f"{len(models)} listed, this one too"), window


def chat_findings(answer: ChatResponse) -> list[Finding]:
    """What one plain answer tells: that there is one, its token counts, its reasoning."""
    counted = answer.usage.input_tokens is not None
    found = [
        Finding(probe="chat", verdict="yes", detail=f"ends with {answer.finish_reason}"),
        Finding(
            probe="token counts",
            verdict="yes" if counted else "no",
            detail="" if counted else "none in its answers; limits and costs cannot be kept",
        ),
    ]
    tags = _THINK.search(answer.text)
    if answer.reasoning:
        found.append(Finding(probe="reasoning", verdict="yes", detail="in a field of its own"))
    elif tags:
        pair = (f"<{tags[1]}>", f"</{tags[1]}>")
        detail = f"inside the text, between {pair[0]} and {pair[1]}"
        found.append(
            Finding(probe="reasoning", verdict="partly", detail=detail, changes={"think_tags": pair})
        )
    else:
        found.append(Finding(probe="reasoning", verdict="no", detail="none shown"))
    return found


async def probe_schema(probing: Probing) -> Finding:
    """Find out whether a schema is enforced, by a word that no model would say by itself."""
    name = "json schema"
    try:
        answer = await probing.ask(user("Say hello to Ada."), response_schema=_CODE)
    except ProviderError as error:
        return Finding(probe=name, verdict="no", detail=_said(error))
    if JsonSchema(_CODE).accepts(extract_json(answer.text)):
        return Finding(probe=name, verdict="yes", detail="enforced by the server")
    return Finding(
        probe=name, verdict="no", detail="accepted and ignored; answers are checked here and repaired"
    )


def schema_unsent(mode: str) -> Finding:
    """What is known of schemas where the profile sends none."""
    detail = f"none is sent: the profile asks for values in {mode} mode"
    return Finding(probe="json schema", verdict="unknown", detail=detail)


async def probe_tools(probing: Probing, *, schema_enforced: bool) -> Finding:
    """Find out whether a tool call can be forced; when not, it may be had by schema."""
    otherwise = "schema" if schema_enforced else "off"
    try:
        answer = await probing.ask(
            user("Please call add with a=2 and b=3."), tools=(_ADD,), tool_choice="required"
        )
    except ProviderError as error:
        return Finding(probe="tools", verdict="no", detail=_said(error), changes={"tool_mode": otherwise})
    call = next(iter(answer.tool_calls), None)
    if call is None:
        detail = f"a forced call is answered with prose; tools are used in {otherwise} mode"
        return Finding(probe="tools", verdict="no", detail=detail, changes={"tool_mode": otherwise})
    if call.name != _ADD.name or not JsonSchema(_ADD.parameters).accepts(call.arguments):
        problem = call.problem or "against its schema"
        return Finding(
            probe="tools", verdict="partly", detail=f"called, but with arguments that are {problem}"
        )
    return Finding(probe="tools", verdict="yes", detail="a forced call comes with valid arguments")


async def probe_parallel(probing: Probing) -> Finding:
    """Find out whether two calls come in one answer."""
    name = "parallel calls"
    question = "Call add twice at once: first with a=1 and b=2, and second with a=3 and b=4."
    try:
        answer = await probing.ask(
            user(question), tools=(_ADD,), tool_choice="required", parallel_tool_calls=True
        )
    except ProviderError as error:
        return Finding(probe=name, verdict="no", detail=_said(error))
    calls = len(answer.tool_calls)
    return Finding(probe=name, verdict="yes" if calls > 1 else "no", detail=f"{calls} in one answer")


async def probe_window(probing: Probing) -> tuple[Finding, int | None]:
    """Find out whether a long prompt is read whole, refused, or cut without a word, and the window if told.

    Two short prompts tell how many tokens a line has; the long one has to count as many. A marker at its
    head is proof when the model repeats it.
    """
    name = "long prompts"
    try:
        one, two = [await probing.ask(user(_long(size)), max_tokens=1) for size in (1, 11)]
        line = _per_line(one, two)
        if line is None:
            return Finding(probe=name, verdict="unknown", detail="the server does not count tokens"), None
        lines = max(12, int(probing.limits.prompt_tokens / line))
        answer = await probing.ask(user(_long(lines)))
    except ProviderError as error:
        return _refused(name, error)
    expected = int((one.usage.input_tokens or 0) + line * (lines - 1))
    read = answer.usage.input_tokens or 0
    if "butterfly-42" in answer.text.lower() or read >= 0.9 * expected:
        return Finding(probe=name, verdict="yes", detail=f"{read} tokens are read whole"), None
    detail = f"{expected} tokens are cut to {read} without a word; give the server a larger context window"
    return Finding(probe=name, verdict="no", detail=detail), read


def _refused(name: str, error: ProviderError) -> tuple[Finding, int | None]:
    if error.kind != "context_window":
        return Finding(probe=name, verdict="unknown", detail=_said(error)), None
    told = _WINDOW.search(str(error))
    size = int(told[1]) if told else None
    detail = f"refused with an error, as it should be{f'; the window is {size} tokens' if size else ''}"
    return Finding(probe=name, verdict="yes", detail=detail), size


def _per_line(one: ChatResponse, two: ChatResponse) -> float | None:
    few, more = one.usage.input_tokens, two.usage.input_tokens
    return (more - few) / 10 if few is not None and more is not None and more > few else None


def _long(lines: int) -> str:
    filler = "\n".join(f"{number}: the river runs from the hills to the sea." for number in range(lines))
    return f"{MARKER}\n{filler}\nRepeat the secret word."


def _said(error: ProviderError) -> str:
    return one_line(str(error), 120)
