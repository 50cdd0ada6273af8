"""`dialoom.toml` says which model a project uses, and is refused when it says something else."""

from pathlib import Path

import pytest

from dialoom.base.errors import UsageError
from dialoom.cli.config import MAX_CONFIG_BYTES, Config, EmbeddingTable, ModelTable, load_config
from dialoom.llm import ModelSettings


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "dialoom.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.promise("docs-009")
def test_no_file_says_nothing_unless_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config() == Config()
    with pytest.raises(UsageError, match=r"there is no settings file other\.toml; check --config"):
        load_config(Path("other.toml"))
    assert Config().model_settings({}) == ModelSettings()


def test_a_file_names_a_model_a_server_and_where_its_key_is(tmp_path: Path) -> None:
    config = load_config(
        written(tmp_path, '[model]\nname = "openai:qwen"\nbase_url = "http://h/v1"\napi_key_env = "K"\n')
    )
    assert config == Config(ModelTable("openai:qwen", "http://h/v1", "K"))
    settings = config.model_settings({"K": "secret"})
    assert settings == ModelSettings(model="openai:qwen", base_url="http://h/v1", api_key="secret")
    assert "secret" not in repr(settings)


def test_a_key_that_is_not_set_is_said_by_name(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, '[model]\napi_key_env = "MY_KEY"\n'))
    with pytest.raises(UsageError, match=r"take a key from MY_KEY, which is not set"):
        config.model_settings({})


def test_a_file_may_name_the_server_that_makes_vectors(tmp_path: Path) -> None:
    text = '[embedding]\nmodel = "e5"\nbase_url = "http://h/v1"\napi_key_env = "K"\n'
    table = load_config(written(tmp_path, text)).embedding
    assert table == EmbeddingTable("e5", "http://h/v1", "K")
    assert (table.key({"K": "secret"}), EmbeddingTable("e5", "http://h/v1").key({})) == ("secret", None)
    with pytest.raises(UsageError, match="which is not set"):
        table.key({})


@pytest.mark.promise("docs-008")
@pytest.mark.parametrize(
    "text",
    [
        "[model\n",
        "[modell]\nname = 'x'\n",
        "[model]\nnmae = 'x'\n",
        "[model]\nname = 3\n",
        "[model]\nprofile = 3\n",
        "a = " + "[" * 20_000,
        b"\xff\xfe",
    ],
    ids=["not toml", "unknown table", "unknown key", "wrong type", "no path", "too deep", "not utf-8"],
)
def test_a_file_with_a_mistake_is_refused_by_name(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(UsageError, match=r"dialoom\.toml is not a valid config: .*mend or remove it"):
        load_config(written(tmp_path, text))


def test_a_file_that_cannot_be_read_or_is_huge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no file; put the settings into a file"):
        load_config(tmp_path)
    with pytest.raises(UsageError, match="is larger than"):
        load_config(written(tmp_path, "#" * (MAX_CONFIG_BYTES + 1)))


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert load_config(written(tmp_path, b"\xef\xbb\xbf[model]\nname = 'x'\n")) == Config(ModelTable("x"))
