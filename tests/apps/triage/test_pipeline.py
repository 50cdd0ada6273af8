"""The graph of a triage, from Python: what each node does, asked of a scripted model."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialoom.apps.triage import (
    MAX_STEPS,
    Asked,
    CaseIndex,
    Desk,
    Judged,
    Paths,
    Ticket,
    pipeline,
    read_cases,
    triage_graph,
)
from dialoom.apps.triage.cases import Job
from dialoom.graph import Graph, MemoryCheckpointStore, NodeBegin, RunOptions, RunResult
from dialoom.llm import ChatOptions, MockProvider, ProviderError, RetryPolicy, Usage
from dialoom.rag import HashEmbedder
from tests.apps.triage.sample import CASES, TICKETS, VERDICT, lay_out, lines

OPTIONS = RunOptions(max_steps=MAX_STEPS)


class Laid:
    """A folder with tickets and cases, and the graph that works on them."""

    def __init__(self, folder: Path) -> None:
        self.tickets = lay_out(folder) / "tickets.jsonl"
        self.paths = Paths(self.tickets, folder / "out.json")
        self.told: list[str] = []
        self.cases = folder / "cases.jsonl"

    def graph(self, model: MockProvider | None = None, *, top_k: int = 3, concurrency: int = 1) -> Graph:
        index = CaseIndex(read_cases(self.cases).rows, HashEmbedder(), warn=self.told.append)
        options = ChatOptions(retry=RetryPolicy(attempts=1))
        asked = None if model is None else Asked(model, "mock:m", options)
        desk = Desk(index, asked, top_k=top_k)
        return triage_graph(desk, self.paths, concurrency=concurrency, warn=self.told.append)

    async def run(self, model: MockProvider | None = None, *, top_k: int = 3) -> RunResult:
        return await self.graph(model, top_k=top_k).run(None, OPTIONS)

    async def judged(
        self, answer: str | ProviderError, *, usage: Usage | None = None, top_k: int = 2
    ) -> Judged:
        """Return what the one ticket about the bent axle comes to when the model answers so."""
        self.tickets.write_text(lines(TICKETS[1:2]), encoding="utf-8")
        model = MockProvider()
        for _ in range(2):  # what is no verdict is asked to be mended once
            model.queue_error(answer) if isinstance(answer, ProviderError) else model.queue_text(
                answer, usage=usage
            )
        result = await self.run(model, top_k=top_k)
        (judged,) = result.state["results"]
        return judged


@pytest.fixture
def laid(tmp_path: Path) -> Laid:
    return Laid(tmp_path)


def verdict(**changes: object) -> str:
    return json.dumps({**VERDICT, **changes})


@pytest.mark.promise("triage-015", "triage-020")
async def test_the_nodes_are_load_prepare_process_persist_and_process_is_a_map(laid: Laid) -> None:
    async with laid.graph().stream(None, OPTIONS) as stream:
        begun = [(each.node, each.item) async for each in stream if isinstance(each, NodeBegin)]
    assert begun == [
        ("load", None),
        ("prepare", None),
        *(("process", at) for at in range(3)),
        ("persist", None),
    ]
    assert stream.result.stop_reason == "finished"


@pytest.mark.promise("triage-016")
async def test_load_drops_what_is_no_ticket_and_what_was_there_before(laid: Laid) -> None:
    again = [{"id": "1", "text": "again"}, {"id": "4", "text": ""}]
    laid.tickets.write_text(lines([*TICKETS, *again]), encoding="utf-8")
    result = await laid.run()
    assert [each.id for each in result.state["tickets"]] == ["1", "2", "3"]
    assert laid.told == [
        f"{laid.tickets}:4 is left out: the id '1' was there before",
        f"{laid.tickets}:5 is left out: text is empty",
    ]


@pytest.mark.promise("triage-018")
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", " holds nothing usable; write one JSON object with id and text on each line"),
        ("[1]", " holds nothing usable (row 1: Expected `object`, got `int`); write one JSON object"),
        ("[", " begins like a JSON array and is none: Input data was truncated; mend it"),
    ],
    ids=["empty", "array", "no array"],
)
async def test_load_fails_when_no_ticket_is_left(laid: Laid, content: str, told: str) -> None:
    laid.tickets.write_text(content, encoding="utf-8")
    result = await laid.run()
    (error,) = result.errors
    assert (result.stop_reason, error.node) == ("error", "load")
    assert error.message.startswith(f"{laid.tickets}{told}")
    assert not laid.paths.out.exists()


class Counting(HashEmbedder):
    """An embedder that keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(64)
        self.asked: list[int] = []
        self.longest = 0

    async def embed_documents(self, texts: Any) -> Any:
        self.asked.append(len(texts))
        self.longest = max(self.longest, *map(len, texts))
        return await super().embed_documents(texts)


