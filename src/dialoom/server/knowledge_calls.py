"""Calls on knowledge bases: list, make, take documents in, ask."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, TypeAlias

import msgspec
from starlette.responses import Response, StreamingResponse

from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.rag.service.requests import AnyRequest, Ingest, Query, SearchChunks, Stats
from dialoom.server.background import Background
from dialoom.server.files import FileStore
from dialoom.server.hub import EVERYONE, EventHub, encode_event
from dialoom.server.knowledge import KnowledgeBases, OpenBase
from dialoom.server.problems import ProblemError, problem_of
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.sse import MEDIA_TYPE
from dialoom.server.watched import custom

MAX_AT_ONCE = 100
Fields: TypeAlias = dict[str, Any]
_Words = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]


class BaseState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A knowledge base; `manifest` says how its index was made, None while that is empty."""

    id: str
    name: str
    documents: int
    passages: int
    manifest: Fields | None
    read_only: bool


class BaseList(msgspec.Struct, frozen=True):
    """The knowledge bases there are; those that cannot be opened are in `problems`, each with why."""

    items: list[BaseState]
    problems: dict[str, str]


class NewBase(msgspec.Struct, frozen=True):
    """A knowledge base to make."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class IngestFiles(msgspec.Struct, frozen=True, rename="camel"):
    """Uploaded files, or a web page, to take in."""

    file_ids: Annotated[list[str], msgspec.Meta(max_length=MAX_AT_ONCE)] = []
    url: Annotated[str, msgspec.Meta(max_length=4096)] | None = None


class Started(msgspec.Struct, frozen=True):
    """A job that goes on; its progress comes as `ingest.progress` events."""

    job: str


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """A question; with `stream` the answer comes as server-sent events, `delta` by `delta`, then `final`."""

    question: _Words
    top_k: Annotated[int, msgspec.Meta(ge=1, le=100)] = 6
    stream: bool = False
    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class _Stats(msgspec.Struct, frozen=True):
    documents: int
    chunks: int
    manifest: Fields | None


class _Failure(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


_NO_FAILURE = _Failure()


class _Report(msgspec.Struct, frozen=True):
    failures: list[_Failure] = []


class KnowledgeCalls:
    """Serves knowledge bases; takes uploaded files in off the call that asked for it."""

    def __init__(
        self, bases: KnowledgeBases, files: FileStore, hub: EventHub, background: Background
    ) -> None:
        self._bases = bases
        self._files = files
        self._hub = hub
        self._background = background

    def routes(self) -> list[AnyRoute]:
        one = "/api/v1/kb/{id}"
        return [
            Route("GET", "/api/v1/kb", self.list_all, answer=BaseList, summary="List knowledge bases"),
            Route(
                "POST", "/api/v1/kb", self.create, body=NewBase, answer=BaseState, status=201,
                summary="Make a knowledge base",
            ),
            Route("GET", one + "/health", self.show, answer=BaseState, summary="Show a knowledge base"),
            Route(
                "DELETE", one, self.remove, refusals=(409,),
                summary="Delete a knowledge base and its documents for good",
            ),
            Route(
                "POST", one + "/ingest", self.ingest, body=IngestFiles, answer=Started, status=202,
                summary="Take uploaded files or a web page in",
            ),
            Route(
                "POST", one + "/query", self.query, body=Question, answer=Fields, also=(MEDIA_TYPE,),
                summary="Answer a question with citations",
            ),
        ]  # fmt: skip

    async def list_all(self, _call: Call[Nothing, Nothing]) -> BaseList:
        items: list[BaseState] = []
        problems: dict[str, str] = {}
        for base_id in await self._bases.ids():
            try:
                items.append(await _state_of(await self._bases.open(base_id)))
            except Exception as error:  # noqa: BLE001 - seam: one broken index must not hide the others
                problems[base_id] = str(problem_of(error))
        return BaseList(items, problems)

    async def create(self, call: Call[Nothing, NewBase]) -> BaseState:
        return await _state_of(await self._bases.create(call.body.name))

    async def show(self, call: Call[Nothing, Nothing]) -> BaseState:
        return await _state_of(await self._bases.open(call.id()))

    async def remove(self, call: Call[Nothing, Nothing]) -> None:
        if self._background.is_going(f"ingest {call.id()}"):
            raise ProblemError(409, "busy", "documents are being taken in here; wait until that is done")
        await self._bases.remove(call.id())

    async def ingest(self, call: Call[Nothing, IngestFiles]) -> Started:
        base = await self._bases.open(call.id())
        if base.read_only:
            raise ProblemError(403, "read_only", "this knowledge base is read-only; ask who writes it")
        wanted = call.body
        if (wanted.url is None) == (not wanted.file_ids):
            raise UsageError("give fileIds or a url, one of the two")
        infos = [await asyncio.to_thread(self._files.find, each) for each in wanted.file_ids]
        names = [await self._bases.add_file(base.id, each, self._files.path(each.id)) for each in infos]
        paths = [self._bases.document(base.id, each) for each in names or [wanted.url or ""]]
        job = new_id()
        self._background.start(self._take_in(base, job, paths), f"ingest {base.id}")
        return Started(job)

    async def query(self, call: Call[Nothing, Question]) -> Fields | Response:
        base, asked = await self._bases.open(call.id()), call.body
        question = Query(query=asked.question, session_id=asked.session_id, stream=asked.stream)
        if asked.stream:
            return StreamingResponse(
                _event_lines(base, question), headers={"X-Accel-Buffering": "no"}, media_type=MEDIA_TYPE
            )
        hits = await base.ask(SearchChunks(query=asked.question, k=asked.top_k))
        answer = await base.ask(question)
        return {**answer[-1], "hits": hits[-1]["hits"]}

    async def _take_in(self, base: OpenBase, job: str, paths: list[str]) -> None:
        for done, path in enumerate(paths):
            self._tell(base, job, "reading", done, len(paths))
            try:
                report = (await base.ask(Ingest(paths=[path], replace=True)))[-1]
            except ProblemError as problem:
                self._tell(
                    base, job, "failed", done, len(paths), failure=_Failure(problem.code, str(problem))
                )
                return
            for failure in msgspec.convert(report, _Report).failures:
                self._tell(base, job, "skipped", done, len(paths), failure=failure)
        self._tell(base, job, "done", len(paths), len(paths))

    def _tell(
        self, base: OpenBase, job: str, phase: str, done: int, total: int, *, failure: _Failure = _NO_FAILURE
    ) -> None:
        value = {"kb": base.id, "job": job, "phase": phase, "done": done, "total": total}
        value |= {"error": failure.message, "code": failure.code}
        self._hub.publish(EVERYONE, custom("ingest.progress", value))


async def _state_of(base: OpenBase) -> BaseState:
    stats = msgspec.convert((await base.ask(Stats()))[-1], _Stats)
    return BaseState(
        id=base.id,
        name=base.name,
        documents=stats.documents,
        passages=stats.chunks,
        manifest=stats.manifest,
        read_only=base.read_only,
    )


async def _event_lines(base: OpenBase, question: AnyRequest) -> AsyncGenerator[bytes]:
    async with aclosing(base.answer(question)) as lines:
        async for line in lines:
            yield b"data: %s\n\n" % encode_event(line)
