"""Files read in child processes: the same documents come back, and no file can hurt the parent."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dialoom.rag.errors import LoadError
from dialoom.rag.extract import child as child_module
from dialoom.rag.extract import pool as pool_module
from dialoom.rag.extract.child import ChildEndedError, ReaderProcess, ReplyTooLongError
from dialoom.rag.extract.job import Done, Ready, encode_reply, frame_head
from dialoom.rag.extract.pool import ExtractorPool, shared_pool
from dialoom.rag.loaders import DocxLoader, HtmlLoader, Loaded, LoadOptions, PdfLoader, Source
from dialoom.rag.loaders.load import load_bytes
from dialoom.rag.types import Document, Heading, PageSpan
from tests.rag.reading import growing_less_than
from tests.rag.small_pdf import small_pdf
from tests.rag.test_word import package, para

PAGE = b"<html><title>Fees</title><body><h1>Fees</h1><p>Nine euros.</p></body></html>"
BOUND = 60.0


@pytest.fixture
def pool() -> Iterator[ExtractorPool]:
    made = ExtractorPool(most=2)
    yield made
    pids = made.processes()
    made.close()
    assert not any(is_there(pid) for pid in pids)


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0]


def gone(pid: int) -> bool:
    deadline = time.monotonic() + BOUND
    while is_there(pid) and time.monotonic() < deadline:
        os.sched_yield()
    return not is_there(pid)


def page(data: bytes = PAGE, **options: object) -> Source:
    return Source(id="/kb/a", data=data, options=LoadOptions(**options), started=time.monotonic())


def fake(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let the pool start a program that misbehaves in place of the reader."""
    start = f"import os, sys, time\nout = sys.stdout.buffer\n{FRAMES}\n{program}"
    command = subprocess.Popen

    def popen(args: list[str], **options: object) -> subprocess.Popen[bytes]:
        return command([sys.executable, "-c", start], **options)  # type: ignore[call-overload]  # as it was called

    monkeypatch.setattr(child_module.subprocess, "Popen", popen)


READY = encode_reply(Ready())
FRAMES = f"""
def send(body): out.write(len(body).to_bytes(8, "big") + body); out.flush()
def take(): return sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(8), "big"))
send({READY!r}); take(); take()
"""


def refusal(pool: ExtractorPool, source: Source) -> LoadError:
    with pytest.raises(LoadError) as caught:
        pool.extract("html", source)
    return caught.value


@pytest.mark.promise("rag-026")
def test_a_child_gives_the_same_documents_as_the_loader_itself(pool: ExtractorPool) -> None:
    for kind, loader, data in (
        ("html", HtmlLoader(), PAGE),
        ("pdf", PdfLoader(), small_pdf("Nine euros.", "Paid once.")),
        ("docx", DocxLoader(), package(para("Nine euros."))),
    ):
        assert pool.extract(kind, page(data)) == loader.load(page(data))
    assert len(pool.processes()) == 1


def test_what_a_loader_refuses_is_refused_in_the_same_words(pool: ExtractorPool) -> None:
    broken = page(b"no pdf at all")
    with pytest.raises(LoadError) as here:
        PdfLoader().load(broken)
    with pytest.raises(LoadError) as there:
        pool.extract("pdf", broken)
    assert (there.value.code, str(there.value)) == (here.value.code, str(here.value))
    assert pool.extract("html", page()).documents[0].metadata["title"] == "Fees"


def test_files_are_read_side_by_side_up_to_the_number_of_processes(pool: ExtractorPool) -> None:
    with ThreadPoolExecutor(8) as executor:
        found = list(executor.map(lambda _: pool.extract("html", page()), range(40)))
    assert len({loaded.documents[0].text for loaded in found}) == 1
    assert len(pool.processes()) <= 2


def test_a_file_larger_than_any_pipe_goes_through_and_comes_back(pool: ExtractorPool) -> None:
    words = b"<p>" + b"euros and cents " * 300_000
    (document,) = pool.extract("html", page(words)).documents
    assert len(document.text) > 4_700_000


@pytest.mark.promise("rag-022", "rag-027")
def test_a_reader_that_takes_too_long_is_ended_with_all_it_has_started(
    pool: ExtractorPool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pool_module, "_GRACE_SECONDS", 0.1)
    note = tmp_path / "pid"
    fake(
        monkeypatch,
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\ntime.sleep(600)",
    )
    for seconds in (2, 20, 60):  # as long as the machine needs to start it
        error = refusal(pool, page(extractor_timeout=float(seconds)))
        assert (error.code, str(error)) == (
            "timeout",
            f"reading /kb/a took over {seconds} s; split the file or raise extractor_timeout",
        )
        if note.exists():
            break
    assert gone(int(note.read_text()))
    assert pool.processes() == []
    monkeypatch.undo()
    assert pool.extract("html", page()).documents[0].metadata["title"] == "Fees"


