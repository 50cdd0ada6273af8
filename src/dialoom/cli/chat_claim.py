"""Which conversation a chat has open, told to every other chat of the machine: one has it at a time."""

import hashlib
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from dialoom.base.errors import DialoomError, StoreError

if sys.platform == "win32":  # pragma: no cover - the suite runs on POSIX
    import msvcrt
else:
    import fcntl

NAME: Final = "chat.lock"
PLACES: Final = 2**40
"""Each conversation is one byte of the lock file; so many that two of them hardly share one."""


class ConversationInUseError(DialoomError):
    """Another process has the conversation open and may be answering in it."""

    code = "conversation_in_use"

    def __init__(self) -> None:
        super().__init__(
            "this conversation is being answered by another dialoom; "
            "wait until it is left there, or start a new one with dialoom chat"
        )


class ConversationClaim:
    """Claims one conversation at a time, for as long as it is open here.

    The claims of all chats are locked bytes of one file that holds nothing, and the system lets go of them
    when a process dies.
    """

    def __init__(self, folder: Path) -> None:
        """Claim in `folder`, which is made when it is not there. Raises `StoreError` when nothing can be."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            reason = (error.strerror or "error").lower()
            raise StoreError(
                f"no conversation can be kept in {folder} ({reason}); "
                "name a file in a folder of yours: --index FOLDER/knowledge.sqlite"
            ) from error
        self._place: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def move(self, conversation_id: str) -> None:
        """Claim a conversation instead of the one before, or raise `ConversationInUseError`, keeping it."""
        place = _place_of(conversation_id)
        if place == self._place:
            return
        if not _take(self._descriptor, place):
            raise ConversationInUseError
        if self._place is not None:
            _release(self._descriptor, self._place)
        self._place = place


def _place_of(conversation_id: str) -> int:
    digest = hashlib.sha256(conversation_id.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") % PLACES


if sys.platform == "win32":  # pragma: no cover - the suite runs on POSIX

    def _take(descriptor: int, place: int) -> bool:
        os.lseek(descriptor, place, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(descriptor: int, place: int) -> None:
        os.lseek(descriptor, place, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:

    def _take(descriptor: int, place: int) -> bool:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # POSIX leaves open which of the two it is
            return False
        return True

    def _release(descriptor: int, place: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, place)
