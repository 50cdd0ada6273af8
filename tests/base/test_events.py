"""Observers listen; they never break what they listen to."""

import logging

import msgspec
import pytest

from dialoom.base.events import Event, notify


class Started(Event, frozen=True, kw_only=True, tag_field="type", tag="test.started"):
    """An event of this test."""


class Recorder:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.heard.append(event)


class Broken:
    """Fails at everything."""

    def on_event(self, event: Event) -> None:
        raise ValueError("observer bug")


def test_an_event_is_one_json_line_with_its_type_run_and_number() -> None:
    assert (
        msgspec.json.encode(Started(run_id="r1", seq=1)) == b'{"type":"test.started","run_id":"r1","seq":1}'
    )


def test_a_failing_observer_is_logged_and_the_next_one_still_hears(caplog: pytest.LogCaptureFixture) -> None:
    recorder, event = Recorder(), Started(run_id="r1", seq=1)
    with caplog.at_level(logging.ERROR):
        notify([Broken(), recorder], event)
    assert recorder.heard == [event]
    assert [record.message for record in caplog.records] == ["observer failed"]
