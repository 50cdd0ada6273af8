"""What people do with cards that needs work outside them: done by who is wired for it, or refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.testclient import TestClient

from dialoom.base.errors import UsageError
from dialoom.conversation.cards import BUILTIN_CARDS, Card, WorkflowStatus, WorkflowStep
from dialoom.conversation.cards.gridding import RunGridding
from dialoom.dialog import Center, Stores
from dialoom.llm import OfflineProvider, ProviderError
from dialoom.llm.mock import Gate
from dialoom.rag import LoadOptions, RagConfig
from dialoom.rag.service.requests import Ingest
from dialoom.server import Parts
from dialoom.server.card_work import CardWork
from dialoom.server.knowledge import KnowledgeBases, MountedBase
from tests.server.live import BOUND, Live, copied, following, served

ROOT = "/api/v1/conversations"


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def show(client: TestClient, conversation: str, kind: str, **payload: object) -> None:
    answer = client.post(f"{ROOT}/{conversation}/cards", json={"type": kind, "payload": payload})
    assert answer.status_code == 201, answer.text


def cards(client: TestClient, conversation: str) -> dict[str, dict[str, Any]]:
    entries = client.get(f"{ROOT}/{conversation}/entries").json()["entries"]
    return {each["cardId"]: each for each in entries if each["kind"] == "Special"}


def act(client: TestClient, conversation: str, card: str, action: str, **fields: object) -> Any:
    rev = cards(client, conversation)[card]["rev"]
    path = f"{ROOT}/{conversation}/cards/{card}/actions/{action}"
    return client.post(path, json=fields, headers={"If-Match": str(rev)})


INPUTS: dict[tuple[str, str], dict[str, object]] = {
    ("KnowledgeBase", "retry_source"): {"sourceId": "s"},
    ("KnowledgeBase", "remove_source"): {"sourceId": "s"},
    ("KnowledgeBase", "query"): {"text": "why"},
    ("WorkflowStatus", "retry"): {"stepId": "s"},
}
BUILT_IN = {("WorkflowStatus", "cancel"), ("WorkflowStatus", "retry"), ("Error", "retry")}
NEEDY = [
    (each.name, action.name)
    for each in BUILTIN_CARDS
    for action in each.actions
    if action.needs_work and (each.name, action.name) not in BUILT_IN
]


@pytest.mark.parametrize(("kind", "action"), NEEDY)
def test_an_action_that_nobody_does_here_is_refused_and_the_card_stays(
    client: TestClient, begin: Any, kind: str, action: str
) -> None:
    conversation = begin()
    show(client, conversation, kind, id="c")
    before = cards(client, conversation)
    refused = act(client, conversation, "c", action, **INPUTS.get((kind, action), {}))
    assert code_of(refused) == (501, "no_handler")
    assert refused.json()["params"] == {"type": kind, "action": action}
    assert cards(client, conversation) == before


def test_the_actions_that_need_work_are_these() -> None:
    assert len(NEEDY) == 9
    assert ("Form", "submit") not in NEEDY


class Counter:
    """A handler that counts, in a job that goes on until it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def run(self, work: CardWork) -> Card:
        given = cast("RunGridding", work.given)
        if given.method == "rbf":
            raise UsageError("rbf is not counted; choose another method")
        work.desk.start(self._count(work), "count")
        steps = (WorkflowStep(id="a", status="done"), WorkflowStep(id="b", status="running"))
        await work.show(WorkflowStatus(id="w", run_id="count", steps=steps))
        return work.card.changed(status="running")

    async def _count(self, work: CardWork) -> None:
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            await work.change(lambda card: card.changed(status="draft"))
            raise
        await work.change(lambda card: card)  # is no new state
        await work.change(lambda card: card.changed(status="done"))


@asynccontextmanager
async def counting(parts: Parts, folder: Path) -> AsyncIterator[tuple[Live, Counter, str]]:
    counter = Counter()
    wired = copied(parts, card_handlers={("GriddingParamCard", "run"): counter.run})
    async with served(wired, folder) as live:
        conversation = await live.begin()
        await live.client.post(
            f"{ROOT}/{conversation}/cards", json={"type": "GriddingParamCard", "payload": {"id": "g"}}
        )
        yield live, counter, conversation


async def do(
    live: Live, conversation: str, card: str, action: str, *, rev: int | None = None, **fields: object
) -> Any:
    """Do an action at the card's revision, or at `rev`."""
    at = (await shown_cards(live, conversation))[card]["rev"] if rev is None else rev
    path = f"{ROOT}/{conversation}/cards/{card}/actions/{action}"
    return await live.client.post(path, json=fields, headers={"If-Match": str(at)})


