"""What is wrong with what a provider made of a wire case, in words; nothing when all is right."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import cast

import msgspec

from dialoom.base.text import one_line
from dialoom.llm.errors import ProviderError
from dialoom.llm.json_values import fields_of, items_of, text_of
from dialoom.llm.messages import ToolCall
from dialoom.llm.response import ChatResponse
from dialoom.testing.wire import WireRequest
from dialoom.testing.wire_case import Node


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one request: an answer or an error, what was sent for it, and the seconds it took.

    `value` is the answer to a case that asks for a value of a schema; `replayed` is the body of the next
    request, which sends the answer back.
    """

    answer: ChatResponse | None = None
    error: Exception | None = None
    value: object = None
    sent: Sequence[WireRequest] = ()
    replayed: Node = {}
    seconds: float = 0.0
    secret: str = ""


def problems_of(outcome: Outcome, expect: Node) -> Iterator[str]:
    """Compare `outcome` with what a case expects of it."""
    if expect.get("outcome") == "ok":
        yield from _answer_problems(outcome, expect)
    else:
        yield from _error_problems(outcome, expect)
    attempts = expect.get("attempts")
    if attempts is not None and len(outcome.sent) != attempts:
        yield f"{len(outcome.sent)} requests, not {attempts}"
    wait = cast("list[float]", expect.get("wait_s"))
    if wait and not wait[0] <= outcome.seconds <= wait[1] + 2:  # a busy machine is no fault
        yield f"waited {outcome.seconds:.2f} s, not {wait[0]} to {wait[1]}"
    sent = fields_of(expect.get("sent"))
    if sent:
        yield from _sent_problems(outcome.sent[0].json() if outcome.sent else {}, sent)
    replay = fields_of(expect.get("replay"))
    if replay:
        yield from _replay_problems(outcome.replayed, replay)


def _answer_problems(outcome: Outcome, expect: Node) -> Iterator[str]:
    answer = outcome.answer
    if outcome.error is not None:
        yield f"no answer but {one_line(repr(outcome.error))}"
    elif outcome.value != expect.get("structured"):
        yield f"the value {one_line(repr(outcome.value), 80)}"
    if answer is None:
        return
    said: dict[str, object] = {
        "finish_reason": answer.finish_reason,
        "text": answer.text,
        "text_len": len(answer.text),
        "reasoning": answer.reasoning,
        "refusal": answer.message.refusal,
    }
    wanted = {"reasoning": "", "refusal": "", **expect}
    for name, value in said.items():
        if name in wanted and value != wanted[name]:
            yield f"{name} {one_line(repr(value), 80)}, not {one_line(repr(wanted[name]), 80)}"
    counts = msgspec.structs.asdict(answer.usage)
    for name, count in fields_of(expect.get("usage")).items():
        if counts.get(name) != count:
            yield f"{name} {counts.get(name)}, not {count}"
    missing = set(items_of(expect.get("warnings"))) - set(answer.warnings)
    if missing:
        yield f"no warning {missing}"
    if "prompt_truncated_by_server" in answer.warnings and not expect.get("warnings"):
        yield "warns of a cut prompt without reason"
    yield from _call_problems(answer.tool_calls, items_of(expect.get("tool_calls")))


def _call_problems(calls: Sequence[ToolCall], wanted: Sequence[object]) -> Iterator[str]:
    if len(calls) != len(wanted):
        yield f"{len(calls)} tool calls, not {len(wanted)}"
        return
    if len({call.id for call in calls}) != len(calls) or not all(call.id for call in calls):
        yield "tool calls without an id of their own"
    for call, each in zip(calls, map(fields_of, wanted), strict=True):
        marked = text_of(each.get("id"))
        if call.name != each.get("name"):
            yield f"tool {one_line(call.name, 40)!r}, not {each.get('name')!r}"
        if marked.startswith("!") and call.id == marked[1:]:
            yield f"call id {marked[1:]!r}, which the conversation knows already"
        if not marked.startswith("!") and marked not in {"*", call.id}:
            yield f"call id {one_line(call.id, 40)!r}, not {marked!r}"
        if each.get("arguments_invalid"):
            if call.arguments is not None or call.problem != "truncated":
                yield "arguments that were cut and could be run"
        elif call.arguments != each.get("arguments"):
            yield f"arguments {one_line(repr(call.arguments), 80)}"


