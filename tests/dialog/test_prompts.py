"""Prompts: gaps are filled, what does not match is reported, and nothing is filled twice."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.dialog import Prompt
from dialoom.dialog.prompts import MAX_TEMPLATE, Filled

GREETING = Prompt(
    "greet", "Hello {{name}}, welcome to {{ place }}. {{name}}!", defaults={"place": "the desk"}
)


def test_gaps_are_filled_from_variables_and_defaults() -> None:
    assert GREETING.variables == ("name", "place")
    assert GREETING.fill({"name": "Ada"}) == Filled("Hello Ada, welcome to the desk. Ada!")
    assert GREETING.render({"name": "Ada", "place": "Paris"}) == "Hello Ada, welcome to Paris. Ada!"


def test_a_gap_without_a_value_stays_visible_and_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    filled = GREETING.fill({"nmae": "Ada"})
    assert filled == Filled("Hello {{name}}, welcome to the desk. {{name}}!", ("name",), ("nmae",))
    with caplog.at_level(logging.WARNING, logger="dialoom.dialog"):
        GREETING.render({"nmae": "Ada"})
    (record,) = caplog.records
    assert (record.message, record.__dict__["missing"]) == ("prompt variables do not match", ("name",))
    assert "Ada" not in caplog.text


@given(st.text())
def test_what_is_put_in_is_never_looked_at_for_gaps(words: str) -> None:
    prompt = Prompt("say", "{{a}}{{b}}")
    assert prompt.render({"a": "{{b}}" + words, "b": "{{a}}"}) == "{{b}}" + words + "{{a}}"


def test_names_and_templates_have_bounds() -> None:
    with pytest.raises(UsageError, match="a prompt has a name of 1 to 200 characters; this has 0"):
        Prompt("", "text")
    with pytest.raises(UsageError, match="prompt 'long' has 262145 characters; 262144 are allowed"):
        Prompt("long", "x" * (MAX_TEMPLATE + 1))
