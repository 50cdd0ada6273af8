"""Twins and contract suites: what dialoom's own tests stand on, for its users' tests too."""

from dialoom.testing.clock import ManualClock as ManualClock
