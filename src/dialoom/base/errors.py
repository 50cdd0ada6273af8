"""The roots of every error dialoom raises: a class says what the caller can decide, its text what to do."""

from typing import ClassVar


class DialoomError(Exception):
    """Anything dialoom refuses or fails to do.

    `code` is a stable word for programs and logs; the message is one line for people: what happened,
    to which thing, what to do next.
    """

    code: ClassVar[str] = "error"


class UsageError(DialoomError):
    """The call itself is wrong; changing the arguments helps, repeating it does not."""

    code = "usage"


class StoreError(DialoomError):
    """A store could not be read or written; what it held before is still there."""

    code = "store"


class ConflictError(StoreError):
    """Another writer was first. Read again, then decide."""

    code = "conflict"


class MissingExtraError(DialoomError, ImportError):
    """An optional package is not installed; the message holds the line that installs it."""

    code = "missing_extra"

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f'{package} is not installed; run: pip install "dialoom[{extra}]"')
