"""Variables in a config become values, at the moment of connecting and never before.

Understood are `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:id}`, `${workspaceFolder}` and
`${userHome}`. A value that was put in is not looked through again.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from dialoom.base.errors import UsageError
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.config_fields import Auth, BearerAuth, OAuth

MAX_EXPANDED: Final = 1 << 20
_VARIABLE: Final = re.compile(
    r"\$\{(?P<kind>env:|input:)?(?P<name>[A-Za-z_][\w.-]{0,127})(?::-(?P<default>[^}]*))?\}", re.ASCII
)


class Variables(msgspec.Struct, frozen=True, kw_only=True):
    """Where values come from. The environment is handed in by the edge, which is who may read it."""

    environment: Mapping[str, str] = {}
    inputs: Mapping[str, str] = {}
    """Answers to the `inputs` that some hosts' files ask for, by id."""
    workspace: Path | None = None
    home: Path | None = None

    def __repr__(self) -> str:
        return f"Variables(workspace={self.workspace!r}, home={self.home!r})"


def expand(config: MCPServerConfig, variables: Variables) -> MCPServerConfig:
    """Return a config with the values of `variables` put in; `config` stays as it is.

    Raises `UsageError` that names the variable when one has neither a value nor a default.
    """

    def full(text: str) -> str:
        expanded = _VARIABLE.sub(lambda found: _value_of(found, variables), text)
        if len(expanded) > MAX_EXPANDED:
            raise UsageError(
                f"a setting is longer than {MAX_EXPANDED} characters with its variables put in; shorten them"
            )
        return expanded

    return (
        config.copy()
        .set_command(full(config.command))
        .set_arguments([full(argument) for argument in config.arguments])
        .set_environment({name: full(value) for name, value in config.environment.items()})
        .set_url(full(config.url))
        .set_headers({name: full(value) for name, value in config.headers.items()})
        .set_cwd(full(config.cwd))
        .set_auth(_expanded_auth(config.auth, full))
    )


def _expanded_auth(auth: Auth | None, full: Callable[[str], str]) -> Auth | None:
    match auth:
        case BearerAuth():
            return BearerAuth(token=full(auth.token))
        case OAuth():
            return msgspec.structs.replace(
                auth, client_id=full(auth.client_id), client_secret=full(auth.client_secret)
            )
        case None:
            return None


def _value_of(found: re.Match[str], variables: Variables) -> str:
    name = found["name"]
    value = _looked_up(found["kind"], name, variables)
    if value is not None and (value or found["default"] is None):
        return value
    if found["default"] is not None:
        return found["default"]
    what = f"input {name}" if found["kind"] == "input:" else f"variable {name}"
    raise UsageError(f"it needs {what}, which is not set; set it, or write ${{{name}:-default}}")


def _looked_up(kind: str | None, name: str, variables: Variables) -> str | None:
    match kind, name:
        case "input:", _:
            return variables.inputs.get(name)
        case None, "workspaceFolder":
            return None if variables.workspace is None else str(variables.workspace)
        case None, "userHome":
            return None if variables.home is None else str(variables.home)
        case _:
            return variables.environment.get(name)
