"""What people said, as guards let a model read it. The log keeps their own words."""

from collections.abc import Sequence

import msgspec

from dialoom.agent import Blocked, Guards
from dialoom.conversation import Entry, TextEntry
from dialoom.dialog.errors import TurnFailedError

BLOCKED = "(these words were blocked)"


async def judged(entries: Sequence[Entry], guards: Guards) -> Sequence[Entry]:
    """Return `entries` with each text of the user as the input guards leave it.

    Raises `TurnFailedError` when they block the newest one; an older one that is blocked says only that, for
    else one blocked question would block all that follow.
    """
    if not guards.input:
        return entries
    spoken = [at for at, entry in enumerate(entries) if isinstance(entry, TextEntry) and entry.role == "user"]
    seen = list(entries)
    for at in spoken:
        entry = entries[at]
        assert isinstance(entry, TextEntry)
        passed = await guards.check_input(entry.content)
        if isinstance(passed, Blocked) and at == spoken[-1]:
            raise TurnFailedError("blocked", str(passed))
        words = BLOCKED if isinstance(passed, Blocked) else passed.value
        seen[at] = msgspec.structs.replace(entry, content=words)
    return seen
