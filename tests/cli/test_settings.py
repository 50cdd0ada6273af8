"""What the settings file says is obeyed by every command that asks a model or makes vectors."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from dialoom.cli.embedder import open_embedder
from dialoom.rag import HashEmbedder
from dialoom.testing.wire import Hold, WireReply, WireRequest, WireServer
from tests.cli.terminal import Terminal
from tests.cli.test_ask import said

MESSAGE = b'{"type":"message","stop_reason":"end_turn","content":[{"type":"text","text":"Three days [1]."}]}'


def claude(_request: WireRequest) -> WireReply:
    return WireReply(body=(MESSAGE,))


def vectors(request: WireRequest) -> WireReply:
    texts = request.json()["input"]
    assert isinstance(texts, list)
    rows = [{"index": at, "embedding": [1.0, float(len(text))]} for at, text in enumerate(texts)]
    return WireReply(body=(msgspec.json.encode({"data": rows}),))


def settle(text: str, name: str = "dialoom.toml") -> None:
    Path(name).write_text(text, encoding="utf-8")


@pytest.mark.promise("docs-001", "docs-003")
@pytest.mark.parametrize(
    "run",
    [
        lambda terminal: terminal.run_beside("ask", "How long?", "--docs", "docs"),
        lambda terminal: terminal.run_beside("doctor"),
    ],
    ids=["ask", "doctor"],
)
async def test_a_provider_and_the_version_of_its_wire_are_named_in_the_file(
    terminal: Terminal, docs: Path, run: Callable[[Terminal], object]
) -> None:
    async with WireServer(claude) as server:
        settle(
            f'[model]\nprovider = "anthropic"\nname = "claude-x"\nbase_url = "{server.url}"\n'
            'api_key = "sk-of-mine"\nanthropic_version = "2024-01-01"\n'
        )
        await run(terminal)
        asked = [request for request in server.requests if request.method == "POST"]
    assert asked
    for request in asked:
        assert (request.path, request.json()["model"]) == ("/v1/messages", "claude-x")
        assert request.headers["anthropic-version"] == "2024-01-01"
        assert request.headers["x-api-key"] == "sk-of-mine"


@pytest.mark.promise("docs-001", "docs-002", "docs-005")
async def test_how_an_answer_is_asked_for_stands_in_a_flat_file_too(terminal: Terminal, docs: Path) -> None:
    async with WireServer([said("Three days [1].")]) as server:
        settings = {"provider": "openai", "base_url": f"{server.url}/v1", "api_key": "sk-of-mine"}
        settings |= {"model": "mine", "temperature": 0.25, "max_tokens": 77, "json_mode": True}
        settle(json.dumps(settings), "llm_config.json")
        shown = await terminal.run_beside(
            "ask", "How long?", "--docs", str(docs), "--config", "llm_config.json"
        )
        request = server.requests[0]
    assert shown.code == 0, shown.err
    assert request.headers["authorization"] == "Bearer sk-of-mine"
    expected = {"model": "mine", "temperature": 0.25, "max_tokens": 77}
    expected |= {"response_format": {"type": "json_object"}}
    assert {name: request.json().get(name) for name in expected} == expected


@pytest.mark.promise("docs-007")
async def test_a_question_is_asked_again_as_often_as_the_file_says(terminal: Terminal, docs: Path) -> None:
    busy = WireReply(status=503)
    async with WireServer([busy, said("Three days [1]."), busy]) as server:
        told = f'[model]\nname = "openai:m"\nbase_url = "{server.url}/v1"\n[requests]\n'
        settle(f"{told}retries = 1\nretry_backoff_ms = 0\n")
        again = await terminal.run_beside("ask", "How long?", "--docs", str(docs))
        settle(f"{told}retries = 0\n")
        once = await terminal.run_beside("ask", "How long?")
        assert (again.code, once.code, len(server.requests)) == (0, 6, 3)


@pytest.mark.promise("docs-006")
async def test_a_silent_server_is_waited_for_as_long_as_the_file_says(terminal: Terminal, docs: Path) -> None:
    async with WireServer([WireReply(body=(Hold(), b"late"))]) as server:
        settle(
            f'[model]\nname = "openai:m"\nbase_url = "{server.url}/v1"\n'
            "[requests]\ntotal_timeout_ms = 200\nconnect_timeout_ms = 100\nretries = 0\n"
        )
        shown = await terminal.run_beside("ask", "How long?", "--docs", str(docs))
    assert shown.code == 6
    assert "did not begin to answer within 0.2 s" in shown.err or "finish within 0.2 s" in shown.err


async def test_a_server_that_lists_no_models_in_time_is_given_up_too(terminal: Terminal, docs: Path) -> None:
    async with WireServer([WireReply(body=(Hold(), b"late"))]) as server:
        settle(f'[model]\nbase_url = "{server.url}/v1"\n[requests]\ntotal_timeout_ms = 200\n')
        shown = await terminal.run_beside("ask", "How long?", "--docs", str(docs))
    assert (shown.code, shown.err) == (
        6,
        "dialoom: no list of models came within 0.2 s; name a model, or allow more time\n",
    )


@pytest.mark.promise("docs-004", "docs-011")
async def test_claude_answers_and_another_server_makes_the_vectors(terminal: Terminal, docs: Path) -> None:
    def both(request: WireRequest) -> WireReply:
        return vectors(request) if request.path.endswith("/embeddings") else claude(request)

    async with WireServer(both) as server:
        settings = {"provider": "anthropic", "model": "claude-x", "base_url": server.url, "api_key": "sk-a"}
        settings |= {"embedding_model": "e5", "embedding_base_url": f"{server.url}/v1"}
        settle(json.dumps(settings | {"embedding_api_key": "sk-e"}), "llm_config.json")
        words = ("--docs", str(docs), "--config", "llm_config.json")
        shown = await terminal.run_beside("ask", "How long?", *words)
        embedded = [each for each in server.requests if each.path == "/v1/embeddings"]
    assert (shown.code, shown.out) == (0, "Three days [1].\n\n[1] refunds.md, Refunds\n")
    assert {(each.headers["authorization"], each.json()["model"]) for each in embedded} == {
        ("Bearer sk-e", "e5")
    }


@pytest.mark.promise("docs-010")
async def test_claude_makes_no_vectors_so_they_are_made_offline_and_that_is_said(
    terminal: Terminal, capfd: pytest.CaptureFixture[str]
) -> None:
    settle('[model]\nprovider = "anthropic"\napi_key = "k"\n[embedding]\nmodel = "e5"\n')
    async with open_embedder(None) as embedder:
        assert isinstance(embedder, HashEmbedder)
    told = capfd.readouterr().err
    assert told == (
        "vectors: HashEmbedder, offline; Anthropic makes none, name another base_url in [embedding]\n"
    )


async def test_vectors_that_were_made_before_are_kept_in_the_file_that_the_settings_name(
    terminal: Terminal, docs: Path
) -> None:
    async with WireServer(vectors) as server:
        settle(f'[embedding]\nmodel = "e5"\nbase_url = "{server.url}/v1"\ncache = "kept.sqlite"\n')
        first = await terminal.run_beside("ingest", str(docs))
        asked = len(server.requests)
        again = await terminal.run_beside("ingest", str(docs), "--rebuild")
        assert (first.code, again.code) == (0, 0)
        assert len(server.requests) == asked + 1  # for the length of its vectors


async def test_a_model_for_vectors_can_run_in_this_process(terminal: Terminal, docs: Path) -> None:
    settle('[embedding]\nprovider = "fastembed"\n')
    shown = await terminal.run_beside("ingest", str(docs))
    assert (shown.code, shown.out, shown.err.count("\n")) == (2, "", 1)
    assert shown.err.endswith("; name one\n")


async def test_the_doctor_asks_the_server_that_the_file_names_for_vectors(terminal: Terminal) -> None:
    def chats(request: WireRequest) -> WireReply:
        return said("Hello.") if request.method == "POST" else WireReply(body=(b'{"data": [{"id": "m"}]}',))

    async with WireServer(chats) as chat_server, WireServer(vectors) as vector_server:
        settle(
            f'[model]\nname = "openai:m"\nbase_url = "{chat_server.url}/v1"\n'
            f'[embedding]\nmodel = "e5"\nbase_url = "{vector_server.url}/v1"\n'
        )
        shown = await terminal.run_beside("doctor")
    assert (shown.code, [line for line in shown.out.splitlines() if "embeddings" in line]) == (
        0,
        ["  embeddings    yes     2 dimensions"],
    )


async def test_ollama_is_asked_for_a_context_window_by_its_own_wire(terminal: Terminal, docs: Path) -> None:
    answer = b'{"message": {"role": "assistant", "content": "Three days [1]."}, "done": true}\n'
    async with WireServer([WireReply(body=(answer,))]) as server:
        settle(
            f'[model]\nprovider = "ollama"\nname = "tiny"\nbase_url = "{server.url}/v1"\nnum_ctx = 16384\n'
        )
        shown = await terminal.run_beside("ask", "How long?", "--docs", str(docs))
        request = server.requests[0]
    assert (shown.code, request.path) == (0, "/api/chat")
    assert request.json()["options"] == {"num_ctx": 16384}


async def test_a_tool_is_called_on_a_server_that_knows_none(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(request: WireRequest) -> WireReply:
        asked = request.json()
        if "tools" in asked:
            return WireReply(status=400, body=(b'{"error": {"message": "tools are not supported"}}',))
        known = "Tool result" in json.dumps(asked["messages"])
        step = {"final": "It is 5."} if known else {"tool": "calculator", "arguments": {"expression": "2+3"}}
        return said(json.dumps(step))

    monkeypatch.setattr("sys.stdin", io.StringIO("2 + 3?\n/quit\n"))
    async with WireServer(reply) as server:
        settle(f'[model]\nname = "openai:m"\nbase_url = "{server.url}/v1"\n')
        shown = await terminal.run_beside("chat", "--tool", "calculator")
    assert shown.out.strip() == "It is 5."
    assert '→ calculator {"expression":"2+3"}' in shown.err


async def test_the_profile_of_the_doctor_says_how_tools_are_called(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("2 + 3?\n/quit\n"))
    settle('{"tool_mode": "off"}', "tiny.json")
    async with WireServer([said("Five.")]) as server:
        settle(f'[model]\nname = "openai:m"\nbase_url = "{server.url}/v1"\nprofile = "tiny.json"\n')
        shown = await terminal.run_beside("chat", "--tool", "calculator")
        assert "tools" not in server.requests[0].json()
    assert shown.out.strip() == "Five."


async def test_flags_go_before_a_file_whose_key_is_not_set(terminal: Terminal, docs: Path) -> None:
    settle(
        '[model]\nprovider = "openai"\nname = "q"\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "NOPE"\n'
    )
    refused = await terminal.run_beside("ask", "How long?", "--docs", str(docs))
    assert (refused.code, refused.err.splitlines()[-1]) == (
        2,
        "dialoom: the settings take a key from NOPE, which is not set; set it",
    )
    assert (await terminal.run_beside("ask", "How long?", "--docs", str(docs), "--offline")).code == 0
    async with WireServer([said("Three days [1].")]) as server:
        url = f"{server.url}/v1"
        asked = await terminal.run_beside(
            "ask", "How long?", "--docs", str(docs), "--base-url", url, "--model", "m"
        )
        assert asked.code == 0
        assert "authorization" not in server.requests[0].headers


async def test_a_variable_goes_before_the_file(
    terminal: Terminal, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALOOM_MODEL_NAME", "other")
    async with WireServer([said("Three days [1].")]) as server:
        settle(f'[model]\nprovider = "openai"\nname = "mine"\nbase_url = "{server.url}/v1"\n')
        await terminal.run_beside("ask", "How long?", "--docs", str(docs))
        assert server.requests[0].json()["model"] == "other"
