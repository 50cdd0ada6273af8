"""`dialoom.toml`: what a project wants, kept beside its documents."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm import ModelSettings, WireProfile

CONFIG_FILE = Path("dialoom.toml")
MAX_CONFIG_BYTES = 65_536


class ModelTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[model]`: which model, where, the *name* of the variable with its key, and the file of its profile."""

    name: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    profile: Path | None = None


class EmbeddingTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[embedding]`: the model that makes vectors, at a server with `/embeddings`, and where its key is."""

    model: str
    base_url: str
    api_key_env: str | None = None

    def key(self, env: Mapping[str, str]) -> str | None:
        """Return the key from `env`. Raises `UsageError` when the variable is not set."""
        return _key(self.api_key_env, env)


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. Unknown tables and keys are refused: a typing error must not go unnoticed."""

    model: ModelTable = ModelTable()
    embedding: EmbeddingTable | None = None

    def model_settings(self, env: Mapping[str, str]) -> ModelSettings:
        """Return what the file says of the model, with the key looked up in `env`.

        Raises `UsageError` when the file names a variable that is not set.
        """
        table = self.model
        key = _key(table.api_key_env, env)
        return ModelSettings(model=table.name, base_url=table.base_url, api_key=key)

    def wire_profile(self) -> WireProfile | None:
        """Return what the doctor wrote down of the server; None when the file names nothing."""
        path = self.model.profile
        if path is None:
            return None
        try:
            return msgspec.json.decode(path.read_bytes(), type=WireProfile)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            told = one_line(str(error))
            raise UsageError(f"{path} is not a profile: {told}; run dialoom doctor again") from error
        except (OSError, ValueError) as error:  # a name with a NUL byte is a ValueError
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"cannot read the profile {path}: {reason}; run dialoom doctor --profile"
            ) from error


def load_config(named: Path | None = None) -> Config:
    """Read the settings of the file `named`, or else of `dialoom.toml`, where none at all says nothing.

    Raises `UsageError` naming what is wrong in it.
    """
    path = named or CONFIG_FILE
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no file; put the settings into a file, or remove it")
    try:
        with path.open("rb") as file:
            text = file.read(MAX_CONFIG_BYTES + 1)
    except FileNotFoundError as error:
        if named is None:
            return Config()
        raise UsageError(f"there is no settings file {named}; check --config") from error
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}; check the file") from error
    if len(text) > MAX_CONFIG_BYTES:
        raise UsageError(f"{path} is larger than {MAX_CONFIG_BYTES} bytes; it should hold a few settings")
    try:
        return msgspec.convert(tomllib.loads(text.decode("utf-8-sig")), Config, dec_hook=_path)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise UsageError(
            f"{path} is not a valid config: {one_line(str(error))}; mend or remove it"
        ) from error


def _key(name: str | None, env: Mapping[str, str]) -> str | None:
    key = env.get(name) if name else None
    if name and not key:
        raise UsageError(f"the settings take a key from {name}, which is not set; set it")
    return key


def _path(kind: type, value: object) -> Path:
    """Read a path from a text; the only type here that msgspec does not know itself."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError("a path is a text")
