"""Who may call: a token for machines, one-time links and signed cookies for browsers."""

import hashlib
import hmac
import os
import secrets
from collections import OrderedDict
from pathlib import Path

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import StoreError
from dialoom.server.settings import MIN_TOKEN

MAX_LINKS = 100
_LINK_SECONDS = 24 * 3600.0


def load_token(path: Path) -> str:
    """Return the token that `path` holds; at the first start it is made, readable by its owner only.

    Raises `StoreError` for a file that cannot be read or made, and for one that holds no whole token.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return _whole(path.read_text("ascii").strip(), path)
        with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123 - of a descriptor, which Path cannot open
            token = secrets.token_urlsafe(32)
            file.write(token)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a token"
        raise StoreError(f"the token file {path} cannot be used ({reason}); remove it or mend it") from error
    return token


def _whole(token: str, path: Path) -> str:
    if len(token) < MIN_TOKEN:  # its making was cut short, or it was emptied
        raise StoreError(f"the token file {path} holds no token; remove it, and a new one is made")
    return token


class Doorkeeper:
    """Checks tokens, links and cookies; all comparisons take the same time for every wrong value.

    A link works once, for a day. A cookie says until when it is good and is signed with the token, so that it
    outlives a restart and ends with the token.
    """

    def __init__(self, token: str, *, session_seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._token = token
        self._session_seconds = session_seconds
        self._clock = clock
        self._links: OrderedDict[bytes, float] = OrderedDict()

    def knows(self, token: str) -> bool:
        """Tell whether this is the token."""
        return hmac.compare_digest(_digest(token), _digest(self._token))

    def new_link(self) -> str:
        """Return a word that opens one session; the oldest of 100 that were never used ends."""
        word = secrets.token_urlsafe(24)
        self._links[_digest(word)] = self._clock.now() + _LINK_SECONDS
        while len(self._links) > MAX_LINKS:
            self._links.popitem(last=False)
        return word

    def use_link(self, word: str) -> bool:
        """Tell whether `word` opens a session; it then opens no second one."""
        until = self._links.pop(_digest(word), 0.0)
        return self._clock.now() < until

    def new_cookie(self) -> str:
        until = f"{int(self._clock.now() + self._session_seconds)}.{secrets.token_urlsafe(9)}"
        return f"{until}.{self._sign(until)}"

    def admits(self, cookie: str) -> bool:
        """Tell whether this cookie is ours and still good."""
        head, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(_digest(signature), _digest(self._sign(head))):
            return False
        return self._clock.now() < int(head.partition(".")[0])

    def _sign(self, text: str) -> str:
        return hmac.new(self._token.encode(), f"cookie:{text}".encode(), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
