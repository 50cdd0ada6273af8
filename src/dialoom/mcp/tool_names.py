"""The name a model sees for a server's tool: the same on every machine and in every order of connecting."""

import hashlib
import re
from typing import Final

import msgspec

MAX_NAME: Final = 64
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_MARK: Final = 6


def tool_name(server: str, tool: str, prefix: str | None = None) -> str:
    """Return the name for `tool` of `server`, in the form that every provider takes.

    That is the prefix (None for the server's name and two underscores) and the tool's own name. What is
    too long keeps its end, which tells tools apart; and a name that had to be changed ends in a mark made
    of both names, so that two tools that look alike then stay two.
    """
    wanted = f"{server}__{tool}" if prefix is None else f"{prefix}{tool}"
    name = _OTHER.sub("_", wanted)
    if name == wanted and 0 < len(name) <= MAX_NAME:
        return name
    mark = hashlib.sha256(msgspec.json.encode([server, tool])).hexdigest()[:_MARK]
    return f"{name[-(MAX_NAME - _MARK - 1) :]}_{mark}"
