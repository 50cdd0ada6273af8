"""The service itself: takes a request, yields the lines of its answer. Knows nothing of pipes."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import assert_never

import msgspec

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import DialoomError
from dialoom.base.text import one_line
from dialoom.graph import Chunk as Emitted
from dialoom.graph import Graph, RunOptions, RunResult
from dialoom.llm.switch import StopSwitch
from dialoom.rag.context import cited_first, source_title
from dialoom.rag.errors import ManifestMissingError
from dialoom.rag.hybrid import HybridRetriever
from dialoom.rag.manifest import check_manifest, manifest_of
from dialoom.rag.query import AnswerCut, AnswerDelta, RagConfig, build_rag_query_graph
from dialoom.rag.retrieve import Search, both, visible_to
from dialoom.rag.service.intake import Intake
from dialoom.rag.service.requests import (
    AnyRequest,
    Cancel,
    Delete,
    Health,
    Ingest,
    Query,
    RequestError,
    RequestId,
    Response,
    SearchChunks,
    Shutdown,
    Snapshot,
    Stats,
    Sync,
    open_envelope,
    parse_request,
)
from dialoom.rag.service.sessions import Sessions
from dialoom.rag.service.settings import MAX_HISTORY, ServiceSettings
from dialoom.rag.store import ChunkFilter, removal
from dialoom.rag.sync import sync_folder
from dialoom.rag.sync_events import IngestFinished
from dialoom.rag.types import ScoredChunk

_log = logging.getLogger("dialoom.rag.service")
Looking = Health | Stats | Query | SearchChunks | Cancel | Shutdown
Changing = Ingest | Sync | Delete | Snapshot
_USUAL = RagConfig()


class RagService:
    """Answers requests, as many at a time as the settings allow. `open` it before the first one.

    Any number of tasks of one event loop may call `answer`; what changes the index is done one after the
    other, and questions go on meanwhile.
    """

    def __init__(self, settings: ServiceSettings, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._settings = settings
        self._clock = clock
        self._started = clock.monotonic()
        self._retriever = settings.config.retriever or HybridRetriever(settings.store, settings.embedder)
        self._config = msgspec.structs.replace(
            settings.config,
            max_history=min(settings.config.max_history, MAX_HISTORY),
            retriever=self._retriever,
            history_channel=_USUAL.history_channel,  # the graph is our own, and so are its names
            sources_channel=_USUAL.sources_channel,
            chunks_channel=_USUAL.chunks_channel,
        )
        self._graph = self._built(self._config)
        self._sessions = Sessions(settings.max_sessions)
        self._running: dict[RequestId, CancelScope] = {}
        self._unnamed: set[CancelScope] = set()
        self._answered = 0
        self._writing = asyncio.Lock()

    async def open(self) -> None:
        """See that the index fits, and fill an empty one from `docs`.

        Raises `ManifestMismatchError` for an index of another embedder or chunker, `ManifestMissingError`
        when a read-only service has no index to read, `LoadError` when `docs` is not there.
        """
        settings = self._settings
        wanted = manifest_of(settings.embedder, settings.chunker)
        stored = await asyncio.to_thread(lambda: settings.store.manifest)
        if stored is not None:
            check_manifest(stored, wanted)
        elif settings.access.read_only:
            raise ManifestMissingError("a read-only service needs an index; let a writing one make it first")
        if settings.docs is not None and not await asyncio.to_thread(len, settings.store):
            async for _ in self._sync(settings.docs, CancelScope()):
                pass

    def accept(self, line: bytes) -> AnyRequest:
        """Read one line. Raises `RequestError` for what is no request, and `unauthorized` before all else."""
        envelope = open_envelope(line)
        if not self._settings.access.admits(envelope.auth):
            raise RequestError("unauthorized", "unauthorized", id=envelope.id)
        return parse_request(line, envelope)

    async def answer(self, request: AnyRequest) -> AsyncGenerator[Response]:
        """The lines of the answer, each with the request's id. The last one, and only that, has `ok`."""
        scope = CancelScope()
        try:
            self._register(request, scope)
            changing = isinstance(request, Changing)
            lines = self._change(request, scope) if changing else self._look(request, scope)
            async with aclosing(lines):
                async for line in lines:
                    yield {"id": request.id, **line}
        except DialoomError as error:
            yield {"id": request.id, **refused(error.code, str(error))}
        except Cancelled as stopped:
            yield {"id": request.id, **refused(stopped.reason, "the request was cancelled")}
        except Exception as error:  # noqa: BLE001 - seam: whatever a store or provider raises, we live on
            _log.exception("request failed", extra={"op": type(request).__name__})
            yield {"id": request.id, **refused("error", one_line(str(error)) or type(error).__name__)}
        finally:
            self._answered += 1
            self._unnamed.discard(scope)
            if self._running.get(request.id) is scope:
                del self._running[request.id]

    def cancel_all(self) -> None:
        """Ask everything that is running to stop."""
        for scope in (*self._running.values(), *self._unnamed):
            scope.cancel()

    def _register(self, request: AnyRequest, scope: CancelScope) -> None:
        if isinstance(request, Changing) and self._settings.access.read_only:
            raise RequestError(
                "read_only", "this service is read-only; ask the one that writes", id=request.id
            )
        if isinstance(request, Health | Stats | Cancel | Shutdown):
            return
        if len(self._running) + len(self._unnamed) >= self._settings.max_running:
            raise RequestError("busy", "too many requests are running; wait for an answer", id=request.id)
        if request.id is None:
            self._unnamed.add(scope)
        elif self._running.setdefault(request.id, scope) is not scope:
            raise RequestError(
                "duplicate_id", "a request with this id is running; use another", id=request.id
            )

    def _look(self, request: Looking, scope: CancelScope) -> AsyncGenerator[Response]:
        match request:
            case Health():
                return self._health()
            case Stats():
                return self._stats()
            case Query():
                return self._query(request, scope)
            case SearchChunks():
                return self._search(request)
            case Cancel():
                return self._cancel(request)
            case Shutdown():
                return _bye()
            case _:
                assert_never(request)

    def _change(self, request: Changing, scope: CancelScope) -> AsyncGenerator[Response]:
        match request:
            case Ingest():
                return self._ingest(request, scope)
            case Sync():
                return self._sync(request.path, scope, progress=request.progress)
            case Delete():
                return self._delete(request, scope)
            case Snapshot():
                return self._snapshot(request, scope)
            case _:
                assert_never(request)

    async def _health(self) -> AsyncGenerator[Response]:
        access = self._settings.access
        yield done(
            status="ready",
            chunks=await asyncio.to_thread(len, self._settings.store),
            auth_required=bool(access.token),
            read_only=access.read_only,
        )

    async def _stats(self) -> AsyncGenerator[Response]:
        store = self._settings.store
        manifest = await asyncio.to_thread(lambda: store.manifest)
        yield done(
            chunks=await asyncio.to_thread(len, store),
            documents=len(await asyncio.to_thread(store.documents)),
            manifest=msgspec.to_builtins(manifest),
            sessions=len(self._sessions),
            running=len(self._running) + len(self._unnamed),
            answered=self._answered,
            seconds=round(self._clock.monotonic() - self._started, 3),
        )

    async def _query(self, request: Query, scope: CancelScope) -> AsyncGenerator[Response]:
        Search(text=request.query)  # an empty question is refused before it becomes a run
        options = RunOptions(timeout=self._settings.timeout, control=scope)
        key = None if request.session_id is None else (request.session_id, request.principals)
        graph = self._graph
        if request.filter or request.principals is not None:
            graph = self._built(msgspec.structs.replace(self._config, where=self._where(request)))
        async with self._sessions.turn(key) as session:
            cut = AnswerCut(code="")
            inputs = {"query": request.query, _USUAL.history_channel: session.history}
            async with graph.stream(inputs, options) as stream:
                async for event in stream:
                    match event:
                        case Emitted(value=AnswerDelta(text=text)) if request.stream:
                            yield {"event": "delta", "text": text}
                        case Emitted(value=AnswerCut() as value):
                            cut = value
                        case _:
                            pass
                result = stream.result
            if result.stop_reason == "finished":
                session.history = list(result.state[_USUAL.history_channel])
            yield _final(result, cut)

    async def _search(self, request: SearchChunks) -> AsyncGenerator[Response]:
        config = self._config
        search = Search(
            text=request.query,
            k=request.k,
            where=self._where(request),
            principals=config.principals,
            min_score=request.min_score if request.min_score is not None else config.min_score,
        )
        yield done(hits=[_hit(hit) for hit in await self._retriever.retrieve(search)])

    def _where(self, request: Query | SearchChunks) -> ChunkFilter | None:
        """What a request may look at: what it asks for, within what the service lets everybody see."""
        return both(self._config.where, both(request.filter, visible_to(request.principals)))

    def _built(self, config: RagConfig) -> Graph:
        settings = self._settings
        return build_rag_query_graph(settings.store, settings.embedder, settings.provider, config).build()

    @asynccontextmanager
    async def _turn(self, scope: CancelScope) -> AsyncGenerator[None]:
        """The one change that is under way; who is cancelled while it waits does not wait on."""
        with StopSwitch(scope) as switch:
            await switch.wait(self._writing.acquire)
        try:
            yield
        finally:
            self._writing.release()

    async def _ingest(self, request: Ingest, scope: CancelScope) -> AsyncGenerator[Response]:
        async with self._turn(scope):
            report = await Intake(self._settings, replace=request.replace).take(request.paths, scope)
        yield done(**_fields(report))

    async def _sync(
        self, path: str, scope: CancelScope, *, progress: bool = False
    ) -> AsyncGenerator[Response]:
        settings = self._settings
        async with self._turn(scope):
            events = sync_folder(
                path,
                settings.store,
                embedder=settings.embedder,
                chunker=settings.chunker,
                options=settings.load,
                cancel=scope,
            )
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, IngestFinished):
                        yield done(report=msgspec.to_builtins(event.report))
                    elif progress:
                        yield {"event": "progress", "progress": msgspec.to_builtins(event)}

    async def _delete(self, request: Delete, scope: CancelScope) -> AsyncGenerator[Response]:
        store, names = self._settings.store, request.documents

        def delete() -> int:
            before = len(store)
            store.change_sources([], forget=names)
            store.replace_documents([removal(name) for name in names])
            return before - len(store)

        async with self._turn(scope):
            yield done(chunks=await asyncio.to_thread(delete))

    async def _snapshot(self, request: Snapshot, scope: CancelScope) -> AsyncGenerator[Response]:
        write = self._settings.snapshot
        if write is None:
            raise RequestError("unsupported", "this index cannot be copied while it is in use", id=request.id)
        async with self._turn(scope):
            await asyncio.to_thread(write, request.path)
        yield done(path=request.path)

    async def _cancel(self, request: Cancel) -> AsyncGenerator[Response]:
        scope = self._running.get(request.target)
        if scope is not None:
            scope.cancel()
        yield done(cancelled=scope is not None)


