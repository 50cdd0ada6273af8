"""Which model answers: the order of the sources, and a step for each that says why."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.llm import (
    ModelChoice,
    ModelRequest,
    ModelSettings,
    OfflineProvider,
    OpenAIProvider,
    Probe,
    ProviderError,
    Step,
    chat,
    choose_model,
    open_provider,
    probe_loopback,
    resolve_model,
    user,
)
from dialoom.llm.places import ANTHROPIC_URL, OPENAI_URL, ModelName, ollama_url, parse_model
from dialoom.net import Httpx2Transport
from dialoom.testing.wire import Hold, WireReply, WireRequest, WireServer

GPU, HERE = "http://gpu:1/v1", "http://localhost:1/v1"
OLLAMA = "http://127.0.0.1:11434/v1"
FOUND = Probe(provider="ollama", base_url=OLLAMA, models=("llama3.2", "qwen3"))
SILENT = Probe(provider="lmstudio", base_url="http://127.0.0.1:1234/v1", why="nobody listens there")
KEY = "sk-secret-123456"


def flags(model: str | None = None, base_url: str | None = None, **others: Any) -> ModelRequest:
    return ModelRequest(flags=ModelSettings(model=model, base_url=base_url), **others)


def env(**values: str) -> ModelRequest:
    return ModelRequest(env=values)


def brief(choice: ModelChoice) -> tuple[str, str | None, str | None]:
    return choice.label, choice.base_url, choice.api_key


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (flags("ollama:llama3.2:3b"), ("ollama:llama3.2:3b", OLLAMA, None)),
        (flags("lmstudio:m"), ("lmstudio:m", "http://127.0.0.1:1234/v1", None)),
        (flags("lmstudio:m", env={"LM_API_TOKEN": "t"}), ("lmstudio:m", "http://127.0.0.1:1234/v1", "t")),
        (flags("llamacpp"), ("llamacpp", "http://127.0.0.1:8080/v1", None)),
        (
            flags("llamacpp:m", env={"LLAMA_ARG_PORT": "9", "LLAMA_API_KEY": "k"}),
            ("llamacpp:m", "http://127.0.0.1:9/v1", "k"),
        ),
        (flags("openai:gpt-4o", env={"OPENAI_API_KEY": KEY}), ("openai:gpt-4o", OPENAI_URL, KEY)),
        (flags("OpenAI", env={"OPENAI_API_KEY": KEY}), ("openai:gpt-4o-mini", OPENAI_URL, KEY)),
        (flags("openai:m", env={"OPENAI_BASE_URL": HERE}), ("openai:m", HERE, None)),
        (flags("llama3.2:3b", "http://gpu:8000/v1/"), ("openai:llama3.2:3b", "http://gpu:8000/v1", None)),
        (flags("ollama:m", GPU), ("ollama:m", GPU, None)),
        (flags(base_url=GPU, env={"DIALOOM_MODEL": "m", "DIALOOM_API_KEY": "k"}), ("openai:m", GPU, "k")),
        (flags(base_url=GPU, env={"OPENAI_API_KEY": KEY}), ("openai", GPU, None)),
        (flags("offline", env={"OPENAI_API_KEY": KEY}), ("offline", None, None)),
        (flags("m", env={"OPENAI_API_KEY": KEY}), ("openai:m", OPENAI_URL, KEY)),
        (flags("m", env={"DIALOOM_MODEL": "ollama:other"}), ("ollama:m", OLLAMA, None)),
        (
            flags("ollama:m", env={"DIALOOM_BASE_URL": GPU, "DIALOOM_API_KEY": "k"}),
            ("ollama:m", OLLAMA, None),
        ),
        (env(DIALOOM_MODEL=" m ", DIALOOM_BASE_URL=GPU, DIALOOM_API_KEY="k"), ("openai:m", GPU, "k")),
        (env(OPENAI_BASE_URL=HERE), ("openai", HERE, None)),
        (env(OPENAI_BASE_URL=GPU, OPENAI_API_KEY=KEY), ("openai", GPU, KEY)),
        (env(OPENAI_API_KEY=KEY, OLLAMA_HOST="gpu"), ("openai:gpt-4o-mini", OPENAI_URL, KEY)),
        (env(ANTHROPIC_API_KEY=KEY), ("anthropic:claude-haiku-4-5", ANTHROPIC_URL, KEY)),
        (env(ANTHROPIC_API_KEY=KEY, OPENAI_API_KEY="k"), ("anthropic:claude-haiku-4-5", ANTHROPIC_URL, KEY)),
        (env(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL=HERE), ("anthropic", HERE, KEY)),
        (flags("claude-5", env={"ANTHROPIC_API_KEY": KEY}), ("anthropic:claude-5", ANTHROPIC_URL, KEY)),
        (flags("m", env={"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": KEY}), ("openai:m", OPENAI_URL, KEY)),
        (flags("anthropic:m", env={"ANTHROPIC_API_KEY": KEY}), ("anthropic:m", ANTHROPIC_URL, KEY)),
        (flags("anthropic:m", GPU, env={"ANTHROPIC_API_KEY": KEY}), ("anthropic:m", GPU, None)),
        (env(OLLAMA_HOST="0.0.0.0"), ("ollama", OLLAMA, None)),
        (env(OLLAMA_HOST="gpu", OLLAMA_API_KEY="k"), ("ollama", "http://gpu:11434/v1", "k")),
        (flags("ollama:m", env={"OLLAMA_API_KEY": "k"}), ("ollama:m", OLLAMA, "k")),
        (env(OPENAI_BASE_URL=GPU, OLLAMA_HOST="gpu"), ("ollama", "http://gpu:11434/v1", None)),
        (
            ModelRequest(config=ModelSettings(model="ollama:m", api_key="k"), env={"DIALOOM_MODEL": "x:y"}),
            ("ollama:m", OLLAMA, "k"),
        ),
        (ModelRequest(flags=ModelSettings(model="ollama:m"), offline=True), ("offline", None, None)),
        (ModelRequest(env={"DIALOOM_NO_PROBE": "1"}), ("offline", None, None)),
    ],
)  # fmt: skip
def test_the_first_source_with_a_server_decides(
    request_: ModelRequest, expected: tuple[str, str | None, str | None]
) -> None:
    choice = resolve_model(request_)
    assert brief(choice) == expected
    assert choice.mode == ("offline" if choice.provider == "offline" else "model")
    assert [step.verdict for step in choice.steps].count("chosen") == 1
    assert choice.steps[-1].verdict == "chosen"


def test_every_step_says_why_it_was_passed_over() -> None:
    request = ModelRequest(
        flags=ModelSettings(model="qwen3"),
        env={"OPENAI_BASE_URL": "http://gpu:1/v1", "ANTHROPIC_AUTH_TOKEN": "t"},
    )
    silent = Probe(provider="llamacpp", base_url="http://127.0.0.1:8080/v1")
    other = Probe(provider="lmstudio", base_url="http://127.0.0.1:1234/v1", models=("tiny",))
    choice = resolve_model(request, [SILENT, silent, other, FOUND])
    assert brief(choice) == ("ollama:qwen3", OLLAMA, None)
    assert choice.steps == (
        Step("--model, --base-url", "passed over", "names qwen3 but no server; looking on for one"),
        Step("config file", "not set", "names neither a model nor a server"),
        Step("DIALOOM_MODEL, DIALOOM_BASE_URL", "not set", "names neither a model nor a server"),
        Step("OPENAI_BASE_URL", "passed over", "is another machine's and OPENAI_API_KEY is not set"),
        Step(
            "ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN",
            "passed over",
            "does not serve qwen3; its models are named claude",
        ),
        Step("OPENAI_API_KEY", "not set", "holds no key"),
        Step("OLLAMA_HOST", "not set", "names no server"),
        Step("lmstudio at http://127.0.0.1:1234/v1", "passed over", "nobody listens there"),
        Step("llamacpp at http://127.0.0.1:8080/v1", "passed over", "serves no chat model"),
        Step("lmstudio at http://127.0.0.1:1234/v1", "passed over", "does not serve qwen3"),
        Step("ollama at http://127.0.0.1:11434/v1", "chosen", "serves qwen3"),
    )


def test_of_two_keys_the_choice_says_which_and_how_to_take_the_other() -> None:
    choice = resolve_model(env(ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k"))
    why = (
        "holds a key; claude-haiku-4-5 unless --model names another; "
        "OPENAI_API_KEY is set too, --model openai takes it"
    )
    assert choice.steps[-1] == Step("ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN", "chosen", why)


async def test_a_chosen_anthropic_server_is_asked_with_its_token() -> None:
    reply = WireReply(body=(b'{"type":"message","content":[{"type":"text","text":"Hi"}]}',))
    async with WireServer([reply]) as server, Httpx2Transport() as transport:
        choice = resolve_model(env(ANTHROPIC_AUTH_TOKEN="t-1", ANTHROPIC_BASE_URL=server.url))
        answer = await chat(open_provider(choice, transport), [user("Hello")])
    assert answer.text == "Hi"
    (asked,) = server.requests
    assert (asked.path, asked.headers["authorization"]) == ("/v1/messages", "Bearer t-1")
    assert "x-api-key" not in asked.headers


def test_local_servers_are_looked_for_only_when_nothing_else_names_one() -> None:
    assert resolve_model(ModelRequest()).wants_probe
    assert resolve_model(flags("m")).wants_probe
    assert not resolve_model(ModelRequest(probe=False)).wants_probe
    assert not resolve_model(env(OPENAI_API_KEY=KEY)).wants_probe
    found = resolve_model(ModelRequest(), [FOUND])
    assert (found.label, found.wants_probe) == ("ollama:llama3.2", False)
    nothing = resolve_model(ModelRequest(), [SILENT])
    assert (nothing.mode, nothing.wants_probe) == ("offline", False)
    assert nothing.steps[-1] == Step("offline", "chosen", "no model was found; answers quote the documents")
    off = resolve_model(env(DIALOOM_NO_PROBE="yes"))
    assert Step("local servers", "passed over", "looking for them is turned off") in off.steps
    assert resolve_model(env(DIALOOM_NO_PROBE="0")).wants_probe


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (flags("gemini:pro"), "unknown provider 'gemini' in model 'gemini:pro'; write provider:name"),
        (flags("gemini:pro"), " of openai, anthropic, ollama, lmstudio, llamacpp, offline"),
        (flags("m", probe=False), "no server was found for model 'm'; write it as provider:name"),
        (flags("openai:gpt-4o"), "--model, --base-url names openai, but OPENAI_API_KEY is not set"),
        (flags("anthropic"), "--model, --base-url names anthropic, but ANTHROPIC_API_KEY is not set"),
        (env(ANTHROPIC_API_KEY=KEY, ANTHROPIC_BASE_URL="gpu"), "ANTHROPIC_BASE_URL: "),
        (flags(base_url="gpu:8000"), "--model, --base-url: 'gpu:8000' is no http address"),
        (env(DIALOOM_BASE_URL="gpu"), "DIALOOM_MODEL, DIALOOM_BASE_URL: "),
        (env(OPENAI_BASE_URL="ftp://x"), "OPENAI_BASE_URL: "),
        (env(OLLAMA_HOST="a:b:c"), "OLLAMA_HOST is 'a:b:c'; write it like 127.0.0.1:11434"),
        (env(OLLAMA_HOST="a b"), "OLLAMA_HOST: "),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_told_with_its_source(request_: ModelRequest, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_model(request_)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:9", "http://127.0.0.1:9/v1"),
        (":9", "http://127.0.0.1:9/v1"),
        ("[::]:9", "http://127.0.0.1:9/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ('"gpu"', "http://gpu:11434/v1"),
        ("http://gpu", "http://gpu:80/v1"),
        ("https://gpu/ollama/", "https://gpu:443/ollama/v1"),
        ("https://gpu:9", "https://gpu:9/v1"),
    ],
)
def test_ollama_host_is_read_as_a_client_must(host: str, url: str) -> None:
    assert ollama_url(host) == url


def test_a_model_name_may_hold_colons_where_its_server_is_known() -> None:
    assert parse_model(" ollama: llama3.2:3b ", has_place=False) == ModelName("ollama", "llama3.2:3b")
    assert parse_model("llama3.2:3b", has_place=True) == ModelName(None, "llama3.2:3b")
    assert parse_model("offline", has_place=False) == ModelName("offline", None)


def test_no_key_is_shown_by_anything_a_choice_is_made_of() -> None:
    request = ModelRequest(flags=ModelSettings(model="ollama:m", api_key=KEY), env={"OPENAI_API_KEY": KEY})
    token = resolve_model(env(ANTHROPIC_AUTH_TOKEN=KEY))
    assert (token.api_key, token.auth_token) == (None, KEY)
    choice = resolve_model(request)
    assert choice.api_key == KEY
    for value in (request, request.flags, choice, open_provider(choice), token, open_provider(token)):
        assert KEY not in repr(value)
        assert KEY not in str(getattr(value, "__rich_repr__", str)())


setting = st.none() | st.sampled_from(["", "m", "ollama:m", "offline", "http://h:1/v1", "x:y", "openai:"])


names = st.sampled_from(
    [
        "DIALOOM_MODEL",
        "DIALOOM_BASE_URL",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "OLLAMA_HOST",
    ]
)
values = st.sampled_from(["", "m", "ollama:m", "http://h:1/v1", "http://localhost:1", "k"])


@given(st.builds(ModelSettings, model=setting, base_url=setting), st.dictionaries(names, values))
def test_any_settings_give_one_choice_or_one_clear_error(
    settings: ModelSettings, variables: dict[str, str]
) -> None:
    try:
        choice = resolve_model(ModelRequest(flags=settings, env=variables), [SILENT])
    except UsageError:
        return
    assert [step.verdict for step in choice.steps].count("chosen") == 1
    assert (choice.mode == "offline") == (choice.base_url is None)


TAGS = b'{"models":[{"name":"nomic-embed-text"},{"name":"llama3.2:latest"}]}'
LISTING = b'{"object":"list","data":[{"id":"tiny"}]}'


async def test_the_probe_asks_politely_and_reads_what_it_finds() -> None:
    def reply(request: WireRequest) -> WireReply:
        bodies = {"/api/tags": TAGS, "/v1/models": LISTING}
        return WireReply(body=(bodies[request.path],)) if request.path in bodies else WireReply(status=404)

    async with WireServer([]) as gone:
        pass
    silent = WireServer([WireReply(body=(Hold(),))])
    async with WireServer(reply) as server, silent, Httpx2Transport() as transport:
        probes = await probe_loopback(
            transport,
            (
                ("ollama", server.url, "/api/tags"),
                ("lmstudio", gone.url, "/v1/models"),
                ("llamacpp", server.url, "/v1/models"),
                ("other", server.url, "/nothing"),
            ),
            seconds=30,
        )
        late = await probe_loopback(transport, (("late", silent.url, "/v1/models"),))
    assert probes == (
        Probe(provider="ollama", base_url=f"{server.url}/v1", models=("llama3.2:latest",)),
        Probe(provider="lmstudio", base_url=f"{gone.url}/v1", why="nobody listens there"),
        Probe(provider="llamacpp", base_url=f"{server.url}/v1", models=("tiny",)),
        Probe(provider="other", base_url=f"{server.url}/v1", why="what listens there lists no models"),
    )
    why = f"{silent.url}/v1/models did not answer in time"
    assert late == (Probe(provider="late", base_url=f"{silent.url}/v1", why=why),)
    assert {(seen.method, "authorization" in seen.headers, seen.body) for seen in server.requests} == {
        ("GET", False, b"")
    }


async def test_choosing_names_the_first_chat_model_of_a_server() -> None:
    listing = b'{"data":[{"id":"bge-small"},{"id":"tiny"}]}'
    replies = [WireReply(body=(listing,)), WireReply(body=(b'{"data":[]}',))]
    async with WireServer(replies) as server, Httpx2Transport() as transport:
        named = await choose_model(flags(base_url=f"{server.url}/v1"), transport)
        unnamed = await choose_model(flags(base_url=f"{server.url}/v1"), transport)
    source = f"models of {server.url}/v1"
    assert (named.model, named.steps[-1]) == (
        "tiny",
        Step(source, "chosen", "the first chat model it lists, tiny"),
    )
    assert (unnamed.model, unnamed.steps[-1]) == (
        None,
        Step(source, "passed over", "lists no chat model; it decides itself"),
    )


async def test_choosing_asks_nobody_when_the_model_is_named_or_none_is_wanted() -> None:
    async with Httpx2Transport() as transport:
        assert (await choose_model(flags("ollama:m"), transport)).label == "ollama:m"
        offline = await choose_model(ModelRequest(offline=True), transport)
    assert isinstance(open_provider(offline), OfflineProvider)


async def test_choosing_a_server_that_is_not_there_is_an_error_with_its_address() -> None:
    async with WireServer([]) as gone:
        pass
    async with Httpx2Transport() as transport:
        with pytest.raises(ProviderError, match="connection refused"):
            await choose_model(flags(base_url=f"{gone.url}/v1"), transport)


async def test_choosing_with_nothing_set_looks_at_this_machine() -> None:
    async with Httpx2Transport() as transport:
        choice = await choose_model(ModelRequest(), transport)
    looked = [step.source for step in choice.steps if " at http://127.0.0.1:" in step.source]
    assert looked[0] == "ollama at http://127.0.0.1:11434/v1"
    assert isinstance(open_provider(choice), OfflineProvider | OpenAIProvider)
