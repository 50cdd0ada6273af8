"""Whatever is wrong, a person gets one line, a script its exit code, and the index stays as it is."""

import os
from pathlib import Path

import pytest

from dialoom.testing.wire import WireReply, WireServer
from tests.cli.terminal import Terminal

INDEX = Path(".dialoom/knowledge.sqlite")


def one_line(text: str) -> str:
    """Return the only complaint in what went to stderr."""
    complaints = [line for line in text.splitlines() if line.startswith("dialoom: ")]
    assert "Traceback" not in text
    assert len(complaints) == 1, text
    return complaints[0].removeprefix("dialoom: ")


@pytest.fixture
def indexed(terminal: Terminal, docs: Path) -> bytes:
    """The bytes of an index that is there already."""
    assert terminal.run("ingest", str(docs)).code == 0
    return INDEX.read_bytes()


CASES = {
    "missing folder": (["ask", "q", "--docs", "nowhere"], 4, "nowhere is not a readable file or folder"),
    "missing folder, ingest": (["ingest", "nowhere"], 4, "nowhere is not a readable file or folder"),
    "empty folder": (
        ["ask", "q", "--docs", "empty"],
        4,
        "no readable document in empty: it is empty; put documents",
    ),
    "no readable file": (["ingest", "broken"], 4, "no readable document in broken: "),
    "only unknown kinds": (["ingest", "strange"], 4, "its 2 entries are empty or of kinds that are not read"),
    "index is a folder": (
        ["ask", "q", "--docs", "docs", "--index", "docs", "--offline"],
        5,
        "docs is a folder; name a file in it, like docs/knowledge.sqlite",
    ),
    "docs is empty": (["ask", "q", "--docs", ""], 2, "--docs is empty; name a file or folder"),
    "docs is empty, ingest": (["ingest", ""], 2, "the path is empty; name a file or folder"),
    "settings are empty": (["ask", "q", "--config", ""], 2, "--config is empty; name a file or folder"),
    "list of servers is empty": (["mcp", "list", "--config", ""], 2, "--config is empty; name a file"),
    "profile is empty": (["doctor", "--profile", ""], 2, "--profile is empty; name a file or folder"),
    "graph is empty": (["graph", "show", ""], 2, "the path is empty; name a file or folder"),
    "questions are empty": (["rag", "eval", ""], 2, "the path is empty; name a file or folder"),
    "docs is a pipe": (["ingest", "pipe"], 2, "pipe is a pipe; name a folder or a file"),
    "docs is a device": (["ask", "q", "--docs", "/dev/null"], 2, "/dev/null is a device; name a folder"),
    "docs is an address": (["ingest", "https://example.org/a"], 2, "is an address; save the page"),
    "no such settings": (["ask", "q", "--docs", "docs", "--config", "x.toml"], 2, "no settings file x.toml"),
    "no time": (["ask", "q", "--docs", "docs", "--timeout", "0"], 2, "Must be > 0"),
    "index below a file": (["ingest", "docs", "--index", "docs/refunds.md/x"], 5, "cannot be used"),
    "index is something else": (["ask", "q", "--offline", "--index", "docs/refunds.md"], 5, "is not"),
    "no index": (
        ["ask", "q", "--index", "none.sqlite"],
        2,
        "there is no index none.sqlite; name a folder with --docs",
    ),
    "unknown provider": (["ask", "q", "--docs", "docs", "--model", "acme:x"], 2, "unknown provider 'acme'"),
    "broken address": (["ask", "q", "--docs", "docs", "--base-url", "ftp://x"], 2, "is no http address"),
    "no model": (
        ["ask", "q", "--docs", "docs", "--require-model"],
        3,
        "no model was found; name one with --model",
    ),
    "empty question": (["ask", " ", "--docs", "docs"], 2, "the question is empty; ask something"),
    "no question": (["ask"], 2, "QUESTION requires an argument"),
    "two words": (
        ["ask", "hi", "there"],
        2,
        "'there' is one word too many for dialoom ask; put the question",
    ),
    "two folders": (
        ["ingest", "a", "b"],
        2,
        "'b' is one word too many for dialoom ingest; see dialoom ingest",
    ),
    "its own help": (["ask"], 2, "See dialoom ask --help."),
    "no place for a chat": (
        ["chat", "--offline", "--index", "docs/refunds.md/x/k"],
        5,
        "no conversation can be",
    ),
    "no questions": (
        ["rag", "eval", "asked/none.jsonl"],
        2,
        "there are no questions in asked/none.jsonl",
    ),
    "question of nothing": (
        ["rag", "eval", "asked/one.jsonl"],
        2,
        "line 1: the question names no document",
    ),
    "question without docs": (
        ["rag", "eval", "asked/two.jsonl"],
        2,
        "there is no document 'd'; name the folder",
    ),
    "no file of questions": (
        ["rag", "eval", "nope.jsonl"],
        2,
        "nope.jsonl cannot be read (no such file or dir",
    ),
    "unknown option": (["ask", "q", "--nope"], 2, "Unknown option: --nope"),
    "unknown command": (["aks"], 2, 'Unknown command "aks". Did you mean "ask"?'),
    "bad number": (["ask", "q", "--top-k", "0"], 2, "Must be >= 1"),
}