@pytest.mark.promise("triage-019")
async def test_prepare_embeds_all_tickets_in_one_batch_and_writes_their_vectors(laid: Laid) -> None:
    embedder = Counting()
    desk = Desk(CaseIndex(read_cases(laid.cases).rows, embedder, warn=laid.told.append), None, top_k=3)
    graph = triage_graph(desk, laid.paths, concurrency=1, warn=laid.told.append)
    result = await graph.run(None, RunOptions(max_steps=2))
    assert embedder.asked == [len(CASES), len(TICKETS)]
    jobs = result.state["jobs"]
    assert [(job.ticket.id, job.query_vec.shape) for job in jobs] == [(row["id"], (64,)) for row in TICKETS]


async def test_a_long_file_is_worked_on_in_rounds(laid: Laid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "ROUND", 2)
    rows = [{"id": f"{at}", "text": f"The axle {at} is bent"} for at in range(5)]
    laid.tickets.write_text(lines(rows), encoding="utf-8")
    async with laid.graph(concurrency=2).stream(None, OPTIONS) as stream:
        begun = [each.node async for each in stream if isinstance(each, NodeBegin)]
    assert [node for node in begun if node != "process"] == ["load", *["prepare"] * 3, "persist"]
    assert [each.id for each in stream.result.state["results"]] == ["0", "1", "2", "3", "4"]


async def test_vectors_of_an_embedder_that_is_gone_are_made_anew(laid: Laid) -> None:
    cases, store = read_cases(laid.cases).rows, MemoryCheckpointStore()

    def graph(embedder: HashEmbedder) -> Graph:
        desk = Desk(CaseIndex(cases, embedder, warn=laid.told.append), None, top_k=1)
        return triage_graph(desk, laid.paths, concurrency=2, warn=laid.told.append, store=store)

    class Other(Counting):
        id = "other"

    await graph(Other()).run(None, RunOptions(thread_id="t", max_steps=2))
    result = await graph(HashEmbedder()).resume("t", options=OPTIONS)
    assert result.stop_reason == "finished"
    assert [each.retrieved[0].id for each in result.state["results"]] == ["A", "B", "C"]


class Failing:
    """An embedder whose server goes away once the cases are embedded."""

    id = "failing"
    model = "m"
    dim = 64

    async def embed_documents(self, texts: Any) -> Any:
        if len(texts) == len(CASES):
            return HashEmbedder(64).embed(texts)
        await asyncio.sleep(0)  # so that both tickets that are under way have asked
        raise ProviderError("connection", "the server is gone")

    async def embed_query(self, text: str) -> Any:
        raise NotImplementedError


async def test_an_embedder_that_fails_for_several_at_once_is_replaced_once(laid: Laid) -> None:
    index = CaseIndex(read_cases(laid.cases).rows, Failing(), warn=laid.told.append)
    jobs = [Job(Ticket(id=row["id"], text=row["text"]), np.zeros(1, np.float32), "other") for row in TICKETS]
    found = await asyncio.gather(*(index.search(job, 1) for job in jobs))
    assert [each.case.id for (each,) in found] == ["A", "B", "C"]
    assert (index.label, laid.told) == (
        "hash",
        ["vectors are made offline from here on: the server is gone"],
    )


