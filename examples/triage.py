"""Tickets of a help desk are sorted, rated and answered from earlier cases, by a model or by rules.

Run it: `python examples/triage.py --offline`, or with a model of yours in `dialoom.toml`
(`--config` names another file). A ticket that the model cannot answer falls back to the rules, and says why.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from dialoom.base.errors import DialoomError, UsageError
from dialoom.cli.embedder import open_embedder
from dialoom.cli.flags import ModelFlags
from dialoom.cli.model import OpenModel, open_model
from dialoom.graph import END, START, Graph, GraphBuilder, NodeContext
from dialoom.llm import ProviderError, Usage, chat_structured, system, user
from dialoom.rag import (
    Document,
    Embedder,
    FloatVector,
    HashEmbedder,
    InMemoryVectorStore,
    SlidingWindowChunker,
    ingest_documents,
)

HERE = Path(__file__).parent / "tickets"
CATEGORIES = {
    "billing": ("charge", "refund", "invoice", "pay", "退款", "付款"),
    "damage": ("broken", "bent", "damaged", "crack", "坏", "破损"),
    "delivery": ("parcel", "tracking", "delivery", "shipping", "快递", "物流"),
    "account": ("password", "login", "account", "密码", "账号"),
}
URGENT = ("cannot", "tomorrow", "urgent", "at all", "twice", "等了", "马上")
RULES = (
    "Sort a ticket of a help desk. Use the earlier cases only: cite the ids of those you used, write a short "
    "reply in the language of the ticket, and take priority high when the customer cannot go on."
)


class Ticket(msgspec.Struct, frozen=True):
    id: str
    text: str


class Case(msgspec.Struct, frozen=True):
    id: str
    category: str
    title: str
    text: str
    resolution: str


class Verdict(msgspec.Struct, frozen=True):
    """What is made of a ticket, by a model or by rules."""

    category: Literal["billing", "damage", "delivery", "account", "product"]
    priority: Literal["low", "normal", "high"]
    reply: str
    citations: list[str]


class Job(msgspec.Struct, frozen=True):
    """A ticket with the vector it is looked up by."""

    ticket: Ticket
    query_vec: FloatVector


_Row = TypeVar("_Row", Ticket, Case)


def read(path: Path, kind: type[_Row]) -> list[_Row]:
    """Read lines of JSON, or one array; what is none, and a second one of an id, is left out and named."""
    raw = path.read_bytes()
    lines = msgspec.json.decode(raw, type=list[msgspec.Raw]) if raw.lstrip()[:1] == b"[" else raw.splitlines()
    rows: dict[str, _Row] = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = msgspec.json.decode(line, type=kind)
            if not row.id or row.id in rows:
                raise ValueError(f"the id {row.id!r} is empty or was there before")
            rows[row.id] = row
        except ValueError as error:
            print(f"{path}:{number} is left out: {error}", file=sys.stderr)
    return list(rows.values())


class Desk:
    """Earlier cases by their vectors, and who is asked about a ticket."""

    def __init__(self, cases: list[Case], opened: OpenModel, top_k: int) -> None:
        self.embedder: Embedder = HashEmbedder()
        self._cases = {case.id: case for case in cases}
        self._opened = opened
        self._top_k = top_k
        self._store = InMemoryVectorStore()

    async def index(self, embedder: Embedder) -> None:
        """Embed the cases; where `embedder` fails, offline from the beginning."""
        documents = [Document(id=case.id, text=f"{case.title}\n{case.text}") for case in self._cases.values()]
        report = None
        store = InMemoryVectorStore()
        try:
            report = await ingest_documents(store, embedder, SlidingWindowChunker(), documents)
        except ProviderError as error:
            print(f"vectors are made offline: {error}", file=sys.stderr)
        if report is None or report.failures:
            embedder, store = HashEmbedder(), InMemoryVectorStore()
            await ingest_documents(store, embedder, SlidingWindowChunker(), documents)
        self.embedder, self._store = embedder, store

    async def judge(self, job: Job) -> dict[str, object]:
        """Return the result of one ticket."""
        hits = self._store.search(job.query_vec, self._top_k)
        cases = [self._cases[hit.chunk.doc_id] for hit in hits]
        verdict, usage, note = await self._ask(job.ticket, cases)
        source = "model" if verdict else "fallback"
        verdict = verdict or by_rules(job.ticket, cases)
        known = [cited for cited in verdict.citations if cited in {case.id for case in cases}]
        return {
            "id": job.ticket.id,
            **msgspec.structs.asdict(verdict),
            "citations": known or [case.id for case in cases[:2]],
            "retrieved": [{"id": hit.chunk.doc_id, "score": round(hit.score, 3)} for hit in hits],
            "source": source,
            "note": note,
            "usage": msgspec.to_builtins(usage),
        }

    async def _ask(self, ticket: Ticket, cases: list[Case]) -> tuple[Verdict | None, Usage, str]:
        if self._opened.choice.mode == "offline":
            return None, Usage(), "no model was asked"
        earlier = "\n".join(f"[{case.id}] {case.title}: {case.text} -> {case.resolution}" for case in cases)
        question = [system(RULES), user(f"Ticket {ticket.id}: {ticket.text}\n\nEarlier cases:\n{earlier}")]
        try:
            found = await chat_structured(
                self._opened.provider, question, Verdict, options=self._opened.options
            )
        except ProviderError as error:
            return None, Usage(), f"the model failed: {error}"
        why = "; ".join(f"{wrong.path}: {wrong.message}" for wrong in found.violations)
        return found.value, found.usage, f"the answer was no verdict: {why}" if why else ""


def by_rules(ticket: Ticket, cases: list[Case]) -> Verdict:
    """Sort by words, and answer as the nearest case was answered."""
    words = ticket.text.lower()
    named = next((name for name, signs in CATEGORIES.items() if any(sign in words for sign in signs)), None)
    alike = [case for case in cases if case.category == named] or cases
    reply = alike[0].resolution if alike else "We look into it and come back to you."
    fields = {
        "category": named or (alike[0].category if alike else "product"),
        "priority": "high" if any(sign in words for sign in URGENT) else "normal",
        "reply": f"Thank you for your message. {reply}",
        "citations": [case.id for case in alike[:2]],
    }
    return msgspec.convert(fields, Verdict)


def triage_graph(desk: Desk, tickets: Path, concurrency: int, persist: Callable[..., None]) -> Graph:
    """Return the graph: load -> prepare -> process, one ticket beside the other -> persist."""

    def load(_: NodeContext) -> dict[str, object]:
        found = read(tickets, Ticket)
        if not found:
            raise UsageError(
                f"{tickets} holds no ticket; write one JSON object with id and text on each line"
            )
        return {"tickets": found}

    async def prepare(ctx: NodeContext) -> dict[str, object]:
        vectors = await desk.embedder.embed_documents([ticket.text for ticket in ctx.state["tickets"]])
        return {"jobs": [Job(*each) for each in zip(ctx.state["tickets"], vectors, strict=True)]}

    async def process(ctx: NodeContext) -> dict[str, object]:
        return await desk.judge(ctx.input)

    builder = GraphBuilder("triage")
    for name in ("tickets", "jobs", "results"):
        builder.add_channel(name)
    builder.add_node("load", load)
    builder.add_node("prepare", prepare)
    builder.add_map("process", process, over="jobs", into="results", max_concurrency=concurrency)
    builder.add_node("persist", lambda ctx: persist(ctx.state["results"]))
    for here, there in zip(
        (START, "load", "prepare", "process", "persist"),
        ("load", "prepare", "process", "persist", END),
        strict=True,
    ):
        builder.add_edge(here, there)
    return builder.build()


async def main(flags: argparse.Namespace) -> int:
    async with AsyncExitStack() as stack:
        model = ModelFlags(offline=flags.offline, config=flags.config)
        opened = await stack.enter_async_context(open_model(model))
        desk = Desk(read(flags.cases, Case), opened, flags.top_k)
        embedder = (
            HashEmbedder() if flags.offline else await stack.enter_async_context(open_embedder(flags.config))
        )
        await desk.index(embedder)

        def persist(results: list[dict[str, object]]) -> None:
            summary = {
                key: Counter(str(row[key]) for row in results) for key in ("category", "priority", "source")
            }
            whole = {"mode": opened.choice.mode, "model": opened.choice.label, "embedder": desk.embedder.id}
            text = msgspec.json.format(msgspec.json.encode({**whole, "summary": summary, "tickets": results}))
            beside = flags.out.with_name(f"{flags.out.name}.new")
            beside.write_bytes(text)
            beside.replace(flags.out)

        result = await triage_graph(desk, flags.tickets, flags.concurrency, persist).run()
    for error in result.errors:
        print(f"{error.node}: {error.message}", file=sys.stderr)
    if result.stop_reason == "finished":
        print(f"{len(result.state['results'])} tickets: {flags.out}")
    return 0 if result.stop_reason == "finished" else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--offline", action="store_true", help="ask no model and no server")
    options.add_argument("--config", type=Path, help="the settings file")
    options.add_argument("--tickets", type=Path, default=HERE / "tickets.jsonl")
    options.add_argument("--cases", type=Path, default=HERE / "cases.jsonl")
    options.add_argument("--out", type=Path, default=Path("triage.json"))
    options.add_argument("--top-k", type=int, default=3, help="how many earlier cases are looked at")
    options.add_argument("--concurrency", type=int, default=4, help="tickets at a time")
    try:
        sys.exit(asyncio.run(main(options.parse_args())))
    except (DialoomError, OSError) as error:
        sys.exit(f"triage: {error}")
