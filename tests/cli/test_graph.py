"""A graph definition is drawn, or its first mistake named."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

DEFINITION = {
    "format": 1,
    "graph": "support",
    "channels": [{"name": "topic", "type": "Topic"}],
    "nodes": [{"name": "classify"}, {"name": "bill"}],
    "edges": [{"from": "__start__", "to": "classify"}],
    "routes": [{"from": "classify", "to": {"billing": "bill"}, "default": "__end__"}],
}
YAML = """\
format: 1
graph: support
channels:
  - {name: topic, type: Topic}
nodes:
  - name: classify
  - name: bill
edges:
  - {from: __start__, to: classify}
routes:
  - from: classify
    to: {billing: bill}
    default: __end__
"""
PICTURE = """\
flowchart TD
    start([start])
    n0["classify"]
    n1["bill"]
    finish([end])
    start --> n0
    n0 -. "billing" .-> n1
    n0 -.-> finish
    n0 -. "otherwise" .-> finish
    n1 --> finish
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [("g.json", json.dumps(DEFINITION)), ("g.yaml", YAML), ("G.YML", YAML)],
)
def test_a_definition_is_drawn_as_mermaid(terminal: Terminal, name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    assert terminal.run("graph", "show", name) == (0, PICTURE, "")


@pytest.mark.parametrize(
    ("name", "text", "code", "said"),
    [
        ("g.txt", b"", 2, "g.txt is not called .json, .yaml or .yml; rename it"),
        ("g.json", b"{", 2, "g.json is not readable as JSON: Input data was truncated; mend it"),
        ("g.json", b'"\xff"', 2, "g.json is not readable as JSON: "),
        ("g.json", b"[" * 100_000, 2, "g.json is not readable as JSON: "),
        ("g.json", b" " * 4_000_001, 2, "g.json is larger than 4000000 bytes"),
        ("g.yaml", b"a: &x 1\nb: *x", 2, "g.yaml: "),
        ("g.yaml", b"\xff", 2, "g.yaml: 'utf-8' codec can't decode"),
        ("g.json", b"{}", 1, "[bad-definition] $: Object missing required field `format`; mend it"),
        ("g.json", b'{"format":1,"graph":"g"}', 1, "[no-nodes] graph 'g': nothing would run"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(
    terminal: Terminal, name: str, text: bytes, code: int, said: str
) -> None:
    Path(name).write_bytes(text)
    shown = terminal.run("graph", "show", name)
    assert (shown.code, shown.out, shown.err.count("\n")) == (code, "", 1)
    assert said in shown.err


def test_a_file_that_is_not_there_is_named(terminal: Terminal) -> None:
    shown = terminal.run("graph", "show", "none.json")
    assert (shown.code, shown.err) == (
        2,
        "dialoom: cannot read none.json: No such file or directory; check the file\n",
    )


def test_without_a_yaml_reader_its_install_line_is_shown(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("g.yaml").write_text(YAML, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "dialoom.conversation", None)
    shown = terminal.run("graph", "show", "g.yaml")
    assert (shown.code, shown.err) == (
        2,
        'dialoom: pyyaml is not installed; run: pip install "dialoom[conversation]"\n',
    )
