"""A triage that was stopped goes on: no ticket is lost, and no answer is paid for twice."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from dialoom.apps.triage import MAX_STEPS, CaseIndex, Desk, Paths, read_cases, triage_graph
from dialoom.cli.triage_run import Unfinished, run_through
from dialoom.graph import RunOptions
from dialoom.rag import HashEmbedder
from dialoom.testing.wire import Hold, WireReply, WireRequest, WireServer
from tests.apps.triage.sample import CASES, answered, lines, settle, ticket_of, written
from tests.cli.terminal import Shown, Terminal
from tests.crash.full_disk import NoDiskError, small_disk

COMMAND = ("triage", "--config", "llm.json", "--concurrency", "1")
SOON = 60


class Helpdesk:
    """A model that judges every ticket, and holds the one whose turn it is to be held."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.held = ""
        self.hold = Hold()

    def reply(self, request: WireRequest) -> WireReply:
        self.asked.append(ticket := ticket_of(request)["id"])
        reply = answered(reply=f"To {ticket}.")
        if ticket == self.held:
            return WireReply(headers=reply.headers, body=(self.hold, *reply.body))
        return reply


async def started(*words: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dialoom", *words, stdout=PIPE, stderr=PIPE, env=os.environ
    )


async def ended(process: Process) -> Shown:
    out, err = await asyncio.wait_for(process.communicate(), SOON)
    assert process.returncode is not None
    return Shown(process.returncode, out.decode(), err.decode())


@pytest.fixture
def five(desk: Terminal) -> list[dict[str, str]]:
    rows = [{"id": str(at), "text": f"The axle {at} is bent."} for at in range(1, 6)]
    Path("tickets.jsonl").write_text(lines(rows), encoding="utf-8")
    return rows


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
async def test_a_triage_that_was_stopped_goes_on_where_it_stood(
    five: list[dict[str, str]], sign: signal.Signals
) -> None:
    helpdesk = Helpdesk()
    helpdesk.held = "3"
    async with WireServer(helpdesk.reply) as server:
        settle(server.url)
        process = await started(*COMMAND)
        await asyncio.wait_for(helpdesk.hold.reached.wait(), SOON)
        process.send_signal(sign)
        stopped = await ended(process)
        assert not Path("triage.json").exists()
        assert Path("triage.json.unfinished").stat().st_mode & 0o777 == 0o600
        helpdesk.held = ""
        finished = await ended(await started(*COMMAND[:-1], "2"))
    if sign == signal.SIGINT:
        assert stopped.code == 130
        assert (
            stopped.err.splitlines()[-1] == "dialoom: stopped; run the same command to go on where it stood"
        )
    assert "going on: 2 of 5 tickets were through" in finished.err.splitlines()
    assert (finished.code, finished.out) == (0, "triage.json: 5 tickets, 5 by model, 0 by rules\n")
    assert sorted(helpdesk.asked) == ["1", "2", "3", "3", "4", "5"]
    assert [(each["id"], each["reply"]) for each in written()["tickets"]] == [
        (str(at), f"To {at}.") for at in range(1, 6)
    ]
    assert sorted(path.name for path in Path().glob("*")) == [
        "cases.jsonl",
        "llm.json",
        "tickets.jsonl",
        "triage.json",
    ]


async def test_results_that_cannot_be_written_cost_no_second_answer(five: list[dict[str, str]]) -> None:
    helpdesk = Helpdesk()
    helpdesk.held = "5"
    async with WireServer(helpdesk.reply) as server:
        settle(server.url)
        process = await started(*COMMAND)
        await asyncio.wait_for(helpdesk.hold.reached.wait(), SOON)
        Path("triage.json").mkdir()
        helpdesk.hold.opened.set()
        failed = await ended(process)
        Path("triage.json").rmdir()
        finished = await ended(await started(*COMMAND))
    assert (failed.code, failed.out, failed.err.splitlines()[-1]) == (
        1,
        "",
        "dialoom: cannot write triage.json: Is a directory; mend that, then run the same again",
    )
    assert (finished.code, helpdesk.asked) == (0, ["1", "2", "3", "4", "5"])
    assert len(written()["tickets"]) == 5


async def test_other_tickets_cases_or_models_begin_anew_and_leave_the_unfinished_run_alone(
    desk: Terminal, five: list[dict[str, str]]
) -> None:
    helpdesk = Helpdesk()
    helpdesk.held = "2"
    async with WireServer(helpdesk.reply) as server:
        settle(server.url)
        process = await started(*COMMAND)
        await asyncio.wait_for(helpdesk.hold.reached.wait(), SOON)
        process.kill()
        await ended(process)
        helpdesk.held = ""
        other = Path("llm.json").read_text(encoding="utf-8").replace('"m"', '"other"')
        Path("other.json").write_text(other, encoding="utf-8")
        Path("fewer.jsonl").write_text(lines(CASES[:2]), encoding="utf-8")
        Path("others.jsonl").write_text(lines(five[3:]), encoding="utf-8")
        changes = {
            ("--tickets", "others.jsonl"): ["4", "5"],
            ("--cases", "fewer.jsonl"): ["1", "2", "3", "4", "5"],
            ("--top-k", "1"): ["1", "2", "3", "4", "5"],
            ("--config", "other.json"): ["1", "2", "3", "4", "5"],
            ("--max-tokens", "999"): ["1", "2", "3", "4", "5"],
            ("--timeout", "99"): ["2", "3", "4", "5"],
        }
        for words, expected in changes.items():
            helpdesk.asked = []
            settings = () if words[0] == "--config" else COMMAND[1:3]
            shown = await desk.run_beside("triage", *COMMAND[3:], *words, *settings)
            goes_on = "going on: 1 of 5 tickets were through" in shown.err
            anew = (
                "triage.json.unfinished holds other runs, of other inputs; this one begins anew" in shown.err
            )
            assert (shown.code, helpdesk.asked, goes_on, anew) == (
                0,
                expected,
                words[0] == "--timeout",
                not goes_on,
            )
    assert not Path("triage.json.unfinished").exists()


