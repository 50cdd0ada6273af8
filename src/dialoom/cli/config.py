"""Reading the settings: `dialoom.toml` or the file that is named, and above it the environment.

A file is TOML, or JSON when its name ends so. Its settings stand in tables, or without tables under the
names of `FLAT`. `DIALOOM_MODEL_TEMPERATURE` replaces `temperature` in `[model]`, and so for every other.
"""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.cli.settings import Config, EmbeddingTable, ModelTable, RequestTable, ServeTable

CONFIG_FILE: Final = Path("dialoom.toml")
MAX_CONFIG_BYTES: Final = 65_536
_TABLES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "model": ModelTable,
    "embedding": EmbeddingTable,
    "requests": RequestTable,
    "serve": ServeTable,
}
FLAT: Final[Mapping[str, tuple[str, str]]] = {
    **{name: ("model", name) for name in ModelTable.__struct_fields__ if name != "name"},
    "model": ("model", "name"),
    **{f"embedding_{name}": ("embedding", name) for name in EmbeddingTable.__struct_fields__},
    **{name: ("requests", name) for name in RequestTable.__struct_fields__},
    **{name: ("serve", name) for name in ServeTable.__struct_fields__},
}
"""Where a setting belongs that stands outside of every table."""

_OURS: Final = "DIALOOM_"
_PREFIXES: Final = tuple(f"{_OURS}{table}_".upper() for table in _TABLES)
_ELSEWHERE: Final = (
    "DIALOOM_MODEL",
    "DIALOOM_BASE_URL",
    "DIALOOM_API_KEY",
    "DIALOOM_NO_PROBE",
    "DIALOOM_DEBUG",
    "DIALOOM_RAG_TOKEN",
    "DIALOOM_RAG_READ_ONLY",
    "DIALOOM_MCP_TOKEN",
    "DIALOOM_MCP_HOSTS",
    "DIALOOM_SERVER_TOKEN",
)
"""Variables that are no setting of the file, and are read where they are used."""
_NEARLY: Final = 0.8
"""How alike a name that is nobody's and one of ours are, from 0 to 1, when it was perhaps mistyped."""

_Tables = dict[str, dict[str, object]]


def load_config(named: Path | None = None, *, env: Mapping[str, str] = MappingProxyType({})) -> Config:
    """Read the settings of the file `named`, or else of `dialoom.toml`, where none at all says nothing.

    What `env` says of a setting goes before the file. Raises `UsageError` naming what is wrong, and where.
    """
    path = named or CONFIG_FILE
    text = _read(path, must_be=named is not None)
    try:
        tables = _tables(_parsed(path, text))
        _check_names(tables)
        for (table, name), value in _from_environment(env).items():
            tables[table][name] = value
        return msgspec.convert(tables, Config, dec_hook=_path)
    except (ValueError, RecursionError) as error:  # also what TOML, JSON, UTF-8 and msgspec raise
        raise UsageError(
            f"{path} is not a valid config: {one_line(str(error))}; mend or remove it"
        ) from error


def _read(path: Path, *, must_be: bool) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is no file; put the settings into a file, or remove it")
        with path.open("rb") as file:
            text = file.read(MAX_CONFIG_BYTES + 1)
    except FileNotFoundError as error:
        if not must_be:
            return b""
        raise UsageError(f"there is no settings file {path}; check --config") from error
    except (OSError, ValueError) as error:  # a name with a NUL byte is a ValueError
        told = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read {one_line(str(path), 80)}: {told}; check the file") from error
    if len(text) > MAX_CONFIG_BYTES:
        raise UsageError(f"{path} is larger than {MAX_CONFIG_BYTES} bytes; it should hold a few settings")
    return text


def _parsed(path: Path, text: bytes) -> dict[str, object]:
    if path.suffix.lower() == ".json":
        return msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"), type=dict[str, object])
    return tomllib.loads(text.decode("utf-8-sig"))


def _tables(document: Mapping[str, object]) -> _Tables:
    """Return the tables with every setting in its place; an empty text says nothing."""
    tables: _Tables = {name: {} for name in _TABLES}
    for name, value in document.items():
        table, settings = _placed(name, value)
        for key, setting in settings.items():
            if key in tables[table]:
                raise ValueError(f"{key} of [{table}] is there twice")
            if setting != "":
                tables[table][key] = setting
    return tables


def _placed(name: str, value: object) -> tuple[str, dict[str, object]]:
    """Return a table, or the one that a setting outside of every table belongs to."""
    if isinstance(value, dict):
        _refuse_unknown("the file", "table", name, tuple(_TABLES))
        return name, msgspec.convert(value, dict[str, object])
    if name in _TABLES and name not in FLAT:
        raise ValueError(f"{name} is a table, [{name}]")
    _refuse_unknown("the file", "setting", name, tuple(FLAT))
    table, key = FLAT[name]
    return table, {key: value}


def _check_names(tables: _Tables) -> None:
    for table, settings in tables.items():
        for name in settings:
            _refuse_unknown(f"[{table}]", "setting", name, _TABLES[table].__struct_fields__)


def _refuse_unknown(where: str, kind: str, name: str, known: tuple[str, ...]) -> None:
    """Raise `ValueError`, with the name that was perhaps meant: a typing error must not go unnoticed."""
    if name not in known:
        raise ValueError(f"{where} has no {kind} {one_line(name, 60)!r}, {_meant(name, known)}")


def _meant(name: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(name, known, 1)
    return f"perhaps {near[0]} is meant" if near else f"there are {', '.join(known)}"


def _from_environment(env: Mapping[str, str]) -> dict[tuple[str, str], object]:
    """Return the settings that variables give, each read as what it is."""
    known = {
        f"{_OURS}{table}_{field.name}".upper(): ((table, field.name), field.type)
        for table, kind in _TABLES.items()
        for field in msgspec.structs.fields(kind)
    }
    found: dict[tuple[str, str], object] = {}
    for variable, text in env.items():
        if not variable.startswith(_OURS) or variable in _ELSEWHERE or not text.strip():
            continue
        if variable in known:
            place, kind = known[variable]
            found[place] = _value(variable, text.strip(), kind)
        else:
            _refuse_mistyped(variable, tuple(known))
    return found


def _refuse_mistyped(variable: str, settings: tuple[str, ...]) -> None:
    """Raise `UsageError` for a name that is nearly one of ours; others may be of a program beside us."""
    names = {name.removeprefix(_OURS): name for name in (*settings, *_ELSEWHERE)}
    near = get_close_matches(variable.removeprefix(_OURS), names, 1, _NEARLY)
    if near or variable.startswith(_PREFIXES):
        meant = f"perhaps {names[near[0]]} is meant" if near else _meant(variable, settings)
        raise UsageError(f"{one_line(variable, 60)} is no setting, {meant}; mend or unset it")


def _value(variable: str, text: str, kind: object) -> object:
    try:
        return msgspec.convert(text, kind, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise UsageError(f"{variable} is not usable: {one_line(str(error))}; mend or unset it") from error


def _path(kind: type, value: object) -> Path:
    """Read a path from a text; the only type here that msgspec does not know itself."""
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    raise ValueError("a path is a text")
