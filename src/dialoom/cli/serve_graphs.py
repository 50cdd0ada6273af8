"""The graphs that `dialoom serve --graph` shows: definitions in files, whose functions need not be there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.cli.graph import read_definition
from dialoom.graph import GraphBuildError, draw_definition

MAX_GRAPHS = 100


def graph_definitions(files: Sequence[Path]) -> dict[str, Any]:
    """Return each file's definition under the file's name without its ending.

    Raises `UsageError`, which names the file, for one that cannot be read or is no graph, and for two of one
    name.
    """
    if len(files) > MAX_GRAPHS:
        raise UsageError(f"{len(files)} graphs are more than {MAX_GRAPHS}; give fewer --graph")
    found: dict[str, Any] = {}
    for file in files:
        if file.stem in found:
            raise UsageError(f"two graphs are called {file.stem!r}; rename the file {file}")
        found[file.stem] = definition = read_definition(file)
        try:
            draw_definition(definition)
        except GraphBuildError as error:
            raise UsageError(f"{file} is no graph: {one_line(str(error), 300)}") from error
    return found
