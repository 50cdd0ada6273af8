"""The two ways an answer breaks: it cannot be read, or the server takes it back."""

from dialoom.llm.errors import ErrorKind
from dialoom.llm.failures import WireError


class MalformedChunkError(Exception):
    """What came is no part of an answer on this wire."""


class AnswerFailedError(Exception):
    """The server took its answer back: an error among the chunks, or a finish reason that means one."""

    def __init__(self, error: WireError, kind: ErrorKind | None = None) -> None:
        super().__init__("the server took its answer back")  # its words may hold a key; tracebacks show this
        self.error = error
        self.kind: ErrorKind | None = kind
