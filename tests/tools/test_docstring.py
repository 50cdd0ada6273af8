"""What a docstring says about parameters is read in both forms people write."""

from inspect import cleandoc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.tools.docstring import Documentation, read_docstring

NAMES = ("sku", "depot", "days")


@pytest.mark.parametrize(
    ("text", "description", "parameters"),
    [
        (None, "", {}),
        ("Units on hand.", "Units on hand.", {}),
        ("Units on hand.  sku: article number", "Units on hand.", {"sku": "article number"}),
        (
            "Units on hand. sku: article number, days: how far ahead",
            "Units on hand.",
            {"sku": "article number", "days": "how far ahead"},
        ),
        (
            "Units on hand.\n\nsku: article\n  number\ndepot: where\n\nAsk once.",
            "Units on hand.\n\nAsk once.",
            {"sku": "article number", "depot": "where"},
        ),
        ("Look up a sku: it is printed on the box.", "Look up a sku: it is printed on the box.", {}),
        ("Units.  color: not a parameter", "Units.  color: not a parameter", {}),
        ("库存。sku：货号，days: 天数", "库存。", {"sku": "货号", "days": "天数"}),
        (
            "库存。\n\n参数：\n    sku：货号\n    depot (str): 仓库",
            "库存。",
            {"sku": "货号", "depot": "仓库"},
        ),
    ],
)
def test_inline_descriptions(text: str | None, description: str, parameters: dict[str, str]) -> None:
    assert read_docstring(text, NAMES) == Documentation(description, parameters)


def test_a_google_section() -> None:
    text = """Units on hand.

    Ask once a day.

    Args:
        sku (str): article number,
            as printed: on the box
        depot: which depot

        color: not a parameter
        days:

    Returns:
        The count.
    """
    assert read_docstring(text, NAMES) == Documentation(
        "Units on hand.\n\nAsk once a day.\n\nReturns:\n    The count.",
        {"sku": "article number, as printed: on the box", "depot": "which depot"},
    )


def test_the_section_wins_over_a_line() -> None:
    text = "Units.  sku: short\n\nArgs:\n    sku: long"
    assert read_docstring(text, NAMES) == Documentation("Units.  sku: short", {"sku": "long"})


def test_an_empty_section_is_left_out() -> None:
    assert read_docstring("Units.\n\nArgs:\n", NAMES) == Documentation("Units.", {})


def test_a_function_without_parameters_keeps_all_its_words() -> None:
    assert read_docstring("Tell.  sku: x", ()) == Documentation("Tell.  sku: x", {})


@given(st.text("ab:. \n\t()*Args", max_size=200), st.sets(st.sampled_from(["a", "b", "Args", "ab"])))
def test_any_docstring_is_read(text: str, names: set[str]) -> None:
    description, parameters = read_docstring(text, names)
    assert set(parameters) <= names
    assert len(description) <= len(cleandoc(text))
