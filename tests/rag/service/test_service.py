"""Requests and what the service answers, without any pipe."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from dialoom.llm import Gate, MockProvider, ProviderError, TextDelta, Usage
from dialoom.rag import (
    HashEmbedder,
    InMemoryVectorStore,
    LoadError,
    LoadOptions,
    RagConfig,
    SlidingWindowChunker,
    parse_condition,
)
from dialoom.rag.errors import InvalidOptionsError, ManifestMismatchError, ManifestMissingError, StoreError
from dialoom.rag.service import (
    RagService,
    RequestError,
    Response,
    ServiceAccess,
    ServiceSettings,
    access_from,
)
from dialoom.rag.service.requests import AnyRequest
from dialoom.rag.store import SyncStore
from dialoom.rag.types import FloatMatrix
from dialoom.stores import SqliteVectorStore
from dialoom.testing.clock import ManualClock

SOON = 60.0
FEES = "Refunds take three business days after the parcel has come back."


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "kb"
    folder.mkdir()
    (folder / "fees.md").write_text(FEES, encoding="utf-8")
    (folder / "shipping.txt").write_text("Shipping a lamp to Norway costs nine euros.", encoding="utf-8")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SyncStore]:
    with SqliteVectorStore(tmp_path / "index.sqlite") as opened:
        yield opened


def settings(store: SyncStore, provider: MockProvider | None = None, **fields: object) -> ServiceSettings:
    return ServiceSettings(
        store=store,
        embedder=HashEmbedder(),
        chunker=SlidingWindowChunker(),
        provider=provider or MockProvider(),
        **fields,
    )


async def opened(store: SyncStore, provider: MockProvider | None = None, **fields: object) -> RagService:
    service = RagService(settings(store, provider, **fields), clock=ManualClock())
    await service.open()
    return service


def read(service: RagService, fields: dict[str, object]) -> AnyRequest:
    return service.accept(json.dumps(fields).encode())


async def ask(service: RagService, **fields: object) -> list[Response]:
    async with asyncio.timeout(SOON):
        return [line async for line in service.answer(read(service, fields))]


async def last(service: RagService, **fields: object) -> Response:
    return (await ask(service, **fields))[-1]


@pytest.mark.promise("service-006", "service-016", "service-028")
async def test_a_new_service_fills_its_index_from_its_documents(store: SyncStore, docs: Path) -> None:
    service = await opened(store, docs=str(docs), access=ServiceAccess(token="t"))
    health = [line async for line in service.answer(service.accept(b'{"id":1,"op":"health","auth":"t"}'))]
    assert health == [
        {"id": 1, "ok": True, "status": "ready", "chunks": 2, "auth_required": True, "read_only": False}
    ]
    (docs / "more.txt").write_text("More.", encoding="utf-8")
    await opened(store, docs=str(docs))
    assert len(store) == 2  # it was not empty


@pytest.mark.promise("service-008", "service-010", "service-011", "service-012")
async def test_a_question_is_answered_in_pieces_and_then_as_a_whole(store: SyncStore, docs: Path) -> None:
    usage = Usage(input_tokens=90, output_tokens=9)
    provider = MockProvider().queue_text("Three business days [1].", chunks=3, usage=usage)
    service = await opened(store, provider, docs=str(docs))
    *deltas, final = await ask(service, id="q", op="query", query="How long do refunds take?")
    assert {line["event"] for line in deltas} == {"delta"}
    assert {line["id"] for line in (*deltas, final)} == {"q"}
    assert "".join(str(line["text"]) for line in deltas) == "Three business days [1]."
    sources = final.pop("sources")
    assert isinstance(sources, list)
    assert sources[0]["doc_id"] == f"{docs.as_posix()}/fees.md"
    assert len(str(final.pop("run_id"))) == 36
    assert final == {
        "id": "q",
        "event": "final",
        "ok": True,
        "answer": "Three business days [1].",
        "cited_sources": [sources[0]],
        "cited_indexes": [1],
        "usage": {
            "input_tokens": 90,
            "output_tokens": 9,
            "cache_read_tokens": None,
            "cache_write_tokens": None,
            "reasoning_tokens": None,
        },
        "stop_reason": "finished",
    }


async def test_an_answer_may_be_asked_for_in_one_piece(store: SyncStore, docs: Path) -> None:
    service = await opened(store, MockProvider().queue_text("Three [1].", chunks=3), docs=str(docs))
    lines = await ask(service, id=1, op="query", query="How long?", stream=False)
    assert [line["event"] for line in lines] == ["final"]


@pytest.mark.promise("service-013", "service-014")
async def test_a_session_goes_on_and_keeps_its_newest_messages(store: SyncStore, docs: Path) -> None:
    provider = MockProvider()
    service = await opened(store, provider, docs=str(docs), max_sessions=2)
    for turn in range(25):
        provider.queue_text(f"answer {turn}")
        await ask(service, op="query", query=f"question {turn}", session_id="a")
    told = [message.text for message in provider.requests[-1].messages[1:]]
    assert (told[0], told[-2:], len(told)) == ("question 4", ["answer 23", "question 24"], 41)
    for other in ("b", "c", "a"):
        provider.queue_text("hello")
        await ask(service, op="query", query="again", session_id=other)
    assert len(provider.requests[-1].messages) == 2  # forgotten: two others came after it
    provider.queue_text("hello")
    await ask(service, op="query", query="alone")
    assert len(provider.requests[-1].messages) == 2
    assert (await last(service, op="stats"))["sessions"] == 2


async def test_two_questions_of_one_session_are_answered_one_after_the_other(
    store: SyncStore, docs: Path
) -> None:
    gate = Gate()
    provider = MockProvider().queue_events(TextDelta("first"), gate).queue_text("second")
    service = await opened(store, provider, docs=str(docs))
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        one = group.create_task(last(service, id=1, op="query", query="one", session_id="a"))
        await gate.reached.wait()
        two = group.create_task(last(service, id=2, op="query", query="two", session_id="a"))
        assert (await last(service, id=3, op="health"))["ok"]
        assert not two.done()
        gate.opened.set()
    assert (one.result()["answer"], two.result()["answer"]) == ("first", "second")
    assert [message.text for message in provider.requests[1].messages[1:]] == ["one", "first", "two"]


async def test_a_model_that_fails_gives_no_answer_and_leaves_the_session_as_it_was(
    store: SyncStore, docs: Path
) -> None:
    provider = MockProvider().queue_events(
        TextDelta("Thr"), ProviderError("server_error", "the model is down", retryable=False)
    )
    service = await opened(store, provider.queue_text("Three."), docs=str(docs))
    final = await last(service, id=1, op="query", query="one", session_id="a")
    assert (final["ok"], final["event"], final["stop_reason"]) == (False, "final", "error")
    assert (final["answer"], final["error"]) == ("Thr", "the model is down")
    assert (await last(service, op="query", query="two", session_id="a"))["answer"] == "Three."
    assert len(provider.requests[-1].messages) == 2


async def test_an_empty_question_is_refused(store: SyncStore, docs: Path) -> None:
    service = await opened(store, docs=str(docs))
    for op in ("query", "search"):
        assert await last(service, id=1, op=op, query=" ") == {
            "id": 1,
            "ok": False,
            "error": "the question is empty; ask something",
            "code": "empty_query",
        }


async def test_a_question_can_be_cancelled_by_its_id(store: SyncStore, docs: Path) -> None:
    gate = Gate()
    service = await opened(store, MockProvider().queue_events(TextDelta("Thr"), gate), docs=str(docs))
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        asked = group.create_task(last(service, id="q", op="query", query="one"))
        await gate.reached.wait()
        assert (await last(service, id=2, op="cancel", target="other"))["cancelled"] is False
        assert (await last(service, id="q", op="query", query="one"))["code"] == "duplicate_id"
        assert await last(service, id=3, op="cancel", target="q") == {"id": 3, "ok": True, "cancelled": True}
    final = asked.result()
    assert (final["ok"], final["stop_reason"], final["answer"]) == (False, "cancelled", "Thr")


@pytest.mark.promise("service-029")
async def test_a_question_that_takes_too_long_is_given_up(store: SyncStore, docs: Path) -> None:
    gate = Gate()
    provider = MockProvider().queue_events(gate)
    service = await opened(store, provider, docs=str(docs), timeout=0.5)
    final = await last(service, id=1, op="query", query="one")
    assert (final["ok"], final["event"], final["stop_reason"]) == (False, "final", "timeout")


async def test_one_request_too_many_is_refused_and_those_without_an_id_count_too(
    store: SyncStore, docs: Path
) -> None:
    gate = Gate()
    service = await opened(store, MockProvider().queue_events(gate), docs=str(docs), max_running=1)
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        group.create_task(last(service, op="query", query="one"))
        await gate.reached.wait()
        assert (await last(service, id=2, op="query", query="two"))["code"] == "busy"
        assert (await last(service, id=3, op="health"))["ok"]
        service.cancel_all()


@pytest.mark.promise("service-007")
@pytest.mark.parametrize("replace", [False, True])
async def test_files_folders_and_what_is_wrong_with_them_are_taken_in(
    store: SyncStore, docs: Path, replace: bool
) -> None:
    service = await opened(store)
    (docs / "broken.pdf").write_bytes(b"nonsense")
    (docs / "left.bin").write_bytes(b"nonsense")
    asked = [str(docs), str(docs / "missing.txt"), "http://127.0.0.1/", str(docs / "fees.md")]
    report = await last(service, id=1, op="ingest", paths=asked, replace=replace)
    failures = report.pop("failures")
    assert report == {"id": 1, "ok": True, "documents": 3, "chunks": 3}
    assert isinstance(failures, list)
    assert [failure["code"] for failure in failures] == ["corrupt", "unreadable", "address"]
    assert len(store) == 2


async def test_replacing_takes_the_old_end_of_a_document_out(store: SyncStore, docs: Path) -> None:
    service = await opened(store)
    (docs / "fees.md").write_text("A sentence. " * 200, encoding="utf-8")
    await last(service, op="ingest", paths=[str(docs / "fees.md")])
    (docs / "fees.md").write_text("Short.", encoding="utf-8")
    await last(service, op="ingest", paths=[str(docs / "fees.md")])
    assert len(store) > 1
    await last(service, op="ingest", paths=[str(docs / "fees.md")], replace=True)
    assert len(store) == 1


class Blocking(HashEmbedder):
    """Holds the first text it is given until a test lets go; fails on one."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        self.reached.set()
        await self.opened.wait()
        return await super().embed_documents(texts)