async def test_of_two_that_work_on_the_same_one_gives_way(five: list[dict[str, str]]) -> None:
    helpdesk = Helpdesk()
    helpdesk.held = "1"
    async with WireServer(helpdesk.reply) as server:
        settle(server.url)
        first = await started(*COMMAND)
        await asyncio.wait_for(helpdesk.hold.reached.wait(), SOON)
        helpdesk.hold.reached.clear()
        second = await started(*COMMAND)
        await asyncio.wait_for(helpdesk.hold.reached.wait(), SOON)
        helpdesk.hold.opened.set()
        both = [await ended(first), await ended(second)]
    won, lost = sorted(both)
    assert (won.code, lost.code, len(written()["tickets"])) == (0, 1, 5)
    assert lost.err.splitlines()[-1] == (
        "dialoom: another dialoom triage works on triage.json; wait for it, or name another file with --out"
    )


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    try:
        with small_disk(tmp_path) as place:
            yield place
    except NoDiskError as error:
        pytest.skip(str(error))


async def test_a_full_disk_is_one_line_and_with_room_again_it_goes_on(
    five: list[dict[str, str]], disk: Path
) -> None:
    helpdesk = Helpdesk()
    helpdesk.held = "3"
    async with WireServer(helpdesk.reply) as server:
        settle(server.url)
        process = await started(*COMMAND, "--out", str(disk / "out.json"))
        await asyncio.wait_for(helpdesk.hold.reached.wait(), SOON)
        with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        helpdesk.hold.opened.set()
        full = await ended(process)
        (disk / "filler").unlink()
        helpdesk.held = ""
        finished = await ended(await started(*COMMAND, "--out", str(disk / "out.json")))
    assert (full.code, full.out) == (1, "")
    assert full.err.splitlines()[1:] == [
        f"dialoom: the disk of {disk}/out.json.unfinished is full; free some space, then try again"
    ]
    assert (finished.code, len(written(str(disk / "out.json"))["tickets"])) == (0, 5)
    assert helpdesk.asked == ["1", "2", "3", "3", "4", "5"]


async def test_a_run_whose_results_were_written_begins_anew(five: list[dict[str, str]]) -> None:
    unfinished = Unfinished(Path("triage.json"), "monday")
    desk = Desk(CaseIndex(read_cases(Path("cases.jsonl")).rows, HashEmbedder(), warn=print), None, top_k=1)
    with unfinished.opened() as store:
        paths = Paths(Path("tickets.jsonl"), Path("triage.json"))
        graph = triage_graph(desk, paths, concurrency=1, warn=print, store=store)
        # the process ends after the last step, before it can forget the run
        await graph.run(None, RunOptions(thread_id="monday", max_steps=MAX_STEPS))
        Path("triage.json").unlink()
        result = await run_through(graph, unfinished, store, total=5)
    assert (result.stop_reason, len(written()["tickets"])) == ("finished", 5)
    assert not unfinished.path.exists()


@pytest.mark.parametrize("damage", ["noise", "cut", "inside"])
def test_of_a_damaged_unfinished_file_it_is_told_how_to_begin_anew(desk: Terminal, damage: str) -> None:
    unfinished = Unfinished(Path("triage.json"), "monday")
    with unfinished.opened() as store:
        graph = triage_graph(
            Desk(CaseIndex(read_cases(Path("cases.jsonl")).rows, HashEmbedder(), warn=print), None, top_k=1),
            Paths(Path("tickets.jsonl"), Path("other.json")),
            concurrency=1,
            warn=print,
            store=store,
        )
        graph.run_sync(None, RunOptions(thread_id="monday", max_steps=MAX_STEPS))
    whole = unfinished.path.read_bytes()
    broken = {
        "noise": b"noise " * 1000,
        "cut": whole[: len(whole) // 2],
        "inside": whole[:4096] + b"\xff" * (len(whole) - 4096),
    }
    unfinished.path.write_bytes(broken[damage])
    shown = desk.run("triage", "--offline")
    assert (shown.code, shown.out) == (5, "")
    assert shown.err.splitlines()[-1] == (
        "dialoom: triage.json.unfinished is damaged; delete it to begin anew"
    )
    unfinished.path.unlink()
    assert desk.run("triage", "--offline").code == 0
