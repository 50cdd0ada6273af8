"""The service on real pipes, and as a process."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.llm import Gate, MockProvider, TextDelta
from dialoom.rag import FloatMatrix, HashEmbedder, InMemoryVectorStore
from dialoom.rag.errors import ManifestMissingError
from dialoom.rag.service import Response, ServiceAccess, ServiceSettings, pipes, serve
from dialoom.rag.service.lines import LineSplitter, TooLongLine
from tests.rag.service.test_service import SOON, settings

ROOT = Path(__file__).parents[3]


class Client:
    """The other ends of the pipes."""

    def __init__(self, requests: IO[bytes], responses: IO[bytes]) -> None:
        self.requests, self.responses = requests, responses

    async def send(self, line: bytes) -> None:
        def write() -> None:
            self.requests.write(line + b"\n")
            self.requests.flush()

        await asyncio.to_thread(write)

    async def ask(self, **fields: object) -> None:
        await self.send(json.dumps(fields).encode())

    async def read(self) -> Response:
        line = await asyncio.to_thread(self.responses.readline)
        found = json.loads(line)
        assert isinstance(found, dict)
        return found


@asynccontextmanager
async def served(made: ServiceSettings) -> AsyncGenerator[tuple[Client, "asyncio.Task[None]"]]:
    ends = (*os.pipe(), *os.pipe())
    modes = ("rb", "wb", "rb", "wb")
    files = [os.fdopen(end, mode, buffering=0) for end, mode in zip(ends, modes, strict=True)]
    requests_out, requests_in, responses_out, responses_in = files
    async with asyncio.timeout(SOON):
        task = asyncio.create_task(serve(requests_out, responses_in, made))
        try:
            yield Client(requests_in, responses_out), task
            requests_in.close()
            await task
        finally:
            for file in (requests_in, responses_in, responses_out, requests_out):
                with suppress(OSError):
                    file.close()


async def filled(**fields: object) -> ServiceSettings:
    return settings(InMemoryVectorStore(), **fields)


@pytest.mark.promise("service-002", "service-009")
async def test_requests_are_answered_by_id_and_shutdown_is_the_last_line() -> None:
    async with served(await filled()) as (client, task):
        await client.send(b"")
        await client.ask(id=1, op="health")
        assert (await client.read())["id"] == 1
        await client.ask(id="end", op="shutdown")
        assert await client.read() == {"id": "end", "ok": True}
        await task


async def test_a_long_answer_does_not_hold_up_the_others_and_shutdown_waits_for_it() -> None:
    gate = Gate()
    provider = MockProvider().queue_events(TextDelta("slow"), gate)
    async with served(await filled(provider=provider)) as (client, _):
        await client.ask(id="slow", op="query", query="one")
        await gate.reached.wait()
        assert (await client.read())["event"] == "delta"
        await client.ask(id="quick", op="health")
        assert (await client.read())["id"] == "quick"
        await client.ask(id="end", op="shutdown")
        gate.opened.set()
        assert (await client.read())["answer"] == "slow"
        assert (await client.read())["id"] == "end"


async def test_what_does_not_end_after_a_shutdown_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "_FAREWELL", 0.05)
    gate = Gate()
    async with served(await filled(provider=MockProvider().queue_events(gate))) as (client, _):
        await client.ask(id="slow", op="query", query="one")
        await gate.reached.wait()
        await client.ask(id="end", op="shutdown")
        assert (await client.read())["stop_reason"] == "cancelled"
        assert (await client.read())["id"] == "end"


class Stuck(HashEmbedder):
    """Never gives a document's vector."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        self.reached.set()
        await asyncio.Event().wait()
        raise AssertionError(texts)


@pytest.fixture
async def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Client]:
    """A service that is taking in a folder, and will be for ever; its farewells are short."""
    monkeypatch.setattr(pipes, "_FAREWELL", 0.05)
    monkeypatch.setattr(pipes, "_LAST_WORDS", 0.2)
    (tmp_path / "a.txt").write_text("a")
    stuck = Stuck()
    async with served(msgspec.structs.replace(await filled(), embedder=stuck)) as (client, _):
        await client.ask(id="stuck", op="ingest", paths=[str(tmp_path)])
        await stuck.reached.wait()
        yield client


async def test_every_request_that_a_shutdown_cuts_off_is_told_so(busy: Client, tmp_path: Path) -> None:
    await busy.ask(id="waits", op="ingest", paths=[str(tmp_path)])
    await busy.ask(id="also", op="delete", documents=["d"])
    await busy.ask(id="end", op="shutdown")
    told = [await busy.read() for _ in range(4)]
    cut = {"ok": False, "error": "the request was cancelled", "code": "cancelled"}
    assert sorted(told[:2], key=str) == [{"id": "also", **cut}, {"id": "waits", **cut}]
    assert told[2:] == [{"id": "stuck", **cut}, {"id": "end", "ok": True}]


async def test_a_change_that_waits_for_its_turn_can_be_cancelled(busy: Client, tmp_path: Path) -> None:
    await busy.ask(id="waits", op="sync", path=str(tmp_path))
    await busy.ask(id="stop", op="cancel", target="waits")
    told = [await busy.read() for _ in range(2)]
    assert sorted((line["id"], line["ok"]) for line in told) == [("stop", True), ("waits", False)]