async def test_questions_go_on_while_documents_come_in_and_an_ingest_can_be_stopped(
    store: SyncStore, docs: Path
) -> None:
    embedder = Blocking()
    service = RagService(
        ServiceSettings(
            store=store, embedder=embedder, chunker=SlidingWindowChunker(), provider=MockProvider()
        )
    )
    await service.open()
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        taking = group.create_task(last(service, id="in", op="ingest", paths=[str(docs)]))
        await embedder.reached.wait()
        assert (await last(service, op="search", query="refunds"))["hits"] == []
        assert (await last(service, op="stats"))["running"] == 1
        await last(service, op="cancel", target="in")
        embedder.opened.set()
    assert taking.result() == {
        "id": "in",
        "ok": False,
        "error": "the request was cancelled",
        "code": "cancelled",
    }
    assert len(store) == 1


async def test_a_folder_is_synced_with_progress(store: SyncStore, docs: Path) -> None:
    service = await opened(store)
    *progress, report = await ask(service, id=1, op="sync", path=str(docs), progress=True)
    kinds = [line["progress"]["type"] for line in progress]  # type: ignore[index]  # JSON
    assert kinds == ["ingest.started", "ingest.document_done", "ingest.document_done"]
    assert report["ok"]
    (docs / "fees.md").unlink()
    (line,) = await ask(service, id=2, op="sync", path=str(docs))
    assert line["report"]["removed"] == 1  # type: ignore[index]  # JSON
    gone = await last(service, id=3, op="sync", path=str(docs / "missing"))
    assert (gone["ok"], gone["code"]) == (False, "unreadable")


