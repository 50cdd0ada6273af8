"""The SDK's errors, and those of what is below it, as `McpError`: the one place where they are translated."""

from collections.abc import Iterator
from typing import Final, NamedTuple, cast

import httpx2
import msgspec
from mcp.client.auth import OAuthFlowError
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.text import one_line
from dialoom.mcp.errors import NO_FACTS, McpError, McpErrorKind, McpFacts
from dialoom.mcp.redact import Redaction
from dialoom.mcp.sdk.soft import HttpFailure, failure_of, http_failure, refusal_of
from dialoom.mcp.sdk.streams import TOO_LARGE

LONGEST_WORDS: Final = 300
_SDK_CLOSED: Final = ("Connection closed", "SSE stream ")
_WRONG_VERSION: Final = "Unsupported protocol version"

_NEXT: Final[dict[McpErrorKind, str]] = {
    "config": "change its config",
    "start": "try its command in a terminal",
    "connect": "is it running, and is its address right?",
    "auth": "log in, or check its headers and token",
    "session": "ask again",
    "timeout": "ask again, or raise its timeouts",
    "closed": "it is being connected again",
    "unavailable": "it is being connected again",
}


class _Read(NamedTuple):
    kind: McpErrorKind
    words: str
    facts: McpFacts = NO_FACTS


def translated(
    error: BaseException,
    *,
    server: str,
    redaction: Redaction,
    child: McpFacts = NO_FACTS,
    starting: bool = False,
) -> McpError:
    """Return what `error` means for whoever asked `server`; groups are opened, secrets taken out.

    `child` holds what is known of the server's process, where it is one; `starting` says that the connection
    was not made yet.
    """
    found = _innermost(error)
    if isinstance(found, McpError):
        return found
    read = _read(found)
    kind = "start" if starting and read.kind == "closed" else read.kind
    facts = read.facts
    if child.exit_code is not None or child.stderr_tail:
        tail = tuple(redaction.text(line) for line in child.stderr_tail)
        facts = msgspec.structs.replace(facts, exit_code=child.exit_code, stderr_tail=tail)
    words = redaction.text(read.words, limit=LONGEST_WORDS)
    if facts.exit_code is not None and kind in {"closed", "start"}:
        words += f"; it ended with code {facts.exit_code}"
    if facts.stderr_tail and kind in {"closed", "start", "timeout"}:
        words += f", saying: {one_line(facts.stderr_tail[-1])}"
    hint = _NEXT.get(kind)
    return McpError(
        f"mcp server {one_line(server, 80)!r}: {words}{f'; {hint}' if hint else ''}",
        server=server,
        kind=kind,
        facts=facts,
    )


def _innermost(error: BaseException) -> BaseException:
    """Return the first error of a group that says something; cancelling is only the echo of it."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = list(_leaves(cast("BaseExceptionGroup[BaseException]", error)))
    return next((leaf for leaf in leaves if isinstance(leaf, Exception)), leaves[0])


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", each))
        else:
            yield each


def _read(error: BaseException) -> _Read:
    match error:
        case MCPError():
            return _read_rpc(error)
        case OSError() if not isinstance(error, TimeoutError):
            return _read_start(error)
        case httpx2.HTTPStatusError():
            return _read_http(refusal_of(error.response))
        case httpx2.HTTPError() | OAuthFlowError():
            return _read_http(failure_of(error))
        case TimeoutError():
            kind, words = "timeout", "it did not answer in time"
        case UsageError():
            kind, words = "config", str(error)
        case DialoomError():
            kind, words = "protocol", str(error)
        case ValidationError():
            kind, words = "protocol", f"it sent what the protocol does not allow ({error.title})"
        case RuntimeError() if str(error).startswith(_WRONG_VERSION):
            kind, words = "config", "it speaks no protocol version that is known here"
        case _:
            kind, words = "protocol", f"the exchange failed ({type(error).__name__})"
    return _Read(kind, words)


def _read_start(error: OSError) -> _Read:
    name = one_line(str(error.filename or ""), 80)
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return _Read("config", f"there is no {name!r} to start it with")
        case PermissionError():
            return _Read("config", f"{name!r} may not be run")
        case _:
            return _Read("start", f"it could not be reached: {error.strerror or error}")


def _read_http(failure: HttpFailure) -> _Read:
    facts = McpFacts(status=failure.status, retry_after=failure.retry_after)
    return _Read(failure.kind, failure.words, facts)


def _read_rpc(error: MCPError) -> _Read:
    data = cast("object", error.data)
    failure = http_failure(data)
    facts = McpFacts(rpc_code=error.code, data=data)
    if failure is not None:
        read = _read_http(failure)
        more = f": {error.message}" if error.message != failure.words else ""
        return _Read(read.kind, read.words + more, msgspec.structs.replace(read.facts, rpc_code=error.code))
    if isinstance(data, dict) and TOO_LARGE in data:
        return _Read("too_large", error.message)
    if error.code == CONNECTION_CLOSED and error.message.startswith(_SDK_CLOSED):
        return _Read("closed", "the connection was lost")
    return _Read("rpc", f"it answered with an error: {error.message}", facts)
