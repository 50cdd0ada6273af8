"""Who may use a service, and whether it may change anything."""

import hashlib
import hmac
from collections.abc import Mapping

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line

TOKEN_NAMES = ("DIALOOM_RAG_TOKEN", "QAGENT_RAG_TOKEN")
READ_ONLY_NAMES = ("DIALOOM_RAG_READ_ONLY", "QAGENT_RAG_READ_ONLY")
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"", "0", "false", "no", "off"})


class ServiceAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The token each request has to carry as `auth`, empty for none, and whether changes are refused."""

    token: str = ""
    read_only: bool = False

    def admits(self, auth: object) -> bool:
        """Whether `auth` is the token. Takes the same time for every wrong one of a length."""
        if not self.token:
            return True
        given = auth if isinstance(auth, str) else ""
        return hmac.compare_digest(_digest(given), _digest(self.token))

    def __repr__(self) -> str:
        return f"ServiceAccess(token={'set' if self.token else 'none'}, read_only={self.read_only})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("token", "set" if self.token else "none"), ("read_only", self.read_only)]


def access_from(
    env: Mapping[str, str], *, token: str | None = None, read_only: bool = False
) -> ServiceAccess:
    """What flags say, and where they are silent `DIALOOM_RAG_TOKEN` and `DIALOOM_RAG_READ_ONLY` of `env`.

    The older names `QAGENT_RAG_TOKEN` and `QAGENT_RAG_READ_ONLY` count too. Raises `UsageError` for a
    value that is neither yes nor no: a replica must not become a writer by a typing error.
    """
    if token is None:
        token = next((env[name] for name in TOKEN_NAMES if env.get(name)), "")
    for name in READ_ONLY_NAMES:
        value = env.get(name, "").strip().lower()
        if value not in _YES | _NO:
            raise UsageError(f"{name} is {one_line(value, 40)!r}; set it to 1 or 0")
        read_only = read_only or value in _YES
    return ServiceAccess(token=token, read_only=read_only)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
