"""What of a server's settings and words may be shown: the one place where secrets are taken out.

By an allow-list: a field that is not known to be harmless is masked, whatever it is called.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Self, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from dialoom.base.text import one_line
from dialoom.net.address import safe_url

MASK: Final = "***"
SHORTEST_SECRET: Final = 6
"""A shorter value, such as a port, is not looked for in texts: it would be found everywhere."""

_HARMLESS: Final = frozenset(
    {
        "name",
        "transport",
        "command",
        "enabled",
        "autoStart",
        "cwd",
        "timeouts",
        "prefix",
        "allowTools",
        "denyTools",
        "inheritEnv",
        "sseFallback",
        "subscribe",
    }
)
_REFERENCE: Final = re.compile(r"(?:[A-Za-z]{1,16} )?\$\{[A-Za-z0-9_.:]{1,128}\}")
_SECRET_WORD: Final = re.compile(r"(?i)key|token|secret|passw|pwd|credential|auth|bearer|cookie|session")
_ASSIGNMENT: Final = re.compile(r"(?s)(-{0,2}[A-Za-z0-9_.-]{1,64})[=:](.+)")
_TOKENS: Final = re.compile(
    r"""(?ix)
    (?P<kept> \b(?:bearer|basic)\s+ ) [\w.~+/=-]{6,2000}
    | \b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abpr])[-_][\w-]{10,300}
    | \beyJ[\w-]{8,4000}\.[\w-]{4,4000}(?:\.[\w-]{0,4000})?
    """
)


def redact_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a config as they may be shown; the names of headers and variables are kept.

    A value that only refers to a variable, like `${TOKEN}`, is no secret and stays.
    """
    return {key: _shown(key, value) for key, value in fields.items()}


class Redaction:
    """Takes the secrets of one server out of texts: those it was given, and what looks like one.

    Give it the values a connection really uses, after variables were expanded.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        found = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
        # the longest first, or a part would be masked and the rest of the longer one left
        self._secrets = sorted(found, key=len, reverse=True)

    @classmethod
    def of_fields(cls, fields: Mapping[str, object]) -> Self:
        """Return the redaction for a config: headers, variables, auth, and what its URL carries."""
        secrets = [text for key in ("environment", "headers", "auth") for text in _texts(fields.get(key))]
        url = fields.get("url")
        if isinstance(url, str):
            secrets += _secrets_of_url(url)
        return cls(secrets)

    def text(self, text: str, *, limit: int | None = None) -> str:
        """Return `text` without secrets; with `limit`, as one line of at most so many characters."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        text = _TOKENS.sub(_mask_token, text)
        return text if limit is None else one_line(text, limit)


def _texts(value: object) -> list[str]:
    if not isinstance(value, dict):
        return []
    fields = cast("dict[str, object]", value)
    words = [each for key, each in fields.items() if key != "type" and isinstance(each, str)]
    return [part for word in words for part in (word, word.partition(" ")[2]) if part]


def _secrets_of_url(url: str) -> list[str]:
    try:
        parts = urlsplit(url)
        userinfo = [parts.username or "", parts.password or ""]
    except ValueError:
        return [url]
    values = [value for _, value in parse_qsl(parts.query)]
    found = [*userinfo, *values, parts.query]
    return [*found, *(unquote(each) for each in found)]


def _shown(key: str, value: object) -> object:
    if key in _HARMLESS:
        return value
    match key, value:
        case "url", str():
            return safe_url(value)
        case "arguments", list():
            return _redact_arguments([str(item) for item in cast("list[object]", value)])
        case "environment" | "headers", dict():
            return {name: _masked(each) for name, each in cast("dict[str, object]", value).items()}
        case "auth", dict():
            return {
                name: each if name == "type" else _masked(each)
                for name, each in cast("dict[str, object]", value).items()
            }
        case _:
            return _masked(value)


def _masked(value: object) -> object:
    if value is None or value in ("", [], {}):
        return value
    return value if isinstance(value, str) and _REFERENCE.fullmatch(value) else MASK


def _redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Return `arguments` without the values of options and assignments that are named like a secret."""
    shown: list[str] = []
    after_secret = False
    for argument in arguments:
        assigned = _ASSIGNMENT.fullmatch(argument)
        if after_secret and not argument.startswith("-"):
            shown.append(cast("str", _masked(argument)))
        elif assigned and _SECRET_WORD.search(assigned[1]):
            shown.append(f"{assigned[1]}={_masked(assigned[2])}")
        elif "://" in argument:
            shown.append(safe_url(argument))
        else:
            shown.append(_TOKENS.sub(_mask_token, argument))
        after_secret = argument.startswith("-") and not assigned and bool(_SECRET_WORD.search(argument))
    return shown


def _mask_token(found: re.Match[str]) -> str:
    return f"{found['kept'] or ''}{MASK}"
