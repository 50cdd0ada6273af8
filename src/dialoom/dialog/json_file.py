"""A JSON object in a file of its own: read within bounds, replaced whole."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from dialoom.base.errors import StoreError
from dialoom.base.files import PRIVATE, replace_file
from dialoom.base.text import one_line

MAX_BYTES = 4 * 1024 * 1024
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""What some editors put before the text."""


def read_json(path: str | os.PathLike[str]) -> dict[str, object]:
    """Return the object in `path`, an empty one when there is no such file. Raises `StoreError`."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise StoreError(f"{path} is larger than {MAX_BYTES} bytes; mend or remove it")
        return msgspec.json.decode(text.removeprefix(_BYTE_ORDER_MARK), type=dict[str, object])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}; check the path") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"cannot read {path}: {one_line(str(error))}; mend or remove it") from error


def write_json(path: str | os.PathLike[str], fields: Mapping[str, object]) -> None:
    """Replace `path` whole, so that a crash leaves the old file or the new one. Raises `StoreError`.

    Only its owner may read the file: settings may hold keys.
    """
    text, path = msgspec.json.format(msgspec.json.encode(fields)), Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text, mode=PRIVATE)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; check the folder") from error