def done(**fields: object) -> Response:
    """The last line of an answer that succeeded."""
    return {"ok": True, **fields}


def refused(code: str, message: str) -> Response:
    """The last line of one that did not."""
    return {"ok": False, "error": message, "code": code}


async def _bye() -> AsyncGenerator[Response]:
    yield done()


def _final(result: RunResult, cut: AnswerCut) -> Response:
    state = result.state
    finished = result.stop_reason == "finished"
    sources = msgspec.to_builtins(cited_first(state[_USUAL.sources_channel], cut.cited))
    cited = list(state["answer_cited_indexes"]) if finished else []
    line: Response = {
        "event": "final",
        "answer": state["answer"] if finished else cut.partial,
        "sources": sources,
        "cited_sources": [sources[index - 1] for index in cited],
        "cited_indexes": cited,
        "usage": msgspec.to_builtins(state["usage"]),
        "stop_reason": result.stop_reason,
        "run_id": result.run_id,
    }
    if finished:
        return done(**line)
    message = cut.message or next((error.message for error in result.errors), "")
    words = message or f"the question was not answered: {result.stop_reason}"
    return {**line, **refused(cut.code or result.stop_reason, words)}


def _hit(hit: ScoredChunk) -> Response:
    return {**_fields(hit.chunk), "title": source_title(hit.chunk), "score": hit.score}


def _fields(value: msgspec.Struct) -> Mapping[str, object]:
    return msgspec.convert(msgspec.to_builtins(value), dict[str, object])
