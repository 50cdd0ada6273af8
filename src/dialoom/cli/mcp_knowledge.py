"""A knowledge base for other programs' models: search, fetch and ask as tools, documents as resources."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Annotated
from urllib.parse import quote, unquote

from msgspec import Meta

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.cli.answer import FromDocuments
from dialoom.graph import RunControl
from dialoom.mcp.server import Resource, ResourceText
from dialoom.rag import Chunk, ContextSource, Retriever, Search, source_title
from dialoom.stores import SqliteVectorStore
from dialoom.tools import Tool, ToolContext, ToolResult, tool

PAGE_CHARACTERS = 100_000
_SCHEME = "rag://document/"


def knowledge_tools(
    store: SqliteVectorStore, retriever: Retriever, answerer: FromDocuments
) -> tuple[Tool, ...]:
    """Return `search`, `fetch` and `ask` over one index; the first two in the form that ChatGPT looks for."""
    return (_search_tool(retriever), _fetch_tool(store), _ask_tool(answerer))


def _search_tool(retriever: Retriever) -> Tool:
    @tool(idempotent=True)
    async def search(query: str, *, limit: Annotated[int, Meta(ge=1, le=50)] = 10) -> dict[str, object]:
        """Find documents that say something about a question, best first, each with its best passage.

        Args:
            query: What is looked for, in any language.
            limit: How many documents at most.
        """
        hits = await retriever.retrieve(Search(text=query, k=4 * limit))
        best: dict[str, dict[str, object]] = {}
        for hit in hits:
            chunk = hit.chunk
            found = {**_named(chunk), "text": chunk.text, "score": hit.score}
            best.setdefault(chunk.doc_id, found)
        return {"results": list(best.values())[:limit]}

    return search


def _fetch_tool(store: SqliteVectorStore) -> Tool:
    @tool(idempotent=True)
    async def fetch(id: str, *, offset: Annotated[int, Meta(ge=0)] = 0) -> dict[str, object]:  # noqa: A002 - the name others look for
        """Read a whole document that search found.

        Args:
            id: The id of the document, as in a search result.
            offset: Where to go on in a long document: its next_offset.
        """
        chunks = await asyncio.to_thread(store.chunks_of, id)
        if not chunks:
            raise UsageError(f"there is no document {one_line(id, 200)!r}; take an id that search gave")
        text = document_text(chunks)
        page = text[offset : offset + PAGE_CHARACTERS]
        more = offset + PAGE_CHARACTERS < len(text)
        return {
            **_named(chunks[0]),
            "title": _file_name(id),
            "text": page,
            "metadata": chunks[0].metadata,
            **({"next_offset": offset + PAGE_CHARACTERS} if more else {}),
        }

    return fetch


def _ask_tool(answerer: FromDocuments) -> Tool:
    @tool
    async def ask(question: str, ctx: ToolContext) -> ToolResult:
        """Answer a question from the documents, with citations.

        Args:
            question: What you want to know, in any language.
        """
        control = RunControl()
        forget = ctx.cancel.add_callback(control.cancel)
        try:
            answer = await answerer.answer(question, (), control=control, show=ctx.emit)
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
    """The documents of an index as resources, in the order of their ids."""

    def __init__(self, store: SqliteVectorStore) -> None:
        self._store = store

    async def listed(self, start: int, count: int) -> Sequence[Resource]:
        documents = await asyncio.to_thread(self._store.documents)
        return [
            Resource(uri=document_uri(each), name=_file_name(each))
            for each in documents[start : start + count]
        ]

    async def read(self, uri: str) -> ResourceText | None:
        if not uri.startswith(_SCHEME):
            return None
        chunks = await asyncio.to_thread(self._store.chunks_of, unquote(uri.removeprefix(_SCHEME)))
        return ResourceText(uri=uri, text=document_text(chunks)) if chunks else None


def document_uri(doc_id: str) -> str:
    """Return the address under which a document can be read."""
    return f"{_SCHEME}{quote(doc_id, safe='')}"


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


def _named(chunk: Chunk) -> dict[str, object]:
    return {"id": chunk.doc_id, "title": source_title(chunk), "url": document_uri(chunk.doc_id)}


def _file_name(doc_id: str) -> str:
    return doc_id.rsplit("/", 1)[-1]


def _citation(source: ContextSource) -> dict[str, object]:
    return {
        "index": source.index,
        "id": source.doc_id,
        "title": source.title,
        "url": document_uri(source.doc_id),
        "text": source.text,
    }


def _link(source: ContextSource) -> dict[str, object]:
    uri = document_uri(source.doc_id)
    return {"type": "resource_link", "uri": uri, "name": source.title, "mimeType": "text/plain"}
