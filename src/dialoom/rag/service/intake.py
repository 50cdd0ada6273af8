"""Documents taken into a store one by one, off the event loop, so that questions go on meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from functools import partial

from dialoom.base.cancel import CancelScope
from dialoom.base.errors import DialoomError
from dialoom.llm import ProviderError
from dialoom.llm.switch import StopSwitch
from dialoom.rag.errors import LoadError
from dialoom.rag.ingest import CutDocument, DocumentFailure, IngestReport, embed_all, failure
from dialoom.rag.loaders.loader import Loaded
from dialoom.rag.loaders.url import is_url
from dialoom.rag.loaders.walk import LoadFailure, Skipped, iter_documents, load_document
from dialoom.rag.manifest import manifest_of
from dialoom.rag.service.settings import ServiceSettings
from dialoom.rag.store import DocumentChunks
from dialoom.rag.types import Document

_MOST_FAILURES = 1_000


class Intake:
    """Takes in what paths and URLs hold. One document's failure is reported and stops nothing."""

    def __init__(self, settings: ServiceSettings, *, replace: bool) -> None:
        self._settings = settings
        self._replace = replace

    async def take(self, paths: list[str], cancel: CancelScope) -> IngestReport:
        """Load, cut, embed and store. Cancelling ends it between two documents, or while one is read."""
        settings = self._settings
        await asyncio.to_thread(settings.store.claim, manifest_of(settings.embedder, settings.chunker))
        documents = chunks = 0
        failures: list[DocumentFailure] = []
        async for found in self._documents(paths, cancel):
            cancel.raise_if_cancelled()
            outcome = found if isinstance(found, DocumentFailure) else await self._store(found)
            if isinstance(outcome, DocumentFailure):
                failures.append(outcome)
            else:
                documents += 1
                chunks += len(outcome.chunks)
        return IngestReport(documents=documents, chunks=chunks, failures=failures[:_MOST_FAILURES])

    async def _documents(
        self, paths: list[str], cancel: CancelScope
    ) -> AsyncGenerator[Document | DocumentFailure]:
        with StopSwitch(cancel) as switch:
            for path in paths:
                items = self._items(path)
                while (item := await switch.wait(partial(_next, items))) is not None:
                    yield item

    def _items(self, path: str) -> Iterator[Document | DocumentFailure]:
        try:
            if is_url(path):
                yield from load_document(path, self._settings.load)
                return
            for item in iter_documents(path, self._settings.load):
                match item:
                    case Loaded():
                        yield from item.documents
                    case LoadFailure():
                        yield DocumentFailure(item.path, item.code, item.message)
                    case Skipped():
                        pass
        except LoadError as error:
            yield failure(path, error)

    async def _store(self, document: Document) -> DocumentChunks | DocumentFailure:
        settings = self._settings
        try:
            chunks = await asyncio.to_thread(settings.chunker.chunk, document)
            (outcome,) = await embed_all(settings.embedder, [CutDocument(document.id, chunks)])
            if isinstance(outcome, DocumentChunks):
                await asyncio.to_thread(self._put, outcome)
        except ProviderError:  # the next document would fare no better
            raise
        except DialoomError as error:
            return failure(document.id, error)
        return outcome

    def _put(self, ready: DocumentChunks) -> None:
        if self._replace:
            self._settings.store.replace_documents([ready])
        else:
            self._settings.store.add(ready.chunks, ready.vectors)


async def _next(items: Iterator[Document | DocumentFailure]) -> Document | DocumentFailure | None:
    return await asyncio.to_thread(next, items, None)
