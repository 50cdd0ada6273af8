"""The small parts under a connection: lines, waits, bounds, the start of a child; none needs a server."""

import asyncio
import json
import os
import random
import sys
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.mcp import MemoryTransport, Oversize, StdioTransport
from dialoom.mcp.backoff import Backoff, Budget
from dialoom.mcp.child import MOST_UNREAD
from dialoom.mcp.lines import LineBuffer
from dialoom.mcp.memory import MOST_WAITING
from dialoom.mcp.patience import Patience, person_asked
from dialoom.mcp.stdio import child_environment, resolve_argv
from dialoom.mcp.transport import Line
from dialoom.testing.clock import settle
from tests.mcp.loop_time import loop_time

LIMIT = 8
ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def cut(text: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def lines_of(chunks: Sequence[bytes]) -> list[Line]:
    buffer = LineBuffer(LIMIT)
    return [line for chunk in chunks for line in buffer.feed(chunk)] + buffer.finish()


@given(st.lists(st.binary(max_size=20)), st.lists(st.integers(0, 500)))
def test_the_same_bytes_give_the_same_lines_however_they_are_cut(
    pieces: list[bytes], places: list[int]
) -> None:
    text = b"\n".join(pieces)
    lines = lines_of(cut(text, places))
    assert lines == lines_of([text])
    kept = [
        line.rstrip(b"\r") for line in text.split(b"\n") if len(line.rstrip(b"\r")) > 0 and len(line) <= LIMIT
    ]
    assert [line for line in lines if isinstance(line, bytes)] == kept


def test_of_a_line_beyond_the_bound_its_ends_and_its_length_are_kept() -> None:
    assert lines_of([b"0123456789abcdef\nshort\n"]) == [Oversize(b"01234567", b"89abcdef", 16), b"short"]


@given(st.floats(0.01, 5), st.floats(0.01, 60), st.integers())
def test_waits_grow_to_their_bound_and_begin_anew(first: float, most: float, seed: int) -> None:
    backoff = Backoff(first, most, rng=random.Random(seed))
    waits = [backoff.next() for _ in range(12)]
    assert all(min(first, most) <= wait <= most * 1.2 for wait in waits)
    assert waits[-1] >= min(most, first * 3**11)
    backoff.reset()
    assert backoff.next() <= min(first, most) * 1.2
    backoff.at_least(most * 2)
    assert most <= backoff.next() <= most * 1.2


def test_a_budget_allows_so_many_starts_within_so_many_seconds() -> None:
    budget = Budget(3, 60.0)
    for now in (0.0, 10.0, 20.0):
        assert budget.wait(now) == 0
        budget.spend(now)
    assert (budget.wait(20.0), budget.wait(59.0), budget.wait(60.0)) == (40.0, 1.0, 0.0)


async def waiting_with(patience: Patience) -> asyncio.Task[None]:
    async def wait() -> None:
        async with patience:
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await settle()
    return task


@pytest.mark.parametrize(("idle", "total"), [(5, 60), (60, 5)])
async def test_silence_and_length_are_bounded_each(idle: float, total: float) -> None:
    with loop_time() as time:
        patience = Patience(idle=idle, total=total)
        waiting = await waiting_with(patience)
        await time.advance(4.9)
        assert not waiting.done()
        await time.advance(0.2)
        with pytest.raises(TimeoutError):
            waiting.result()
        assert patience.over


async def test_a_sign_of_life_begins_silence_anew_and_length_never() -> None:
    with loop_time() as time:
        patience = Patience(idle=5, total=12)
        waiting = await waiting_with(patience)
        for _ in range(3):
            await time.advance(3.9)
            patience.alive()
        assert not waiting.done()
        await time.advance(0.4)
        with pytest.raises(TimeoutError):
            waiting.result()
        patience.alive()  # a late sign of life does no harm


async def test_nothing_is_counted_while_a_person_is_asked() -> None:
    with loop_time() as time:
        async with Patience(idle=5, total=10) as patience:
            await time.advance(4)
            with person_asked(), person_asked():
                await time.advance(1000)
                patience.alive()
            await time.advance(4.9)  # six seconds of the ten are left, five of them in silence
            assert not patience.over
    with person_asked():
        pass  # outside of any request


async def test_what_is_given_up_ends_though_it_is_paused() -> None:
    with pytest.raises(TimeoutError):
        async with Patience(idle=10, total=10) as patience:
            patience.pause()
            patience.give_up()
            await asyncio.Event().wait()


async def test_two_ends_in_memory_pass_lines_and_close_together() -> None:
    one, other = MemoryTransport.pair()
    await one.open()
    await one.send(b"first")
    await one.aclose()
    assert (await other.receive(), await other.receive()) == (b"first", None)
    with pytest.raises(BrokenPipeError):
        await other.send(b"too late")


async def test_a_sender_waits_for_a_slow_reader_and_is_freed_by_closing() -> None:
    one, other = MemoryTransport.pair()
    for number in range(MOST_WAITING):
        await one.send(b"%d" % number)
    blocked = [asyncio.create_task(one.send(b"last")) for _ in range(2)]
    await asyncio.sleep(0)
    assert await other.receive() == b"0"
    await asyncio.wait(blocked, return_when=asyncio.FIRST_COMPLETED)
    await one.aclose()
    outcomes = await asyncio.gather(*blocked, return_exceptions=True)
    assert [type(each) for each in outcomes] == [type(None), BrokenPipeError]


async def test_a_child_that_talks_more_than_is_read_is_left_waiting() -> None:
    size = MOST_UNREAD // 4
    loud = f"import sys\nfor n in range(12): print('x' * {size}, flush=True)\nprint('end', flush=True)"
    transport = StdioTransport(sys.executable, ["-c", loud])
    async with asyncio.timeout(60):
        await transport.open()
        lines = [await transport.receive() for _ in range(13)]
        assert await transport.receive() is None
        await transport.aclose()
    assert [len(line) for line in lines if isinstance(line, bytes)] == [size] * 12 + [3]
    assert transport.exit_code == 0


async def test_much_can_be_sent_to_a_child_and_nothing_to_a_dead_one() -> None:
    transport = StdioTransport(sys.executable, ["-c", ECHO])
    with pytest.raises(UsageError, match="was not opened; call open"):
        await transport.send(b"early")
    assert (transport.pid, transport.exit_code, transport.stderr_tail) == (None, None, ())
    await transport.aclose()
    async with asyncio.timeout(60):
        await transport.open()
        whole = b"x" * 3_000_000
        sending = asyncio.create_task(transport.send(whole))
        assert await transport.receive() == whole
        await sending
        await transport.aclose()
        with pytest.raises(BrokenPipeError):
            await transport.send(b"late")
        await transport.aclose()


async def test_a_child_whose_output_somebody_else_keeps_open_is_over_when_it_ends() -> None:
    parent = "import subprocess; subprocess.Popen(['sleep', '30']); print('bye', flush=True)"
    transport = StdioTransport(sys.executable, ["-c", parent])
    async with asyncio.timeout(60):
        await transport.open()
        assert (await transport.receive(), await transport.receive()) == (b"bye", None)
        await transport.aclose()


async def test_error_output_is_kept_by_its_last_lines() -> None:
    lines = "for n in range(300): print(f'line {n}', file=sys.stderr)"
    noisy = f"import sys\n{lines}\nprint('x' * 5000, file=sys.stderr, end='')"
    transport = StdioTransport(sys.executable, ["-c", noisy])
    async with asyncio.timeout(60):
        await transport.open()
        assert await transport.receive() is None
        await transport.aclose()
    assert transport.stderr_tail[0] == "line 101"
    assert (len(transport.stderr_tail), transport.stderr_tail[-1]) == (200, "x" * 2000)


async def test_a_child_gets_the_environment_it_is_given_and_ours_by_default() -> None:
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    for environment, expected in ((None, os.environ.get("PATH")), ({"PATH": "/bin"}, "/bin")):
        transport = StdioTransport(sys.executable, ["-c", show], environment=environment)
        async with asyncio.timeout(60):
            await transport.open()
            line = await transport.receive()
            await transport.aclose()
        assert isinstance(line, bytes)
        assert json.loads(line)["PATH"] == expected


def test_what_a_child_inherits_is_everything_but_our_own_settings_or_only_what_it_needs() -> None:
    own = {
        "PATH": "/bin",
        "HOME": "/root",
        "EDITOR": "vi",
        "LANG": "C",
        "DIALOOM_API_KEY": "sk-1",
        "TOKEN": "t",
    }
    assert child_environment(own, {"EDITOR": "ed"}) == {
        "PATH": "/bin",
        "HOME": "/root",
        "EDITOR": "ed",
        "LANG": "C",
        "TOKEN": "t",
    }
    safe = {"PATH": "/bin", "HOME": "/root", "LANG": "C"}
    assert child_environment(own, {}, inherit="safe") == safe
    assert child_environment(own, {}, inherit=("TOKEN", "UNSET")) == {**safe, "TOKEN": "t"}
    assert child_environment(own, {"DIALOOM_API_KEY": "sk-2"})["DIALOOM_API_KEY"] == "sk-2"


def test_a_command_is_run_item_by_item_and_on_windows_by_its_full_name() -> None:
    def which(command: str, path: str | None) -> str | None:
        assert path == "C:\\bin"
        return {"npx": "C:\\bin\\npx.CMD", "node": "C:\\bin\\node.exe"}.get(command)

    def on_windows(command: str, *arguments: str) -> tuple[str, ...]:
        return resolve_argv(command, arguments, environment={"PATH": "C:\\bin"}, windows=True, which=which)

    assert resolve_argv("npx", ["-y", "a b"], environment={}, windows=False) == ("npx", "-y", "a b")
    assert on_windows("node", "a b", "50%") == ("C:\\bin\\node.exe", "a b", "50%")
    assert on_windows("npx", "-y", "C:\\my files") == ("C:\\bin\\npx.CMD", "-y", "C:\\my files")
    assert on_windows("lost", "x") == ("lost", "x")
    for argument in ("a&b", "%PATH%", 'say "hi"', "a|b", "a\nb"):
        with pytest.raises(UsageError, match="argument 2 of 'npx' holds a character"):
            on_windows("npx", "-y", argument)


async def test_a_child_that_talks_on_is_closed_all_the_same() -> None:
    size = MOST_UNREAD // 2
    count = "for n in range(99): print(n, file=sys.stderr, flush=True); print('x' * {size}, flush=True)"
    transport = StdioTransport(sys.executable, ["-c", f"import sys\n{count.format(size=size)}"], grace=0.2)
    async with asyncio.timeout(60):
        await transport.open()
        assert len(await transport.receive() or b"") == size
        for _ in range(900):  # until three lines wait to be read, and the pipe is left alone
            await asyncio.sleep(0 if "4" in transport.stderr_tail else 0.01)
        await transport.aclose()
    assert transport.exit_code is not None
    assert repr(transport._command) == f"ChildCommand({sys.executable!r}, …)"