def _error_problems(outcome: Outcome, expect: Node) -> Iterator[str]:
    error = outcome.error
    if error is None:
        yield "an answer where an error was due"
        return
    wanted = fields_of(expect.get("error"))
    shown = f"{error} {error!r}"
    if outcome.secret in shown or "\n" in shown:
        yield "an error that shows the key or has several lines"
    if text_of(wanted.get("message_contains")) not in shown:
        yield f"error {one_line(shown, 80)!r} without {wanted.get('message_contains')!r}"
    if not isinstance(error, ProviderError):
        yield f"{type(error).__name__} instead of a typed error"
        return
    if error.kind != wanted.get("type", error.kind):
        yield f"error kind {error.kind}, not {wanted['type']}"
    if error.retryable != wanted.get("retryable", error.retryable):
        yield f"retryable {error.retryable}"
    partial = error.partial.text if error.partial else ""
    if partial != expect.get("partial_text", partial):
        yield f"partial text {one_line(partial, 80)!r}"


def _sent_problems(body: Node, wanted: Node) -> Iterator[str]:
    """Check what was sent; a rule that is not known here is passed over."""
    messages = [fields_of(message) for message in items_of(body.get("messages"))]
    roles = [message.get("role") for message in messages]
    asked = [text_of(call.get("id")) for message in messages for call in _calls(message)]
    answered = [
        (text_of(result.get("id")), text_of(result.get("content")))
        for message in messages
        for result in _results(message)
    ]
    ids = [call_id for call_id, _ in answered]
    words = text_of(wanted.get("synthesised_result_says"))
    first = wanted.get("first_message_role", roles[0] if roles else None)
    talk = [role for role in roles if role != "system"]
    rules = {
        "every_call_answered": ids == asked,
        "no_orphan_tool_results": set(ids) <= set(asked),
        "synthesised_result_says": any(words in content for _, content in answered),
        "last_user_kept": bool(roles) and roles[-1] == "user",
        "system_kept": "system" in roles or "developer" in roles or bool(body.get("system")),
        "first_message_role": bool(roles) and roles[0] == first,
        "roles_alternate": all(one != two for one, two in pairwise(talk)),
        "tool_results_in_one_user_message": sum(bool(_results(message)) for message in messages) <= 1,
        "tool_results_before_text": all(map(_results_come_first, messages)),
        "no_unsigned_thinking_blocks": all(
            block.get("signature") for block in _blocks(messages) if block.get("type") == "thinking"
        ),
    }
    yield from (f"sent against the rule {rule}" for rule in wanted if not rules.get(rule, True))


def _replay_problems(body: Node, wanted: Node) -> Iterator[str]:
    """Check that the answer went back with its thoughts as they came, by their proofs."""
    messages = [fields_of(message) for message in items_of(body.get("messages"))]
    said = [message for message in messages if message.get("role") == "assistant"]
    blocks = [_block_name(block) for block in _blocks(said[-1:])]
    if "assistant_blocks" in wanted and blocks != wanted["assistant_blocks"]:
        yield f"sent back as {blocks}"


def _block_name(block: Node) -> str:
    proofs = [f"{name}={block[name]}" for name in ("signature", "data") if name in block]
    return f"{block.get('type')}({proofs[0]})" if proofs else text_of(block.get("type"))


def _blocks(messages: Sequence[Node]) -> list[Node]:
    return [fields_of(block) for message in messages for block in items_of(message.get("content"))]


def _calls(message: Node) -> list[Node]:
    blocks = [block for block in _blocks([message]) if block.get("type") == "tool_use"]
    return [*(fields_of(call) for call in items_of(message.get("tool_calls"))), *blocks]


def _results(message: Node) -> list[Node]:
    """Return the tool results of a message of either wire, as `id` and `content`."""
    if message.get("role") == "tool":
        return [{"id": message.get("tool_call_id"), "content": message.get("content")}]
    found = [block for block in _blocks([message]) if block.get("type") == "tool_result"]
    return [{"id": block.get("tool_use_id"), "content": block.get("content")} for block in found]


def _results_come_first(message: Node) -> bool:
    kinds = [block.get("type") == "tool_result" for block in _blocks([message])]
    return kinds == sorted(kinds, reverse=True)
