"""The triage of tickets with a model: what it says is taken where it fits, and else it is told why not."""

import asyncio
import json
import runpy
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoom.testing.wire import WireReply, WireRequest, WireServer
from tests.cli.test_ask import said
from tests.cli.test_settings import vectors

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "examples/triage.py"))
TICKETS = [{"id": "1", "text": "My card was charged twice."}, {"id": "2", "text": "The axle is bent."}]
CASES = [
    {"id": "A", "category": "billing", "title": "Twice", "text": "charged twice", "resolution": "Paid back."},
    {
        "id": "B",
        "category": "damage",
        "title": "Axle",
        "text": "the axle is bent",
        "resolution": "A new one.",
    },
]
VERDICT = {"category": "billing", "priority": "low", "reply": "Done.", "citations": ["A", "Z"]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tickets.json").write_text(json.dumps(TICKETS), encoding="utf-8")
    (tmp_path / "cases.json").write_text(json.dumps(CASES), encoding="utf-8")
    return tmp_path


def flags(folder: Path, **changes: object) -> Namespace:
    paths = {name: folder / f"{name}.json" for name in ("tickets", "cases", "out")}
    usual: dict[str, object] = {"offline": False, "config": folder / "c.json", "top_k": 2, "concurrency": 2}
    return Namespace(**paths | usual | changes)


async def triaged(folder: Path, reply: Callable[[WireRequest], WireReply], **settings: object) -> Any:
    async with WireServer(reply) as server:
        told = {"provider": "openai", "model": "m", "base_url": f"{server.url}/v1", "retries": 0}
        (folder / "c.json").write_text(json.dumps(told | settings), encoding="utf-8")
        assert await EXAMPLE["main"](flags(folder)) == 0
    return json.loads((folder / "out.json").read_text(encoding="utf-8"))


async def test_what_the_model_says_is_taken_and_only_cases_that_were_found_are_cited(folder: Path) -> None:
    written = await triaged(folder, lambda _: said(json.dumps(VERDICT)))
    assert (written["mode"], written["model"]) == ("model", "openai:m")
    first = written["tickets"][0]
    assert {
        name: first[name] for name in ("category", "priority", "reply", "citations", "source", "note")
    } == {
        **VERDICT,
        "citations": ["A"],
        "source": "model",
        "note": "",
    }
    assert [each["id"] for each in first["retrieved"]] == ["A", "B"]


async def test_a_ticket_the_model_cannot_answer_is_answered_by_rules_and_says_why(folder: Path) -> None:
    def reply(request: WireRequest) -> WireReply:
        return said("I would rather chat.") if "Ticket 1" in str(request.json()) else WireReply(status=500)

    first, second = (await triaged(folder, reply))["tickets"]
    assert (first["source"], first["category"], first["citations"]) == ("fallback", "billing", ["A"])
    assert first["note"].startswith("the answer was no verdict: ")
    assert (second["source"], second["category"]) == ("fallback", "damage")
    assert second["note"].startswith("the model failed: openai at ")


async def test_where_vectors_cannot_be_had_they_are_made_offline(folder: Path) -> None:
    def reply(request: WireRequest) -> WireReply:
        if not request.path.endswith("/embeddings"):
            return said(json.dumps(VERDICT))
        asked = request.json()["input"]
        return vectors(request) if asked == ["a"] else WireReply(status=400)

    written = await triaged(folder, reply, embedding_model="e5")
    assert (written["embedder"], written["summary"]["source"]) == ("hash", {"model": 2})


def test_without_a_ticket_and_without_a_place_to_write_it_ends_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "none.json").write_text('[{"id": 1}]', encoding="utf-8")
    asked = flags(folder, offline=True, config=None, tickets=folder / "none.json")
    assert asyncio.run(EXAMPLE["main"](asked)) == 1
    assert "none.json holds no ticket" in capsys.readouterr().err
    unwritable = flags(folder, offline=True, config=None, out=folder / "no/such.json")
    assert asyncio.run(EXAMPLE["main"](unwritable)) == 1
    assert capsys.readouterr().err.startswith("persist: ")