async def shown_cards(live: Live, conversation: str) -> dict[str, dict[str, Any]]:
    entries = (await live.client.get(f"{ROOT}/{conversation}/entries")).json()["entries"]
    return {each["cardId"]: each for each in entries if each["kind"] == "Special"}


async def becomes(live: Live, conversation: str, card: str, **fields: object) -> dict[str, Any]:
    """Wait until a card has these fields."""
    async with asyncio.timeout(BOUND), following(live, f"{ROOT}/{conversation}/events") as events:
        while True:
            shown = (await shown_cards(live, conversation))[card]["card"]
            if all(shown.get(name) == value for name, value in fields.items()):
                return shown
            await anext(events)


async def test_a_handler_gives_the_next_state_and_its_job_the_later_ones(
    parts: Parts, tmp_path: Path
) -> None:
    async with counting(parts, tmp_path) as (live, counter, conversation):
        refused = await do(live, conversation, "g", "run", method="rbf")
        assert code_of(refused) == (422, "usage")
        answer = await do(live, conversation, "g", "run", method="nearest")
        assert answer.json()["card"] == {
            "type": "GriddingParamCard",
            "id": "g",
            "method": "nearest",
            "status": "running",
        }
        counter.go.set()
        await becomes(live, conversation, "g", status="done", method="nearest")
        assert list(await shown_cards(live, conversation)) == ["g", "w"]


async def test_cancelling_a_workflow_stops_the_job_it_shows(parts: Parts, tmp_path: Path) -> None:
    async with counting(parts, tmp_path) as (live, _, conversation):
        await do(live, conversation, "g", "run")
        answer = (await do(live, conversation, "w", "cancel")).json()["card"]
        assert answer["status"] == "cancelled"
        assert [(each["id"], each["status"]) for each in answer["steps"]] == [("a", "done"), ("b", "skipped")]
        await becomes(live, conversation, "g", status="draft")
        again = await do(live, conversation, "w", "cancel")
        assert code_of(again) == (409, "card_decided")


async def test_a_job_tells_of_itself_after_the_answer_that_is_under_way(
    parts: Parts, tmp_path: Path, provider: Any
) -> None:
    async with counting(parts, tmp_path) as (live, counter, conversation):
        await do(live, conversation, "g", "run")
        gate = Gate()
        provider.queue_events(gate)
        await live.client.post(f"{ROOT}/{conversation}/messages", json={"text": "How is it going?"})
        async with asyncio.timeout(BOUND):
            await gate.reached.wait()
        busy = await do(live, conversation, "g", "run")
        assert code_of(busy) == (409, "run_active")
        counter.go.set()
        async with following(live, f"{ROOT}/{conversation}/events") as events:
            gate.opened.set()
            await events.until("RUN_FINISHED")
        await becomes(live, conversation, "g", status="done")


async def test_cancelling_a_workflow_whose_answer_is_over_marks_what_was_not_done(
    parts: Parts, tmp_path: Path, provider: Any
) -> None:
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        gate = Gate()
        provider.queue_events(gate)
        kept = {"type": "WorkflowStatus", "payload": {"id": "w", "title": "Answer"}}
        await live.client.post(f"{ROOT}/{conversation}/cards", json=kept)
        nameless = await do(live, conversation, "w", "cancel")
        assert code_of(nameless) == (422, "usage")
        said = await live.client.post(f"{ROOT}/{conversation}/messages", json={"text": "Go."})
        async with asyncio.timeout(BOUND):
            await gate.reached.wait()
        run = said.json()["runId"]
        async with following(live, f"{ROOT}/{conversation}/events") as events:
            await live.client.post(f"/api/v1/runs/{run}/cancel", json={})
            await events.until("RUN_FINISHED")
        payload = {"id": "w2", "runId": run, "steps": [{"id": "a", "status": "waiting"}]}
        await live.client.post(
            f"{ROOT}/{conversation}/cards", json={"type": "WorkflowStatus", "payload": payload}
        )
        assert (await do(live, conversation, "w2", "cancel")).json()["card"]["status"] == "cancelled"


