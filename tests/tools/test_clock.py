"""The clock tool tells the time of the clock it was given."""

import pytest

from dialoom.testing.clock import ManualClock
from dialoom.tools import ToolRegistry
from dialoom.tools.builtin import clock_tool
from tests.tools.calls import call, facts

NOON_UTC = 1_796_040_000.0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {"time": "2026-11-30T12:00:00+00:00", "weekday": "Monday", "timezone": "UTC"}),
        (
            {"timezone": "Asia/Shanghai"},
            {"time": "2026-11-30T20:00:00+08:00", "weekday": "Monday", "timezone": "Asia/Shanghai"},
        ),
        (
            {"timezone": "Pacific/Kiritimati"},
            {"time": "2026-12-01T02:00:00+14:00", "weekday": "Tuesday", "timezone": "Pacific/Kiritimati"},
        ),
    ],
)
async def test_the_time_in_a_zone(arguments: dict[str, str], expected: dict[str, str]) -> None:
    registry = ToolRegistry([clock_tool(ManualClock(NOON_UTC))])
    assert facts(await registry.execute(call("current_time", **arguments))) == expected


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "/etc/passwd", "Europe", "", "a\0b"])
async def test_what_is_no_zone_is_told(zone: str) -> None:
    registry = ToolRegistry([clock_tool()])
    error = str(facts(await registry.execute(call("current_time", timezone=zone)))["error"])
    assert error.startswith("UsageError: there is no time zone ")
    assert error.endswith("; use an IANA name such as Europe/Berlin")
