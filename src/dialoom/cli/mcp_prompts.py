"""What people at a host fetch from a knowledge base themselves: prompts, and the names of documents."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from dialoom.base.errors import UsageError
from dialoom.cli.mcp_knowledge import document_text
from dialoom.cli.mcp_library import SCHEME, Library, document_uri
from dialoom.mcp.server import Blank, Content, Prompt, PromptArgument, ResourceTemplate, ResourceText
from dialoom.rag import Chunk, Retriever, Search, source_title

PASSAGES: Final = 8
TEMPLATE: Final = ResourceTemplate(
    uri=f"{SCHEME}{{id}}", name="document", title="A document", description="One document by its id."
)
_HOW: Final = (
    "Answer the question from the passages below and nothing else, in the language of the question. Put the"
    " number of a passage behind what it says, like [1]. When they do not answer it, say so."
)


def knowledge_prompts(library: Library, retriever: Retriever) -> tuple[Prompt, ...]:
    """Return the prompts that put passages, or a whole document, before the host's own model."""

    async def answer(given: Mapping[str, str]) -> Sequence[str | Content]:
        await library.ready()
        question = given["question"]
        hits = await retriever.retrieve(Search(text=question, k=PASSAGES, where=await library.scope()))
        if not hits:
            raise UsageError("no document says anything about this question; ask in other words")
        return [f"{_HOW}\n\n{question}", *(_passage(number, hit.chunk) for number, hit in enumerate(hits, 1))]

    async def read(given: Mapping[str, str]) -> Sequence[str | Content]:
        await library.ready()
        chunks = await library.chunks(given["document"])
        document = ResourceText(uri=document_uri(chunks[0].doc_id), text=document_text(chunks))
        return [given.get("task") or "Read this document.", document]

    return (
        Prompt(
            name="answer",
            title="Answer from the documents",
            description="Find the passages about a question, and answer from them with citations.",
            arguments=(PromptArgument(name="question", description="What you want to know."),),
            fill=answer,
        ),
        Prompt(
            name="read",
            title="Read a document",
            description="Put a whole document before the model, with what to do with it.",
            arguments=(
                PromptArgument(name="document", description="Its name or its id."),
                PromptArgument(name="task", description="What to do with it.", required=False),
            ),
            fill=read,
        ),
    )


def document_names(library: Library) -> Callable[[Blank], Awaitable[Sequence[str]]]:
    """Return what completes the name of a document: those that begin so, then those that hold it."""

    async def complete(blank: Blank) -> Sequence[str]:
        match blank.of, blank.argument:
            case "read", "document":
                names = [library.name_of(each) for each in await library.listed()]
            case TEMPLATE.uri, "id":
                names = [*await library.listed()]
            case _:
                return ()
        begun = blank.begun.casefold()
        fitting = [name for name in names if begun in name.casefold()]
        return sorted(fitting, key=lambda name: not name.casefold().startswith(begun))

    return complete


def _passage(number: int, chunk: Chunk) -> ResourceText:
    return ResourceText(
        uri=document_uri(chunk.doc_id), text=f"[{number}] {source_title(chunk)}\n{chunk.text}"
    )