async def test_passages_are_found_without_a_model_and_documents_taken_out(
    store: SyncStore, docs: Path
) -> None:
    service = await opened(store, docs=str(docs))
    name = f"{docs.as_posix()}/fees.md"
    (hit,) = (await last(service, op="search", query="How long do refunds take?", k=1))["hits"]  # type: ignore[misc]  # JSON
    assert (hit["doc_id"], hit["text"], hit["title"]) == (name, FEES, "fees.md")
    low = await last(service, op="search", query="How long do refunds take?", min_score=1.0)
    assert low["hits"] == []
    assert await last(service, id=1, op="delete", documents=[name, "missing"]) == {
        "id": 1,
        "ok": True,
        "chunks": 1,
    }
    assert store.documents() == [f"{docs.as_posix()}/shipping.txt"]
    await last(service, op="sync", path=str(docs))
    assert len(store) == 2  # its file is still there


async def test_the_service_tells_what_it_has_done(store: SyncStore, docs: Path) -> None:
    service = await opened(store, docs=str(docs))
    await ask(service, op="health")
    assert await last(service, id=9, op="stats") == {
        "id": 9,
        "ok": True,
        "chunks": 2,
        "documents": 2,
        "manifest": {
            "embedder": HashEmbedder().id,
            "model": HashEmbedder().model,
            "dim": HashEmbedder().dim,
            "chunker": SlidingWindowChunker().signature(),
            "format": 1,
        },
        "sessions": 0,
        "running": 0,
        "answered": 1,
        "seconds": 0.0,
    }