@pytest.mark.parametrize(("words", "code", "told"), CASES.values(), ids=CASES.keys())
def test_each_mistake_gets_its_line_and_its_code(
    terminal: Terminal, indexed: bytes, words: list[str], code: int, told: str
) -> None:
    os.mkfifo("pipe")
    Path("empty").mkdir()
    Path("broken").mkdir()
    Path("broken/report.pdf").write_text("not a pdf", encoding="utf-8")
    Path("strange").mkdir()
    Path("asked").mkdir()
    Path("asked/none.jsonl").touch()
    Path("asked/one.jsonl").write_text('{"question": "q", "answer": "a"}', encoding="utf-8")
    Path("asked/two.jsonl").write_text('{"question": "q", "doc": "d", "answer": "a"}', encoding="utf-8")
    Path("strange/tool.exe").write_bytes(b"MZ")
    Path("strange/blank.txt").write_text(" \n", encoding="utf-8")
    shown = terminal.run(*words)
    assert (shown.code, shown.out) == (code, "")
    assert told in one_line(shown.err)
    assert INDEX.read_bytes() == indexed


async def test_a_refused_connection_names_the_address(terminal: Terminal, indexed: bytes) -> None:
    async with WireServer([]) as server:
        address = f"{server.url}/v1"  # nobody listens there any more
    shown = await terminal.run_beside("ask", "refunds?", "--model", "openai:m", "--base-url", address)
    assert (shown.code, shown.out) == (6, "")
    assert one_line(shown.err).startswith(f"cannot reach {address}/chat/completions: connection refused")
    assert INDEX.read_bytes() == indexed


async def test_a_refused_key_is_said_and_not_shown(
    terminal: Terminal, indexed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALOOM_API_KEY", "sk-secret-0123456789")
    reply = WireReply(
        status=401, body=(b'{"error": {"message": "Incorrect API key: sk-secret-0123456789"}}',)
    )
    async with WireServer([reply]) as server:
        words = ("ask", "refunds?", "--model", "openai:m", "--base-url", f"{server.url}/v1")
        shown = await terminal.run_beside(*words)
        assert server.requests[0].headers["authorization"] == "Bearer sk-secret-0123456789"
    assert (shown.code, shown.out) == (6, "")
    assert "sk-secret" not in shown.err
    assert "key" in one_line(shown.err)
    assert INDEX.read_bytes() == indexed


def test_one_broken_file_is_named_and_the_others_go_in(terminal: Terminal, docs: Path) -> None:
    (docs / "broken.pdf").write_text("not a pdf", encoding="utf-8")
    (docs / "locked.docx").write_bytes(b"\xd0\xcf\x11\xe0")
    shown = terminal.run("ingest", str(docs))
    assert shown.code == 0
    lines = shown.err.splitlines()
    assert lines[0].startswith("docs: 1 read, 2 failed (1 new passage, ")
    assert [line.split()[2].rpartition("/")[2] for line in lines[1:3]] == ["broken.pdf", "locked.docx"]
    assert lines[3] == f"{INDEX}: 1 passage of 1 document"


def test_what_was_skipped_and_lines_that_are_broken_are_told(terminal: Terminal, docs: Path) -> None:
    (docs / "tool.exe").write_bytes(b"MZ")
    os.mkfifo(docs / "pipe.txt")
    (docs / "faq.jsonl").write_text('{"id": "a", "text": "yes"}\nnot json\n', encoding="utf-8")
    told = terminal.run("ingest", str(docs)).err.splitlines()[1:-1]
    folder = docs.absolute()
    assert [line.partition("; ")[0].partition(" (JSON")[0] for line in told][:2] == [
        f"  skipped: {folder}/pipe.txt (no regular file)",
        f"  skipped: {folder}/tool.exe (of a kind that is not read)",
    ]
    assert told[2].startswith(f"  note: line 2 of {folder}/faq.jsonl is not a JSON object (")
