"""A center from one file: where it keeps things, and what its dialogs share."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.dialog.center import Center
from dialoom.dialog.journal import Stores
from dialoom.dialog.json_file import read_json

OpenStores: TypeAlias = Callable[[Path], AbstractContextManager[Stores]]
"""Opens the stores of one kind in a folder."""


class _Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`stores`: their kind, and their folder, which counts from that of the file."""

    kind: str
    folder: str = "."


class _File(msgspec.Struct, frozen=True):
    """The part of the file that is not the center's settings."""

    stores: _Choice


@asynccontextmanager
async def open_center(
    path: str | os.PathLike[str],
    kinds: Mapping[str, OpenStores],
    *,
    make: Callable[[Stores], Center] = Center,
) -> AsyncGenerator[Center]:
    """Give the center that a JSON file describes, and close it with its stores.

    `{"stores": {"kind": "sqlite", "folder": "talks"}, ...}`: `kinds` says how each is opened, the rest is
    what `Center.save_settings` writes. `make` is called with the stores, to give the center what no file can
    hold. Raises `UsageError` for a file that says something else, `StoreError` for one that cannot be read.
    """
    fields = read_json(path)
    try:
        choice = msgspec.convert(fields, _File).stores
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{path} names no stores: {one_line(str(error))}; say their kind and folder"
        ) from error
    if choice.kind not in kinds:
        known = ", ".join(kinds)
        raise UsageError(f"{path} asks for {one_line(choice.kind, 40)!r} stores; known here are: {known}")
    with kinds[choice.kind](Path(path).parent / choice.folder) as stores:
        center = make(stores)
        center.from_dict(fields)
        async with center:
            yield center
