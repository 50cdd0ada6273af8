"""Graphs as files: shown by the server, though their functions are not there."""

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from dialoom.base.errors import UsageError
from dialoom.cli.serve_graphs import MAX_GRAPHS, graph_definitions
from dialoom.graph import END, START
from dialoom.server import Parts, ServerSettings, Workbench
from tests.server.conftest import TOKEN, URL
from tests.server.live import copied

SUPPORT = """
format: 1
graph: support
nodes: [{name: classify}, {name: 账单, use: billing}]
edges: [{from: __start__, to: classify}]
routes: [{from: classify, to: {billing: 账单}, default: __end__}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "help-desk.yaml"
    written.write_text(SUPPORT, encoding="utf-8")
    return written


def test_a_definition_is_shown_by_the_name_of_its_file(
    settings: ServerSettings, parts: Parts, file: Path
) -> None:
    workbench = Workbench(settings, copied(parts, definitions=graph_definitions([file])))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(workbench.app, base_url=URL, headers=headers) as client:
        assert client.get("/api/v1/graphs").json() == {"items": [{"id": "help-desk", "name": "support"}]}
        shown = client.get("/api/v1/graphs/help-desk").json()
        assert [each["id"] for each in shown["nodes"]] == [START, "classify", "账单", END]
        assert shown["edges"] == [
            {"source": START, "target": "classify"},
            {"source": "classify", "target": "账单", "label": "billing"},
            {"source": "classify", "target": END, "label": "otherwise"},
        ]
        assert "账单" in shown["mermaid"]


def test_what_is_no_graph_is_told_with_its_file(tmp_path: Path, file: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"format": 1}))
    with pytest.raises(UsageError, match=r"wrong.json is no graph: .* missing required field `graph`"):
        graph_definitions([file, wrong])
    with pytest.raises(UsageError, match="two graphs are called 'help-desk'; rename the file"):
        graph_definitions([file, file])
    with pytest.raises(UsageError, match="101 graphs are more than 100"):
        graph_definitions([file] * (MAX_GRAPHS + 1))
    with pytest.raises(UsageError, match="cannot read"):
        graph_definitions([tmp_path / "none.json"])
