"""`dialoom.toml` says who answers and how it is asked, and is refused when it says something else."""

import re
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.cli.config import FLAT, MAX_CONFIG_BYTES, load_config
from dialoom.cli.settings import Config, EmbeddingServer, EmbeddingTable, ModelTable, RequestTable, ServeTable
from dialoom.llm import ChatOptions, EmbeddingOptions, ModelChoice, ModelSettings, RetryPolicy, Timeouts

FULL = """
[model]
provider = "anthropic"
name = "claude-sonnet-4-5"
base_url = "https://models.example/v1"
api_key = "sk-of-mine"
anthropic_version = "2024-01-01"
temperature = 0.2
max_tokens = 800
json_mode = true

[embedding]
model = "text-embedding-3-small"
base_url = "https://vectors.example/v1"
api_key = "sk-of-vectors"

[requests]
connect_timeout_ms = 3000
total_timeout_ms = 60000
retries = 1
retry_backoff_ms = 250

[serve]
approval_seconds = 86400
max_connections = 300
max_streams = 200
"""
FLAT_JSON = """{
  "provider": "anthropic", "model": "claude-sonnet-4-5", "base_url": "https://models.example/v1",
  "api_key": "sk-of-mine", "anthropic_version": "2024-01-01", "temperature": 0.2, "max_tokens": 800,
  "json_mode": true, "embedding_model": "text-embedding-3-small",
  "embedding_base_url": "https://vectors.example/v1", "embedding_api_key": "sk-of-vectors",
  "connect_timeout_ms": 3000, "total_timeout_ms": 60000, "retries": 1, "retry_backoff_ms": 250,
  "approval_seconds": 86400, "max_connections": 300, "max_streams": 200
}"""
WHOLE = Config(
    model=ModelTable(
        provider="anthropic",
        name="claude-sonnet-4-5",
        base_url="https://models.example/v1",
        api_key="sk-of-mine",
        anthropic_version="2024-01-01",
        temperature=0.2,
        max_tokens=800,
        json_mode=True,
    ),
    embedding=EmbeddingTable(
        model="text-embedding-3-small", base_url="https://vectors.example/v1", api_key="sk-of-vectors"
    ),
    requests=RequestTable(connect_timeout_ms=3000, total_timeout_ms=60_000, retries=1, retry_backoff_ms=250),
    serve=ServeTable(approval_seconds=86_400, max_connections=300, max_streams=200),
)


def written(tmp_path: Path, text: str | bytes, name: str = "dialoom.toml") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.promise("docs-009")
def test_no_file_says_nothing_unless_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config() == Config()
    with pytest.raises(UsageError, match=r"there is no settings file other\.toml; check --config"):
        load_config(Path("other.toml"))
    assert Config().model_settings({}) == ModelSettings()
    assert Config().embedding_server({}) is None
    assert Config().chat_options("m") == ChatOptions(model="m", retry=Config().requests.retry)
    assert Config().requests.retry == RetryPolicy()


@pytest.mark.parametrize(("text", "name"), [(FULL, "dialoom.toml"), (FLAT_JSON, "llm_config.json")])
def test_the_same_settings_are_read_from_tables_and_from_a_flat_file(
    tmp_path: Path, text: str, name: str
) -> None:
    config = load_config(written(tmp_path, text, name))
    assert config == WHOLE
    assert "sk-of" not in repr(config)
    assert "sk-of" not in str(config.model.__rich_repr__()) + repr(config.embedding_server({}))


def test_what_the_file_says_becomes_how_the_model_is_asked() -> None:
    assert WHOLE.model_settings({}) == ModelSettings(
        model="anthropic:claude-sonnet-4-5", base_url="https://models.example/v1", api_key="sk-of-mine"
    )
    retry = RetryPolicy(attempts=2, first_wait=0.25)
    timeouts = Timeouts(connect=3.0, first_event=60.0, idle=60.0, total=60.0)
    asked = ChatOptions(
        model="m", temperature=0.2, max_tokens=800, json_mode=True, timeouts=timeouts, retry=retry
    )
    assert WHOLE.chat_options("m") == asked
    assert WHOLE.embedding_server({}) == EmbeddingServer(
        base_url="https://vectors.example/v1",
        model="text-embedding-3-small",
        key="sk-of-vectors",
        options=EmbeddingOptions(connect=3.0, request=60.0, retry=retry),
    )