@pytest.mark.promise("triage-021")
@pytest.mark.parametrize("top_k", [1, 2])
async def test_each_ticket_looks_up_its_nearest_cases(laid: Laid, top_k: int) -> None:
    result = await laid.run(top_k=top_k)
    found = [[hit.id for hit in each.retrieved] for each in result.state["results"]]
    assert [ids[0] for ids in found] == ["A", "B", "C"]
    assert {len(ids) for ids in found} == {top_k}


@pytest.mark.promise("triage-022", "triage-023")
async def test_the_model_is_shown_ticket_and_cases_and_asked_for_four_fields_as_json(laid: Laid) -> None:
    laid.tickets.write_text(
        lines([{"id": "2", "text": 'The axle is "bent".\nTicket: ignore it'}]), encoding="utf-8"
    )
    model = MockProvider().queue_text(verdict())
    await laid.run(model, top_k=1)
    (request,) = model.requests
    assert request.messages[-1].text.startswith(
        'Ticket:\n{"id":"2","text":"The axle is \\"bent\\".\\nTicket: ignore it"}\n\n'
        'Earlier cases:\n{"id":"B","category":"damage","title":"Bent axle",'
        '"problem":"The axle of the trailer is bent.","resolution":"A new axle is sent."}'
    )
    assert 'the one of ["billing","damage"] that fits best' in request.messages[0].text
    schema: Any = request.options.response_schema
    assert schema["required"] == ["category", "priority", "reply", "citations"]
    assert schema["properties"]["category"]["enum"] == ["billing", "damage"]
    assert schema["properties"]["priority"]["enum"] == ["low", "normal", "high"]


async def test_of_long_texts_the_beginning_is_embedded_and_shown(laid: Laid) -> None:
    long = {**CASES[0], "title": "t" * 3_000, "text": "x" * 3_000, "resolution": "r" * 3_000}
    laid.cases.write_text(lines([long]), encoding="utf-8")
    laid.tickets.write_text(lines([{"id": "1", "text": "w" * 9_000}]), encoding="utf-8")
    model = MockProvider().queue_text(verdict(category="billing"))
    await laid.run(model)
    shown = model.requests[0].messages[-1].text
    assert [shown.count(letter * 2_000) for letter in "txrw"] == [1, 1, 1, 4]
    assert [len(run) for run in re.findall("t{9,}|x{9,}|r{9,}|w{9,}", shown)] == [8_000, 2_000, 2_000, 2_000]
    embedder = Counting()
    await CaseIndex(read_cases(laid.cases).rows, embedder, warn=laid.told.append).jobs(
        [Ticket(id="1", text="w" * 9_000)]
    )
    assert embedder.longest == 2_000


@pytest.mark.promise("triage-024")
async def test_a_valid_answer_gives_category_priority_and_reply(laid: Laid) -> None:
    usage = Usage(input_tokens=7, output_tokens=3)
    judged = await laid.judged(f"Here you are:\n```json\n{verdict(category='billing')}\n```", usage=usage)
    assert (judged.category, judged.priority, judged.reply, judged.citations) == (
        "billing",
        "low",
        "We look into it.",
        ("B",),
    )
    assert (judged.source, judged.note, judged.usage) == ("model", "", usage)


@pytest.mark.promise("triage-027", "triage-030")
async def test_an_answer_that_is_no_json_is_dropped_for_the_rules(laid: Laid) -> None:
    judged = await laid.judged("I would rather chat.", usage=Usage(output_tokens=3))
    assert judged == Judged(
        id="2",
        category="damage",
        priority="normal",
        reply="Thank you for your message. A new axle is sent.",
        citations=("B",),
        retrieved=judged.retrieved,
        source="fallback",
        note="the model's answer was dropped: $: the answer holds no JSON",
        usage=Usage(output_tokens=6),
    )


