"""How to reach one tool server: what is written down, kept without loss and shown without secrets.

A config is only read and written here: no variable is expanded, nothing is started.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Self, Unpack

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.mcp.config_fields import (
    ALWAYS_WRITTEN,
    NAMES,
    READ,
    TYPES,
    WRITTEN,
    Auth,
    ConfigFields,
    InheritEnv,
    MCPSettings,
    McpTimeouts,
    Transport,
)
from dialoom.mcp.json_shapes import read_object
from dialoom.mcp.redact import redact_fields
from dialoom.net.address import split_url

MAX_CONFIG_BYTES: Final = 1 << 20
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"(?! )[^\x00-\x1f\x7f]*(?<! )")


class MCPServerConfig:
    """The description of one connection. `name` is its key in a Center and a Dialog.

    Every setter returns the config, so that settings can be chained. Switching the transport clears
    nothing. What was read and is not understood (other keys, an unknown transport, a value of a wrong
    type) is kept and written back as it was. Two configs that are written alike are equal.

    `command` is run as a program: take it from the user's own settings only. Values may hold
    `${VARIABLE}`; they are expanded when connecting and never here.
    """

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it can be changed, so it is no key

    def __init__(self, name: str = "", **settings: Unpack[MCPSettings]) -> None:
        self._name = name
        self._raw: dict[str, object] = {}
        self._fields = ConfigFields()
        self._misread: dict[str, str] = {}
        for key, value in settings.items():
            if key != "transport" and key not in TYPES:
                raise UsageError(
                    f"an mcp server has no setting {one_line(key, 80)!r}; it has {', '.join(TYPES)}"
                )
            self._set(key, value)

    @property
    def name(self) -> str:
        return self._name

    @property
    def transport(self) -> Transport:
        """The transport in force; one that is not known counts as STDIO."""
        written = self._raw.get("transport")
        if not isinstance(written, str):
            return Transport.STDIO
        return READ.get(written.lower().replace("-", "").replace("_", ""), Transport.STDIO)

    @property
    def command(self) -> str:
        """The program to start. Means something for STDIO only."""
        return self._fields.command

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the program is started with, item by item and without a shell."""
        return self._fields.arguments

    @property
    def environment(self) -> dict[str, str]:
        """Variables added to those that the child inherits."""
        return {key: str(value) for key, value in self._fields.environment.items()}

    @property
    def url(self) -> str:
        """The address of a remote server. Means something for SSE and STREAMABLE_HTTP only."""
        return self._fields.url

    @property
    def headers(self) -> dict[str, str]:
        """What each remote request carries besides, such as an authorization."""
        return dict(self._fields.headers)

    @property
    def enabled(self) -> bool:
        """A config that is not enabled takes no part in connecting."""
        return self._fields.enabled

    @property
    def auto_start(self) -> bool:
        """Whether the server is connected at the start; otherwise when it is first needed."""
        return self._fields.auto_start

    @property
    def cwd(self) -> str:
        """The folder a child is started in; empty for this process's own."""
        return self._fields.cwd

    @property
    def timeouts(self) -> McpTimeouts:
        return self._fields.timeouts

    @property
    def prefix(self) -> str | None:
        """What stands before each tool's name; None for the config's name and two underscores."""
        return self._fields.prefix

    @property
    def allow_tools(self) -> tuple[str, ...] | None:
        """The tools that are offered, by the server's names; None offers all."""
        return self._fields.allow_tools

    @property
    def deny_tools(self) -> tuple[str, ...]:
        """Tools that are not offered, even when they are allowed."""
        return self._fields.deny_tools

    @property
    def inherit_env(self) -> InheritEnv:
        return self._fields.inherit_env

    @property
    def auth(self) -> Auth | None:
        return self._fields.auth

    @property
    def sse_fallback(self) -> bool:
        """Whether SSE is tried when a server refuses STREAMABLE_HTTP: the file did not say which it is."""
        return self._fields.sse_fallback

    @property
    def subscribe(self) -> bool:
        """Whether a remote server's stream of notices is opened."""
        return self._fields.subscribe

    @property
    def is_valid(self) -> bool:
        """Whether it is enough for a connection: a name, and a command or an absolute http(s) URL."""
        return not self.problems()

    def problems(self) -> tuple[str, ...]:
        """Return what stands against a connection, one line each, without any value of a setting."""
        found = [f"{NAMES[key]}: {problem}" for key, problem in self._misread.items()]
        if not self._name.strip():
            found.append("name: is empty; give the server a name")
        if self.transport is Transport.STDIO:
            found += self._child_problems()
        else:
            found += self._remote_problems()
        return tuple(found)

    def set_name(self, name: str) -> Self:
        self._name = name
        return self

    def set_transport(self, transport: Transport) -> Self:
        return self._set("transport", transport)

    def set_command(self, command: str) -> Self:
        return self._set("command", command)

    def set_arguments(self, arguments: Sequence[str]) -> Self:
        return self._set("arguments", arguments)

    def set_environment(self, environment: Mapping[str, str]) -> Self:
        return self._set("environment", environment)

    def set_url(self, url: str) -> Self:
        return self._set("url", url)

    def set_headers(self, headers: Mapping[str, str]) -> Self:
        return self._set("headers", headers)

    def set_enabled(self, enabled: bool) -> Self:  # noqa: FBT001 - the requirement's own form
        return self._set("enabled", enabled)

    def set_auto_start(self, auto_start: bool) -> Self:  # noqa: FBT001 - the requirement's own form
        return self._set("auto_start", auto_start)

    def set_cwd(self, cwd: str) -> Self:
        return self._set("cwd", cwd)

    def set_timeouts(self, timeouts: McpTimeouts) -> Self:
        return self._set("timeouts", timeouts)

    def set_prefix(self, prefix: str | None) -> Self:
        return self._set("prefix", prefix)

    def set_allow_tools(self, names: Sequence[str] | None) -> Self:
        return self._set("allow_tools", names)

    def set_deny_tools(self, names: Sequence[str]) -> Self:
        return self._set("deny_tools", names)

    def set_inherit_env(self, inherit_env: InheritEnv) -> Self:
        return self._set("inherit_env", inherit_env)

    def set_auth(self, auth: Auth | None) -> Self:
        return self._set("auth", auth)

    def set_sse_fallback(self, sse_fallback: bool) -> Self:  # noqa: FBT001 - as the other setters
        return self._set("sse_fallback", sse_fallback)

    def set_subscribe(self, subscribe: bool) -> Self:  # noqa: FBT001 - as the other setters
        return self._set("subscribe", subscribe)

    def to_dict(self) -> dict[str, object]:
        """Return the config as JSON values: the common fields, and what else was set or read."""
        written = _copied(ConfigFields())
        fields: dict[str, object] = {"name": self._name, "transport": WRITTEN[Transport.STDIO]}
        fields |= {NAMES[key]: written[NAMES[key]] for key in NAMES if key in ALWAYS_WRITTEN}
        return fields | _copied(self._raw)

    def from_dict(self, fields: Mapping[str, object]) -> bool:
        """Become what `fields` say; return whether that is valid, as `is_valid` does.

        A field of a wrong type is no error here: it is kept, and named by `problems()`. Without a `name`
        the config keeps its own. Raises `UsageError`, and stays as it is, when `fields` hold something that
        JSON cannot carry or the name is no text.
        """
        raw = _copied(fields)
        name = raw.pop("name", self._name)
        if not isinstance(name, str):
            raise UsageError("the name of an mcp server is not text; write it in quotes")
        self._name, self._raw, self._fields, self._misread = name, raw, ConfigFields(), {}
        for key, field in NAMES.items():
            if field in raw:
                self._read(key, raw[field])
        return self.is_valid

    def to_json(self, *, redact: bool = False) -> str:
        """Return the config as JSON text; with `redact`, as it may be shown and logged."""
        fields = self.to_dict()
        return msgspec.json.encode(redact_fields(fields) if redact else fields).decode()

    def from_json(self, text: str) -> bool:
        """Become what JSON `text` says, as `from_dict` does. Raises `UsageError` when it is no object."""
        if len(text) > MAX_CONFIG_BYTES:
            raise UsageError(f"an mcp server config is longer than {MAX_CONFIG_BYTES} characters; shorten it")
        return self.from_dict(read_object(text, "an mcp server config is"))

    def copy(self) -> "MCPServerConfig":
        """Return a config of its own that says the same."""
        twin = MCPServerConfig()
        twin.from_dict(self.to_dict())
        return twin

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MCPServerConfig):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        shown = redact_fields(self.to_dict())
        told = {key: value for key, value in shown.items() if key != "name" and value not in ("", [], {})}
        return f"MCPServerConfig({self._name!r}, {told!r})"

    def _set(self, key: str, value: object) -> Self:
        if key == "transport":
            if not isinstance(value, Transport):
                raise UsageError(f"transport of mcp server {one_line(self._name, 80)!r} is no Transport")
            self._raw["transport"] = WRITTEN[value]
            return self
        plain = _copied({key: value})[key]
        try:
            understood = msgspec.convert(plain, TYPES[key])
        except (msgspec.ValidationError, UsageError) as error:
            raise UsageError(
                f"{key} of mcp server {one_line(self._name, 80)!r} {_without_values(error)}"
            ) from error
        self._raw[NAMES[key]] = plain
        self._misread.pop(key, None)
        self._fields = msgspec.structs.replace(self._fields, **{key: understood})
        return self

    def _read(self, key: str, value: object) -> None:
        """Take over `value` where it has the right type, and a note of it where not."""
        try:
            understood = msgspec.convert(value, TYPES[key])
        except (msgspec.ValidationError, UsageError) as error:
            self._misread[key] = _without_values(error)
        else:
            self._fields = msgspec.structs.replace(self._fields, **{key: understood})

    def _child_problems(self) -> list[str]:
        found: list[str] = []
        if not self.command.strip() and self.url:
            found.append(
                "transport: is stdio, which needs a command, and there is only a url; "
                "give transport=Transport.STREAMABLE_HTTP"
            )
        elif not self.command.strip():
            found.append("command: is empty; name the program that is the server")
        texts = (self.command, *self.arguments, self.cwd, *self.environment, *self.environment.values())
        if any("\0" in text for text in texts):
            found.append("command: a NUL character stands in it, its arguments or its environment")
        if any(not key or "=" in key for key in self.environment):
            found.append("environment: a variable's name is empty or holds '='")
        return found

    def _remote_problems(self) -> list[str]:
        found: list[str] = []
        if not _is_address(self.url):
            found.append("url: is no absolute http or https address")
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                found.append(f"headers: {one_line(name, 80)!r} cannot be sent")
        return found


def _is_address(url: str) -> bool:
    try:
        split_url(url)
    except UsageError:
        return False
    return True


def _copied(fields: Mapping[str, object] | ConfigFields) -> dict[str, object]:
    try:
        return msgspec.json.decode(msgspec.json.encode(fields), type=dict[str, object])
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"an mcp server config holds what JSON cannot carry: {one_line(str(error))}"
        ) from error


def _without_values(error: Exception) -> str:
    """Return what is wrong in words; msgspec names types and places, and an invalid value only of an enum."""
    if isinstance(error, UsageError):
        return str(error)
    told = one_line(str(error))
    return "is not one of the values it may have" if told.startswith("Invalid enum") else f"is wrong: {told}"