@pytest.mark.promise("rag-028")
def test_a_reader_that_sends_too_much_is_ended_before_it_is_listened_to(
    pool: ExtractorPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, "out.write((1 << 40).to_bytes(8, 'big'))\nwhile True: out.write(bytes(1 << 20))")
    with growing_less_than(50):
        error = refusal(pool, page(max_extracted_bytes=1_000_000))
    assert error.code == "limit"
    assert pool.processes() == []


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        ("sys.exit(3)", "corrupt", "made its reader crash (no signal)"),
        ("os.kill(os.getpid(), 11)", "corrupt", "made its reader crash (SIGSEGV)"),
        ("os.kill(os.getpid(), 24)", "timeout", "took over 60 s"),
        ("send(b'nonsense')", "corrupt", "answer nonsense"),
        (f"send({READY!r})", "corrupt", "answer nonsense"),
        ("os.close(1); time.sleep(600)", "corrupt", "made its reader crash (SIGKILL)"),
    ],
)
def test_a_reader_that_fails_is_the_end_of_one_file_only(
    pool: ExtractorPool, monkeypatch: pytest.MonkeyPatch, program: str, code: str, words: str
) -> None:
    fake(monkeypatch, program)
    error = refusal(pool, page())
    assert (error.code, error.source) == (code, "/kb/a")
    assert words in str(error)
    monkeypatch.undo()
    assert pool.extract("html", page()).documents[0].metadata["title"] == "Fees"


@pytest.mark.parametrize(
    "document",
    [
        Document(id="/kb/another", text="abc"),
        Document(id="/kb/a", text="abc", pages=(PageSpan(1, 0, 4),)),
        Document(id="/kb/a", text="abc", pages=(PageSpan(1, 2, 1),)),
        Document(id="/kb/a", text="abc", headings=(Heading(1, "x", 9),)),
        Document(id="/kb/a", text="abc", headings=(Heading(7, "x", 0),)),
    ],
)
def test_a_document_that_contradicts_itself_is_not_believed(
    pool: ExtractorPool, monkeypatch: pytest.MonkeyPatch, document: Document
) -> None:
    reply = encode_reply(Done(Loaded(source="/kb/a", documents=[document])))
    fake(monkeypatch, f"send({reply!r}); time.sleep(600)")
    assert refusal(pool, page()).code == "corrupt"
    assert refusal(pool, page(max_extracted_bytes=2)).code in {"limit", "corrupt"}


@pytest.mark.parametrize("executable", ["/bin/false", "/nowhere/python"])
def test_a_reader_that_cannot_be_started_says_so(
    pool: ExtractorPool, monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    error = refusal(pool, page())
    assert (error.code, str(error)) == (
        "unreadable",
        f"no process could be started to read /kb/a; see that {executable} has dialoom",
    )
    monkeypatch.undo()
    assert pool.extract("html", page()).documents


def test_other_limits_mean_another_process(pool: ExtractorPool) -> None:
    pool.extract("html", page())
    (first,) = pool.processes()
    pool.extract("html", page(extractor_memory_mb=300))
    assert len(pool.processes()) == 2
    pool.extract("html", page(extractor_memory_mb=200))
    assert first not in pool.processes()
    assert len(pool.processes()) == 2


def test_a_process_is_replaced_after_many_files_and_after_it_was_killed(
    pool: ExtractorPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "_MOST_JOBS", 2)
    pool.extract("html", page())
    (first,) = pool.processes()
    pool.extract("html", page())
    assert pool.processes() == []
    assert gone(first)
    pool.extract("html", page())
    (second,) = pool.processes()
    os.kill(second, signal.SIGKILL)
    assert gone(second)
    assert pool.extract("html", page()).documents


@pytest.mark.promise("rag-023", "rag-029")
def test_a_reader_has_its_limits_from_the_operating_system() -> None:
    reader = ReaderProcess(300)
    try:
        reader.ask([], seconds=BOUND, most=1_000)
        lines = Path(f"/proc/{reader.pid}/limits").read_text().splitlines()
        limits = {line[:25].strip(): line[26:].split()[:2] for line in lines}
        size = int(Path(f"/proc/{reader.pid}/statm").read_text().split()[0]) * resource.getpagesize()
        memory = int(limits["Max address space"][1])
        assert 250 << 20 < memory - size < 350 << 20
        assert limits["Max file size"] == ["0", "0"]
        assert limits["Max core file size"] == ["0", "0"]
        assert limits["Max open files"] == ["64", "64"]
        environment = Path(f"/proc/{reader.pid}/environ").read_bytes()
        assert os.getpgid(reader.pid) == reader.pid
        assert b"PYTEST" not in environment
    finally:
        assert reader.end() == signal.SIGKILL
    assert reader.end() == signal.SIGKILL


def test_a_file_that_needs_more_memory_than_allowed_is_refused_and_the_next_one_read(
    pool: ExtractorPool,
) -> None:
    error = refusal(pool, page(b"<p>" + b"<b>a</b> " * 4_000_000, extractor_memory_mb=64))
    assert error.code in {"limit", "corrupt"}
    assert "extractor_memory_mb" in str(error)
    assert pool.extract("html", page(extractor_memory_mb=64)).documents


def test_a_reader_goes_when_its_parent_is_killed() -> None:
    program = (
        "import sys, time\nfrom dialoom.rag.extract.pool import ExtractorPool\n"
        "from tests.rag.extract.test_pool import page\n"
        "pool = ExtractorPool()\npool.extract('html', page())\n"
        "print(pool.processes()[0], flush=True)\ntime.sleep(600)"
    )
    root = Path(__file__).parents[3]
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=root)
    with parent:
        assert parent.stdout is not None
        reader = int(parent.stdout.readline())
        assert is_there(reader)
        parent.kill()
    assert gone(reader)


