"""The headers of a request, as they can be written on any wire."""

import re

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.net.transport import HttpRequest

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")


def sendable_headers(request: HttpRequest) -> dict[str, str]:
    """Return the headers by names in lower case. Raises `UsageError` on one that cannot be sent.

    Nothing packed is asked for unless the caller does: unpacking a stream would hold its events back.
    """
    headers = {"accept-encoding": "identity"}
    for name, value in request.headers.items():
        if not (_NAME.fullmatch(name) and _VALUE.fullmatch(str(value))):
            # the value may be a key, so it is not shown
            raise UsageError(
                f"header {one_line(name, 40)!r} holds characters that cannot be sent; remove them"
            )
        headers[name.lower()] = str(value)  # a number is a slip that does no harm
    return headers
