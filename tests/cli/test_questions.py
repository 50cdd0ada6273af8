"""The sample knowledge base answers its twenty questions: the right document is cited, in both languages."""

import json
from pathlib import Path

import pytest

from dialoom.cli import main

ROOT = Path(__file__).parents[2]
QUESTIONS = [
    json.loads(line)
    for line in (ROOT / "tests/data/questions.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kb") / "index.sqlite"
    assert main(["ingest", str(ROOT / "examples/kb"), "--index", str(path)]) == 0
    return path


def test_at_least_18_of_20_questions_cite_the_right_document(
    index: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    missed: list[str] = []
    for question in QUESTIONS:
        options = ["--docs", str(ROOT / "examples/kb"), "--index", str(index), "--offline", "--json"]
        assert main(["ask", question["question"], *options]) == 0
        answer = json.loads(capfd.readouterr().out)
        cited = {
            Path(answer["sources"][at - 1]["doc_id"].partition("#")[0]).name for at in answer["cited_indexes"]
        }
        if question["doc"] not in cited:
            missed.append(f"{question['id']} cites {sorted(cited)}, not {question['doc']}")
        elif question["must"] not in answer["answer"]:
            missed.append(f"{question['id']} does not say {question['must']}")
    assert len(QUESTIONS) == 20
    assert len(missed) <= 2, missed


def test_the_answer_is_one_json_object_with_what_a_program_needs(
    index: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    main(["ask", QUESTIONS[0]["question"], "--index", str(index), "--offline", "--json"])
    out, err = capfd.readouterr()
    answer = json.loads(out)
    assert out.count("\n") == 1
    assert err == "offline: no model is asked; answers quote the documents\n"
    assert {key: answer[key] for key in ("stop_reason", "mode", "model")} == {
        "stop_reason": "finished",
        "mode": "offline",
        "model": "offline",
    }
    assert len(answer["run_id"]) == 36
    assert {"id", "doc_id", "text", "score"} <= answer["sources"][0].keys()
    assert all(1 <= index <= len(answer["sources"]) for index in answer["cited_indexes"])
    assert all(f"[{index}]" in answer["answer"] for index in answer["cited_indexes"])
