"""Files that list tool servers, in the shapes of other hosts: read as they are, changed without loss.

Understood are `mcpServers` (Claude Desktop, Claude Code's `.mcp.json`, Cursor and most others) and
`servers` (VS Code's `.vscode/mcp.json`), with the spellings each host has for a setting. A file that is
written again keeps its shape, its spellings and every key that dialoom does not know.
"""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Final, Literal, cast

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.files import replace_file
from dialoom.base.text import one_line
from dialoom.mcp.config import MAX_CONFIG_BYTES, MCPServerConfig
from dialoom.mcp.json_shapes import object_of, read_object

Shape = Literal["mcpServers", "servers"]
MAX_SERVERS: Final = 1000

# The first spelling that an entry has counts; a new entry gets the first one.
_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "transport": ("type", "transport"),
    "command": ("command",),
    "arguments": ("args", "arguments"),
    "environment": ("env", "environment"),
    "url": ("url", "serverUrl", "httpUrl"),
    "headers": ("headers",),
    "enabled": ("enabled", "disabled"),
}
_UNREAD: Final = {
    "envFile": "put its variables into env",
    "headersHelper": "put the headers into headers",
    "timeout": "write timeouts, in seconds",
}
_LOGIN_SPELLINGS: Final = {"CLIENT_ID": "clientId", "CLIENT_SECRET": "clientSecret"}
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


class ServerFile(msgspec.Struct, frozen=True, kw_only=True):
    """What one file says. `notes` name what in it is not followed, one line each."""

    shape: Shape
    servers: tuple[MCPServerConfig, ...]
    notes: tuple[str, ...] = ()
    document: dict[str, object] = {}
    """All of the file, as it was read."""
    commented: bool = False
    """The file has comments or trailing commas, which writing it again would lose."""

    def text_with(self, servers: Iterable[MCPServerConfig]) -> str:
        """Return the text of this file listing `servers`: what they do not change stays as it was.

        Raises `UsageError` for a file with comments, and for two servers of one name.
        """
        if self.commented:
            raise UsageError("the file has comments, which would be lost; edit it by hand")
        entries, odd = _entries_of(self.document, self.shape)
        listed: dict[str, object] = {}
        for config in servers:
            if config.name in listed:
                raise UsageError(f"two mcp servers are called {_shown(config.name)}; rename one of them")
            entry = entries.get(config.name)  # as it was read: the configs may have been changed since
            known = MCPServerConfig(config.name) if entry is None else _config_of(config.name, entry)
            listed[config.name] = _changed(entry or {}, known, config)
        return _written({**self.document, self.shape: {**odd, **listed}})


def parse_server_file(text: str) -> ServerFile:
    """Return what `text` lists. Comments and trailing commas are allowed, as VS Code does.

    Raises `UsageError` when it is no JSON object with `mcpServers` or `servers`.
    """
    document, commented = _decoded(text)
    shape: Shape = "servers" if "servers" in document and "mcpServers" not in document else "mcpServers"
    if shape not in document:
        raise UsageError('the file lists no mcp servers; it needs a key "mcpServers" or "servers"')
    entries, odd = _entries_of(document, shape)
    if len(entries) > MAX_SERVERS:
        raise UsageError(f"the file lists {len(entries)} mcp servers; at most {MAX_SERVERS} are read")
    notes = [f'mcp server {_shown(name)} is left out; write it like {{"command": "npx"}}' for name in odd]
    notes += [
        f"mcp server {_shown(name)}: {key} is not followed; {advice}"
        for name, entry in entries.items()
        for key, advice in _UNREAD.items()
        if key in entry
    ]
    return ServerFile(
        shape=shape,
        servers=tuple(_config_of(name, entry) for name, entry in entries.items()),
        notes=tuple(notes),
        document=document,
        commented=commented,
    )


def read_server_file(path: Path) -> ServerFile:
    """Return what the file lists. Raises `UsageError` that names the file and what is wrong."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}; check the file") from error
    if len(content) > MAX_CONFIG_BYTES:
        raise UsageError(f"{path} is larger than {MAX_CONFIG_BYTES} bytes; it should hold a few servers")
    try:
        return parse_server_file(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text; save it as that") from error
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def write_server_file(path: Path, servers: Iterable[MCPServerConfig]) -> None:
    """List `servers` in the file, at once or not at all; a new file is readable by its owner only.

    Raises `UsageError` when an existing file cannot be read or has comments.
    """
    known = read_server_file(path) if path.exists() else ServerFile(shape="mcpServers", servers=())
    text = known.text_with(servers)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode())


def _decoded(text: str) -> tuple[dict[str, object], bool]:
    """Return the document, and whether it had comments or trailing commas."""
    try:
        return read_object(text, "the file is"), False
    except UsageError:
        bare = _TRAILING_COMMA.sub(r"\1", _COMMENT.sub(r"\1", text))
        if bare == text:
            raise
    return read_object(bare, "the file is"), True


def _entries_of(
    document: Mapping[str, object], shape: Shape
) -> tuple[dict[str, dict[str, object]], dict[str, object]]:
    """Return the entries by name, and beside them those that are none."""
    listed = document.get(shape, {})
    if not isinstance(listed, dict):
        raise UsageError(f"{shape} is no JSON object; list servers by name")
    entries, odd = dict[str, dict[str, object]](), dict[str, object]()
    for name, entry in cast("dict[str, object]", listed).items():
        if isinstance(entry, dict):
            entries[name] = cast("dict[str, object]", entry)
        else:
            odd[name] = entry
    return entries, odd


def _config_of(name: str, entry: Mapping[str, object]) -> MCPServerConfig:
    fields = dict(entry)
    fields.pop("name", None)
    for field, spellings in _SPELLINGS.items():
        spelling = _spelling_in(entry, spellings)
        if spelling is None:
            continue
        value = fields.pop(spelling)
        fields[field] = not value if spelling == "disabled" else value
    if "transport" not in fields and "url" in fields and "command" not in fields:
        fields |= {"transport": "streamableHttp", "sseFallback": True}
    login = object_of(fields.pop("oauth", None) or fields.get("auth"))
    if login:
        fields["auth"] = _login(login)
    config = MCPServerConfig(name)
    config.from_dict(fields)
    return config


def _login(fields: dict[str, object]) -> dict[str, object]:
    """Return the login in our spelling; Cursor writes it in capitals, Claude Code without a type."""
    login: dict[str, object] = {"type": "oauth"}
    for key, value in fields.items():
        login[_LOGIN_SPELLINGS.get(key, key)] = value
    scopes = login.get("scopes")
    return {**login, "scopes": scopes.split()} if isinstance(scopes, str) else login


def _changed(
    entry: Mapping[str, object], before: MCPServerConfig, after: MCPServerConfig
) -> dict[str, object]:
    """Return `entry` with what differs between the two configs, each setting under the spelling it has."""
    changed = deepcopy(dict(entry))
    old, new = before.to_dict(), after.to_dict()
    for field in [*old, *new]:
        if field == "name" or (field in new and old.get(field) == new[field]):
            continue
        spellings = _SPELLINGS.get(field, (field,))
        spelling = _spelling_in(entry, spellings) or spellings[0]
        if field not in new:
            changed.pop(spelling, None)
        else:
            changed[spelling] = not new[field] if spelling == "disabled" else new[field]
    return changed


def _spelling_in(entry: Mapping[str, object], spellings: tuple[str, ...]) -> str | None:
    return next((spelling for spelling in spellings if spelling in entry), None)


def _written(document: Mapping[str, object]) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _shown(name: str) -> str:
    return repr(one_line(name, 80))
