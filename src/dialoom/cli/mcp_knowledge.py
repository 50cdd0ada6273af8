"""A knowledge base for other programs' models: search, fetch and ask as tools, documents as resources."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Annotated, Final

from msgspec import Meta

from dialoom.base.errors import DialoomError, UsageError
from dialoom.cli.answer import FromDocuments
from dialoom.cli.mcp_library import Library, document_uri, id_of
from dialoom.graph import RunControl
from dialoom.mcp.server import Resource, ResourceText
from dialoom.rag import Chunk, ContextSource, Retriever, ScoredChunk, Search, source_title
from dialoom.tools import Tool, ToolContext, ToolResult, tool
from dialoom.tools.result import failed

PAGE_CHARACTERS: Final = 100_000
MOST_PASSAGES: Final = 1000
"""So many passages are looked at for different documents."""
READ_ONLY: Final = frozenset({"search", "fetch", "ask"})

Found = dict[str, object]


def knowledge_tools(
    library: Library, retriever: Retriever, answerer: Callable[[], FromDocuments]
) -> tuple[Tool, ...]:
    """Return `search`, `fetch` and `ask` over a library; the first two in the form that ChatGPT looks for."""
    return (_search_tool(library, retriever), _fetch_tool(library), _ask_tool(library, answerer))


def _search_tool(library: Library, retriever: Retriever) -> Tool:
    @tool(idempotent=True)
    async def search(
        query: str, ctx: ToolContext, *, limit: Annotated[int, Meta(ge=1, le=50)] = 10
    ) -> object:
        """Find documents that say something about a question, best first, each with its best passage.

        Args:
            query: What is looked for, in any language.
            limit: How many documents at most.
        """

        async def found() -> Found:
            await library.ready(ctx.emit)
            best = await _best_of_each(library, retriever, query, limit=limit)
            return {
                "results": [{**_named(hit.chunk), "text": hit.chunk.text, "score": hit.score} for hit in best]
            }

        return await _told("search", found())

    return search


def _fetch_tool(library: Library) -> Tool:
    @tool(idempotent=True)
    async def fetch(id: str, ctx: ToolContext, *, offset: Annotated[int, Meta(ge=0)] = 0) -> object:  # noqa: A002 - the name others look for
        """Read a whole document that search found.

        Args:
            id: The id of the document, as in a search result.
            offset: Where to go on in a long document: its next_offset.
        """

        async def read() -> Found:
            await library.ready(ctx.emit)
            return _page(await library.chunks(id), offset)

        return await _told("fetch", read())

    return fetch


def _ask_tool(library: Library, answerer: Callable[[], FromDocuments]) -> Tool:
    @tool
    async def ask(question: str, ctx: ToolContext) -> ToolResult:
        """Answer a question from the documents, with citations.

        Args:
            question: What you want to know, in any language.
        """
        try:
            await library.ready(ctx.emit)
        except DialoomError as error:
            return failed(str(error), tool="ask")
        control = RunControl()
        forget = ctx.cancel.add_callback(control.cancel)
        try:
            answer = await answerer().answer(question, control=control, show=ctx.emit)
        finally:
            forget()
        if answer.stop_reason != "finished":
            return ToolResult(content=answer.error or f"no answer: {answer.stop_reason}", is_error=True)
        cited = answer.cited_sources()
        lines = [f"[{source.index}] {source.title}" for source in cited]
        return ToolResult(
            content="\n".join([answer.text, *lines]),
            structured={"answer": answer.text, "citations": [_citation(source) for source in cited]},
            card={"type": "mcp_result", "blocks": [_link(source) for source in cited]},
        )

    return ask


class DocumentResources:
    """The documents of a library as resources, in the order of their ids."""

    def __init__(self, library: Library) -> None:
        self._library = library

    async def listed(self, start: int, count: int) -> Sequence[Resource]:
        documents = await self._library.listed()
        return [
            Resource(uri=document_uri(each), name=_file_name(each), title=self._library.name_of(each))
            for each in documents[start : start + count]
        ]

    async def read(self, uri: str) -> ResourceText | None:
        doc_id = id_of(uri)
        if doc_id is None:
            return None
        try:
            chunks = await self._library.chunks(doc_id)
        except UsageError:
            return None
        return ResourceText(uri=uri, text=document_text(chunks))


def document_text(chunks: Iterable[Chunk]) -> str:
    """Return the text that overlapping chunks, in order, were cut from; what no chunk holds is left out."""
    parts: list[str] = []
    end = 0
    for chunk in chunks:
        if chunk.start > end:
            parts.append("\n")
        parts.append(chunk.text[max(end - chunk.start, 0) :])
        end = max(end, chunk.end)
    return "".join(parts)


async def _told(name: str, work: Awaitable[Found]) -> Found | ToolResult:
    """Return what `work` gives, or in its own words why there is nothing."""
    try:
        return await work
    except DialoomError as error:
        return failed(str(error), tool=name)


async def _best_of_each(
    library: Library, retriever: Retriever, query: str, *, limit: int
) -> list[ScoredChunk]:
    """Return the best passage of each of the best documents; one with many of them takes no other's place."""
    where, wanted = await library.scope(), 4 * limit
    while True:
        hits = await retriever.retrieve(Search(text=query, k=wanted, where=where))
        best: dict[str, ScoredChunk] = {}
        for hit in hits:
            best.setdefault(hit.chunk.doc_id, hit)
        if len(best) >= limit or len(hits) < wanted or wanted >= MOST_PASSAGES:
            return list(best.values())[:limit]
        wanted = min(4 * wanted, MOST_PASSAGES)


def _page(chunks: Sequence[Chunk], offset: int) -> Found:
    text = document_text(chunks)
    if offset > len(text):
        raise UsageError(f"the document ends after {len(text)} characters; give an offset below that")
    end = offset + PAGE_CHARACTERS
    page = {**_named(chunks[0]), "title": _file_name(chunks[0].doc_id), "text": text[offset:end]}
    page["metadata"] = chunks[0].metadata
    return {**page, "next_offset": end} if end < len(text) else page


def _named(chunk: Chunk) -> Found:
    return {"id": chunk.doc_id, "title": source_title(chunk), "url": document_uri(chunk.doc_id)}


def _file_name(doc_id: str) -> str:
    return doc_id.rsplit("/", 1)[-1]


def _citation(source: ContextSource) -> Found:
    return {
        "index": source.index,
        "id": source.doc_id,
        "title": source.title,
        "url": document_uri(source.doc_id),
        "text": source.text,
    }


def _link(source: ContextSource) -> Found:
    uri = document_uri(source.doc_id)
    return {"type": "resource_link", "uri": uri, "name": source.title, "mimeType": "text/plain"}
