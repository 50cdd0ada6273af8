"""What a service is made of."""

from collections.abc import Callable

import msgspec

from dialoom.llm import Provider
from dialoom.rag.chunk import Chunker
from dialoom.rag.embed import Embedder
from dialoom.rag.errors import InvalidOptionsError
from dialoom.rag.loaders.loader import LoadOptions
from dialoom.rag.query import RagConfig
from dialoom.rag.service.access import ServiceAccess
from dialoom.rag.store import SyncStore

MAX_HISTORY = 40


class ServiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A store, what fills it, what answers from it, and the bounds. Raises `InvalidOptionsError`."""

    store: SyncStore
    embedder: Embedder
    chunker: Chunker
    provider: Provider
    config: RagConfig = RagConfig()
    """How questions are answered; at most 40 messages of a session are kept."""
    load: LoadOptions = LoadOptions()
    """How documents are read."""
    docs: str | None = None
    """A folder that fills the store when it is still empty."""
    access: ServiceAccess = ServiceAccess()
    timeout: float | None = None
    """Seconds for each question; None for no bound."""
    max_running: int = 64
    """So many requests are worked on at a time; one more is refused."""
    max_sessions: int = 1_000
    """So many conversations are remembered; the one that rested longest is forgotten first."""
    snapshot: Callable[[str], None] | None = None
    """Writes a copy of the index to a path; None when this store has no such thing."""

    def __post_init__(self) -> None:
        if self.access.read_only and self.docs is not None:
            raise InvalidOptionsError("a read-only service cannot take in documents; leave out docs")
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidOptionsError(f"timeout must be above 0 seconds, not {self.timeout}")
        if self.max_running < 1 or self.max_sessions < 1:
            raise InvalidOptionsError("max_running and max_sessions must be 1 or more")
