"""A knowledge base as a server: found, read and quoted, while it is read in and while others change it."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import UsageError
from dialoom.cli.answer import FromDocuments
from dialoom.cli.flags import KnowledgeFlags, ModelFlags
from dialoom.cli.knowledge import bring_in, open_store
from dialoom.cli.mcp_knowledge import DocumentResources, document_text, knowledge_tools
from dialoom.cli.mcp_library import LIST_SECONDS, LOOK_SECONDS, TELL_SECONDS, Library, document_uri
from dialoom.cli.mcp_prompts import TEMPLATE, document_names, knowledge_prompts
from dialoom.cli.model import open_model
from dialoom.llm import ProviderError
from dialoom.llm.messages import ToolCall
from dialoom.mcp.server import Blank, ListChanged, News, ResourceChanged, ResourceText
from dialoom.rag import Chunk, Embedder, HashEmbedder, HybridRetriever, LoadError
from dialoom.rag.types import FloatMatrix
from dialoom.stores import SqliteVectorStore
from dialoom.testing.clock import ManualClock, settle
from dialoom.tools import ToolRegistry, ToolResult, ToolRun

pytestmark = pytest.mark.timeout(30)


class Served:
    """A knowledge base as clients see it."""

    def __init__(
        self, library: Library, store: SqliteVectorStore, registry: ToolRegistry, news: News
    ) -> None:
        self.library = library
        self.registry = registry
        self.resources = DocumentResources(library)
        self.retriever = HybridRetriever(store, HashEmbedder())
        self.answer, self.read = (each.fill for each in knowledge_prompts(library, self.retriever))
        self.complete = document_names(library)
        self.changes: asyncio.Queue[object] = asyncio.Queue()
        news.listen(self.changes.put_nowait)

    async def call(self, name: str, **arguments: object) -> Any:
        return (await self.result(name, **arguments)).structured

    async def result(self, name: str, run: ToolRun | None = None, **arguments: object) -> ToolResult:
        return await self.registry.execute(ToolCall(id="1", name=name, arguments=arguments), run)


@asynccontextmanager
async def serving(
    docs: Path | None, embedder: Embedder | None = None, clock: ManualClock | None = None
) -> AsyncGenerator[Served]:
    knowledge = KnowledgeFlags(docs=docs)
    async with open_model(ModelFlags(offline=True)) as opened:
        with open_store(knowledge) as store:
            news, embedder = News(), embedder or HashEmbedder()
            library = Library(store, docs, news, clock=clock or ManualClock())
            answerer = partial(FromDocuments, store, opened, knowledge, embedder)
            tools = knowledge_tools(library, HybridRetriever(store, HashEmbedder()), answerer)
            async with library.opened(embedder):
                yield Served(library, store, ToolRegistry(tools), news)


async def ingest(folder: Path) -> None:
    """What `dialoom ingest` does in another process."""
    with open_store(KnowledgeFlags(docs=folder)) as store:
        await bring_in(folder, store, HashEmbedder())


async def ingest_more(docs: Path) -> None:
    (docs / "more.md").write_text("More.", encoding="utf-8")
    await ingest(docs)


def place(file: Path) -> str:
    return str(file.absolute())


async def test_documents_are_found_read_and_quoted(docs: Path, terminal: object) -> None:
    (docs / "long.txt").write_text("Trailers have two wheels.\n" * 8000, encoding="utf-8")
    refunds, long = place(docs / "refunds.md"), place(docs / "long.txt")
    async with serving(docs) as served:
        found = await served.call("search", query="refunds", limit=1)
        assert [each["id"] for each in found["results"]] == [refunds]
        assert found["results"][0]["title"] == "refunds.md, Refunds"
        whole = await served.call("fetch", id=refunds)
        assert whole == {
            "id": refunds,
            "title": "refunds.md",
            "url": document_uri(refunds),
            "text": (docs / "refunds.md").read_text(encoding="utf-8").strip(),
            "metadata": whole["metadata"],
        }
        assert await served.call("fetch", id="refunds.md") == whole
        first = await served.call("fetch", id=long)
        rest = await served.call("fetch", id=long, offset=first["next_offset"])
        last = await served.call("fetch", id=long, offset=rest["next_offset"])
        text = (docs / "long.txt").read_text(encoding="utf-8").strip()
        assert first["text"] + rest["text"] + last["text"] == text
        assert "next_offset" not in last
        told = f"the document ends after {len(text)} characters; give an offset below that"
        assert (await served.call("fetch", id=long, offset=len(text) + 1))["error"] == told
        listed = await served.resources.listed(0, 10)
        assert [(each.name, each.title) for each in listed] == [("long.txt",) * 2, ("refunds.md",) * 2]
        assert await served.resources.read(document_uri(refunds)) == ResourceText(
            uri=document_uri(refunds), text=whole["text"]
        )
        for uri in ("rag://document/gone", "file:///etc/passwd"):
            assert await served.resources.read(uri) is None


async def test_what_goes_wrong_is_told_in_words_for_people(docs: Path, terminal: object) -> None:
    async with serving(docs) as served:
        gone, empty = await served.result("fetch", id="gone"), await served.result("search", query=" ")
        told = "there is no document 'gone'; take an id that search gave"
        assert (gone.is_error, gone.structured) == (True, {"error": told, "tool": "fetch"})
        told = "the question is empty; ask something"
        assert (empty.is_error, empty.structured) == (True, {"error": told, "tool": "search"})
        nothing = await served.result("ask", question=" ")
        assert (nothing.is_error, nothing.content) == (True, told)
        stopped = CancelScope()
        stopped.cancel()
        assert (await served.result("ask", ToolRun(cancel=stopped), question="how long?")).cancelled


async def test_a_document_of_many_passages_takes_no_other_s_place(docs: Path, terminal: object) -> None:
    many = "".join(f"# Part {number}\n\n{'Trailer brakes. ' * 40}\n\n" for number in range(30))
    (docs / "many.md").write_text(many, encoding="utf-8")
    (docs / "once.md").write_text("A long text that names trailer brakes once." + " More words." * 30)
    async with serving(docs) as served:
        found = await served.call("search", query="trailer brakes", limit=2)
        assert [each["title"].partition(",")[0] for each in found["results"]] == ["many.md", "once.md"]


async def test_what_else_the_index_holds_is_not_served(docs: Path, tmp_path: Path, terminal: object) -> None:
    private = tmp_path / "docs2"  # a name that begins like that of the folder which is served
    private.mkdir()
    (private / "salary.md").write_text("Refunds of salary are secret.", encoding="utf-8")
    await ingest(private)
    hidden = place(private / "salary.md")
    async with serving(docs) as served:
        found = await served.call("search", query="refunds of salary")
        assert [each["title"] for each in found["results"]] == ["refunds.md, Refunds"]
        assert "there is no document" in (await served.call("fetch", id=hidden))["error"]
        assert await served.resources.read(document_uri(hidden)) is None
        assert [each.name for each in await served.resources.listed(0, 10)] == ["refunds.md"]
        assert "secret" not in str(await served.answer({"question": "salary"}))
        with pytest.raises(UsageError, match="there is no document"):
            await served.read({"document": hidden})
    async with serving(None) as served:  # without a folder all of the index is
        assert [each.name for each in await served.resources.listed(0, 10)] == ["refunds.md", "salary.md"]
        assert (await served.call("fetch", id=hidden))["text"] == "Refunds of salary are secret."


async def test_one_file_may_be_served(docs: Path, terminal: object) -> None:
    (docs / "faq.jsonl").write_text('{"id": "en-1", "text": "Is it waterproof?"}\n', encoding="utf-8")
    async with serving(docs / "faq.jsonl") as served:
        (listed,) = await served.resources.listed(0, 10)
        assert listed.title == "faq.jsonl#en-1"
        assert "waterproof" in (await served.call("fetch", id="faq.jsonl#en-1"))["text"]


async def test_prompts_bring_passages_and_documents_to_the_host_s_model(docs: Path, terminal: object) -> None:
    async with serving(docs) as served:
        words, passage = await served.answer({"question": "How long do refunds take?"})
        assert isinstance(words, str)
        assert words.endswith("say so.\n\nHow long do refunds take?")
        uri = document_uri(place(docs / "refunds.md"))
        text = "# Refunds\n\nRefunds take three working days."
        assert passage == ResourceText(uri=uri, text=f"[1] refunds.md, Refunds\n{text}")
        assert await served.read({"document": "refunds.md"}) == [
            "Read this document.",
            ResourceText(uri=uri, text=text),
        ]
        assert (await served.read({"document": "refunds.md", "task": "Translate it."}))[0] == "Translate it."
        (docs / "refunds.md").unlink()
        await ingest(docs)
        with pytest.raises(UsageError, match="no document says anything about this question"):
            await served.answer({"question": "How long do refunds take?"})


async def test_names_of_documents_are_completed(docs: Path, terminal: object) -> None:
    (docs / "Re-order.md").write_text("How to order again.", encoding="utf-8")
    (docs / "退款.md").write_text("退款需要三天。", encoding="utf-8")
    (docs / "more refunds.md").write_text("More on refunds.", encoding="utf-8")
    async with serving(docs) as served:

        async def completed(of: str, argument: str, begun: str) -> Sequence[str]:
            return await served.complete(Blank(of=of, argument=argument, begun=begun))

        assert await completed("read", "document", "re") == ["Re-order.md", "refunds.md", "more refunds.md"]
        assert await completed("read", "document", "退") == ["退款.md"]
        assert await completed("read", "task", "") == ()
        assert await completed(TEMPLATE.uri, "id", "REFUNDS.") == [
            place(docs / "more refunds.md"),
            place(docs / "refunds.md"),
        ]


class SlowEmbedder(HashEmbedder):
    """Embeds nothing before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        await self.let.wait()
        return await super().embed_documents(texts)