def test_each_server_gets_its_own_headers_and_no_other() -> None:
    env = {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": " proj-2 "}
    claude = ModelChoice(provider="anthropic", base_url="http://h")
    openai = ModelChoice(provider="openai", base_url="https://api.openai.com/v1")
    other = ModelChoice(provider="openai", base_url="http://127.0.0.1:8000/v1")
    assert WHOLE.headers(claude, env) == {"anthropic-version": "2024-01-01"}
    assert Config().headers(claude, env) == WHOLE.headers(other, env) == WHOLE.headers(openai, {}) == {}
    assert WHOLE.headers(openai, env) == {"openai-organization": "org-1", "openai-project": "proj-2"}


def test_flags_go_before_the_file() -> None:
    asked = WHOLE.chat_options("m", max_tokens=5, timeout=2.0)
    assert (asked.max_tokens, asked.timeouts) == (
        5,
        Timeouts(connect=2.0, first_event=2.0, idle=2.0, total=2.0),
    )


def test_a_variable_goes_before_the_same_setting_of_the_file(tmp_path: Path) -> None:
    env = {
        "DIALOOM_MODEL_NAME": "claude-haiku-4-5",
        "DIALOOM_MODEL_TEMPERATURE": "0",
        "DIALOOM_MODEL_JSON_MODE": "false",
        "DIALOOM_MODEL_PROFILE": "mine.json",
        "DIALOOM_REQUESTS_RETRIES": " 0 ",
        "DIALOOM_EMBEDDING_MODEL": "",
    }
    config = load_config(written(tmp_path, FULL), env=env)
    assert config.model.label == "anthropic:claude-haiku-4-5"
    assert (config.model.temperature, config.model.json_mode) == (0.0, False)
    assert config.model.profile == Path("mine.json")
    assert (config.requests.retry.attempts, config.embedding) == (1, WHOLE.embedding)


def test_a_variable_of_no_setting_or_of_the_wrong_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"MODEL_TEMPRATURE is no setting, perhaps DIALOOM_MODEL_TEMPERATURE"
    ):
        load_config(written(tmp_path, ""), env={"DIALOOM_MODEL_TEMPRATURE": "1", "DIALOOM_MODEL": "x"})
    with pytest.raises(UsageError, match=r"DIALOOM_MODEL_MAX_TOKENS is not usable: .*; mend or unset it"):
        load_config(written(tmp_path, ""), env={"DIALOOM_MODEL_MAX_TOKENS": "many"})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("DIALOOM_REQUEST_RETRIES", "DIALOOM_REQUESTS_RETRIES"),
        ("DIALOOM_MODLE", "DIALOOM_MODEL"),
        ("DIALOOM_EMBEDING_MODEL", "DIALOOM_EMBEDDING_MODEL"),
        ("DIALOOM_BASEURL", "DIALOOM_BASE_URL"),
        ("DIALOOM_SERVER_TOKN", "DIALOOM_SERVER_TOKEN"),
        ("DIALOOM_SERVE_TOKEN", "DIALOOM_SERVER_TOKEN"),
    ],
)
def test_a_variable_that_is_nearly_one_of_ours_is_refused(tmp_path: Path, typed: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_config(written(tmp_path, ""), env={typed: "x"})
    assert str(caught.value) == f"{typed} is no setting, perhaps {meant} is meant; mend or unset it"


def test_every_variable_that_is_read_here_or_by_a_person_is_let_through(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    files = [path for folder in ("src", "bench") for path in (root / folder).rglob("*.py")]
    named = {name for path in files for name in re.findall(r"DIALOOM_[A-Z_]*[A-Z]", path.read_text("utf-8"))}
    env = dict.fromkeys(named - {"DIALOOM_MODEL_TEMPERATURE"}, "x")
    assert {"DIALOOM_MODEL", "DIALOOM_NO_PROBE", "DIALOOM_RIVALS_PYTHON"} <= set(env)
    assert (
        load_config(written(tmp_path, FULL), env={**env, "DIALOOM_SHARED": "x", "DIALOOM_FOLDER": "x"})
        == WHOLE
    )


def test_a_key_stays_in_the_environment_and_is_said_by_name_when_it_is_not_set(tmp_path: Path) -> None:
    text = '[model]\napi_key_env = "K"\n[embedding]\nmodel = "e5"\nbase_url = "http://h"\napi_key_env = "K"\n'
    config = load_config(written(tmp_path, text))
    settings, vectors = config.model_settings({"K": "secret"}), config.embedding_server({"K": "secret"})
    assert vectors is not None
    assert (settings.api_key, vectors.key) == ("secret", "secret")
    with pytest.raises(UsageError, match=r"take a key from K, which is not set"):
        config.model_settings({})
    with pytest.raises(UsageError, match=r"take a key from K, which is not set"):
        config.embedding_server({})


@pytest.mark.parametrize(
    ("table", "flags", "is_passed_over"),
    [
        (ModelTable(name="q", base_url="http://h"), ModelSettings(model="ollama:x"), True),
        (ModelTable(name="q", base_url="http://h"), ModelSettings(base_url="http://i"), True),
        (ModelTable(name="q", base_url="http://h"), ModelSettings(), False),
        (ModelTable(name="q", base_url="http://h"), ModelSettings(model="other"), False),
        (ModelTable(provider="openai"), ModelSettings(model="ollama:x"), True),
        (ModelTable(provider="openai"), ModelSettings(model="openai:x"), False),
        (ModelTable(provider="openai"), ModelSettings(base_url="http://i"), False),
        (ModelTable(), ModelSettings(model="openai:x"), False),
        (ModelTable(), ModelSettings(model="offline"), True),
    ],
)
def test_a_server_that_flags_name_gets_no_key_of_another(
    table: ModelTable, flags: ModelSettings, is_passed_over: bool
) -> None:
    assert Config(model=table).is_passed_over(flags) == is_passed_over


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (ModelTable(name="openai:qwen3"), "openai:qwen3"),
        (ModelTable(provider="openai", name="qwen3"), "openai:qwen3"),
        (ModelTable(provider="openai", name="openai:qwen3"), "openai:qwen3"),
        (ModelTable(provider="ollama", name="llama3.2:3b"), "ollama:llama3.2:3b"),
        (ModelTable(provider="anthropic"), "anthropic"),
        (ModelTable(), None),
    ],
)
def test_a_provider_stands_alone_or_before_the_name(table: ModelTable, expected: str | None) -> None:
    assert table.label == expected