async def test_bad_lines_get_an_error_with_their_id_and_the_service_lives_on() -> None:
    async with served(await filled(access=ServiceAccess(token="t"))) as (client, _):
        sending = asyncio.create_task(client.send(b'{"id": 1, "op": "query", "query": "' + b"a" * 10_000_000))
        assert await client.read() == {
            "id": 1,
            "ok": False,
            "error": "the line is longer than 1048576 bytes; send less at a time",
            "code": "limit",
        }
        await sending
        for line, name, code in (
            (b'{"id": 2 nonsense', None, "bad_json"),
            (b'{"id": 3, "op": nonsense', 3, "bad_json"),
            (b'{"id": 4, "op": "health"}', 4, "unauthorized"),
            (b'{"id": 5, "auth": "t", "op": "nonsense"}', 5, "unknown_op"),
        ):
            await client.send(line)
            answer = await client.read()
            assert (answer["id"], answer["ok"], answer["code"]) == (name, False, code)
        await client.ask(id=6, op="health", auth="t")
        assert (await client.read())["ok"] is True


async def test_the_end_of_the_input_is_the_end_and_a_last_line_needs_no_end() -> None:
    async with served(await filled()) as (client, task):
        client.requests.write(b'{"id": 1, "op": "health"}')
        client.requests.close()
        assert (await client.read())["id"] == 1
        await task


async def test_a_client_that_no_longer_reads_stops_nothing() -> None:
    provider = MockProvider().queue_text("word " * 5_000, chunks=5_000)
    async with served(await filled(provider=provider)) as (client, task):
        client.responses.close()
        await client.ask(id=1, op="query", query="one")
        await client.ask(id=2, op="shutdown")
        await task


async def test_an_index_that_does_not_fit_is_an_error_before_the_first_line() -> None:
    with pytest.raises(ManifestMissingError):
        async with served(await filled(access=ServiceAccess(read_only=True))):
            pass


def test_half_a_character_in_an_answer_is_replaced() -> None:
    assert pipes.encode_line({"a": ["x\ud800y", 1, None]}) == '{"a": ["x\ufffdy", 1, null]}\n'.encode()
    assert pipes.encode_line({"a": "\n"}) == b'{"a":"\\n"}\n'


def test_input_that_cannot_be_read_is_the_end_of_it() -> None:
    read, write = os.pipe()
    os.close(read)
    assert pipes._read_piece(read) == b""
    os.close(write)


@given(
    st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\r\n", b" ", b"ccccccc"]), max_size=40), st.integers(1, 9)
)
def test_lines_are_the_same_however_they_come_in(parts: list[bytes], size: int) -> None:
    data = b"".join(parts)
    expected = [
        TooLongLine(line) if len(line) > 6 else line
        for line in data.split(b"\n")
        if line.strip() or len(line) > 6
    ]
    splitter = LineSplitter(most=6)
    found = [
        line for start in range(0, len(data), size) for line in splitter.feed(data[start : start + size])
    ]
    found += splitter.finish()
    assert len(found) == len(expected)
    for line, wanted in zip(found, expected, strict=True):
        if isinstance(line, TooLongLine):
            assert isinstance(wanted, TooLongLine)
            assert wanted.head.startswith(line.head[:7])
        else:
            assert line == wanted


PROGRAM = """
import asyncio, sys
from dialoom.llm import OfflineProvider
from dialoom.rag import HashEmbedder, SlidingWindowChunker
from dialoom.rag.service import ServiceSettings, serve
from dialoom.stores import SqliteVectorStore

with SqliteVectorStore(sys.argv[1]) as store:
    settings = ServiceSettings(
        store=store,
        embedder=HashEmbedder(),
        chunker=SlidingWindowChunker(),
        provider=OfflineProvider(),
        docs=sys.argv[2],
    )
    asyncio.run(serve(sys.stdin, sys.stdout, settings))
"""


@pytest.mark.promise("service-032")
def test_a_piped_session_works_offline_and_leaves_the_index_on_disk(tmp_path: Path) -> None:
    index, docs = tmp_path / "index.sqlite", tmp_path / "docs"
    docs.mkdir()
    for name in ("store-pickup.html", "refund-policy.md"):
        shutil.copy(ROOT / "examples/kb" / name, docs)
    lines = [
        {"id": 1, "op": "health"},
        {"id": 2, "op": "query", "query": "How many days does the shop hold a click and collect order?"},
        {"id": 3, "op": "shutdown"},
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(index), str(docs)],
        input="\n".join(map(json.dumps, lines)).encode(),
        capture_output=True,
        timeout=100,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, b"")
    assert [answer["id"] for answer in answers if "ok" in answer] == [1, 2, 3]
    final = answers[-2]
    assert final["cited_sources"][0]["title"].startswith("store-pickup.html")
    assert "".join(answer["text"] for answer in answers if answer.get("event") == "delta") == final["answer"]
    assert index.stat().st_size > 10_000
