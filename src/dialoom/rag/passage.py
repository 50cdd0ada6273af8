"""What a chunk is found by, and where it stands among its neighbours."""

from collections.abc import Iterable

from dialoom.rag.types import Chunk


def indexed_text(chunk: Chunk) -> str:
    """What is embedded and whose words are indexed: the text below those headings that it does not hold."""
    above = [heading for heading in chunk.heading_path if heading not in chunk.text]
    return f"{' > '.join(above)}\n{chunk.text}" if above else chunk.text


def joined_text(text: str, following: Chunk, *, gap: int) -> str:
    """`text` and a chunk that begins `gap` characters after its end, or before it when `gap` is negative."""
    return text + "\n" * gap + following.text if gap > 0 else text + following.text[-gap:]


def in_place(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Chunks of one document in the order of their places in it."""
    return sorted(chunks, key=lambda chunk: (chunk.start, chunk.end))
