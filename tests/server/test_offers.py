"""What a server offers: knowledge, graphs and checkpoints, providers, tool servers, its page, its numbers."""

import asyncio
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from dialoom.base.errors import StoreError
from dialoom.dialog import Center, FixedToolSource, Prompt, Skill, Stores
from dialoom.graph import (
    END,
    START,
    GraphBuilder,
    MemoryCheckpointStore,
    NodeContext,
    Reducers,
    RunOptions,
)
from dialoom.llm import MockProvider, OfflineProvider, ProviderError
from dialoom.mcp import MCPServerConfig, Transport
from dialoom.rag import LoadOptions, RagConfig
from dialoom.rag.service.requests import Ingest
from dialoom.server import Parts, ServerSettings, Workbench
from dialoom.server.graphs import plain_state
from dialoom.server.knowledge import KnowledgeBases, MountedBase
from dialoom.server.openapi import main
from dialoom.server.plain_html import NOT_BUILT, list_html
from dialoom.server.static import PageFiles
from dialoom.testing.clock import ManualClock
from dialoom.tools import Tool, tool
from tests.server.conftest import TOKEN, URL
from tests.server.live import copied, following, served

HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def code_of(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.fixture
def bases(tmp_path: Path) -> KnowledgeBases:
    return knowledge(tmp_path)


def knowledge(folder: Path, **mounted: MountedBase) -> KnowledgeBases:
    return KnowledgeBases(
        folder / "kb", OfflineProvider(), config=RagConfig(k=3), load=LoadOptions(), mounted=mounted
    )


@pytest.fixture
def knowing(settings: ServerSettings, parts: Parts, bases: KnowledgeBases) -> Iterator[TestClient]:
    workbench = Workbench(settings, copied(parts, knowledge=bases))
    with TestClient(workbench.app, base_url=URL, headers=HEADERS) as client:
        yield client


async def test_a_knowledge_base_takes_files_in_and_answers_with_citations(
    parts: Parts, bases: KnowledgeBases, tmp_path: Path
) -> None:
    async def ground(_conversation: str, question: str) -> list[object]:
        return await bases.passages((await bases.ids())[0], question)

    wired = copied(parts, knowledge=bases, ground=ground, center=offline_center)
    async with served(wired, tmp_path) as live:
        client = live.client
        made = (await client.post("/api/v1/kb", json={"name": "Warranty"})).json()
        assert (made["name"], made["documents"], made["passages"], made["readOnly"]) == (
            "Warranty",
            0,
            0,
            False,
        )
        files = []
        for name, text in (
            ("arm.md", "The hitch arm is covered for 3 years."),
            ("\u2026/../evil.pdf", "no pdf"),
        ):
            headers = {"Content-Type": "text/plain", "X-Filename": name.encode("utf-8").decode("latin-1")}
            headers["X-Filename"] = "arm.md" if name == "arm.md" else "%E2%80%A6%2F..%2Fevil.pdf"
            files.append(
                (await client.post("/api/v1/files", content=text.encode(), headers=headers)).json()["id"]
            )
        conversation = await live.begin()
        async with following(live, f"/api/v1/conversations/{conversation}/events") as events:
            job = await client.post(f"/api/v1/kb/{made['id']}/ingest", json={"fileIds": files})
            assert job.status_code == 202
            phases = []
            while not phases or phases[-1]["phase"] != "done":
                progress = (await events.until("ingest.progress"))[-1]["value"]
                phases.append(progress)
            assert [each["phase"] for each in phases] == ["reading", "reading", "skipped", "done"]
            assert {each["job"] for each in phases} == {job.json()["job"]}
            assert "pdf" in phases[2]["error"]
            assert [each["code"] for each in phases] == ["", "", "corrupt", ""]

            asked = {"question": "For how many years is the hitch arm covered?"}
            answer = (await client.post(f"/api/v1/kb/{made['id']}/query", json=asked)).json()
            assert "covered for 3 years. [1]" in answer["answer"]
            assert (answer["cited_indexes"], answer["hits"][0]["title"]) == ([1], "arm.md")
            streamed = await client.post(f"/api/v1/kb/{made['id']}/query", json={**asked, "stream": True})
            lines = [
                json.loads(line[6:]) for line in streamed.text.split("\n\n") if line.startswith("data: ")
            ]
            assert [lines[0]["event"], lines[-1]["event"]] == ["delta", "final"]

            await client.post(
                f"/api/v1/conversations/{conversation}/messages", json={"text": asked["question"]}
            )
            await events.until("RUN_FINISHED")
        log = (await client.get(f"/api/v1/conversations/{conversation}/entries")).json()["entries"]
        assert "covered for 3 years. [1]" in log[1]["content"]
        assert (log[1]["sources"][0]["index"], log[1]["sources"][0]["title"]) == (1, "arm.md")
        assert "sources" not in log[0]
        listed = (await client.get("/api/v1/kb")).json()
        assert [(each["id"], each["documents"]) for each in listed["items"]] == [(made["id"], 1)]


def offline_center(stores: Stores) -> Center:
    return Center(stores).add_provider(OfflineProvider())


def test_what_a_knowledge_base_refuses_is_told(knowing: TestClient, tmp_path: Path) -> None:
    made = knowing.post("/api/v1/kb", json={"name": "k"}).json()["id"]
    for body in ({}, {"fileIds": ["0" * 64], "url": "http://x.example"}):
        assert code_of(knowing.post(f"/api/v1/kb/{made}/ingest", json=body)) == (422, "usage")
    assert code_of(knowing.post(f"/api/v1/kb/{made}/ingest", json={"fileIds": ["0" * 64]})) == (
        404,
        "not_found",
    )
    assert code_of(knowing.get("/api/v1/kb/nowhere/health")) == (404, "not_found")
    assert knowing.post(f"/api/v1/kb/{made}/query", json={"question": " "}).status_code == 422
    (tmp_path / "kb/broken").mkdir()
    (tmp_path / "kb/broken/about.json").write_bytes(b'{"name": "b"}')
    (tmp_path / "kb/broken/index.sqlite").write_bytes(b"no database at all" * 20)
    listed = knowing.get("/api/v1/kb").json()
    assert ([each["id"] for each in listed["items"]], list(listed["problems"])) == ([made], ["broken"])


def test_a_mounted_index_can_be_read_only(settings: ServerSettings, parts: Parts, tmp_path: Path) -> None:
    index, text = tmp_path / "index.sqlite", tmp_path / "arm.md"
    text.write_text("The hitch arm is covered for 3 years.")

    async def fill() -> None:
        writing = knowledge(tmp_path, docs=MountedBase(name="docs", index=index))
        await (await writing.open("docs")).ask(Ingest(paths=[str(text)]))
        writing.close()

    asyncio.run(fill())
    mounted = knowledge(tmp_path / "other", docs=MountedBase(name="docs", index=index, read_only=True))
    elsewhere = msgspec.structs.replace(settings, data=tmp_path / "elsewhere")
    with TestClient(
        Workbench(elsewhere, copied(parts, knowledge=mounted)).app, base_url=URL, headers=HEADERS
    ) as client:
        listed = client.get("/api/v1/kb").json()["items"]
        assert [(each["id"], each["readOnly"]) for each in listed] == [("docs", True)]
        refused = client.post("/api/v1/kb/docs/ingest", json={"url": "http://x.example"})
        assert code_of(refused) == (403, "read_only")
        assert code_of(client.delete("/api/v1/kb/docs")) == (403, "read_only")


async def test_a_graph_is_shown_and_gone_on_with_from_an_old_checkpoint(
    settings: ServerSettings, parts: Parts
) -> None:
    store = MemoryCheckpointStore()
    builder = GraphBuilder("counting")
    builder.add_channel("said", Reducers.append)
    builder.add_node("one", lambda _ctx: {"said": ["one"]})
    builder.add_node("two", fails_once, on_error="mend")
    builder.add_node("mend", lambda _ctx: None)
    builder.add_edge(START, "one")
    builder.add_conditional_edges("one", lambda _state: "on", {"on": "two"}, default=END)
    builder.add_edge("two", END)
    builder.add_edge("mend", END)
    graph = builder.build(store=store)
    await graph.run({}, RunOptions(thread_id="t1"))
    workbench = Workbench(settings, copied(parts, checkpoints=store, graphs={"counting": graph}))
    with TestClient(workbench.app, base_url=URL, headers=HEADERS) as client:
        assert client.get("/api/v1/graphs").json() == {"items": [{"id": "counting", "name": "counting"}]}
        shown = client.get("/api/v1/graphs/counting").json()
        assert [each["id"] for each in shown["nodes"]] == [START, "one", "two", "mend", END]
        assert {(each["source"], each["target"], each.get("label", "")) for each in shown["edges"]} == {
            (START, "one", ""), ("one", "two", "on"), ("one", END, "otherwise"), ("two", END, ""),
            ("mend", END, ""), ("two", "mend", "on error"),
        }  # fmt: skip
        assert shown["mermaid"].startswith("flowchart TD")
        assert code_of(client.get("/api/v1/graphs/other")) == (404, "not_found")

        listed = client.get("/api/v1/threads/t1/checkpoints").json()["items"]
        assert [(each["step"], each["nodes"], each["next"]) for each in listed] == [
            (3, ["two"], []), (2, ["one"], ["two"]), (1, [], ["one"]),
        ]  # fmt: skip
        assert listed[1]["changed"] == ["said"]
        state = client.get(f"/api/v1/checkpoints/{listed[1]['id']}").json()
        assert (state["state"], state["cut"]) == ({"said": ["one"]}, [])
        forked = client.post(f"/api/v1/checkpoints/{listed[1]['id']}/fork", json={"graph": "counting"})
        assert forked.status_code == 201
        thread = forked.json()["thread"]
        assert client.get(f"/api/v1/threads/{thread}/checkpoints").json()["items"][0]["next"] == ["two"]
        assert code_of(client.post(f"/api/v1/checkpoints/{listed[1]['id']}/fork", json={})) == (422, "usage")
        for name in ("x", "eyJh", listed[0]["id"][:-8] + "AAAAAAA="):
            assert code_of(client.get(f"/api/v1/checkpoints/{name}")) == (404, "not_found")


def fails_once(_ctx: NodeContext) -> dict[str, list[str]]:
    return {"said": ["two"]}


def test_a_state_is_shown_within_bounds_and_without_the_insides_of_foreign_objects() -> None:
    class Key:
        def __repr__(self) -> str:
            return "Key(sk-secret)"

    shown, cut = plain_state({"a": {"b": [1]}, "key": Key(), "odd": {(1, 2): "\ud800"}, "big": "x" * 100_000})
    assert (shown["a"], shown["key"], cut) == ({"b": [1]}, "<Key>", ["big"])
    assert shown["odd"].startswith("a dict that is not JSON")
    assert len(shown["big"]) <= 500


async def test_a_conversation_is_gone_on_with_from_where_its_run_stood(
    parts: Parts, provider: MockProvider, tools: list[Tool], tmp_path: Path
) -> None:
    @tool(requires_approval=True)
    async def erase(name: str) -> str:
        """Erase a file."""
        return f"erased {name}"

    tools.append(erase)
    provider.queue_tool_call("c1", "erase", {"name": "a"})
    async with served(parts, tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        async with following(live, f"{path}/events") as events:
            run = (await live.client.post(f"{path}/messages", json={"text": "Erase a"})).json()["runId"]
            await events.until("RUN_FINISHED")
        listed = (await live.client.get(f"{path}/checkpoints")).json()["items"]
        assert listed == (await live.client.get(f"/api/v1/runs/{run}/checkpoints")).json()["items"]
        assert (listed[0]["waiting"], listed[-1]["next"]) == (1, ["model"])
        forked = await live.client.post(f"/api/v1/checkpoints/{listed[-1]['id']}/fork", json={})
        branch = forked.json()["conversationId"]
        entries = (await live.client.get(f"/api/v1/conversations/{branch}/entries")).json()["entries"]
        assert [each["content"] for each in entries] == ["Erase a"]
        graph = (await live.client.get(f"{path}/graph")).json()
        assert [each["id"] for each in graph["nodes"]] == [START, "model", "tools", END]

        provider.queue_text("Done.")
        card = (await live.client.get(f"{path}/entries")).json()["entries"][-1]
        async with following(live, f"{path}/events") as events:
            decide = f"{path}/cards/{card['cardId']}/actions/decide"
            await live.client.post(decide, json={"approved": True}, headers={"If-Match": str(card["rev"])})
            await events.until("RUN_FINISHED")
        resumed = (await live.client.get(f"{path}/checkpoints")).json()["items"]
        assert len(resumed) > len(listed)
        assert [each["step"] for each in resumed] == list(range(len(resumed), 0, -1))


@tool
async def weather(city: str) -> str:
    """Weather of a city."""
    return f"rain in {city}"


def equipped(stores: Stores) -> Center:
    class Down(MockProvider):
        async def models(self):
            raise ProviderError("unavailable", "the server is down")

    center = Center(stores).add_provider(MockProvider()).add_provider(Down(id="down"), enabled=False)
    center.add_tool(weather).add_prompt(Prompt("greet", "Hello {{ name }}"))
    center.add_skill(Skill(name="brief", description="Short answers"))
    server = MCPServerConfig("files").set_transport(Transport.STDIO).set_command("files-server")
    server.set_arguments(["--token", "sk-secret"]).set_environment({"API_KEY": "sk-secret"})
    return center.add_mcp(server)


@pytest.fixture
def stocked(settings: ServerSettings, parts: Parts) -> Iterator[TestClient]:
    source = FixedToolSource({"files": [weather]})
    workbench = Workbench(settings, copied(parts, center=equipped, tool_source=source))
    with TestClient(workbench.app, base_url=URL, headers=HEADERS) as client:
        yield client


def test_what_can_be_used_is_listed_without_secrets(stocked: TestClient) -> None:
    me = stocked.get("/api/v1/me").json()
    assert (me["features"], [each["label"] for each in me["models"]]) == (
        {"kb": False, "mcp": True, "graphs": True}, ["mock: mock-model"],
    )  # fmt: skip
    providers = stocked.get("/api/v1/providers").json()["items"]
    assert [(each["id"], each["default"], each["enabled"], each["error"]) for each in providers] == [
        ("mock", True, True, ""), ("down", False, False, "the server is down"),
    ]  # fmt: skip
    assert providers[0]["models"] == [{"id": "mock-model", "capabilities": ["text", "tools", "streaming"]}]
    assert stocked.get("/api/v1/skills").json()["items"][0]["name"] == "brief"
    assert stocked.get("/api/v1/prompts").json()["items"][0]["template"] == "Hello {{ name }}"
    functions = stocked.get("/api/v1/functions").json()["items"]
    assert (functions[0]["name"], functions[0]["parameters"]["required"]) == ("weather", ["city"])
    servers = stocked.get("/api/v1/mcp-servers")
    assert "sk-secret" not in servers.text
    assert [(each["name"], each["transport"], each["command"]) for each in servers.json()["items"]] == [
        ("files", "stdio", "files-server")
    ]
    for path in ("providers", "mcp-servers", "functions", "skills", "prompts"):
        assert stocked.post(f"/api/v1/{path}", json={}).status_code == 405  # all of these are the operator's


def test_a_tool_server_is_tried(stocked: TestClient, client: TestClient) -> None:
    tried = stocked.post("/api/v1/mcp-servers/files/test", json={}).json()
    assert [each["name"] for each in tried["tools"]] == ["weather"]
    assert code_of(stocked.post("/api/v1/mcp-servers/other/test", json={})) == (404, "not_found")
    assert code_of(client.post("/api/v1/mcp-servers/files/test", json={})) == (404, "not_found")


def test_a_server_without_tool_servers_says_so(settings: ServerSettings, parts: Parts) -> None:
    workbench = Workbench(settings, copied(parts, center=equipped))
    with TestClient(workbench.app, base_url=URL, headers=HEADERS) as client:
        assert code_of(client.post("/api/v1/mcp-servers/files/test", json={})) == (501, "no_tool_servers")


def test_the_chosen_provider_outlives_a_restart(
    stocked: TestClient, settings: ServerSettings, parts: Parts
) -> None:
    chosen = {"defaultProvider": "down", "disabledProviders": ["mock"]}
    assert stocked.put("/api/v1/settings", json=chosen).json() == chosen
    assert code_of(stocked.put("/api/v1/settings", json={"defaultProvider": "x"})) == (404, "not_found")
    again = Workbench(settings, copied(parts, center=equipped))
    with TestClient(again.app, base_url=URL, headers=HEADERS) as client:
        assert client.get("/api/v1/settings").json() == chosen
    (settings.data / "settings.json").write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        Workbench(settings, copied(parts, center=equipped))
    (settings.data / "settings.json").unlink()
    (settings.data / "settings.json").mkdir()
    assert code_of(stocked.put("/api/v1/settings", json=chosen)) == (503, "store")


def test_a_choice_that_the_disk_did_not_take_is_not_said_to_be_kept(
    stocked: TestClient, settings: ServerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {"defaultProvider": "down", "disabledProviders": []}
    assert stocked.put("/api/v1/settings", json=chosen).json() == chosen

    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    other = {"defaultProvider": "mock", "disabledProviders": []}
    assert code_of(stocked.put("/api/v1/settings", json=other)) == (503, "store")
    assert stocked.get("/api/v1/settings").json() == chosen
    assert json.loads((settings.data / "settings.json").read_bytes()) == chosen


def test_health_and_numbers_are_told_and_a_strangers_paths_are_no_rows(
    client: TestClient, stranger: TestClient, clock: ManualClock
) -> None:
    assert stranger.get("/healthz").json()["status"] == "ok"
    for path in ("/api/v1/conversations", "/api/v1/conversations/none", "/a-strangers-path"):
        client.get(path)
    stranger.get("/api/v1/conversations")
    text = client.get("/metrics").text
    assert 'dialoom_calls_total{method="GET",route="/api/v1/conversations",status="200"} 1' in text
    assert 'dialoom_calls_total{method="GET",route="/api/v1/conversations/{id}",status="404"} 1' in text
    assert 'route="other",status="401"} 1' in text
    assert "strangers" not in text
    assert "dialoom_open_streams 0" in text
    assert f"dialoom_started_seconds {clock.now():.12g}\n" in text
    assert text.endswith("\n")


def test_the_page_is_served_from_a_list_and_nothing_else_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>page")
    (tmp_path / "assets/app-1.js").write_text("1")
    (tmp_path / "assets/odd").write_text("?")
    from starlette.applications import Starlette

    with TestClient(Starlette(routes=PageFiles(tmp_path).routes())) as page:
        assert (page.get("/").text, page.get("/").headers["cache-control"]) == (
            "<!doctype html>page",
            "no-cache",
        )
        script = page.get("/assets/app-1.js")
        assert (script.headers["content-type"].split(";")[0], script.headers["cache-control"]) == (
            "text/javascript", "public, max-age=31536000, immutable",
        )  # fmt: skip
        assert page.get("/assets/odd").headers["content-type"].startswith("application/octet-stream")
        assert code_of(page.post("/assets/app-1.js")) == (405, "method_not_allowed")
        (tmp_path / "later.txt").write_text("x")
        assert code_of(page.get("/later.txt")) == (404, "not_found")
        mistyped = page.get("/<b>", headers={"Accept": "text/html,*/*"})  # what a browser asks for
        assert (mistyped.status_code, mistyped.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "no page /&lt;b&gt;" in mistyped.text
        assert '<a href="/">' in mistyped.text
    assert caplog.messages == []
    with TestClient(Starlette(routes=PageFiles(tmp_path / "none").routes())) as page:
        assert page.get("/", follow_redirects=False).headers["location"] == "/plain"
    assert caplog.messages == [NOT_BUILT]


class Rebuilt(type(Path())):
    """A folder whose files are removed by a build at the moment that somebody reads them."""

    def read_bytes(self) -> bytes:
        self.unlink()
        return super().read_bytes()


def test_a_page_that_is_being_rebuilt_counts_as_not_built(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>page")
    assert not PageFiles(Rebuilt(tmp_path)).are_built
    assert caplog.messages == [NOT_BUILT]


def test_the_plain_list_says_that_the_page_is_not_built_only_where_it_is_not() -> None:
    built, not_built = (list_html([], query="", cursor=None, is_built=each) for each in (True, False))
    assert "npm --prefix web run build" in not_built
    assert "npm" not in built


def test_the_openapi_document_says_what_the_table_serves(
    capsys: pytest.CaptureFixture[str], client: TestClient, workbench: Workbench
) -> None:
    main()
    document = json.loads(capsys.readouterr().out)
    assert document["openapi"] == "3.1.0"
    served_here = client.get("/openapi.json").json()
    assert served_here == json.loads(json.dumps(workbench.document()))
    assert set(served_here["paths"]) < set(document["paths"])  # the command has knowledge and embeddings too
    operation = document["paths"]["/api/v1/conversations/{id}/cards/{card}/actions/{name}"]["post"]
    assert [each["name"] for each in operation["parameters"]] == [
        "id", "card", "name", "If-Match", "Idempotency-Key",
    ]  # fmt: skip
    assert {"200", "401", "409", "422", "428"} <= set(operation["responses"])
    ids = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(set(ids)) == len(ids)


async def test_jobs_end_with_the_server_and_one_that_fails_ends_alone(caplog) -> None:
    from dialoom.server.background import Background
    from dialoom.server.problems import ProblemError

    began, stopped = asyncio.Event(), asyncio.Event()

    async def lasting() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def failing() -> None:
        raise RuntimeError("no")

    jobs = Background()
    with pytest.raises(ProblemError, match="too much is under way"):
        jobs.start(lasting(), "too early")
    async with jobs:
        jobs.start(failing(), "failing")
        jobs.start(lasting(), "lasting")
        async with asyncio.timeout(5):
            await began.wait()
        assert len(jobs) == 1
    assert stopped.is_set()
    assert [each.message for each in caplog.records] == ["a job failed"]
