"""From the settings to what makes vectors."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from dialoom.cli.config import load_config
from dialoom.llm import OpenAIEmbeddings
from dialoom.rag import Embedder, HashEmbedder, OpenAIEmbedder


@asynccontextmanager
async def open_embedder(config: Path | None) -> AsyncGenerator[Embedder]:
    """Give the embedder of `[embedding]` in the settings, and without that the offline one.

    The server is asked once, for the length of its vectors. Raises `UsageError` and `ProviderError`.
    """
    table = load_config(config).embedding
    if table is None:
        yield HashEmbedder()
        return
    key = table.key(os.environ)
    async with OpenAIEmbeddings(table.base_url, key, model=table.model) as embeddings:
        yield await OpenAIEmbedder.measured(embeddings)
