"""Which servers of a project's files may be started: those a person approved, exactly as they were then.

A file that comes with a project can name any program. So a server that is not of the user's own settings
is started only after an approval, and the approval holds for what would run, not for a name: change the
command, an argument, the environment or the address, and it is asked for again.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from dialoom.base.errors import StoreError, UsageError
from dialoom.base.files import PRIVATE, replace_file
from dialoom.base.text import one_line
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.redact import redact_fields
from dialoom.net.address import safe_url

_WRITABLE_BY_OTHERS: Final = 0o022
_WHAT_RUNS: Final = (
    "transport",
    "command",
    "arguments",
    "environment",
    "cwd",
    "url",
    "headers",
    "inheritEnv",
    "auth",
)


class UntrustedServerError(UsageError):
    """A server of a project's file was not approved, or is no longer what was approved."""

    code = "untrusted_server"


class FoundServer(msgspec.Struct, frozen=True, kw_only=True):
    """A config and where it was found. `origin` is the file; None for the user's own settings."""

    config: MCPServerConfig
    origin: Path | None = None


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """What was approved, for people to read; secrets are masked. `digest` is the key."""

    digest: str
    origin: str
    server: dict[str, object]


def digest_of(found: FoundServer) -> str:
    """Return the key of an approval: a hash of what would run, and from which project.

    The project counts because a relative command is another program in another folder. Values of
    variables and headers count as they are written: `${TOKEN}` may change its value, `LD_PRELOAD` may not.
    """
    fields = found.config.to_dict()
    runs = [fields.get(key) for key in _WHAT_RUNS]
    origin = str(found.origin.resolve()) if found.origin else ""
    return hashlib.sha256(msgspec.json.encode([origin, *runs], order="sorted")).hexdigest()


class TrustStore:
    """Approvals of one user, one file each under `folder`, readable and writable by nobody else.

    One file each, so that two programs that approve at once lose nothing and no reader sees half a file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_approved(self, found: FoundServer) -> bool:
        """Whether `found` may be started. Raises `StoreError` when another user could have said so."""
        return found.origin is None or self._file(found).exists()

    def approve(self, found: FoundServer) -> None:
        """Let `found` be started from now on, as it is now. Does nothing for the user's own settings.

        Raises `UsageError` for a config that is not valid: nobody can say what it would run.
        """
        if found.origin is None:
            return
        problems = found.config.problems()
        if problems:
            raise UsageError(f"mcp server {_shown(found)} cannot be approved: {problems[0]}")
        digest = digest_of(found)
        approval = Approval(
            digest=digest, origin=str(found.origin.resolve()), server=redact_fields(found.config.to_dict())
        )
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._refuse_shared()
            replace_file(self._folder / f"{digest}.json", msgspec.json.encode(approval), mode=PRIVATE)
        except OSError as error:
            raise StoreError(f"cannot keep the approval: {error}; check {self._folder}") from error

    def revoke(self, found: FoundServer) -> bool:
        """Take an approval back; return whether there was one."""
        file = self._file(found)
        existed = file.exists()
        file.unlink(missing_ok=True)
        return existed

    def cleared(self, found: FoundServer) -> MCPServerConfig:
        """Return the config of `found`, for a connection.

        Raises `UntrustedServerError` when it was not approved as it is.
        """
        if not self.is_approved(found):
            raise UntrustedServerError(
                f"mcp server {_shown(found)} of {found.origin} was not approved; see what it would run, and "
                f"approve it, with: dialoom mcp trust {one_line(found.config.name, 80)}"
            )
        return found.config

    def _file(self, found: FoundServer) -> Path:
        self._refuse_shared()
        return self._folder / f"{digest_of(found)}.json"

    def _refuse_shared(self) -> None:
        """An approval that others can write is none."""
        try:
            mode = self._folder.stat().st_mode
        except FileNotFoundError:
            return
        if mode & _WRITABLE_BY_OTHERS:
            raise StoreError(f"others can write to {self._folder}; run: chmod 700 {self._folder}")


def what_runs(found: FoundServer) -> str:
    """Return in words what connecting would do: the whole command with its folder, or the address.

    For the person who approves it. The arguments stand here as they are, secrets among them: nothing may
    hide in what is approved. So this is no text for a log.
    """
    config = found.config
    if config.transport.value:
        login = f" and a login ({type(config.auth).__name__})" if config.auth else ""
        return f"connect to {safe_url(config.url)}{_named(' with headers', config.headers)}{login}"
    words = [config.command, *config.arguments]
    place = f" in {config.cwd}" if config.cwd else ""
    command = " ".join(_quoted(word) for word in words)
    return f"run {command}{place}{_named(' with variables', config.environment)}"


def _named(words: str, names: Iterable[str]) -> str:
    listed = ", ".join(one_line(name, 80) for name in names)
    return f"{words} {listed}" if listed else ""


def _quoted(word: str) -> str:
    plain = one_line(word, 1000)
    return plain if plain == word and word and not set(word) & set(" \"'\\") else repr(plain)


def _shown(found: FoundServer) -> str:
    return repr(one_line(found.config.name, 80))
