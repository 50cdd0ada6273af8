"""What listings of a store left out because it cannot be read, until it is put right."""

import logging
from collections.abc import Mapping
from threading import Lock

_log = logging.getLogger("dialoom.stores")


class LeftOut:
    """Names, each with what is wrong. For several threads; the log has each only once."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._reasons: dict[str, str] = {}

    def known(self) -> Mapping[str, str]:
        """Return a copy of what is left out now."""
        with self._guard:
            return dict(self._reasons)

    def report(self, name: str, reason: str) -> None:
        """Note that `name` was left out, and why."""
        with self._guard:
            is_known = self._reasons.get(name) == reason
            self._reasons[name] = reason
        if not is_known:
            _log.warning("left out of a listing of conversations", extra={"left_out": name})

    def settle(self, name: str) -> None:
        """Note that `name` can be read, or is gone."""
        with self._guard:
            self._reasons.pop(name, None)
