"""Who judges a ticket: a model that is shown the nearest cases, and the rules where it cannot."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from dialoom.apps.triage.cases import CaseIndex, Found, Job
from dialoom.apps.triage.rows import Case, Ticket
from dialoom.apps.triage.rules import DEFAULT_RULES, Rules, by_rules
from dialoom.apps.triage.verdict import Hit, Judged, Verdict, question, schema
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm import ChatOptions, Provider, ProviderError, Usage, chat_structured

CITED: Final = 2
"""So many of the nearest cases stand behind a reply that cites none of those it was shown."""
MAX_CATEGORIES: Final = 100
"""A model is shown all of them with each ticket."""
_HOPELESS: Final = frozenset({"auth", "quota"})
"""Kinds of failures that the next ticket would meet too."""


class Asked(msgspec.Struct, frozen=True):
    """The model that is asked, its label (like `openai:gpt-4o`), and how long and how often it is asked."""

    provider: Provider
    label: str
    options: ChatOptions


class Desk:
    """Judges tickets. Safe for many tickets at once on one event loop."""

    def __init__(
        self, index: CaseIndex, asked: Asked | None, *, top_k: int, rules: Rules = DEFAULT_RULES
    ) -> None:
        """Without `asked` the rules judge alone. The categories are those of the cases.

        Raises `UsageError` when there are more than `MAX_CATEGORIES`.
        """
        self.index = index
        self.asked = asked
        self._options = ChatOptions() if asked is None else _patient(asked.options)
        self._top_k = top_k
        self._rules = rules
        self._categories = sorted({case.category for case in index.cases.values()})
        if len(self._categories) > MAX_CATEGORIES:
            told = f"the cases have {len(self._categories)} categories, at most {MAX_CATEGORIES}"
            raise UsageError(f"{told}; give several the same name")
        self._schema = schema(self._categories)
        self._given_up = ""

    @property
    def mode(self) -> Literal["model", "offline"]:
        return "offline" if self.asked is None else "model"

    async def judge(self, job: Job) -> Judged:
        """Return what a ticket comes to; the note says why when the model's answer is not taken."""
        found = await self.index.search(job, self._top_k)
        cases = [each.case for each in found]
        outcome = await self._ask(job.ticket, cases)
        verdict, note = outcome.verdict, outcome.why
        if verdict is None:
            verdict = by_rules(job.ticket, cases, self._categories, self._rules)
            note = note if verdict.citations else f"{note}; no case fits"
        return Judged(
            id=job.ticket.id,
            category=verdict.category,
            priority=verdict.priority,
            reply=verdict.reply,
            citations=_citations(verdict, cases),
            retrieved=tuple(map(_hit, found)),
            source="fallback" if outcome.verdict is None else "model",
            note=note,
            usage=outcome.usage,
        )

    async def _ask(self, ticket: Ticket, cases: Sequence[Case]) -> "_Outcome":
        if self.asked is None:
            return _Outcome(why="no model was asked")
        if self._given_up:
            return _Outcome(why=f"the model was not asked again: {self._given_up}")
        messages = question(ticket, cases, self._categories)
        try:
            result = await chat_structured(self.asked.provider, messages, self._schema, options=self._options)
        except ProviderError as error:
            told = one_line(str(error))
            if error.kind in _HOPELESS:
                self._given_up = told
            return _Outcome(why=f"the model failed: {told}")
        verdict = msgspec.convert(result.value, Verdict) if result.ok else None
        if verdict is not None and verdict.reply.strip():
            return _Outcome(verdict=verdict, usage=result.usage)
        told = [f"{each.path}: {each.message}" for each in result.violations] or ["$.reply: it is blank"]
        wrong = one_line("; ".join(told))
        return _Outcome(why=f"the model's answer was dropped: {wrong}", usage=result.usage)


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a model made of a ticket, or why there is no such thing."""

    verdict: Verdict | None = None
    why: str = ""
    usage: Usage = Usage()


def _patient(options: ChatOptions) -> ChatOptions:
    """Have each request wait as long as `options` have the whole answer wait, and whatever fails asked again.

    Nobody watches: a server that was silent for its time may be asked once more, and an answer that broke
    off was read by nobody.
    """
    waits, retry = options.timeouts, options.retry
    again = retry.attempts - 1
    whole = waits.total + again * (retry.longest_wait + waits.total)
    return msgspec.structs.replace(
        options,
        timeouts=msgspec.structs.replace(waits, total=whole),
        retry=msgspec.structs.replace(retry, on_interrupt="restart"),
    )


def _citations(verdict: Verdict, cases: Sequence[Case]) -> tuple[str, ...]:
    """Return the cited ids that were shown, each once; without one, those of the nearest cases."""
    shown = [case.id for case in cases]
    cited = dict.fromkeys(each for each in verdict.citations if each in shown)
    return tuple(cited) or tuple(shown[:CITED])


def _hit(found: Found) -> Hit:
    return Hit(found.case.id, round(found.score, 4))
