"""Skills: their text is read leniently, shown in a catalogue or at once, and activated once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.dialog import Skill, parse_skill
from dialoom.dialog.skills import ReadSkill, catalogue_text, skill_text

INVOICES = """\
---
name: invoices
description: Reads invoices. Use it when a mail has one.
license: MIT
metadata:
  author: finance
  mode: always
allowed-tools: read_file calculator
---
# Invoices

Check the total.
"""


def test_a_skill_is_read_with_all_its_fields() -> None:
    assert parse_skill(INVOICES, folder_name="invoices") == ReadSkill(
        Skill(
            name="invoices",
            description="Reads invoices. Use it when a mail has one.",
            instructions="# Invoices\n\nCheck the total.",
            mode="always",
            license="MIT",
            metadata={"author": "finance", "mode": "always"},
            allowed_tools=("read_file", "calculator"),
        )
    )


def test_a_header_that_is_not_yaml_is_read_line_by_line() -> None:
    read = parse_skill("---\nname: pdf\ndescription: Use when: a PDF comes\n---\nOpen it.\n")
    assert (read.skill.name, read.skill.description) == ("pdf", "Use when: a PDF comes")
    assert read.warnings == ("the header is not valid YAML and was read line by line; quote its values",)


def test_a_name_out_of_form_is_a_warning_and_the_skill_is_used() -> None:
    read = parse_skill("---\nname: My Skill\ndescription: d\n---\n", folder_name="mine")
    assert read.skill.name == "My Skill"
    assert read.warnings == (
        "the name 'My Skill' is not in form; use 1 to 64 of a-z 0-9, single hyphens",
        "the name 'My Skill' is not that of its folder 'mine'",
    )


def test_a_skill_without_a_name_has_that_of_its_folder() -> None:
    assert parse_skill("---\ndescription: d\n---\nwords", folder_name="tidy").skill.name == "tidy"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("just words", "this skill has no header between --- lines; give it a name and a description there"),
        ("---\nname: a\n---\nwords", "this skill has no description; say what it is for and when to use it"),
        ("---\n- a\n---\n", "this skill has no description"),
        ("x" * 262145, "a skill of 262145 characters is over the limit of 262144"),
        ("---\ndescription: d\n---\n", "a skill has a name of 1 to 64 characters; '' is not one"),
    ],
)
def test_a_skill_that_cannot_serve_is_refused_with_the_reason(words: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_skill(words)


@given(st.text(max_size=300))
def test_any_text_is_a_skill_or_a_refusal(words: str) -> None:
    try:
        parse_skill(f"---\n{words}")
    except UsageError:
        return


def test_a_catalogue_shows_names_and_descriptions_and_nothing_without_skills() -> None:
    assert catalogue_text(()) == ""
    listed = catalogue_text((Skill(name="a", description="First."), Skill(name="b", description="Second.")))
    assert listed.endswith("\n- a: First.\n- b: Second.")
    assert "activate_skill" in listed


def test_an_active_skill_is_its_instructions_in_a_tag_with_its_files() -> None:
    skill = Skill(name='a"<b', description="d", instructions="Do it.", resources=("x&y.md",))
    assert skill_text(skill) == (
        '<skill name="a&quot;&lt;b">\nDo it.\n<skill_resources>\n  <file>x&amp;y.md</file>\n'
        "</skill_resources>\n</skill>"
    )
