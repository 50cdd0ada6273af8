"""What the SDK and the HTTP client log of our servers: that something happened, and nothing of what was said.

They put session ids, addresses with keys in them, and the bodies of refused logins into their messages.
"""

import logging
from contextvars import ContextVar
from typing import Final

from dialoom.net.address import safe_url

OURS: Final[ContextVar[bool]] = ContextVar("mcp_ours", default=False)
"""Set in every task that serves a connection; other users of the same packages log as ever."""


class SaysNothing(logging.Filter):
    """Leaves of records where they came from, at DEBUG: to others they would say nothing."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not OURS.get():
            return True
        source = record.name.partition(".")[0].replace("client", "mcp")
        record.msg, record.args = "%s reports from %s", (source, record.funcName)
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.DEBUG, "DEBUG"
        return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)


class SafeAddresses(logging.Filter):
    """Takes names, passwords and queries out of the addresses that are logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        if OURS.get() and isinstance(record.args, tuple):
            record.args = tuple(safe_url(str(each)) if "://" in str(each) else each for each in record.args)
        return True


_SAYS_NOTHING: Final = SaysNothing()
_SAFE_ADDRESSES: Final = SafeAddresses()


_HTTP_LOGGERS: Final = tuple(
    f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")
)
"""They tell at DEBUG the headers that a server sent; some are made at the first request only."""


def hush() -> None:
    """Let the loggers of the SDK and of the HTTP client say no more than that; once is enough."""
    names = [name for name in logging.root.manager.loggerDict if name == "client" or name.startswith("mcp.")]
    for name in (*names, *_HTTP_LOGGERS):
        logging.getLogger(name).addFilter(_SAYS_NOTHING)
    logging.getLogger("httpx2").addFilter(_SAFE_ADDRESSES)
