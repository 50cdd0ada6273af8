"""Print the OpenAPI document of a server with everything in it: `python -m dialoom.server.openapi`."""

import json
import sys
import tempfile
from pathlib import Path

from dialoom.conversation.store import MemoryConversationStore
from dialoom.dialog import Center
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import OfflineProvider
from dialoom.rag import HashEmbedder, LoadOptions, RagConfig
from dialoom.server.knowledge import KnowledgeBases
from dialoom.server.settings import ServerSettings
from dialoom.server.workbench import Parts, Workbench


def main() -> None:
    """Write the document to stdout; nothing is opened that stays."""
    with tempfile.TemporaryDirectory(prefix="dialoom-openapi-") as folder:
        data = Path(folder)
        knowledge = KnowledgeBases(
            data / "kb", OfflineProvider(), config=RagConfig(), load=LoadOptions(), mounted={}
        )
        parts = Parts(
            store=MemoryConversationStore(),
            checkpoints=MemoryCheckpointStore(),
            center=Center,
            knowledge=knowledge,
            embedder=HashEmbedder(),
        )
        document = Workbench(ServerSettings(token="of no use to anybody", data=data), parts).document()  # noqa: S106 - no secret
    json.dump(document, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
