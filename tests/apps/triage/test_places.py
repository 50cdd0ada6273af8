"""Where the triage reads and writes: what is read is never written over, and a pipe is read too."""

import os
import threading
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--out", "cases.jsonl"), "cases.jsonl would be written over, and --cases reads it"),
        (("--out", "tickets.jsonl"), "tickets.jsonl would be written over, and --tickets reads it"),
        (("--out", "./x/../cases.jsonl"), "x/../cases.jsonl would be written over, and --cases reads it"),
        (("--out", "linked"), "linked would be written over, and --cases reads it"),
        (("--out", "hard"), "hard would be written over, and --cases reads it"),
        (("--out", "s.toml", "--config", "s.toml"), "s.toml would be written over, and --config reads it"),
        (("--out", "dialoom.toml"), "dialoom.toml would be written over, and --config reads it"),
        (("--tickets", "o.unfinished", "--out", "o"), "o.unfinished would be written over, and --tickets"),
        (
            ("--cases", "o.unfinished-wal", "--out", "o"),
            "o.unfinished-wal would be written over, and --cases",
        ),
    ],
)
def test_what_is_read_is_never_written_over(desk: Terminal, words: tuple[str, ...], told: str) -> None:
    Path("x").mkdir()
    Path("linked").symlink_to("cases.jsonl")
    Path("hard").hardlink_to("cases.jsonl")
    for name in ("s.toml", "dialoom.toml"):
        Path(name).write_text("", encoding="utf-8")
    for name, of in (("o.unfinished", "tickets.jsonl"), ("o.unfinished-wal", "cases.jsonl")):
        Path(name).write_bytes(Path(of).read_bytes())
    before = {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    shown = desk.run("triage", "--offline", *words)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith(f"dialoom: {told}")
    assert {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_tickets_come_through_a_pipe(desk: Terminal) -> None:
    os.mkfifo("pipe")
    content = Path("tickets.jsonl").read_text(encoding="utf-8")
    writer = threading.Thread(target=Path("pipe").write_text, args=(content,), daemon=True)
    writer.start()
    shown = desk.run("triage", "--offline", "--tickets", "pipe")
    writer.join(10)
    assert shown[:2] == (0, "triage.json: 3 tickets, 0 by model, 3 by rules\n")