def test_a_program_that_ends_takes_its_readers_with_it_and_a_fork_has_its_own() -> None:
    program = (
        "import os, sys\nfrom dialoom.rag import load_document\n"
        "from dialoom.rag.extract.pool import shared_pool\n"
        "page = sys.argv[1]\nload_document(page)\nmine = shared_pool().processes()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    load_document(page)\n"
        "    os._exit(0 if shared_pool().processes() != mine else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\nload_document(page)\n"
        "assert shared_pool().processes() == mine\nprint(*mine)"
    )
    root = Path(__file__).parents[3]
    path = root / "examples/kb/store-pickup.html"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, timeout=100, cwd=root, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert all(gone(int(pid)) for pid in done.stdout.split())


def test_a_pool_is_shared_and_there_is_none_where_the_system_has_no_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shared_pool() is shared_pool() is not None
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setattr(pool_module, "find_spec", lambda _: None)
    assert shared_pool() is None
    read_here = load_bytes(PAGE, "/kb/a.html", options=LoadOptions())
    assert read_here.documents[0].metadata["title"] == "Fees"


def test_closing_ends_a_reader_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ExtractorPool()
    started = threading.Event()
    whole = ReaderProcess.ask

    def ask(self: ReaderProcess, parts: list[bytes], **bounds: float) -> memoryview:
        if parts:
            started.set()
        return whole(self, parts, **bounds)  # type: ignore[arg-type]  # as it was called

    fake(monkeypatch, "time.sleep(600)")
    monkeypatch.setattr(ReaderProcess, "ask", ask)
    with ThreadPoolExecutor(1) as executor:
        reading = executor.submit(pool.extract, "html", page())
        assert started.wait(BOUND)
        pool.close()
        assert isinstance(reading.exception(BOUND), LoadError)
    pool.close()


def test_a_pipe_says_what_came_of_it() -> None:
    reader = ReaderProcess(300)
    with pytest.raises(ReplyTooLongError):
        reader.ask([], seconds=BOUND, most=1)
    reader.retire()
    with pytest.raises(ValueError, match="closed"):
        reader.ask([], seconds=BOUND, most=1)
    left = ReaderProcess(300)
    left.ask([], seconds=BOUND, most=1_000)
    with pytest.raises(TimeoutError):
        left.ask([], seconds=0.0, most=1_000)
    os.kill(left.pid, signal.SIGTERM)
    with pytest.raises(ChildEndedError) as ended:
        left.ask([b"x" * 10_000_000], seconds=BOUND, most=1_000)
    assert ended.value.name == "SIGTERM"
    assert frame_head(3) == b"\0\0\0\0\0\0\0\3"


def test_a_reader_that_will_not_retire_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "_FAREWELL", 0.1)
    fake(monkeypatch, "pass")
    monkeypatch.setattr(sys.modules[__name__], "FRAMES", FRAMES)
    reader = ReaderProcess(300)
    reader.ask([], seconds=BOUND, most=1_000)
    os.kill(reader.pid, signal.SIGSTOP)
    reader.retire()
    assert gone(reader.pid)


def test_a_process_of_another_parent_is_let_go_of_and_not_touched() -> None:
    pool = ExtractorPool()
    pool.extract("html", page())
    (pid,) = pool.processes()
    pool.forget()
    deadline = time.monotonic() + BOUND  # it sees the end of its pipe and goes by itself
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        assert time.monotonic() < deadline
        os.sched_yield()
    shared = pool_module._Shared()
    first = shared.get()
    assert first is shared.get()
    first.extract("html", page())
    (pid,) = first.processes()
    shared.forget()
    assert shared.get() is not first
    os.waitpid(pid, 0)
    shared.close()
