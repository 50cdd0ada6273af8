"""`dialoom chat --list`: the conversations there are, newest first."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.cli.exits import ExitCode
from dialoom.cli.progress import say
from dialoom.conversation import Header, Page
from dialoom.stores import SqliteConversationStore

MOST_LISTED = 50
_TITLE = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def list_conversations(folder: Path) -> ExitCode:
    """Print a line for each of the newest conversations in `folder`: id, time of change, title, origin.

    Raises `UsageError` when there is none; nothing is made or changed in the folder.
    """
    path = folder / "chat.sqlite"
    page = Page(())
    if path.is_file():
        with SqliteConversationStore(path, read_only=True) as store:
            page = await store.page(limit=MOST_LISTED)
    if not page.headers:
        raise UsageError(f"there are no conversations in {folder}; begin one with dialoom chat")
    print(*map(_line, page.headers), sep="\n")
    if page.cursor:
        say(f"(the newest {MOST_LISTED}; there are more)")
    return ExitCode.OK


def _moment(seconds: float) -> str:
    """Return a moment as a clock here showed it, in UTC at the ends of the calendar, where no zone fits."""
    utc = _EPOCH + timedelta(seconds=seconds)
    try:
        shown = utc.astimezone()
    except (OverflowError, ValueError, OSError):  # which of them depends on the system
        shown = utc
    return shown.replace(tzinfo=None).isoformat(" ", "minutes")


def _line(header: Header) -> str:
    when = _moment(header.updated)
    origin = f"  (branch of {header.branch_from})" if header.branch_from else ""
    return f"{header.id}  {when}  {one_line(header.title, _TITLE)}".rstrip() + origin
