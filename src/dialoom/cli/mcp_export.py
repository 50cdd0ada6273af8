"""What a person's own Python file offers as tools: tools, registries, graphs and agents, by name."""

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from dialoom.agent import ReActAgent
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.graph import Graph
from dialoom.mcp.server import GraphTool
from dialoom.tools import Tool, ToolRegistry


def exported_tools(places: Iterable[str]) -> list[Tool]:
    """Return the tools at `places`, each `FILE.py:NAME`. The files are run.

    A name stands for a tool, a registry, a graph (its channels are the arguments), an agent (it takes a
    question), or a list of these. Raises `UsageError` that names the place and what is wrong.
    """
    return [tool for place in places for tool in _tools_at(place)]


def _tools_at(place: str) -> list[Tool]:
    file, _, name = place.rpartition(":")
    if not file or not name:
        raise UsageError(f"{one_line(place, 200)!r} exports nothing; write FILE.py:NAME")
    module = _run(Path(file))
    if name not in module:
        raise UsageError(f"{file} has no {one_line(name, 80)!r}; export a name that it defines")
    try:
        return list(_as_tools(module[name]))
    except TypeError as error:
        wanted = "export a tool, a registry, a graph or an agent"
        raise UsageError(f"{file}:{name} is {error}; {wanted}") from error


def _as_tools(value: object) -> Iterator[Tool]:
    match value:
        case Tool():
            yield value
        case ToolRegistry():
            yield from (tool for name in value.names() if (tool := value.get(name)))
        case Graph():
            yield GraphTool(value, description=f"Run the graph {value.name}; its channels are the arguments.")
        case ReActAgent():
            yield value.as_tool(f"Ask the agent {value.name} a question; it answers with the help of tools.")
        case list() | tuple():
            for each in cast("Iterable[object]", value):
                yield from _as_tools(each)
        case _:
            raise TypeError(f"a {type(value).__name__}")


def _run(file: Path) -> dict[str, object]:
    """Run a file as a module of its own, which can import what lies beside it."""
    if not file.is_file():
        raise UsageError(f"there is no file {file}; export from one that is there")
    name = f"dialoom_export_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no Python file; export from one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    beside = str(file.resolve().parent)
    if beside not in sys.path:
        sys.path.insert(0, beside)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        told = one_line(str(error)) or type(error).__name__
        raise UsageError(f"{file} cannot be run: {type(error).__name__}: {told}") from error
    return vars(module)
