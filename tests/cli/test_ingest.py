"""A folder is brought in once; afterwards only what changed is."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from dialoom.cli.ask import ask
from dialoom.cli.flags import KnowledgeFlags, ModelFlags
from dialoom.cli.ingest import ingest
from dialoom.cli.progress import IngestBar, report_lines
from dialoom.rag import (
    DocumentDone,
    DocumentFailed,
    DocumentRemoved,
    DocumentSkipped,
    IndexManifest,
    IngestFinished,
    IngestStarted,
    SyncReport,
)
from dialoom.rag.extract.pool import shared_pool
from dialoom.stores import SqliteVectorStore
from dialoom.testing.wire import WireReply, WireRequest, WireServer
from tests.cli.terminal import SOON, Terminal


def first_line(text: str) -> str:
    return text.splitlines()[0].partition(" (")[0]


def test_a_second_run_reads_only_what_changed(terminal: Terminal, docs: Path) -> None:
    assert first_line(terminal.run("ingest", str(docs)).err) == "docs: 1 read"
    assert first_line(terminal.run("ingest", str(docs)).err) == "docs: 1 unchanged"
    (docs / "shipping.txt").write_text("Parcels leave at noon.", encoding="utf-8")
    (docs / "refunds.md").unlink()
    assert first_line(terminal.run("ingest", str(docs)).err) == "docs: 1 read, 1 removed"


def test_two_folders_live_in_one_index_and_docs_answers_from_one_alone(
    terminal: Terminal, docs: Path
) -> None:
    Path("other").mkdir()
    Path("other/pickup.txt").write_text("Refunds at the counter take one hour.", encoding="utf-8")
    terminal.run("ingest", str(docs))
    terminal.run("ingest", "other")
    assert (
        "[1] refunds.md"
        in terminal.run("ask", "How long do refunds take?", "--docs", "docs", "--offline").out
    )
    both = terminal.run("ask", "How long do refunds take?", "--offline").out
    assert "refunds.md" in both
    assert "pickup.txt" in both


def test_one_file_can_be_brought_in_too(terminal: Terminal, docs: Path) -> None:
    shown = terminal.run("ask", "How long do refunds take?", "--docs", str(docs / "refunds.md"), "--offline")
    assert shown.code == 0
    assert "three working days" in shown.out


def test_a_bar_moves_for_every_file_on_a_terminal(tmp_path: Path) -> None:
    with (tmp_path / "screen").open("w+", encoding="utf-8") as screen:
        seen = {"run_id": "r", "seq": 1}
        with IngestBar(Console(file=screen, force_terminal=True, width=100)) as bar:
            bar.show(IngestStarted(root="docs", total=3, **seen))
            bar.show(DocumentDone(source="docs/[a].txt", documents=1, chunks=1, **seen))
            bar.show(DocumentFailed(source="docs/b.pdf", code="corrupt", message="broken", **seen))
            bar.show(DocumentSkipped(source="docs/c.txt", reason="unchanged", **seen))
            bar.show(DocumentSkipped(source="docs/d.exe", reason="unsupported", **seen))
            bar.show(DocumentRemoved(source="docs/e.txt", **seen))
            bar.show(IngestFinished(report=SyncReport(), **seen))
        screen.seek(0)
        assert "3/3" in screen.read()


def test_the_report_names_the_first_failures_and_counts_the_rest() -> None:
    failures = [
        DocumentFailed(run_id="r", seq=at, source=f"{at}.pdf", code="corrupt", message=f"{at}.pdf is broken")
        for at in range(12)
    ]
    report = SyncReport(files=12, failed=12, failures=failures, seconds=0.25)
    assert report_lines(report, "docs") == [
        "docs: 12 failed (0 new passages, 0.2 s)",
        *(f"  not read: {at}.pdf is broken" for at in range(10)),
        "  not read: 2 more",
    ]
    assert report_lines(SyncReport(files=2, done=2, documents=5, chunks=9), "docs") == [
        "docs: 2 read (9 new passages, 0.0 s)",
        "  5 documents in 2 files: each record of a JSONL file is one",
    ]
    assert report_lines(SyncReport(skipped=3, outside=2), "docs") == [
        "docs: 3 skipped (0 new passages, 0.0 s)",
        "  not followed: 2 links out of the folder",
    ]
    assert report_lines(SyncReport(), "docs") == ["docs: nothing to do (0 new passages, 0.0 s)"]


def test_an_index_of_another_recipe_is_refused_until_it_is_rebuilt(terminal: Terminal, docs: Path) -> None:
    index = Path("old.sqlite")
    with SqliteVectorStore(index) as store:
        store.claim(IndexManifest(embedder="hash-v0", model="", dim=8, chunker="whole"))
    refused = terminal.run("ask", "How long?", "--docs", str(docs), "--index", str(index), "--offline")
    assert refused.code == 5
    assert "--rebuild" in refused.err
    assert terminal.run("ingest", str(docs), "--index", str(index), "--rebuild").code == 0
    assert "three" in terminal.run("ask", "How long do refunds take?", "--index", str(index), "--offline").out


def test_a_file_that_vanished_from_a_subfolder_is_taken_out_by_a_sync_of_the_folder(
    terminal: Terminal,
) -> None:
    Path("kb/sub").mkdir(parents=True)
    Path("kb/plain.md").write_text("Hi there.", encoding="utf-8")
    Path("kb/sub/walrus.md").write_text("The walrus weighs 900 kilos.", encoding="utf-8")
    terminal.run("ingest", "kb")
    terminal.run("ingest", "kb/sub")
    Path("kb/sub/walrus.md").unlink()
    assert first_line(terminal.run("ingest", "kb").err) == "kb: 1 unchanged, 1 removed"
    assert "900" not in terminal.run("ask", "How much does the walrus weigh?", "--offline").out


def test_a_hidden_folder_that_was_brought_in_by_name_stays(terminal: Terminal) -> None:
    Path("kb/.drafts").mkdir(parents=True)
    Path("kb/plain.md").write_text("Hi there.", encoding="utf-8")
    Path("kb/.drafts/walrus.md").write_text("The walrus weighs 900 kilos.", encoding="utf-8")
    terminal.run("ingest", "kb/.drafts")
    assert "removed" not in terminal.run("ingest", "kb").err
    assert "900" in terminal.run("ask", "How much does the walrus weigh?", "--offline").out


def test_an_index_among_its_documents_is_not_one_of_them(terminal: Terminal, docs: Path) -> None:
    for name in ("kb.txt", "kb.md"):
        for _ in range(2):
            shown = terminal.run("ingest", str(docs), "--index", str(docs / name))
            assert (shown.code, "not read" in shown.err) == (0, False), shown.err
        (docs / name).unlink()


async def test_the_settings_name_who_makes_the_vectors(terminal: Terminal, docs: Path) -> None:
    def vectors(request: WireRequest) -> WireReply:
        texts = request.json()["input"]
        assert isinstance(texts, list)
        rows = [{"index": at, "embedding": [1.0, float(len(text))]} for at, text in enumerate(texts)]
        return WireReply(body=(msgspec.json.encode({"data": rows}),))

    async with WireServer(vectors) as server:
        Path("dialoom.toml").write_text(f'[embedding]\nmodel = "e5"\nbase_url = "{server.url}/v1"\n')
        brought = await terminal.run_beside("ingest", str(docs))
        asked = await terminal.run_beside("ask", "How long do refunds take?", "--offline")
    assert (brought.code, asked.code) == (0, 0), brought.err + asked.err
    assert "three working days" in asked.out
    with SqliteVectorStore(".dialoom/knowledge.sqlite", read_only=True) as store:
        assert store.manifest is not None
        assert (store.manifest.embedder, store.manifest.model, store.manifest.dim) == ("openai", "e5", 2)
    Path("dialoom.toml").unlink()
    refused = await terminal.run_beside("ask", "How long do refunds take?", "--offline")
    assert refused.code == 5
    assert "was built with embedder 'openai', not 'hash'" in refused.err


async def test_a_refused_key_ends_an_ingest_in_one_line(terminal: Terminal, docs: Path) -> None:
    def answer(request: WireRequest) -> WireReply:
        if request.json()["input"] == ["a"]:
            return WireReply(body=(b'{"data": [{"index": 0, "embedding": [1.0, 2.0]}]}',))
        return WireReply(status=401, body=(b'{"error": {"message": "wrong key"}}',))

    for number in range(5):
        (docs / f"{number}.txt").write_text(f"text {number}", encoding="utf-8")
    async with WireServer(answer) as server:
        Path("other.toml").write_text(f'[embedding]\nmodel = "e5"\nbase_url = "{server.url}/v1"\n')
        shown = await terminal.run_beside("ingest", str(docs), "--config", "other.toml")
        assert len(server.requests) == 2
    assert (shown.code, shown.out) == (6, "")
    assert [line for line in shown.err.splitlines() if line.startswith("dialoom: ")] == [shown.err.strip()]
    assert "key" in shown.err


@pytest.mark.parametrize("command", ["ask", "ingest"])
async def test_a_stop_does_not_wait_for_the_first_look_at_a_file_that_takes_long(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "deep.html").write_text("<div>" * 200_000)
    readers = shared_pool()
    assert readers is not None
    index = tmp_path / "index.sqlite"
    knowledge, model = KnowledgeFlags(docs=tmp_path, index=index), ModelFlags(offline=True)
    work = ask("refunds?", knowledge, model, as_json=False) if command == "ask" else ingest(tmp_path, index)
    looking = asyncio.create_task(work)
    await asyncio.to_thread(wait_until, lambda: bool(readers.processes()))
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    await asyncio.to_thread(wait_until, lambda: not readers.processes())


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)
