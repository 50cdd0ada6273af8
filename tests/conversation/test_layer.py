"""The conversation is data: no engine, no network, no event loop, and few packages."""

import ast
from pathlib import Path

from tests.house import shape

SOURCE = {
    name: text
    for name, text in shape.read_tree(Path(__file__).parents[2] / "src").items()
    if name.startswith("dialoom.conversation")
}


def test_it_stands_on_msgspec_pydantic_and_yaml() -> None:
    allowed = frozenset({"msgspec", "pydantic", "pydantic_core", "yaml"})
    assert shape.foreign_imports(SOURCE, "dialoom.conversation", allowed) == []


def test_it_knows_base_and_messages_with_their_limits_and_no_way_to_wait_or_to_reach_out() -> None:
    own = {module for text in SOURCE.values() for module in imported(text)}
    models = {each for each in own if each.startswith("dialoom.llm")}
    assert models == {"dialoom.llm.messages", "dialoom.llm.trim"}
    assert {each.split(".")[1] for each in own if each.startswith("dialoom.")} == {
        *("base", "conversation", "llm")
    }
    assert own & {"asyncio", "socket", "ssl", "pathlib", "os", "io", "sqlite3", "subprocess"} == set()


def imported(text: str) -> set[str]:
    """Names of the modules a source imports."""
    nodes = list(ast.walk(ast.parse(text)))
    return {
        *(alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names),
        *(node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)),
    }
