"""What was asked in one process goes on in another, however the first one ended."""

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

IN_DOUBT = (
    '{"error":"in_doubt","tool":"pay","message":"the program stopped while this call was under way, so it may'
    ' have taken effect or not; look first"}'
)


def program(folder: Path, kind: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.agent.restarted", str(folder), kind, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def killed_at_work(folder: Path, *, after: int, then: float) -> bool:
    """Whether the program was still at work, and so was killed: `then` seconds after so many calls."""
    command = [sys.executable, "-m", "tests.agent.killed", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        begun = running.stdout.read(after)
        if begun == b"." * after:
            time.sleep(
                then
            )  # so that it dies anywhere: between two calls, and while what they came to is kept
            running.kill()
        (folder / "told").write_bytes(begun + running.stdout.read())
        return running.wait(60) == -signal.SIGKILL


def told(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def effects(folder: Path) -> list[str]:
    return (folder / "effects").read_text().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "result"])
def test_an_approval_is_answered_with_edited_arguments_in_another_process(tmp_path: Path, kind: str) -> None:
    waiting = told(program(tmp_path, kind, "ask", "refund"))
    assert waiting == {"stop_reason": "needs_approval", "answer": "", "results": []}
    edit = {"c1": {"type": "edit", "arguments": {"order": 9, "amount": 20}}}
    done = told(program(tmp_path, kind, "resume", json.dumps(edit)))
    assert done == {
        "stop_reason": "finished",
        "answer": "It is done.",
        "results": [
            [
                "c1",
                'refunded 20 for order 9\n[the arguments were changed to {"order":9,"amount":20}]',
            ]
        ],
    }
    assert effects(tmp_path) == ["refunded 20 for order 9"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "result", "left"),
    [
        ("sqlite", "recount", "counted", ["counted", "counted"]),
        ("sqlite", "pay", IN_DOUBT, ["paid"]),
        ("sqlite", "pay_once", "paid", ["paid"]),
        ("sqlite", "pay_once_plainly", "paid", ["paid"]),
        ("jsonl", "pay", IN_DOUBT, ["paid"]),
        ("jsonl", "pay_once", "paid", ["paid"]),
    ],
)
def test_a_call_killed_between_its_effect_and_its_commit_is_run_again_only_when_that_does_no_harm(
    tmp_path: Path, kind: str, name: str, result: str, left: list[str]
) -> None:
    killed = program(tmp_path, kind, "ask", name)
    assert killed.returncode == -signal.SIGKILL
    done = told(program(tmp_path, kind, "resume"))
    assert done == {"stop_reason": "finished", "answer": "It is done.", "results": [["c1", result]]}
    assert effects(tmp_path) == left


def test_a_call_that_had_ended_is_not_run_again_when_the_program_dies_in_its_round(tmp_path: Path) -> None:
    killed = program(tmp_path, "sqlite", "ask", "note+die_after_the_other")
    assert killed.returncode == -signal.SIGKILL
    done = told(program(tmp_path, "sqlite", "resume"))
    assert done["results"] == [["c1", "noted"], ["c2", IN_DOUBT.replace("pay", "die_after_the_other")]]
    assert effects(tmp_path) == ["noted"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_program_that_is_killed_again_and_again_runs_no_call_twice(tmp_path: Path, seed: int) -> None:
    chance, kills = random.Random(seed), 0
    while killed_at_work(tmp_path, after=chance.randint(4, 14), then=chance.uniform(0, 0.012)):
        kills += 1
    assert kills >= 3
    result = json.loads((tmp_path / "told").read_text().lstrip("."))
    assert result["stop_reason"] == "finished"
    assert [call_id for call_id, _ in result["results"]] == [
        f"{n}.{at}" for n in range(15) for at in range(3)
    ]
    counts = Counter(effects(tmp_path))
    assert set(counts.values()) == {1}
    for call_id, content in result["results"]:
        n = int(call_id[:-2]) * 10 + int(call_id[-1])
        assert content == f"done {n}" or '"error":"in_doubt"' in content
        assert counts[str(n)] == 1 or '"error":"in_doubt"' in content
