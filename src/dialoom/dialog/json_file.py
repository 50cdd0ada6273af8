"""A JSON object in a file of its own: read within bounds, replaced whole."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dialoom.base.errors import StoreError
from dialoom.base.text import one_line

MAX_BYTES = 4 * 1024 * 1024


def read_json(path: Path) -> dict[str, object]:
    """Return the object in `path`, an empty one when there is no such file. Raises `StoreError`."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise StoreError(f"{path} is larger than {MAX_BYTES} bytes; mend or remove it")
        return msgspec.json.decode(text, type=dict[str, object])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}; check the path") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"cannot read {path}: {one_line(str(error))}; mend or remove it") from error


def write_json(path: Path, fields: Mapping[str, object]) -> None:
    """Replace `path` whole, so that a crash leaves the old file or the new one. Raises `StoreError`.

    Only its owner may read the file: settings may hold keys.
    """
    text = msgspec.json.format(msgspec.json.encode(fields))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; check the folder") from error
