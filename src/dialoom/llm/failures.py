"""Errors as servers word them, sorted into our kinds."""

import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime

import msgspec

from dialoom.base.text import one_line
from dialoom.llm.errors import ErrorKind
from dialoom.llm.json_values import fields_of, items_of, text_of

MAX_ERROR_BYTES = 64 * 1024

_CONTEXT_WORDS = frozenset(
    (
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_window_exceeded",
        "string_above_max_length",
        "request_too_large",
    )
)
_CONTEXT_TEXT = re.compile(
    r"context[ _](length|size|window)|maximum (context|prompt|input) length|prompt is too long|"
    r"input (length|is too long)|too many (input )?tokens|exceeds? (the model's )?max(imum)?[ _]input",
    re.IGNORECASE,
)
_QUOTA_TEXT = re.compile(r"credit balance is too low", re.IGNORECASE)
_AUTH_WORDS = frozenset(("invalid_api_key", "authentication_error", "permission_error", "permission_denied"))
_RATE_WORDS = frozenset(
    ("rate_limit_error", "rate_limit_exceeded", "too_many_requests", "tokens", "requests")
)
_OVERLOAD_WORDS = frozenset(("overloaded_error", "overloaded", "engine_overloaded", "model_overloaded"))
_TIMEOUT_WORDS = frozenset(("timeout_error",))
_REQUEST_WORDS = frozenset(("invalid_request_error", "not_found_error"))
_FILTER_WORDS = frozenset(("content_filter", "content_policy_violation", "responsibleaipolicyviolation"))
_KINDS_BY_STATUS: Mapping[int, ErrorKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    407: "auth",
    408: "timeout",
    413: "context_window",
    429: "rate_limit",
}
_SENTENCES = ("message", "detail", "error_description")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk|key|gsk|xai)-[\w*.-]{4,}|(?<=[Bb]earer )\S+")
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,200})", re.IGNORECASE)


class WireError(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says went wrong: its sentence, its code words in lower case, the status it claims."""

    message: str
    words: frozenset[str] = frozenset()
    status: int | None = None


def read_wire_error(value: object) -> WireError:
    """Read the `error` of a JSON body, or a whole body: text, an object, or a list of them."""
    for _ in range(3):  # servers wrap the error in `error`, and some the whole in a list
        inner = next(iter(items_of(value)), None) or fields_of(value).get("error")
        if not inner:
            break
        value = inner
    if isinstance(value, str):
        return WireError(message=value)
    fields = fields_of(value)
    # one thing that a form of FastAPI refuses, of a list of them
    details = fields_of(next(iter(items_of(fields.get("detail"))), None))
    said = (*(text_of(fields.get(name)) for name in _SENTENCES), text_of(details.get("msg")))
    codes = [fields.get(name) for name in ("type", "code", "status")]
    return WireError(
        message=next((text for text in said if text), ""),
        words=frozenset(code.lower() for code in codes if isinstance(code, str)),
        status=next((code for code in codes if isinstance(code, int) and 400 <= code < 600), None),
    )


def read_error_body(body: bytes) -> WireError:
    """Read the body of an error reply, of any type; a page of HTML becomes its title."""
    try:
        return read_wire_error(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    if body.lstrip()[:1] == b"<":
        return WireError(message=f"an HTML page ({html_title(body)})")
    return WireError(message=body.decode("utf-8", "replace").strip())


def html_title(page: bytes) -> str:
    found = _TITLE.search(page)
    return one_line(found[1].decode("utf-8", "replace"), 80) if found else "without a title"


def kind_of(status: int | None, error: WireError, quota_codes: frozenset[str]) -> ErrorKind:
    """Return the kind of a failure: code words first, then the sentence, then the status."""
    words = error.words
    by_word: tuple[tuple[frozenset[str], ErrorKind], ...] = (
        (quota_codes, "quota"),
        (_CONTEXT_WORDS, "context_window"),
        (_AUTH_WORDS, "auth"),
        (_OVERLOAD_WORDS, "overloaded"),
        (_FILTER_WORDS, "content_filter"),
        (_RATE_WORDS, "rate_limit"),
        (_TIMEOUT_WORDS, "timeout"),
    )
    for known, kind in by_word:
        if words & known:
            return kind
    if status not in {401, 403, 429} and _CONTEXT_TEXT.search(error.message):
        return "context_window"
    if _QUOTA_TEXT.search(error.message):
        return "quota"
    if status is None and words & _REQUEST_WORDS:
        return "bad_request"
    return _kind_of_status(status)


def _kind_of_status(status: int | None) -> ErrorKind:
    if status is None or status >= 500:
        return "overloaded" if status == 529 else "server_error"
    return _KINDS_BY_STATUS.get(status, "bad_request" if status >= 400 else "invalid_response")


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds a reply asks to wait, 0 for a moment that has passed, None when it does not say.

    Reads `retry-after-ms`, and `retry-after` as a number of seconds or as an HTTP date against `now`.
    """
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return max(0.0, millis / 1000)
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is not None:
        return max(0.0, seconds)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, moment - now)


def may_retry(status: int | None, headers: Mapping[str, str]) -> bool | None:
    """Return what a reply says about asking again, None when only its kind can tell."""
    told = headers.get("x-should-retry", "").lower()
    if told in {"true", "false"}:
        return told == "true"
    # 409: something was locked, which passes
    return True if status == 409 else False if status in {501, 505} else None


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return `text` without the `secrets` and without anything that looks like a key."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return _KEY_LIKE.sub("***", text)


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if abs(value) < 1e9 else None
