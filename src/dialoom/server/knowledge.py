"""Knowledge bases of a server: each one index file with the service of `dialoom rag` over it."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec

from dialoom.base.errors import StoreError, UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.llm import Provider
from dialoom.rag import Embedder, HashEmbedder, LoadOptions, RagConfig, SlidingWindowChunker
from dialoom.rag.loaders.load import document_id
from dialoom.rag.service import RagService, Response, ServiceAccess, ServiceSettings
from dialoom.rag.service.requests import AnyRequest, SearchChunks
from dialoom.server.files import StoredFile, safe_name
from dialoom.server.own_paths import OwnPaths, common_folder
from dialoom.server.problems import ProblemError, not_found
from dialoom.stores import SqliteVectorStore

MAX_BASES = 100
MAX_QUESTION = 4_000
"""Characters of a text that are looked up."""

Fields: TypeAlias = dict[str, Any]


class MountedBase(msgspec.Struct, frozen=True, kw_only=True):
    """An index the operator names: served as it is, under an id of its own."""

    name: str
    index: Path
    read_only: bool = False


class OpenBase:
    """One knowledge base in use. Its answers name documents by their place in it, never by folders."""

    def __init__(
        self,
        base_id: str,
        mounted: MountedBase,
        store: SqliteVectorStore,
        service: RagService,
        *,
        paths: OwnPaths,
    ) -> None:
        self.id = base_id
        self.name = mounted.name
        self.read_only = mounted.read_only
        self._store = store
        self._service = service
        self._paths = paths

    async def ask(self, request: AnyRequest) -> list[Response]:
        """Return every line of the answer. Raises `ProblemError` when the last one is a refusal."""
        lines = [line async for line in self.answer(request)]
        if not lines[-1].get("ok"):
            raise refusal(lines[-1])
        return lines

    async def answer(self, request: AnyRequest) -> AsyncGenerator[Response]:
        """Yield the lines as they come; the last one may be a refusal."""
        async with aclosing(self._service.answer(request)) as lines:
            async for line in lines:
                yield cast("Response", self._paths.told(line))

    def close(self) -> None:
        self._service.cancel_all()
        self._store.close()


class KnowledgeBases:
    """Finds, makes and opens knowledge bases; those in `folder` are made here, `mounted` ones are not.

    Each index stays open until `close`. Methods are for one event loop.
    """

    def __init__(
        self,
        folder: Path,
        provider: Provider,
        *,
        config: RagConfig,
        load: LoadOptions,
        mounted: Mapping[str, MountedBase],
        embedder: Embedder | None = None,
    ) -> None:
        self._folder = folder
        self._embedder = embedder or HashEmbedder()
        self._provider = provider
        self._config = config
        self._load = load
        self._mounted = dict(mounted)
        self._open: dict[str, OpenBase] = {}
        self._opening = asyncio.Lock()

    async def ids(self) -> list[str]:
        """Return the ids of all, mounted ones first."""
        return [*self._mounted, *await asyncio.to_thread(self._made)]

    async def create(self, name: str) -> OpenBase:
        """Make an empty one. Raises `UsageError` when there are 100."""
        if len(await self.ids()) >= MAX_BASES:
            raise UsageError(f"there are {MAX_BASES} knowledge bases; remove one first")
        base_id = new_id()
        about = msgspec.json.encode({"name": one_line(name, 200)})

        def make() -> None:
            (self._folder / base_id).mkdir(parents=True)
            (self._folder / base_id / "about.json").write_bytes(about)

        await _on_disk(make)
        return await self.open(base_id)

    async def remove(self, base_id: str) -> None:
        """Delete one that was made here, with its documents. Raises `ProblemError`."""
        if base_id in self._mounted:
            raise ProblemError(403, "read_only", "the operator names this knowledge base; remove it there")
        async with self._opening:
            await asyncio.to_thread(self._find, base_id)
            opened = self._open.pop(base_id, None)
            if opened is not None:
                opened.close()
            await _on_disk(lambda: shutil.rmtree(self._folder / base_id))

    async def open(self, base_id: str) -> OpenBase:
        """Return one by its id. Raises `ProblemError` when there is none."""
        async with self._opening:
            if base_id not in self._open:
                self._open[base_id] = await self._start(base_id)
            return self._open[base_id]

    async def add_file(self, base_id: str, info: StoredFile, content: Path) -> str:
        """Put an uploaded file among a base's documents; return its name there."""
        name = safe_name(info.name)
        place = self._docs(base_id) / name

        def copy() -> None:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(content, place)

        await _on_disk(copy)
        return name

    def document(self, base_id: str, name: str) -> str:
        """Return the id of a document in its index: a web page's address, or where the named file lies."""
        if name.startswith(("http://", "https://")):
            return name
        return document_id(self._docs(base_id) / Path(name).name)

    async def passages(self, base_id: str, question: str, *, k: int | None = None) -> list[object]:
        """Return the numbered passages, at most `k`, of one base that a question is to be answered from."""
        base = await self.open(base_id)
        if not question.strip():
            return []
        found = (await base.ask(SearchChunks(query=question[:MAX_QUESTION], k=k or self._config.k)))[-1]
        hits = msgspec.convert(found["hits"], list[_Hit])
        return [
            {"index": at, "id": hit.id, "title": hit.title, "text": hit.text}
            for at, hit in enumerate(hits, 1)
        ]

    def close(self) -> None:
        """Let go of every index."""
        while self._open:
            self._open.popitem()[1].close()

    def _docs(self, base_id: str) -> Path:
        return self._folder / base_id / "docs"

    def _made(self) -> list[str]:
        return sorted(path.parent.name for path in self._folder.glob("*/about.json"))

    async def _start(self, base_id: str) -> OpenBase:
        mounted = self._mounted.get(base_id) or await asyncio.to_thread(self._find, base_id)
        store = await asyncio.to_thread(lambda: SqliteVectorStore(mounted.index, read_only=mounted.read_only))
        service = RagService(
            ServiceSettings(
                store=store,
                embedder=self._embedder,
                chunker=SlidingWindowChunker(),
                provider=self._provider,
                config=self._config,
                load=self._load,
                access=ServiceAccess(read_only=mounted.read_only),
            )
        )
        try:
            await service.open()
        except BaseException:
            store.close()
            raise
        own = document_id(self._docs(base_id))
        documents = await asyncio.to_thread(store.documents)
        others = common_folder(each for each in documents if not each.startswith(f"{own}/"))
        paths = OwnPaths(own, others)
        return OpenBase(base_id, mounted, store, service, paths=paths)

    def _find(self, base_id: str) -> MountedBase:
        folder = self._folder / base_id
        try:
            about = msgspec.json.decode((folder / "about.json").read_bytes(), type=dict[str, str])
        except (OSError, msgspec.DecodeError):
            raise not_found("knowledge base", base_id) from None
        return MountedBase(name=about.get("name", ""), index=folder / "index.sqlite")


async def _on_disk(work: Callable[[], None]) -> None:
    try:
        await asyncio.to_thread(work)
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise StoreError(f"the knowledge folder cannot be written ({reason}); free some space") from error


class _Hit(msgspec.Struct, frozen=True):
    id: str
    title: str
    text: str


def refusal(line: Response) -> ProblemError:
    """Return what the service's refusal means over HTTP."""
    code = str(line.get("code", "error"))
    status = {"read_only": 403, "busy": 503}.get(code, 422)
    return ProblemError(status, code, one_line(str(line.get("error", "")), 300))
