"""`dialoom graph show`: what a graph definition looks like."""

from pathlib import Path
from typing import Any

import msgspec

from dialoom.base.errors import MissingExtraError, UsageError
from dialoom.base.text import one_line
from dialoom.cli.exits import ExitCode
from dialoom.graph import draw_definition

MAX_BYTES = 4_000_000


def show(path: Path) -> ExitCode:
    """Print the graph that `path` defines as a Mermaid flowchart."""
    print(show_definition(path))
    return ExitCode.OK


def show_definition(path: Path) -> str:
    """Return the Mermaid flowchart of the definition in `path`.

    Raises `UsageError` when it cannot be read, `GraphBuildError` when it is no graph.
    """
    return draw_definition(read_definition(path))


def read_definition(path: Path) -> Any:
    """Return what a .json, .yaml or .yml file holds. Raises `UsageError` when it cannot be read."""
    readers = {".json": _read_json, ".yaml": _read_yaml, ".yml": _read_yaml}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UsageError(
            f"{path} is not called .json, .yaml or .yml; rename it, so that it is clear how to read it"
        )
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}; check the file") from error
    if len(text) > MAX_BYTES:
        raise UsageError(f"{path} is larger than {MAX_BYTES} bytes; a graph definition is not")
    return reader(path, text)


def _read_json(path: Path, text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not readable as JSON: {one_line(str(error))}; mend it") from error


def _read_yaml(path: Path, text: bytes) -> Any:
    try:
        from dialoom.conversation import load_yaml
    except ImportError as error:
        raise MissingExtraError("pyyaml", "conversation") from error
    try:
        return load_yaml(text.decode("utf-8"))
    except (UnicodeDecodeError, UsageError) as error:
        raise UsageError(f"{path}: {one_line(str(error))}; mend it") from error
