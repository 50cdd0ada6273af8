"""The reader's own side of the pipe."""

import io
import os
import resource
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from dialoom.rag.extract import worker
from dialoom.rag.extract.job import (
    Done,
    Failed,
    Job,
    Ready,
    Reply,
    decode_reply,
    encode_job,
    read_frame,
    write_frame,
)
from dialoom.rag.extract.limits import address_space, allow_cpu, set_limits
from dialoom.rag.loaders.loader import Loaded, Source

PAGE = b"<html><body><p>Nine euros.</p></body></html>"
JOB = Job(
    format="html",
    id="/kb/a",
    charset=None,
    html_mode="all",
    timeout=60.0,
    elapsed=0.5,
    max_extracted_bytes=1_000,
)


# Without what a coverage run adds: a process that may write no file could not write down what it has seen.
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


class Choking:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def load(self, source: Source) -> Loaded:
        raise self.error


def served(*frames: bytes) -> tuple[list[Reply], list[float]]:
    jobs, replies, allowed = io.BytesIO(), io.BytesIO(), list[float]()
    for frame in frames:
        write_frame(jobs, frame)
    jobs.seek(0)
    worker.serve(jobs, replies, allowed.append)
    replies.seek(0)
    found: list[Reply] = []
    while (frame := read_frame(replies)) is not None:
        found.append(decode_reply(frame))
    return found, allowed


def test_each_job_gets_one_reply_and_the_end_of_the_pipe_is_the_end() -> None:
    small = msgspec.structs.replace(JOB, max_extracted_bytes=5)
    (ready, done, failed), allowed = served(encode_job(JOB), PAGE, encode_job(small), PAGE, encode_job(JOB))
    assert (ready, allowed) == (Ready(), [59.5, 59.5])
    assert isinstance(done, Done)
    assert done.loaded.documents[0].text == "Nine euros."
    assert failed == Failed(
        "limit", "/kb/a unpacks to more than 5 bytes; split the file or raise max_extracted_bytes"
    )


def test_a_charset_of_the_transport_is_used() -> None:
    job = msgspec.structs.replace(JOB, charset="gb18030")
    (_, done), _ = served(encode_job(job), "<p>退款</p>".encode("gb18030"))
    assert isinstance(done, Done)
    assert done.loaded.documents[0].text == "退款"


def test_a_parser_that_fails_in_its_own_way_means_a_broken_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(worker._LOADERS, "html", Choking(KeyError("odd")))
    (_, failed), _ = served(encode_job(JOB), PAGE)
    assert failed == Failed("corrupt", "/kb/a cannot be read ('odd'); replace the file")


def test_when_memory_is_short_the_reader_says_so_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(worker._LOADERS, "html", Choking(MemoryError()))
    (_, failed), _ = served(encode_job(JOB), PAGE, encode_job(JOB), PAGE)
    assert failed == Failed(
        "limit", "reading /kb/a took more memory than allowed; split it or raise extractor_memory_mb"
    )


@pytest.mark.parametrize("cut", [b"\0\0\0", b"\0\0\0\0\0\0\0\x09abc", b""])
def test_a_frame_that_is_cut_short_is_the_end(cut: bytes) -> None:
    assert read_frame(io.BytesIO(cut)) is None


def test_computing_is_bounded_from_now_on() -> None:
    program = (
        "from dialoom.rag.extract.limits import allow_cpu, set_limits\n"
        "set_limits(500)\nallow_cpu(-1.9)\nwhile True: pass"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False, env=PLAIN)
    assert done.returncode == -24  # SIGXCPU
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    allow_cpu(100_000.0)
    assert resource.getrlimit(resource.RLIMIT_CPU)[0] > 100_000
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def test_the_limits_are_set_for_good() -> None:
    program = (
        "import resource\nfrom dialoom.rag.extract.limits import set_limits\nset_limits(200)\n"
        "assert resource.getrlimit(resource.RLIMIT_FSIZE) == (0, 0)\n"
        "set_limits(300)\n"
        "try: bytearray(400 << 20)\n"
        "except MemoryError: print('short of memory')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=False, env=PLAIN
    )
    assert (done.stdout, done.stderr) == (b"short of memory\n", b"")
    asked: dict[int, tuple[int, int]] = {}
    set_limits(200, asked.__setitem__)
    soft, hard = asked[resource.RLIMIT_AS]
    assert soft == hard > 200 << 20
    assert (asked[resource.RLIMIT_FSIZE], asked[resource.RLIMIT_CORE]) == ((0, 0), (0, 0))


def test_the_space_in_use_is_guessed_where_the_system_does_not_tell(tmp_path: Path) -> None:
    assert address_space() > 1_000_000
    assert address_space(tmp_path / "missing") == 512 * 1_048_576


def test_the_process_reads_what_it_is_sent_and_ends_with_the_pipe() -> None:
    sent = io.BytesIO()
    write_frame(sent, encode_job(JOB))
    write_frame(sent, PAGE)
    command = [sys.executable, "-m", "dialoom.rag.extract.worker", "500"]
    done = subprocess.run(
        command, input=sent.getvalue(), capture_output=True, timeout=60, check=False, env=PLAIN
    )
    replies = io.BytesIO(done.stdout)
    assert done.returncode == 0
    assert decode_reply(read_frame(replies) or b"") == Ready()
    assert isinstance(decode_reply(read_frame(replies) or b""), Done)
    assert read_frame(replies) is None


def test_a_process_whose_parent_is_gone_ends_quietly() -> None:
    command = [sys.executable, "-m", "dialoom.rag.extract.worker", "500"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        env=PLAIN,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
