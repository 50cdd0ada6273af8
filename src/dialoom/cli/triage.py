"""`dialoom triage`: tickets are sorted, rated and answered from earlier cases."""

import hashlib
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from dialoom.apps.triage import (
    Asked,
    Case,
    CaseIndex,
    Desk,
    Judged,
    Paths,
    Rows,
    Ticket,
    read_cases,
    read_tickets,
    triage_graph,
)
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.cli.config import CONFIG_FILE
from dialoom.cli.embedder import open_embedder
from dialoom.cli.exits import ExitCode, complain
from dialoom.cli.flags import ModelFlags
from dialoom.cli.model import OpenModel, announce, open_model
from dialoom.cli.progress import counted, say
from dialoom.cli.triage_flags import TriageFlags
from dialoom.cli.triage_run import Unfinished, run_through, unfinished_files
from dialoom.graph import RunResult
from dialoom.llm import ProviderError
from dialoom.rag import Embedder, HashEmbedder


async def triage(flags: TriageFlags, model: ModelFlags) -> ExitCode:
    """Judge every ticket and write the result file, whose name goes to stdout.

    Settings that are no use are told, and the triage goes on without a model. A run that was stopped, by
    whatever, goes on where it stood when the same command is given again.
    """
    _check_out(flags, model.config)
    tickets, cases = read_tickets(flags.tickets), read_cases(flags.cases)
    for line in cases.warnings():
        say(line)
    if not cases.rows:
        raise UsageError(cases.nothing("id, category, title, text and resolution"))
    async with AsyncExitStack() as stack:
        opened, embedder = await _open(model, stack)
        asked = None if opened is None else Asked(opened.provider, opened.choice.label, opened.options)
        desk = Desk(CaseIndex(cases.rows, embedder, warn=say), asked, top_k=flags.top_k)
        unfinished = Unfinished(flags.out, _thread(tickets, cases, flags.top_k, opened))
        store = stack.enter_context(unfinished.opened())
        paths = Paths(tickets, flags.out)
        graph = triage_graph(desk, paths, concurrency=flags.concurrency, warn=say, store=store)
        result = await run_through(graph, unfinished, store, total=len(tickets.rows))
    if result.stop_reason != "finished":
        return _explain(result, flags.out)
    _tell(result.state["results"], flags.out, asked)
    return ExitCode.OK


def _check_out(flags: TriageFlags, config: Path | None) -> None:
    """Refuse a place for results before hours of work, and one where something stands that is read."""
    out = flags.out
    if str(out).startswith("-"):
        raise UsageError(f"results go into a file, and {out} names none; name one with --out")
    if out.exists() and not out.is_file():
        raise UsageError(f"{out} is no file that could be replaced; name another with --out")
    if not out.parent.is_dir():
        raise UsageError(f"there is no folder {out.parent}; make it, or name another file with --out")
    read = {"--tickets": flags.tickets, "--cases": flags.cases, "--config": config or CONFIG_FILE}
    for written in (out, *unfinished_files(out)):
        for flag, path in read.items():
            # asked of the file system, which knows links and what it takes for the same name
            if written.exists() and path.exists() and written.samefile(path):
                raise UsageError(
                    f"{written} would be written over, and {flag} reads it; choose another --out"
                )


async def _open(flags: ModelFlags, stack: AsyncExitStack) -> tuple[OpenModel | None, Embedder]:
    """Return who is asked and who makes vectors.

    Settings that are no use are told and gone without, unless flags name a model or ask for one.
    """
    opened, embedder = None, HashEmbedder()
    if not flags.offline:
        try:
            opened = await stack.enter_async_context(open_model(flags))
            embedder = await _open_embedder(flags.config, stack)
        except UsageError as error:
            if opened is None and (flags.model or flags.base_url or flags.require_model):
                raise
            say(f"the settings are not usable: {one_line(str(error))}")
    if opened is None or opened.choice.mode == "offline":
        say("offline: no model is asked; words and earlier cases decide")
        return None, embedder
    announce(opened.choice)
    return opened, embedder


async def _open_embedder(config: Path | None, stack: AsyncExitStack) -> Embedder:
    try:
        return await stack.enter_async_context(open_embedder(config))
    except ProviderError as error:
        say(f"vectors are made offline: {one_line(str(error))}")
        return HashEmbedder()


def _thread(tickets: Rows[Ticket], cases: Rows[Case], top_k: int, opened: OpenModel | None) -> str:
    """Return what tells a run from those of other tickets, cases and answers.

    How long and how often a model is asked does not count, so both may be changed on the way.
    """
    asked: list[object] = []
    if opened is not None:
        choice, options = opened.choice, opened.options
        asked = [choice.label, choice.base_url, options.temperature, options.max_tokens, options.reasoning]
    told = msgspec.json.encode([tickets.rows, cases.rows, top_k, asked])
    return hashlib.blake2b(told, digest_size=16).hexdigest()


def _explain(result: RunResult, out: Path) -> ExitCode:
    """Say why there are no results yet."""
    if result.stop_reason == "cancelled":
        complain("stopped; run the same command to go on where it stood")
        return ExitCode.INTERRUPTED
    if result.stop_reason == "conflict":
        complain(f"another dialoom triage works on {out}; wait for it, or name another file with --out")
    else:
        # the class of an error of ours is for programs, its text says all
        complain(result.errors[-1].message.rpartition("StoreError: ")[2])
    return ExitCode.FAILED


def _tell(results: list[Judged], out: Path, asked: Asked | None) -> None:
    """Name the result file on stdout, and tell what kept a model from judging most tickets."""
    notes = [each.note for each in results if each.source == "fallback"]
    if asked is not None and notes:
        often = max(set(notes), key=notes.count)
        say(f"{counted(len(notes), 'ticket')} decided by rules; most often because {often}")
    by_model = len(results) - len(notes)
    print(f"{out}: {counted(len(results), 'ticket')}, {by_model} by model, {len(notes)} by rules")
