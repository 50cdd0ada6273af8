"""What a turn of an agent came to: the answer, how it was reached, and how to go on."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, Literal, Self, TypeAlias, cast

import msgspec

from dialoom.agent.events import AgentStep
from dialoom.agent.guards import Blocked
from dialoom.agent.history import history_of, steps_of
from dialoom.agent.pending import Approval, Pending, Question
from dialoom.agent.spec import AgentSpec
from dialoom.agent.stored import AGENT_TYPES
from dialoom.base.errors import StoreError, UsageError
from dialoom.base.text import one_line
from dialoom.graph.checkpoint import Checkpoint
from dialoom.graph.codec import CheckpointCodec
from dialoom.graph.frontier import Interrupt
from dialoom.graph.result import RunResult
from dialoom.llm.messages import Message
from dialoom.llm.usage import Usage
from dialoom.llm.usage_limits import Spent
from dialoom.tools.observe import to_plain, without_surrogates

FORMAT: Final = 1
AgentStopReason: TypeAlias = Literal[
    "finished",
    "needs_approval",
    "max_iterations",
    "usage_limit",
    "length",
    "refused",
    "blocked",
    "cancelled",
    "timeout",
    "error",
    "conflict",
]
_WORDS: Final[dict[str, str]] = {
    "max_iterations": "the run took more supersteps than max_steps of its RunOptions; raise that and resume",
    "length": "the answer was cut off at its token limit; raise max_tokens, or ask for less",
    "refused": "the model refused to answer",
    "cancelled": "the run was cancelled; resume it, or ask anew",
    "timeout": "the run took longer than it may; resume it, or ask anew",
}
_CODEC: Final = CheckpointCodec(AGENT_TYPES, text=True)


class AgentResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended.

    - `answer`: the final words; those that had come, when the answer broke off; "" when there was none.
    - `output`: the value of an agent with an `output` type or schema, None without.
    - `history`: all messages of the thread, each call followed by its result, to go on with. It is valid for
      every wire: calls that were not finished are answered by `cancelled`, unless they wait for a person.
    - `events`: what happened in this turn, in a fixed order: rounds, calls, results in call order, answer.
    - `cost` is None when the price of an answer is not known.
    - `stop_reason` is `finished` for a whole answer and nothing else. `error` says why it is not.
    - `agent`: who answered, where one handed over to another; "" for the agent that was asked.
    - `pending`: what waits for a person when it is `needs_approval`.
    - `standing`: where the run stands, for `resume`; None when it is over or a store knows.
    """

    answer: str
    history: tuple[Message, ...]
    events: tuple[AgentStep, ...]
    usage: Usage
    cost: Decimal | None
    stop_reason: AgentStopReason
    thread_id: str
    output: object = None
    agent: str = ""
    error: str | None = None
    pending: tuple[Pending, ...] = ()
    standing: Checkpoint | None = None

    @property
    def finished(self) -> bool:
        """Whether the model gave a whole answer."""
        return self.stop_reason == "finished"

    def to_dict(self) -> dict[str, object]:
        """Return the result as JSON values, for `from_dict` in this process or another.

        Raises `StoreError` when `standing` holds something that is none.
        """
        plain = msgspec.structs.replace(self, standing=None)
        fields: dict[str, object] = {"format": FORMAT, **cast("dict[str, object]", to_plain(plain))}
        if self.standing is not None:
            encoded = _CODEC.encode(self.standing, omit=frozenset())
            fields["standing"] = msgspec.json.decode(encoded)
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, object]) -> Self:
        """Read `to_dict` back; `output` stays plain values. Raises `UsageError`."""
        told = dict(fields)
        if told.pop("format", None) != FORMAT:
            raise UsageError(f"this is no agent result of format {FORMAT}; write results with `to_dict`")
        standing = told.pop("standing", None)
        try:
            result = msgspec.convert(told, cls)
            if standing is None:
                return result
            return msgspec.structs.replace(result, standing=_CODEC.decode(msgspec.json.encode(standing), {}))
        except (msgspec.ValidationError, StoreError) as error:
            raise UsageError(f"this is no agent result: {one_line(str(error))}") from error

    def to_json(self) -> str:
        """Return the result as one line of JSON; halves of characters become U+FFFD."""
        fields = self.to_dict()
        try:
            return msgspec.json.encode(fields).decode()
        except UnicodeEncodeError:
            return msgspec.json.encode(without_surrogates(fields)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read `to_json` back; errors as in `from_dict`."""
        try:
            fields = msgspec.json.decode(text, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UsageError(f"this is no agent result: {one_line(str(error))}") from error
        return cls.from_dict(fields)


def result_of(run: RunResult, spec: AgentSpec, *, standing: Checkpoint | None = None) -> AgentResult:
    """Return what a run of the graph of `spec` came to."""
    state, spent = run.state, cast("Spent", run.state.get("spent", Spent()))
    reason = _reason_of(run)
    pending = tuple(pending_of(each) for each in run.interrupts)
    waits_for = pending if reason == "needs_approval" else ()
    history = history_of(state, waiting=bool(waits_for))
    return AgentResult(
        answer=_answer_of(run),
        output=None if spec.output is None else spec.output.read(state.get("output", "")),
        agent=state.get("agent", ""),
        history=history,
        events=steps_of(state, history, waits_for),
        usage=spent.usage,
        cost=None if spent.unpriced else spent.cost,
        stop_reason=reason,
        error=_error_of(run, reason),
        pending=pending,
        thread_id=run.thread_id,
        standing=standing,
    )


def blocked_result(blocked: Blocked, history: Sequence[Message], *, thread_id: str) -> AgentResult:
    """Return the end of a turn that a guard did not let begin."""
    return AgentResult(
        answer="",
        history=tuple(history),
        events=(),
        usage=Usage(),
        cost=Spent().cost,
        stop_reason="blocked",
        error=str(blocked),
        thread_id=thread_id,
    )


def pending_of(interrupt: Interrupt) -> Pending:
    """Return a question of the engine as what it asks."""
    asked: Any = interrupt.payload
    if not isinstance(asked, Approval | Question):
        asked = Question(id=interrupt.id, tool=interrupt.node, payload=asked)
    return msgspec.structs.replace(asked, question=interrupt.id, refused=interrupt.refused or asked.refused)


def _reason_of(run: RunResult) -> AgentStopReason:
    match run.stop_reason:
        case "finished" | "halted":
            return run.state["outcome"] or "finished"
        case "interrupted":
            return "needs_approval"
        case "max_steps":
            return "max_iterations"
        case reason:
            return reason


def _answer_of(run: RunResult) -> str:
    """Return the words of the last message where they are an answer of this turn, whole or broken off."""
    state = run.state
    turn: Sequence[Message] = state.get("turn") or ()
    if not turn or turn[-1].role != "assistant" or turn[-1].tool_calls:
        return ""
    is_broken = len(turn) - 1 in {at for at, _ in state.get("broken") or ()}
    is_final = state.get("outcome") and not run.errors
    return turn[-1].text or turn[-1].refusal if is_broken or is_final else ""


def _error_of(run: RunResult, reason: AgentStopReason) -> str | None:
    if reason in {"finished", "needs_approval"}:
        return None
    if run.errors:
        return run.errors[0].message
    told = run.state["error"] if reason == run.state.get("outcome") else ""
    return told or _WORDS.get(reason, reason)
