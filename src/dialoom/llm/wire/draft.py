"""An answer under way on any wire: what it says so far, and the response it becomes."""

from collections.abc import Callable, Collection, Container

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.assembly import Assembly
from dialoom.llm.events import ResponseCompleted, ResponseStarted, StreamEvent, UsageUpdate, Warned
from dialoom.llm.json_values import text_of
from dialoom.llm.messages import Message, Origin
from dialoom.llm.response import ChatResponse, FinishReason
from dialoom.llm.tool_deltas import ToolCallAssembler
from dialoom.llm.usage import Usage
from dialoom.llm.wire.prompt_size import PromptSize


class AnswerDraft:
    """What every decoder keeps of its answer; it stands in `assembly`, where readers see it grow.

    `calls` puts the tool calls together. `started`: the server has begun to answer.
    """

    def __init__(
        self,
        assembly: Assembly,
        origin: Origin,
        *,
        prompt: PromptSize,
        new_id: Callable[[], str],
        taken_ids: Collection[str] = (),
    ) -> None:
        self.origin = origin
        self.calls = ToolCallAssembler(new_id, taken_ids)
        self.started = False
        self._assembly = assembly
        self._prompt = prompt
        self._model = ""
        self._response_id: str | None = None

    @property
    def model(self) -> str:
        """The model that answers, by the server's word or by ours."""
        return self._model or self.origin.model

    def start(self, model: object, response_id: object = None) -> ResponseStarted:
        """Begin with the names the server gives, whatever they are."""
        self.started = True
        self.rename(model)
        self._response_id = replace_surrogates(text_of(response_id)) or None
        return ResponseStarted(model=self._model, response_id=self._response_id)

    def rename(self, model: object) -> None:
        """Take a name of the model that comes later; none changes nothing."""
        self._model = replace_surrogates(text_of(model)) or self._model

    def count(self, reported: Usage, events: list[StreamEvent]) -> None:
        """Add to `events` what is new in the counts reported."""
        usage = self._assembly.usage.updated(reported)
        if usage != self._assembly.usage:
            events.append(UsageUpdate(usage))

    def take(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """Take events in, and return them."""
        for event in events:
            self._assembly.add(event)
        return events

    def partial(self, rest: list[StreamEvent]) -> Message | None:
        """Return what has arrived of an answer that ends here with `rest`, None when nothing has."""
        self.take(rest)
        message = self._message()
        return message if message.parts else None

    def finish(self, rest: list[StreamEvent], reason: FinishReason, *, raw: str | None) -> list[StreamEvent]:
        """Return `rest` and behind it the whole response.

        `raw` is the server's word for `reason`; a `stop` is looked into: calls and refusals end so as well.
        """
        self.take(rest)
        message = self._message()
        response = ChatResponse(
            message=message,
            finish_reason=_looked_into(reason, message),
            raw_finish_reason=raw,
            usage=self._assembly.usage,
            model=self.model,
            response_id=self._response_id,
            warnings=tuple(self._assembly.warnings),
        )
        return [*rest, ResponseCompleted(response)]

    def prompt_warnings(self, *, remedy: str = "a larger context window") -> list[StreamEvent]:
        """Warn of a server that has read only a part of the prompt."""
        if not self._prompt.was_cut(self._assembly.usage.input_tokens):
            return []
        said = f"the server read less than was sent: it cut the prompt; give it {remedy}"
        return [Warned(code="prompt_truncated_by_server", message=said)]

    def _message(self) -> Message:
        return self._assembly.message(msgspec.structs.replace(self.origin, model=self.model))


def finish_warnings(raw: str | None, known: Container[str]) -> list[StreamEvent]:
    """Warn of an answer that ended without a reason, or for one that is not `known` in lower case."""
    if raw is None:
        said = "the server never said why the answer ended; taken as finished"
        return [Warned(code="finish_inferred", message=said)]
    if raw.lower() not in known:
        said = f"the server ended the answer for a reason of its own ({raw[:40]!r})"
        return [Warned(code="finish_unknown", message=said)]
    return []


def _looked_into(reason: FinishReason, message: Message) -> FinishReason:
    if reason != "stop":
        return reason
    if message.tool_calls:
        return "tool_calls"
    return "content_filter" if message.refusal else "stop"
