"""Reads bytes as if they were a file of that name, for the tests of the loaders."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dialoom.rag.loaders.load import load_bytes
from dialoom.rag.loaders.loader import Loaded, LoadOptions
from dialoom.rag.types import Document


def read(name: str, data: bytes, **options: object) -> Loaded:
    return load_bytes(data, f"/kb/{name}", options=LoadOptions(**options))


def read_one(name: str, data: bytes, **options: object) -> Document:
    (document,) = read(name, data, **options).documents
    return document


def warned(loaded: Loaded) -> list[str]:
    return [warning.code for warning in loaded.warnings]


def heads(document: Document) -> list[tuple[int, str]]:
    """The headings, each found where it says it is."""
    for heading in document.headings:
        line = document.text[heading.start :].split("\n")[0]
        assert heading.text.split()[0] in line
    return [(heading.level, heading.text) for heading in document.headings]


@contextmanager
def growing_less_than(megabytes: float) -> Generator[None]:
    """So much more memory than before is never needed at once here, whatever was needed earlier."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("only Linux tells how much memory a part of a program needed")
    before = largest_from_now()
    yield
    assert largest_mb() - before < megabytes


def largest_from_now() -> float:
    """Forget how much memory this process needed at most until now; return how much it has, in MB."""
    Path("/proc/self/clear_refs").write_text("5")
    return largest_mb()


def largest_mb() -> float:
    """Return how much memory this process needed at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
