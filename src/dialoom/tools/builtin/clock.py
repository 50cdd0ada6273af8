"""The time of day as a tool."""

from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.tools.function import FunctionTool, tool


def clock_tool(clock: Clock = SYSTEM_CLOCK) -> FunctionTool[[str], dict[str, str]]:
    """Return a tool `current_time` that reads `clock`."""

    @tool(idempotent=True)
    def current_time(
        timezone: Annotated[str, "an IANA name such as Europe/Berlin or Asia/Shanghai"] = "UTC",
    ) -> dict[str, str]:
        """Tell the date, the time and the day of the week in a time zone."""
        now = datetime.fromtimestamp(clock.now(), UTC).astimezone(_zone(timezone))
        return {
            "time": now.isoformat(timespec="seconds"),
            "weekday": now.strftime("%A"),
            "timezone": timezone,
        }

    return current_time


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # also for a folder of zones, or a path that leads out
        raise UsageError(
            f"there is no time zone {one_line(name, 60)!r}; use an IANA name such as Europe/Berlin"
        ) from error
