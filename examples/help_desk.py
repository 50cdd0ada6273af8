"""A workbench of one's own: answers from documents, a form, and a tool that waits for a person's yes.

Run it: `python examples/help_desk.py`, open the link it prints, and try "How long do refunds take?",
`/form`, and "refund order 1042". It needs no model: rules stand in its place, which call the tool when they
are asked to and quote the documents otherwise. Put any provider of `dialoom.llm` there.
"""

import argparse
import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dialoom.agent import AGENT_TYPES
from dialoom.conversation.cards import FormDefinition, FormRegistry
from dialoom.dialog import Center, Stores
from dialoom.llm import ChatOptions, Message, MockProvider, OfflineProvider, ResponseStream
from dialoom.rag import HashEmbedder, LoadOptions, RagConfig, SlidingWindowChunker, sync_folder
from dialoom.server import Parts, ServerSettings, Workbench
from dialoom.server.knowledge import KnowledgeBases, MountedBase
from dialoom.server.serving import listen, serve
from dialoom.server.tokens import load_token
from dialoom.stores import SqliteCheckpointStore, SqliteConversationStore, SqliteVectorStore
from dialoom.tools import tool

DOCUMENTS = Path(__file__).parent / "kb"
RETURN = FormDefinition.model_validate(
    {
        "formId": "return",
        "title": "Return something",
        "fields": [
            {"id": "order", "label": "Order number", "required": True, "pattern": "^[0-9]+$"},
            {"id": "reason", "label": "Reason", "type": "select", "options": ["broken", "too late", "other"]},
            {"id": "note", "label": "Note", "type": "textarea", "visibleIf": {"reason": "other"}},
        ],
    }
)
NO_OPTIONS = ChatOptions()


@tool(requires_approval=True)
def refund(order: str, amount: float) -> str:
    """Pay the price of an order back."""
    return f"EUR {amount:.2f} of order {order} are on their way back"


class Rules(OfflineProvider):
    """Stands for a model: calls `refund` when asked to, and quotes the documents otherwise."""

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = NO_OPTIONS
    ) -> AsyncGenerator[ResponseStream, None]:
        newest = messages[-1]
        wanted = re.search(r"(?:refund|退款).*?(\d{3,})", newest.text, re.IGNORECASE)
        script = MockProvider(id=self.id, model=self.id)
        if newest.tool_results:
            result = newest.tool_results[-1]
            why = json.loads(result.content)["message"] if result.is_error else ""
            script.queue_text(f"No refund: {why}." if why else f"Done: {result.content}.")
        elif newest.role == "user" and wanted:
            script.queue_tool_call(f"refund-{len(messages)}", "refund", {"order": wanted[1], "amount": 19.9})
        else:
            async with super().stream(messages, options) as stream:
                yield stream
            return
        async with script.stream(messages, options) as stream:
            yield stream


async def main(data: Path, port: int) -> None:
    index, provider, forms = data / "documents.sqlite", Rules(), FormRegistry(RETURN)
    with SqliteVectorStore(index) as store:
        read = sync_folder(DOCUMENTS, store, embedder=HashEmbedder(), chunker=SlidingWindowChunker())
        async for _ in read:
            pass
    bases = KnowledgeBases(
        data / "bases",
        provider,
        config=RagConfig(k=6),
        load=LoadOptions(),
        mounted={"shop": MountedBase(name="The shop's documents", index=index)},
    )

    def center(stores: Stores) -> Center:
        made = Center(stores, forms=forms)
        return made.add_provider(provider, default=True).add_tool(refund)

    async def ground(_conversation: str, question: str) -> list[object]:
        return await bases.passages("shop", question)

    settings = ServerSettings(token=load_token(data / "token"), data=data, port=port)
    with (
        listen(settings) as listening,
        SqliteConversationStore(data / "conversations.sqlite") as conversations,
        SqliteCheckpointStore(data / "checkpoints.sqlite", types=AGENT_TYPES) as checkpoints,
    ):
        parts = Parts(
            store=conversations,
            checkpoints=checkpoints,
            center=center,
            forms=forms,
            knowledge=bases,
            ground=ground,
        )
        port = listening.getsockname()[1]
        workbench = Workbench(ServerSettings(token=settings.token, data=data, port=port), parts)
        await serve(workbench, listening, ready=lambda: print(workbench.login_url, flush=True))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(".dialoom/help-desk"))
    parser.add_argument("--port", type=int, default=8321)
    chosen = parser.parse_args()
    chosen.data.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(chosen.data, chosen.port))