async def test_a_copy_is_written_where_the_store_can_do_that(store: SyncStore, tmp_path: Path) -> None:
    service = await opened(store)
    assert (await last(service, op="snapshot", path="copy"))["code"] == "unsupported"
    written: list[str] = []
    service = await opened(store, snapshot=written.append)
    assert (await last(service, id=1, op="snapshot", path="copy")) == {"id": 1, "ok": True, "path": "copy"}
    assert written == ["copy"]


@pytest.mark.promise("service-022", "service-023", "service-024", "service-025", "service-027")
async def test_a_read_only_service_changes_nothing(store: SyncStore, docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    read_only = access_from({"DIALOOM_RAG_READ_ONLY": "1"})
    with pytest.raises(ManifestMissingError):
        await opened(store, access=read_only)
    await opened(store, docs=str(docs))
    before = path.read_bytes()
    with SqliteVectorStore(path, read_only=True) as shared:
        provider = MockProvider().queue_text("Three business days [1].")
        service = await opened(shared, provider, access=read_only, snapshot=lambda _: None)
        for fields in (
            {"op": "ingest", "paths": [str(docs)]},
            {"op": "sync", "path": str(docs)},
            {"op": "delete", "documents": [f"{docs.as_posix()}/fees.md"]},
            {"op": "snapshot", "path": str(path)},
        ):
            assert (await last(service, id=1, **fields))["code"] == "read_only"
        assert (await last(service, op="health"))["read_only"] is True
        assert (await last(service, op="query", query="How long do refunds take?"))["cited_indexes"] == [1]
    assert path.read_bytes() == before


@pytest.mark.promise("service-017")
async def test_an_index_of_another_embedder_or_chunker_is_refused(store: SyncStore, docs: Path) -> None:
    await opened(store, docs=str(docs))
    for access in (ServiceAccess(), ServiceAccess(read_only=True)):
        other = ServiceSettings(
            store=store,
            embedder=HashEmbedder(64),
            chunker=SlidingWindowChunker(),
            provider=MockProvider(),
            access=access,
        )
        with pytest.raises(ManifestMismatchError):
            await RagService(other).open()


async def test_documents_that_are_not_there_are_an_error_at_the_start(
    store: SyncStore, tmp_path: Path
) -> None:
    with pytest.raises(LoadError):
        await opened(store, docs=str(tmp_path / "missing"))


@pytest.mark.promise("service-026")
def test_settings_that_contradict_each_other_are_refused() -> None:
    store = InMemoryVectorStore()
    for fields in (
        {"access": ServiceAccess(read_only=True), "docs": "kb"},
        {"timeout": 0.0},
        {"max_running": 0},
        {"max_sessions": 0},
    ):
        with pytest.raises(InvalidOptionsError):
            settings(store, **fields)


class Failing(InMemoryVectorStore):
    def __init__(self, error: Callable[[], Exception]) -> None:
        super().__init__()
        self.error = error

    def add(self, *_: object) -> None:
        raise self.error()

    def documents(self) -> list[str]:
        raise self.error()


@pytest.mark.promise("service-031")
async def test_whatever_goes_wrong_inside_is_an_answer_and_the_service_lives_on(docs: Path) -> None:
    service = await opened(Failing(lambda: RuntimeError("odd\nthing")))
    assert await last(service, id=1, op="stats") == {
        "id": 1,
        "ok": False,
        "error": "odd thing",
        "code": "error",
    }
    service = await opened(Failing(lambda: StoreError("the disk is full; make room")))
    assert (await last(service, id=1, op="stats"))["code"] == "store"
    report = await last(service, id=1, op="ingest", paths=[str(docs / "fees.md")])
    assert [failure["message"] for failure in report["failures"]] == ["the disk is full; make room"]  # type: ignore[union-attr]  # JSON
    assert (await last(service, op="health"))["ok"]
    assert await last(service, id=3, op="shutdown") == {"id": 3, "ok": True}


async def test_an_embedding_server_that_refuses_the_key_is_asked_once(store: SyncStore, docs: Path) -> None:
    class Refused(HashEmbedder):
        asked = 0

        async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
            self.asked += 1
            raise ProviderError("auth", "the key is refused; set another one")

    refused = Refused()
    service = RagService(msgspec.structs.replace(settings(store), embedder=refused), clock=ManualClock())
    answer = await last(service, id=1, op="ingest", paths=[str(docs)])
    assert answer == {
        "id": 1,
        "ok": False,
        "error": "the key is refused; set another one",
        "code": "provider",
    }
    assert refused.asked == 1


ABOUT_FEES: dict[str, object] = {"op": "contains", "field": "doc_id", "value": "fees.md"}


async def test_channels_may_have_other_names_in_the_settings(store: SyncStore, docs: Path) -> None:
    names = RagConfig(history_channel="talk", sources_channel="shown", chunks_channel="found")
    service = await opened(store, MockProvider().queue_text("See [1]."), docs=str(docs), config=names)
    final = await last(service, op="query", query="refunds", session_id="s")
    assert (final["ok"], final["cited_indexes"]) == (True, [1])


async def test_a_request_looks_only_where_its_filter_lets_it(store: SyncStore, docs: Path) -> None:
    provider = MockProvider().queue_text("See [1].")
    service = await opened(store, provider, docs=str(docs))
    about = {"query": "lamp refunds days Norway", "filter": ABOUT_FEES}
    final = await last(service, op="query", **about)
    assert [Path(str(source["doc_id"])).name for source in listed(final["sources"])] == ["fees.md"]
    found = await last(service, op="search", **about)
    assert [Path(str(hit["doc_id"])).name for hit in listed(found["hits"])] == ["fees.md"]


async def test_who_asks_sees_and_hears_only_what_is_theirs(store: SyncStore, docs: Path) -> None:
    options = LoadOptions(metadata={"acl": ["finance"]})
    provider = MockProvider()
    config = RagConfig(where=parse_condition(ABOUT_FEES))
    service = await opened(store, provider, docs=str(docs), load=options, config=config)
    asked: dict[str, object] = {
        "op": "query",
        "query": "How long do refunds take to Norway?",
        "session_id": "s",
    }
    sources: dict[str, list[str]] = {}
    for name in ("finance", "sales"):
        provider.queue_text(f"This is for {name}.")
        final = await last(service, **asked, principals=[name])
        sources[name] = [Path(str(source["doc_id"])).name for source in listed(final["sources"])]
    assert sources == {"finance": ["fees.md"], "sales": []}  # and never what the service keeps back
    assert "This is for finance." not in [message.text for message in provider.requests[-1].messages]
    assert (await last(service, op="search", query="refunds", principals=[]))["hits"] == []
    assert len(listed((await last(service, op="search", query="refunds"))["hits"])) == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"filter": {"op": "like", "field": "a", "value": "b"}}, "bad_request"),
        ({"filter": {"field": "a", "value": "b"}}, "bad_request"),
        ({"filter": {"op": "eq", "field": "", "value": "b"}}, "invalid_options"),
        ({"filter": {"op": "eq", "field": "a", "value": "\x00"}}, "invalid_options"),
        ({"filter": "lang = 'zh'"}, "bad_request"),
        ({"principals": "finance"}, "bad_request"),
        ({"principals": [""]}, "bad_request"),
    ],
)
async def test_a_filter_that_cannot_be_read_is_refused_with_the_id(
    store: SyncStore, fields: dict[str, object], code: str
) -> None:
    service = await opened(store)
    with pytest.raises(RequestError) as caught:
        read(service, {"id": 7, "op": "search", "query": "q", **fields})
    assert (caught.value.id, caught.value.code) == (7, code)


def listed(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return value