@pytest.mark.parametrize(
    ("kind", "fields", "given", "after"),
    [
        ("Error", {"message": "no answer", "retryable": True}, {}, {"status": "retried", "retryable": False}),
        ("WorkflowStatus", {}, {"stepId": "a"}, {}),
    ],
)
async def test_trying_again_has_the_question_answered(
    parts: Parts, tmp_path: Path, provider: Any, kind: str, fields: Any, given: Any, after: Any
) -> None:
    provider.queue_events(ProviderError("server", "it is down"))
    provider.queue_text("Now it is up.")
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        async with following(live, f"{ROOT}/{conversation}/events") as events:
            said = await live.client.post(f"{ROOT}/{conversation}/messages", json={"text": "Up?"})
            await events.until("RUN_ERROR")
            payload = {"id": "c", "runId": said.json()["runId"], **fields}
            await live.client.post(f"{ROOT}/{conversation}/cards", json={"type": kind, "payload": payload})
            answer = await do(live, conversation, "c", "retry", **given)
            shown = {name: value for name, value in answer.json()["card"].items() if value is not None}
            assert shown == {"type": kind, **payload, **after}
            await events.until("RUN_FINISHED")
        log = (await live.client.get(f"{ROOT}/{conversation}/entries")).json()["entries"]
        assert [each.get("content") for each in log if each["kind"] == "Text"][-1] == "Now it is up."


async def test_a_card_that_is_not_there_or_cannot_be_read_takes_no_action(
    parts: Parts, tmp_path: Path
) -> None:
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        missing = await do(live, conversation, "nothing", "retry", rev=0)
        assert code_of(missing) == (404, "not_found")
        path = f"{ROOT}/broken"
        text = (
            "sessionId: broken\nentries:\n- {kind: Special, type: Table, payload: 'id: t1\n\n  rows: many'}\n"
        )
        headers = {"Content-Type": "application/yaml"}
        await live.client.post(f"{ROOT}/import", content=text.encode(), headers=headers)
        unreadable = await live.client.post(
            f"{path}/cards/t1/actions/sort", json={}, headers={"If-Match": "0"}
        )
        assert code_of(unreadable) == (422, "usage")


# Knowledge bases


def bases(folder: Path, **mounted: MountedBase) -> KnowledgeBases:
    return KnowledgeBases(
        folder / "kb", OfflineProvider(), config=RagConfig(k=3), load=LoadOptions(), mounted=mounted
    )


def offline(stores: Stores) -> Center:
    return Center(stores).add_provider(OfflineProvider())


@asynccontextmanager
async def knowing(parts: Parts, folder: Path, name: str = "Warranty") -> AsyncIterator[tuple[Live, str, str]]:
    """A server with an empty knowledge base, shown as the card `k` of a conversation."""
    wired = copied(parts, knowledge=bases(folder), center=offline)
    async with served(wired, folder) as live:
        made = (await live.client.post("/api/v1/kb", json={"name": name})).json()["id"]
        conversation = await live.begin()
        await add_card(live, conversation, "KnowledgeBase", id="k", kbId=made, title=name)
        yield live, made, conversation


async def add_card(live: Live, conversation: str, kind: str, **payload: object) -> None:
    body = {"type": kind, "payload": payload}
    assert (await live.client.post(f"{ROOT}/{conversation}/cards", json=body)).status_code == 201


async def upload(live: Live, name: str, text: str) -> str:
    headers = {"Content-Type": "text/plain", "X-Filename": name}
    return (await live.client.post("/api/v1/files", content=text.encode(), headers=headers)).json()["id"]


ARM = "The hitch arm is covered for 3 years."


async def test_a_file_given_to_a_knowledge_card_is_read_in_and_can_be_asked_for(
    parts: Parts, tmp_path: Path
) -> None:
    async with knowing(parts, tmp_path) as (live, _, conversation):
        file = await upload(live, "arm.md", ARM)
        card = (await do(live, conversation, "k", "add_source", fileId=file)).json()["card"]
        assert (card["sources"][0]["label"], card["progress"]["phase"]) == ("arm.md", "loading")
        card = await becomes(live, conversation, "k", totals={"docs": 1, "chunks": 1})
        (source,) = card["sources"]
        assert (source["status"], source["chunks"], source["bytes"]) == ("done", 1, len(ARM))
        await do(live, conversation, "k", "query", text="How long is the arm covered?", topK=1)
        found = [each["card"] for each in (await shown_cards(live, conversation)).values()][-1]
        assert (found["type"], found["sources"][0]["text"]) == ("Sources", ARM)
        gone = await do(live, conversation, "k", "remove_source", sourceId=source["id"])
        assert (gone.json()["card"]["sources"], gone.json()["card"]["totals"]) == (
            [],
            {"docs": 0, "chunks": 0},
        )
        missing = await do(live, conversation, "k", "remove_source", sourceId=source["id"])
        assert code_of(missing) == (404, "not_found")


