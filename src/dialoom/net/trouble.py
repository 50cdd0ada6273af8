"""What went wrong with an exchange, in the same words whichever way it was carried."""

import errno
import socket
import ssl
from collections.abc import Generator
from typing import cast

from dialoom.base.text import one_line
from dialoom.net.address import safe_url
from dialoom.net.transport import TransportError

LATE = "it did not answer in time"


def unreachable(url: str, why: str) -> TransportError:
    """No connection was made; nothing was sent."""
    return TransportError("connect", f"cannot reach {safe_url(url)}: {why}")


def late(url: str) -> TransportError:
    """The peer was too slow."""
    return TransportError("timeout", f"{safe_url(url)} did not answer in time")


def cut_off(url: str, why: str) -> TransportError:
    """The connection was lost on the way, or led nowhere."""
    return TransportError("closed", f"{safe_url(url)} closed the connection: {why}")


def unreadable(url: str, why: str) -> TransportError:
    """What came is no HTTP as we know it."""
    return TransportError("protocol", f"{safe_url(url)} sent what cannot be read: {why}")


def too_large(url: str, limit: int) -> TransportError:
    """The body passed the bound of its request."""
    return TransportError("too_large", f"{safe_url(url)} sent more than {limit} bytes; the rest was not read")


def reason_of(error: BaseException) -> str:
    """Return the innermost cause in a few words; libraries wrap it several times."""
    for cause in _causes(error):
        match cause:
            case ssl.SSLError():
                return f"TLS failed ({_tls_reason(cause)})"
            case socket.gaierror():
                return "its host name is not known"
            case OSError(errno=errno.ECONNREFUSED):
                return "connection refused"
            case OSError() if cause.strerror:
                return one_line(cause.strerror, 80)
            case _:
                continue
    return one_line(str(error), 80) or type(error).__name__


def _tls_reason(error: ssl.SSLError) -> str:
    match error:
        case ssl.SSLCertVerificationError() if error.verify_message:
            told = one_line(error.verify_message, 120)
            return f"{told}; SSL_CERT_FILE may name a file of certificates to trust"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER"):
            return "WRONG_VERSION_NUMBER: it seems to speak plain http; try http://"
        case _:
            return one_line(error.reason or str(error), 80)


def _causes(error: BaseException) -> Generator[BaseException]:
    yield error
    match error:
        case BaseExceptionGroup(exceptions=(first, *_)):  # one for each address of a host
            inner = cast("BaseException", first)
        case _:
            inner = error.__cause__ or error.__context__
    if inner is not None:
        yield from _causes(inner)
