"""From the settings to what makes vectors."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from dialoom.cli.config import load_config
from dialoom.cli.progress import say
from dialoom.cli.settings import SERVER, Config
from dialoom.llm import OpenAIEmbeddings
from dialoom.rag import CachedEmbedder, Embedder, HashEmbedder, LocalEmbedder, OpenAIEmbedder
from dialoom.stores import SqliteVectorCache


@asynccontextmanager
async def open_embedder(config: Path | None) -> AsyncGenerator[Embedder]:
    """Give the embedder of `[embedding]` in the settings, and without that the offline one.

    A server is asked once, for the length of its vectors. With `cache` in the settings a text that was
    embedded before is not embedded again. Raises `UsageError`, `ProviderError`, `MissingExtraError` and,
    for a cache that cannot be used, `StoreError`.
    """
    settings = load_config(config, env=os.environ)
    async with _computing(settings) as embedder:
        cache = settings.embedding.cache
        if cache is None or isinstance(embedder, HashEmbedder):
            yield embedder
            return
        with SqliteVectorCache(cache) as kept:
            yield CachedEmbedder(embedder, kept)


@asynccontextmanager
async def _computing(settings: Config) -> AsyncGenerator[Embedder]:
    table = settings.embedding
    if table.provider != SERVER:
        yield await asyncio.to_thread(LocalEmbedder.load, table.provider, table.model or "")
        return
    server = settings.embedding_server(os.environ)
    if server is None:
        if settings.lacks_embeddings:
            say("vectors: HashEmbedder, offline; Anthropic makes none, name another base_url in [embedding]")
        yield HashEmbedder()
        return
    async with OpenAIEmbeddings(
        server.base_url, server.key, model=server.model, options=server.options
    ) as embeddings:
        yield await OpenAIEmbedder.measured(embeddings)
