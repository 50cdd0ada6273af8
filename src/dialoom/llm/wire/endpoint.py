"""Where a server listens, what opens its door, and how its failures are told without giving the key away."""

from collections.abc import Mapping

from dialoom.base.clock import Clock
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.errors import NO_REPLY, ErrorKind, ProviderError, Reply
from dialoom.llm.failures import (
    WireError,
    kind_of,
    may_retry,
    read_error_body,
    read_retry_after,
    redact,
)
from dialoom.llm.given import expect_text
from dialoom.llm.messages import Message, Origin
from dialoom.net.address import safe_url, split_url
from dialoom.net.transport import HttpRequest, HttpTimeouts, TransportError, TransportErrorKind

ADVICE: Mapping[ErrorKind, str] = {
    "rate_limit": "wait a little and ask again",
    "quota": "top up the account or choose another model",
    "overloaded": "wait a little and ask again",
    "server_error": "ask again, or look into the server's log",
    "timeout": "ask again, or allow more time",
    "connection": "start the server there, or check the base url",
    "auth": "check the api key",
    "bad_request": "check the options of the request",
    "context_window": "shorten the conversation or choose a model with a larger context window",
    "content_filter": "word the request differently",
    "invalid_response": "check that the base url is one of a server that speaks this wire",
    "incomplete_stream": "ask again",
    "empty_response": "ask again",
}
_TRANSPORT_KINDS: Mapping[TransportErrorKind, ErrorKind] = {
    "connect": "connection",
    "timeout": "timeout",
    "protocol": "invalid_response",
    "closed": "connection",
    "too_large": "invalid_response",
}
_SECRET_HEADERS = ("authorization", "api-key", "x-api-key", "cookie", "proxy-authorization")


class Endpoint:
    """A server's address with what it needs to let us in. Its `repr` shows the address only."""

    def __init__(
        self,
        provider_id: str,
        base_url: str,
        api_key: str | None,
        *,
        headers: Mapping[str, str],
        clock: Clock,
        advice: Mapping[ErrorKind, str],
        not_found: str,
    ) -> None:
        """Raises `UsageError` on an address or key that cannot be sent."""
        self.provider_id = provider_id
        self.base_url = clean_base(base_url)
        self._clock = clock
        self._advice = advice
        self._not_found = not_found
        self._headers = {"accept": "application/json, text/event-stream", **with_lower_names(headers)}
        if api_key:
            self._headers["authorization"] = f"Bearer {clean_key(api_key)}"

    def __repr__(self) -> str:
        return f"{self.provider_id} at {safe_url(self.base_url)}"

    def get(self, path: str, *, seconds: float) -> HttpRequest:
        """Return a request for `path` that takes at most `seconds`."""
        limits = HttpTimeouts(connect=min(10.0, seconds), read=seconds, total=seconds)
        return HttpRequest(method="GET", url=self.base_url + path, headers=self._headers, timeouts=limits)

    def post(self, path: str, body: bytes, *, headers: Mapping[str, str], connect: float) -> HttpRequest:
        """Return a request whose waits, after `connect` seconds for the connection, the caller bounds."""
        return HttpRequest(
            method="POST",
            url=self.base_url + path,
            headers={**self._headers, "content-type": "application/json", **with_lower_names(headers)},
            body=body,
            timeouts=HttpTimeouts(connect=connect, read=None),
        )

    def error(
        self,
        kind: ErrorKind,
        what: str,
        *,
        model: str,
        reply: Reply = NO_REPLY,
        retryable: bool | None = None,
        partial: Message | None = None,
    ) -> ProviderError:
        """Return an error that says `what` happened and what to do, with every secret taken out."""
        advice = self._not_found if reply.status == 404 else self._advice[kind]
        return ProviderError(
            kind,
            f"{self._shown(what).rstrip('.')}; {advice}",
            origin=Origin(self.provider_id, model),
            reply=reply,
            retryable=retryable,
            partial=partial,
        )

    def unreachable(self, error: TransportError, *, model: str, partial: Message | None) -> ProviderError:
        """Translate a transport's error; one that cut an answer off is `incomplete_stream`."""
        kind = _TRANSPORT_KINDS[error.kind]
        if error.kind == "closed" and partial is not None:
            kind = "incomplete_stream"
        return self.error(kind, str(error), model=model, partial=partial)

    def refused(
        self, status: int, headers: Mapping[str, str], body: bytes, *, model: str, quota_codes: frozenset[str]
    ) -> ProviderError:
        """Translate a reply that is no answer."""
        said = read_error_body(body)
        reply = Reply(
            status=status,
            retry_after=read_retry_after(headers, self._clock.now()),
            request_id=self._shown(headers.get("x-request-id") or headers.get("request-id") or "") or None,
        )
        moved = f" (it points to {safe_url(headers['location'])})" if "location" in headers else ""
        what = f"{self!r} answered {status}{moved}: {said.message or 'without a word'}"
        kind = kind_of(status, said, quota_codes)
        return self.error(kind, what, model=model, reply=reply, retryable=may_retry(status, headers))

    def took_back(
        self, said: WireError, *, model: str, kind: ErrorKind, partial: Message | None
    ) -> ProviderError:
        """Translate an error that came where the answer should have gone on."""
        what = f"{self!r} broke off its answer: {said.message or 'without a word'}"
        return self.error(kind, what, model=model, partial=partial)

    def _shown(self, text: str) -> str:
        return one_line(redact(text, self._secrets()), 240)

    def _secrets(self) -> list[str]:
        held = [self._headers[name] for name in _SECRET_HEADERS if name in self._headers]
        return [*held, *(value.removeprefix("Bearer ") for value in held)]


def clean_base(base_url: object) -> str:
    """Return an address without a slash at its end. Raises `UsageError`."""
    address = expect_text(base_url, "the base url", "http://127.0.0.1:11434/v1").strip()
    if "@" in split_url(address).netloc:
        raise UsageError(
            f"{safe_url(address)} holds a user name or password; pass the key as api_key instead"
        )
    return address.rstrip("/")


def clean_key(api_key: object) -> str:
    """Return a key as it is sent. Raises `UsageError`, which does not show it, on one that cannot be."""
    key = expect_text(api_key, "the api key", "api_key='sk-...'").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(
            "the api key holds characters that no key has; copy it again, without blanks or quotes"
        )
    return key


def with_lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by their names in lower case, so that one of the caller's own replaces ours."""
    return {name.lower(): value for name, value in headers.items()}
