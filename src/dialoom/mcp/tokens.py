"""Logins that outlive the program: what a login gave and when that ends, for its owner only."""

import hashlib
import logging
from pathlib import Path
from typing import Final, Protocol

import msgspec

from dialoom.base.errors import StoreError
from dialoom.base.files import PRIVATE, replace_file

MAX_LOGIN_BYTES: Final = 256 * 1024
_OTHERS: Final = 0o077
_log = logging.getLogger("dialoom.mcp")


class Login(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known after a login. `client` and `issuer` are the authorization server's own JSON."""

    access_token: str = ""
    refresh_token: str = ""
    scope: str = ""
    expires_at: float | None = None
    """Seconds since the epoch, None when the token does not say."""
    client: dict[str, object] = {}
    """Who we are to that server: the client id, its secret, the address the browser is sent back to."""
    issuer: dict[str, object] = {}
    """Where that server is and what it can do, so that a refresh needs no discovery."""

    def __repr__(self) -> str:
        return f"Login(expires_at={self.expires_at})"


class TokenStore(Protocol):
    """Keeps one login for each resource, which is the address of a server."""

    async def load(self, resource: str) -> Login | None:
        """Return the login for `resource`, None when there is none that can be read."""
        ...

    async def save(self, resource: str, login: Login) -> None:
        """Keep `login` in the place of the one before. Raises `StoreError`."""
        ...


class MemoryTokenStore:
    """`TokenStore` for as long as the program runs."""

    def __init__(self) -> None:
        self._logins: dict[str, Login] = {}

    async def load(self, resource: str) -> Login | None:
        return self._logins.get(resource)

    async def save(self, resource: str, login: Login) -> None:
        self._logins[resource] = login


class FileTokenStore:
    """`TokenStore` in files under `folder`, one for each resource, that nobody else can read or write.

    A file that others can read is not used: its tokens are not secret any more.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def load(self, resource: str) -> Login | None:
        path = self._file(resource)
        try:
            if path.stat().st_mode & _OTHERS or path.stat().st_size > MAX_LOGIN_BYTES:
                _log.warning("a kept login is not used: others can read it, or it is too large")
                return None
            return msgspec.json.decode(path.read_bytes(), type=Login)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("a kept login cannot be read", extra={"error": type(error).__name__})
            return None

    async def save(self, resource: str, login: Login) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            replace_file(self._file(resource), msgspec.json.encode(login), mode=PRIVATE)
        except OSError as error:
            raise StoreError(f"cannot keep the login: {error.strerror}; check {self._folder}") from error

    def _file(self, resource: str) -> Path:
        return self._folder / f"{hashlib.sha256(resource.encode()).hexdigest()[:32]}.json"
