"""Every example runs where nothing is: no model, no key, no network."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dialoom.rag import Chunk

EXAMPLES = Path(__file__).parents[2] / "examples"
SHOWN = {
    ("hello_graph.py", "hello"): "HELLO (finished after 1 step)\n",
    ("first_agent.py",): "assistant: 7 times 8 equals 56.\n",
    ("ask_documents.py", "How long do refunds take?", "docs"): "working days. [1]\n[1] refunds.md",
    ("knowledge_service.py", "How long do refunds take?", "docs"): "working days. [1]\n[1] refunds.md",
    ("search_speed.py", "2000"): "the nearest 10 in ",
}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / words[0]), *words[1:]],
        cwd=folder,
        env=os.environ | {"DIALOOM_NO_PROBE": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.promise("docs-030", "docs-031")
@pytest.mark.parametrize("words", SHOWN, ids=lambda words: words[0])
def test_an_example_shows_what_it_is_about(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/refunds.md").write_text("Refunds take three working days.\n", encoding="utf-8")
    done = run(tmp_path, *words)
    assert (done.returncode, SHOWN[words] in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.mark.promise("docs-030")
def test_a_model_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    done = run(tmp_path, "check_model.py", "http://127.0.0.1:9/v1", "tiny")
    assert done.returncode == 1
    assert "connection refused" in done.stdout
    assert run(tmp_path, "check_model.py").stderr.startswith("name the address of a server")


@pytest.mark.promise("docs-030", "docs-031")
def test_tickets_are_triaged_without_any_model(tmp_path: Path) -> None:
    done = run(tmp_path, "triage.py")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "T-1: damage, high, as in C-1",
            "T-2: billing, high, as in C-2",
            "T-3: delivery, normal, as in C-3",
            "T-4: product, low, as in C-4",
            "T-5: billing, high, as in C-5",
            "T-6: account, normal, as in C-6",
        ],
    )
    assert [line.partition(":")[2][:1] for line in done.stderr.splitlines()] == ["6", "7"]
    written = json.loads((tmp_path / "triage.json").read_text(encoding="utf-8"))
    assert (written["mode"], written["embedder"], written["summary"]["source"]) == (
        "offline",
        "hash",
        {"fallback": 6},
    )
    assert "验货通过后三个工作日内原路退回" in written["tickets"][4]["reply"]


def test_the_store_of_ones_own_takes_out_and_replaces_what_it_holds() -> None:
    store = runpy.run_path(str(EXAMPLES / "own_vector_store.py"))["BoxStore"](2)
    one, other = Chunk(id="d#0", doc_id="d", text="one"), Chunk(id="e#0", doc_id="e", text="other")
    store.add([one, other], np.eye(2, dtype=np.float32))
    again = Chunk(id="d#0", doc_id="d", text="again")
    store.replace_document("d", [again], np.array([[1, 0]], np.float32))
    assert [hit.chunk for hit in store.search(np.array([1, 0], np.float32), 1)] == [again]
    assert (store.remove("e#0"), store.remove("e#0"), store.documents(), len(store)) == (
        True,
        False,
        ["d"],
        1,
    )