async def test_callers_wait_for_documents_that_are_being_read_and_hear_how_far_that_is(
    docs: Path, terminal: object
) -> None:
    slow, clock = SlowEmbedder(), ManualClock()
    (docs / "photo.raw").write_bytes(b"no document")
    signs: asyncio.Queue[Any] = asyncio.Queue()
    async with serving(docs, slow, clock) as served, asyncio.TaskGroup() as group:
        run = ToolRun(on_progress=lambda sign: signs.put_nowait(sign.value))
        call = group.create_task(served.result("search", run, query="refunds"))
        listing = group.create_task(served.resources.listed(0, 10))
        assert "are being read" in (await signs.get())["message"]
        await settle()
        await clock.advance(TELL_SECONDS)
        assert "are being read" in (await signs.get())["message"]
        assert await listing == []  # a list waits for a moment only
        assert not call.done()
        slow.let.set()
        assert "three working days" in (await call).content
        assert await served.changes.get() == ListChanged("resources")
        assert len(await served.resources.listed(0, 10)) == 1
    assert LIST_SECONDS < TELL_SECONDS


class BrokenEmbedder(HashEmbedder):
    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        raise ProviderError("connection", "the model is gone; start it")


async def test_documents_that_cannot_be_read_in_are_an_error_of_each_call_and_of_nothing_else(
    docs: Path, terminal: object, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(docs, BrokenEmbedder()) as served:
        told = "the documents could not be read in: the model is gone; start it"
        for name, arguments in (
            ("search", {"query": "x"}),
            ("fetch", {"id": "x"}),
            ("ask", {"question": "x"}),
        ):
            assert await served.call(name, **arguments) == {"error": told, "tool": name}
        with pytest.raises(UsageError, match=told):
            await served.read({"document": "refunds.md"})
    assert capfd.readouterr().err.splitlines()[-1] == f"docs could not be read in: {told.partition(': ')[2]}"


async def test_a_folder_that_is_gone_is_refused_before_anything_is_served(terminal: object) -> None:
    with pytest.raises(LoadError, match="gone"):
        async with serving(Path("gone")):
            pass


async def test_what_another_process_changes_is_told(docs: Path, terminal: object) -> None:
    clock = ManualClock()
    async with serving(docs, clock=clock) as served:
        await served.call("search", query="refunds")
        assert await served.changes.get() == ListChanged("resources")
        (docs / "new.md").write_text("New.", encoding="utf-8")
        await ingest(docs)
        await clock.advance(LOOK_SECONDS)
        assert await served.changes.get() == ListChanged("resources")
        (docs / "new.md").write_text("Newer.", encoding="utf-8")
        await ingest(docs)
        await clock.advance(LOOK_SECONDS)
        assert await served.changes.get() == ResourceChanged(document_uri(place(docs / "new.md")))
        assert served.changes.empty()


async def test_an_index_that_cannot_be_read_for_a_moment_is_looked_at_again(
    docs: Path, terminal: object
) -> None:
    clock = ManualClock()
    async with serving(docs, clock=clock) as served:
        await served.call("search", query="refunds")
        await served.changes.get()
        await ingest_more(docs)
        index = KnowledgeFlags().index
        with sqlite3.connect(index, isolation_level=None) as other:
            other.execute("ALTER TABLE documents RENAME TO taken_away")
            await clock.advance(LOOK_SECONDS)
            async with asyncio.timeout(60):
                while not clock.sleeping:  # noqa: ASYNC110 - the look is over when it sleeps again
                    await asyncio.sleep(0.01)
            other.execute("ALTER TABLE taken_away RENAME TO documents")
        other.close()
        await clock.advance(LOOK_SECONDS)
        assert await served.changes.get() == ListChanged("resources")


def test_a_text_is_put_together_from_overlapping_chunks() -> None:
    def chunk(start: int, text: str) -> Chunk:
        return Chunk(id=str(start), doc_id="d", text=text, start=start, end=start + len(text))

    assert document_text([chunk(0, "one two"), chunk(4, "two three"), chunk(20, "end")]) == (
        "one two three\nend"
    )