@pytest.mark.parametrize(
    ("model", "env", "place"),
    [
        (ModelTable(base_url="http://h/v1", api_key="k"), {}, ("http://h/v1", "k")),
        (ModelTable(provider="openai"), {"OPENAI_API_KEY": "k"}, ("https://api.openai.com/v1", "k")),
        (ModelTable(name="ollama:x"), {}, ("http://127.0.0.1:11434/v1", None)),
    ],
)
def test_vectors_come_from_the_server_that_answers_when_no_other_is_named(
    model: ModelTable, env: dict[str, str], place: tuple[str, str | None]
) -> None:
    server = Config(model=model, embedding=EmbeddingTable(model="e5")).embedding_server(env)
    assert server is not None
    assert (server.base_url, server.key) == place


def test_without_any_server_for_vectors_its_place_in_the_file_is_named() -> None:
    with pytest.raises(UsageError, match=r"no server; add base_url to \[embedding\]"):
        Config(embedding=EmbeddingTable(model="e5")).embedding_server({})


@pytest.mark.promise("docs-008")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[model\n", "Expected ']'"),
        ("[modell]\nname = 'x'\n", "the file has no table 'modell', perhaps model is meant"),
        ("[model]\nnmae = 'x'\n", r"\[model\] has no setting 'nmae', perhaps name is meant"),
        ("[requests]\nretry = 3\n", r"\[requests\] has no setting 'retry', perhaps retries is meant"),
        ("[embedding]\nxyz = 1\n", r"\[embedding\] has no setting 'xyz', there are base_url, "),
        ("temprature = 1\n", "the file has no setting 'temprature', perhaps temperature is meant"),
        ("requests = 1\n", r"requests is a table, \[requests\]"),
        ("max_tokens = 1\n[model]\nmax_tokens = 2\n", r"max_tokens of \[model\] is there twice"),
        ("[model]\nname = 3\n", "Expected `str | null`, got `int`"),
        ("[model]\nprofile = 3\n", "a path is a text"),
        ("[model]\ntemperature = 9\n", "Expected `float` <= 2"),
        ("[model]\nprovider = 'gemini'\n", "there is no provider 'gemini', only openai, anthropic,"),
        ("provider = 'openai'\nmodel = 'ollama:x'\n", "'openai' does not go with the name 'ollama:x'"),
        ("embedding_base_url = 'http://h'\n", r"\[embedding\] names a server and not the model there"),
        ("[requests]\nretries = -1\n", "Expected `int` >= 0"),
        ("a = " + "[" * 20_000, ""),
        (b"\xff\xfe", "can't decode"),
    ],
)
def test_a_file_with_a_mistake_is_refused_by_name(tmp_path: Path, text: str | bytes, reason: str) -> None:
    with pytest.raises(UsageError, match=rf"dialoom\.toml is not a valid config: .*{reason}.*mend or remove"):
        load_config(written(tmp_path, text))


@pytest.mark.parametrize("text", ["", "[]", '{"model": ', '{"a": ' * 20_000, b"\xff", '{"retries": true}'])
def test_a_json_file_with_a_mistake_is_refused_too(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(UsageError, match=r"c\.json is (not a valid config|larger than)"):
        load_config(written(tmp_path, text, "c.json"))


def test_a_file_that_cannot_be_read_or_is_huge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no file; put the settings into a file"):
        load_config(tmp_path)
    for name in ("x" * 5_000, "a\0b"):
        with pytest.raises(UsageError, match=r"cannot read (x+…|a b): .*; check the file"):
            load_config(Path(name))
    with pytest.raises(UsageError, match="is larger than"):
        load_config(written(tmp_path, "#" * (MAX_CONFIG_BYTES + 1)))


def test_a_byte_order_mark_and_empty_texts_are_no_mistake(tmp_path: Path) -> None:
    toml = load_config(written(tmp_path, b"\xef\xbb\xbf[model]\nname = 'x'\nbase_url = ''\n"))
    json = load_config(
        written(tmp_path, b'\xef\xbb\xbf{"model": "x", "embedding_model": ""}', "c.json"), env={}
    )
    assert toml == json == Config(model=ModelTable(name="x"))


@given(
    settings=st.dictionaries(
        st.sampled_from(["model", "requests", *FLAT]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just([]),
    )
)
def test_any_flat_settings_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, object]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(msgspec.json.encode(settings))
    with suppress(UsageError):
        load_config(path)