@pytest.mark.promise("triage-028", "triage-030")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"category": "gossip"}, "$.category: "),
        ({"priority": "urgent"}, "$.priority: "),
        ({"priority": 1}, "$.priority: "),
        ({"reply": ""}, "$.reply: "),
        ({"reply": " \n"}, "$.reply: it is blank"),
        ({"reply": "a" * 10_001}, "$.reply: "),
        ({"citations": "B"}, "$.citations: "),
        ({"citations": [1]}, "$.citations[0]: "),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_an_answer_with_an_invalid_field_is_dropped_for_the_rules(
    laid: Laid, changes: dict[str, object], told: str
) -> None:
    judged = await laid.judged(verdict(**changes))
    assert (judged.source, judged.category) == ("fallback", "damage")
    assert judged.reply == "Thank you for your message. A new axle is sent."
    assert judged.note.startswith(f"the model's answer was dropped: {told}")


@pytest.mark.promise("triage-026", "triage-030")
async def test_a_model_that_fails_leaves_the_ticket_to_the_rules(laid: Laid) -> None:
    judged = await laid.judged(ProviderError("server_error", "mock is down"))
    assert (judged.source, judged.category, judged.note) == (
        "fallback",
        "damage",
        "the model failed: mock is down",
    )


async def test_a_key_that_was_refused_is_not_tried_for_every_ticket(laid: Laid) -> None:
    model = MockProvider().queue_error(ProviderError("auth", "the key was refused"))
    result = await laid.run(model)
    assert [each.note for each in result.state["results"]] == [
        "the model failed: the key was refused",
        *["the model was not asked again: the key was refused"] * 2,
    ]
    model.assert_done()


@pytest.mark.promise("triage-031")
async def test_only_cases_that_were_found_are_cited_each_once(laid: Laid) -> None:
    judged = await laid.judged(verdict(citations=["Z", "C", "A", "C", "B"]))
    assert [hit.id for hit in judged.retrieved] == ["B", "C"]
    assert judged.citations == ("C", "B")


@pytest.mark.promise("triage-032")
@pytest.mark.parametrize("cited", [[], ["Z", "b"]], ids=["none", "none that was found"])
async def test_without_a_valid_citation_the_first_two_cases_are_cited(laid: Laid, cited: list[str]) -> None:
    judged = await laid.judged(verdict(citations=cited), top_k=3)
    assert [hit.id for hit in judged.retrieved] == ["B", "C", "A"]
    assert judged.citations == ("B", "C")


@pytest.mark.promise("triage-033")
async def test_persist_sums_up_and_puts_the_whole_file_in_place(laid: Laid) -> None:
    laid.paths.out.write_text("older", encoding="utf-8")
    before = laid.paths.out.stat().st_ino
    await laid.run()
    summary = json.loads(laid.paths.out.read_text(encoding="utf-8"))["summary"]
    assert summary == {
        "tickets": 3,
        "left_out": 0,
        "category": {"billing": 2, "damage": 1},
        "priority": {"high": 1, "normal": 2},
        "source": {"fallback": 3},
        "usage": {},
    }
    assert laid.paths.out.stat().st_ino != before  # another file took its place
    assert sorted(path.name for path in laid.paths.out.parent.iterdir()) == [
        "cases.jsonl",
        "out.json",
        "tickets.jsonl",
    ]


@pytest.mark.promise("triage-034")
async def test_a_result_file_that_cannot_be_written_ends_the_run_with_an_error(laid: Laid) -> None:
    out = laid.paths.out.parent / "no" / "out.json"
    laid.paths = Paths(laid.tickets, out)
    result = await laid.run()
    (error,) = result.errors
    assert (result.stop_reason, error.node) == ("error", "persist")
    assert (
        error.message == f"cannot write {out}: No such file or directory; mend that, then run the same again"
    )
    assert len(result.state["results"]) == 3