async def test_a_source_that_cannot_be_read_says_why_and_can_be_tried_again(
    parts: Parts, tmp_path: Path
) -> None:
    async with knowing(parts, tmp_path) as (live, base, conversation):
        file = await upload(live, "broken.pdf", "no pdf")
        await do(live, conversation, "k", "add_source", fileId=file)
        card = await becomes(live, conversation, "k", progress=None)
        (source,) = card["sources"]
        told = (source["status"], source["errorCode"], "pdf" in source["error"])
        assert told == ("failed", "corrupt", True)
        (tmp_path / "kb" / base / "docs/broken.pdf").unlink()
        await do(live, conversation, "k", "retry_source", sourceId=source["id"])
        card = await becomes(live, conversation, "k", progress=None)
        assert card["sources"][0]["status"] == "failed"
        refused = await do(live, conversation, "k", "add_source", url="http://127.0.0.1:1/x")
        assert refused.status_code == 200
        card = await becomes(live, conversation, "k", progress=None)
        assert [each["status"] for each in card["sources"]] == ["failed", "failed"]


@pytest.mark.parametrize(
    ("action", "fields", "code"),
    [
        ("add_source", {}, (422, "usage")),
        ("add_source", {"fileId": "x", "url": "http://a.example"}, (422, "usage")),
        ("add_source", {"url": "file:///etc/passwd"}, (422, "usage")),
        ("add_source", {"fileId": "0" * 64}, (404, "not_found")),
        ("retry_source", {"sourceId": "x"}, (404, "not_found")),
        ("attach", {"filter": "year > 2000"}, (422, "usage")),
    ],
)
async def test_what_a_knowledge_card_does_not_take_is_told(
    parts: Parts, tmp_path: Path, action: str, fields: Any, code: Any
) -> None:
    async with knowing(parts, tmp_path) as (live, _, conversation):
        assert code_of(await do(live, conversation, "k", action, **fields)) == code


async def test_a_card_of_no_base_or_of_one_that_is_read_only_takes_nothing_in(
    parts: Parts, tmp_path: Path
) -> None:
    made, document = bases(tmp_path), tmp_path / "arm.md"
    document.write_text(ARM)
    base = await made.create("Docs")
    await base.ask(Ingest(paths=[str(document)]))
    made.close()
    index = tmp_path / "kb" / base.id / "index.sqlite"
    fixed = bases(tmp_path / "other", docs=MountedBase(name="Docs", index=index, read_only=True))
    async with served(copied(parts, knowledge=fixed), tmp_path / "second") as live:
        conversation = await live.begin()
        await add_card(live, conversation, "KnowledgeBase", id="none")
        await add_card(live, conversation, "KnowledgeBase", id="fixed", kbId="docs")
        url = "http://a.example"
        assert code_of(await do(live, conversation, "none", "add_source", url=url)) == (422, "usage")
        assert code_of(await do(live, conversation, "fixed", "add_source", url=url)) == (403, "read_only")


async def test_a_conversation_answers_from_the_base_it_was_attached_to_until_it_is_detached(
    parts: Parts, tmp_path: Path
) -> None:
    async with knowing(parts, tmp_path) as (live, _, conversation):
        other = (await live.client.post("/api/v1/kb", json={"name": "Other"})).json()["id"]
        await add_card(live, conversation, "KnowledgeBase", id="o", kbId=other)
        file = await upload(live, "arm.md", ARM)
        await do(live, conversation, "k", "add_source", fileId=file)
        await becomes(live, conversation, "k", progress=None)
        await do(live, conversation, "o", "attach")
        await do(live, conversation, "k", "attach", topK=2)
        shown = await shown_cards(live, conversation)
        assert [shown[each]["card"].get("attach") for each in ("o", "k")] == [None, {"topK": 2}]
        assert "covered for 3 years. [1]" in await asked(live, conversation)
        await do(live, conversation, "k", "detach")
        assert "[1]" not in await asked(live, conversation)


async def asked(live: Live, conversation: str) -> str:
    """Return what is answered."""
    async with following(live, f"{ROOT}/{conversation}/events") as events:
        body = {"text": "For how many years is the hitch arm covered?"}
        await live.client.post(f"{ROOT}/{conversation}/messages", json=body)
        await events.until("RUN_FINISHED")
    return (await live.client.get(f"{ROOT}/{conversation}/entries")).json()["entries"][-1]["content"]
