"""What an index was made with. Vectors of two models must never meet in one index."""

import msgspec

from dialoom.rag.chunk import Chunker
from dialoom.rag.embed import Embedder
from dialoom.rag.errors import ManifestMismatchError

FORMAT = 1
_REBUILD = "build it anew with: dialoom ingest DIR --rebuild"


class IndexManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The embedder, its model and dimension, the chunker's signature, and the layout of the index."""

    embedder: str
    model: str
    dim: int
    chunker: str
    format: int = FORMAT


def manifest_of(embedder: Embedder, chunker: Chunker) -> IndexManifest:
    """The manifest of an index that these two build."""
    return IndexManifest(
        embedder=embedder.id, model=embedder.model, dim=embedder.dim, chunker=chunker.signature()
    )


def check_manifest(stored: IndexManifest, wanted: IndexManifest) -> None:
    """Raise `ManifestMismatchError` that names each difference and the command that rebuilds."""
    _compare(stored, wanted, IndexManifest.__struct_fields__)


def check_embedder(stored: IndexManifest, embedder: Embedder) -> None:
    """Raise `ManifestMismatchError` when questions of `embedder` cannot be compared with this index."""
    wanted = IndexManifest(
        embedder=embedder.id,
        model=embedder.model,
        dim=embedder.dim,
        chunker=stored.chunker,
        format=stored.format,
    )
    _compare(stored, wanted, ("embedder", "model", "dim"))


def _compare(stored: IndexManifest, wanted: IndexManifest, fields: tuple[str, ...]) -> None:
    differences = [
        f"{field} {getattr(stored, field)!r}, not {getattr(wanted, field)!r}"
        for field in fields
        if getattr(stored, field) != getattr(wanted, field)
    ]
    if differences:
        raise ManifestMismatchError(f"the index was built with {'; '.join(differences)}; {_REBUILD}")
