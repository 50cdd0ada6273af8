"""How well does a provider read what servers really send? Cases are served from loopback and scored.

`run_cases([path], make_provider)` plays each case of a JSONL file as it was recorded, in one piece, byte by
byte and cut in two at every place. Any object that is a `Provider` can be scored.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from dialoom.llm.anthropic.provider import AnthropicProvider
from dialoom.llm.messages import tool_result, user
from dialoom.llm.openai.provider import OpenAIProvider
from dialoom.llm.options import ChatOptions, Timeouts
from dialoom.llm.profile import ANTHROPIC_PROFILE, WireProfile
from dialoom.llm.provider import Provider, chat
from dialoom.llm.response import ChatResponse
from dialoom.llm.retry import RetryPolicy
from dialoom.llm.structured.chat import chat_structured
from dialoom.net.direct import DirectTransport
from dialoom.net.transport import HttpTransport
from dialoom.testing.wire import WireReply, WireRequest, WireServer
from dialoom.testing.wire_case import WireCase, read_cases
from dialoom.testing.wire_checks import Outcome, problems_of

RUN_SECONDS = 60.0
SECRET = "sk-ab123456yz"  # noqa: S105 - a marker: it must not be seen in any error
MODEL = "demo-model"
_MOST_PROBLEMS = 5


class CaseTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where `case` is served, for the maker of a provider. `wire` is `openai` or `anthropic`."""

    root: str
    wire: str
    api_key: str
    profile: WireProfile
    case: str = ""

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"


class MakeProvider(Protocol):
    """Makes the provider to be scored, once for each case."""

    def __call__(self, target: CaseTarget) -> Provider: ...


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a case went: the ways it was cut, how many of them were read wrong, and the first problems."""

    id: str
    title: str
    runs: int
    wrong: int
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.wrong == 0


def our_providers(transport: HttpTransport) -> MakeProvider:
    """Return what makes dialoom's own provider for a case, over one transport for all."""

    def make(target: CaseTarget) -> Provider:
        if target.wire == "anthropic":
            profile = msgspec.structs.replace(ANTHROPIC_PROFILE, streaming=target.profile.streaming)
            return AnthropicProvider(target.root, target.api_key, transport=transport, profile=profile)
        return OpenAIProvider(target.base_url, target.api_key, transport=transport, profile=target.profile)

    return make


async def run_cases(
    paths: Sequence[Path], make_provider: MakeProvider | None = None, *, most_cuts: int | None = None
) -> list[CaseResult]:
    """Play every case of `paths` and return its score; without a maker, dialoom's own providers are scored.

    `most_cuts` bounds how often one body is cut in two. Raises `UsageError` on a file that holds no cases.
    """
    cases = [case for path in paths for case in read_cases(path)]
    async with DirectTransport() as transport:
        make = make_provider or our_providers(transport)
        return [await run_case(case, make, most_cuts=most_cuts) for case in cases]


async def run_case(
    case: WireCase, make_provider: MakeProvider, *, most_cuts: int | None = None
) -> CaseResult:
    """Play one case in every way it can be cut."""
    if "wait_s" in case.expect:
        most_cuts = 0  # each run waits for real
    runs = wrong = 0
    problems: list[str] = []
    async with _played(case, make_provider) as play:
        for way, pieces in case.cuts(most_cuts):
            found = list(problems_of(await play.run(pieces), case.expect))
            runs += 1
            wrong += bool(found)
            problems += [f"{way}: {problem}" for problem in found]
    first = tuple(problems[:_MOST_PROBLEMS])
    return CaseResult(id=case.id, title=case.title, runs=runs, wrong=wrong, problems=first)


@asynccontextmanager
async def _played(case: WireCase, make_provider: MakeProvider) -> AsyncGenerator["_Play"]:
    script: list[WireReply] = []

    def next_reply(_: WireRequest) -> WireReply:
        return script.pop(0) if len(script) > 1 else script[0]  # a request too many is counted, not refused

    async with WireServer(next_reply) as server:
        target = CaseTarget(
            case=case.id, root=server.url, wire=case.provider, api_key=SECRET, profile=case.profile
        )
        provider = make_provider(target)
        try:
            yield _Play(case, provider, server, script=script)
        finally:
            await provider.aclose()


class _Play:
    """One case before one provider."""

    def __init__(
        self, case: WireCase, provider: Provider, server: WireServer, *, script: list[WireReply]
    ) -> None:
        self._case = case
        self._provider = provider
        self._server = server
        self._script = script
        self._options = ChatOptions(
            model=MODEL,
            tools=case.tools,
            retry=RetryPolicy(first_wait=0.01),
            timeouts=Timeouts(total=RUN_SECONDS),
        )

    async def run(self, pieces: tuple[bytes, ...]) -> Outcome:
        """Serve the body in `pieces` and return what the provider made of it."""
        self._server.requests.clear()
        self._script[:] = self._replies(pieces)
        began = time.monotonic()
        answer, error, value = None, None, None
        try:
            async with asyncio.timeout(RUN_SECONDS):
                answer, value = await self._ask()
        except Exception as failure:  # noqa: BLE001 - seam: any provider may be judged here
            error = failure
        return Outcome(
            answer=answer,
            error=error,
            value=value,
            sent=list(self._server.requests),
            seconds=time.monotonic() - began,
            secret=SECRET,
            replayed=await self._replayed(answer, pieces) if answer is not None else {},
        )

    def _replies(self, pieces: tuple[bytes, ...]) -> Iterator[WireReply]:
        now = time.time()
        yield self._case.reply(pieces, now=now)
        for later in self._case.then:
            yield later.reply(later.pieces, now=now)

    async def _ask(self) -> tuple[ChatResponse | None, object]:
        schema, history = self._case.request.response_schema, self._case.history()
        if schema is None:
            return await chat(self._provider, history, self._options), None
        return None, (await chat_structured(self._provider, history, schema, options=self._options)).value

    async def _replayed(self, answer: ChatResponse, pieces: tuple[bytes, ...]) -> dict[str, object]:
        """Send the answer back with the next question, and return that request's body."""
        if "replay" not in self._case.expect:
            return {}
        results = [tool_result(call.id, "done") for call in answer.tool_calls]
        history = [*self._case.history(), answer.message, *results, user("Go on.")]
        self._server.requests.clear()
        self._script[:] = self._replies(pieces)
        await chat(self._provider, history, self._options)
        return self._server.requests[0].json()
