"""Answers to a form: the same rules here and on the page."""

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.conversation.cards import FormField, Option, Violation, check_answers, form_schema
from dialoom.conversation.cards.form_field import is_date, same_value
from dialoom.conversation.cards.pattern import check_pattern, matches


def field(**fields: object) -> FormField:
    return FormField.model_validate({"id": "a", **fields})


def codes(one: FormField, value: object) -> list[tuple[str, str]]:
    return [(each.path, each.code) for each in check_answers([one], {one.id: value})]


@pytest.mark.parametrize(
    ("one", "good", "bad"),
    [
        (field(), ["", "x"], {1: "type", None: "type"}),
        (field(required=True), ["x"], {"": "required"}),
        (field(type="textarea", min=2, max=3), ["ab", "词词词"], {"a": "min", "abcd": "max"}),
        (field(pattern="^[a-z]+$"), ["abc"], {"": "pattern", "ABC": "pattern", "abc\n": "pattern"}),
        (field(type="secret", min=8), ["x" * 8], {"short": "min", 5: "type"}),
        (field(type="number", min=0, max=1), [0, 1, 0.5], {-1: "min", 1.1: "max", "1": "type", True: "type"}),
        (field(type="number"), [10**400], {float("nan"): "type", float("inf"): "type"}),
        (field(type="integer"), [1, 2.0], {1.5: "type", False: "type"}),
        (field(type="bool"), [True, False], {1: "type", "true": "type"}),
        (field(type="select", options=("a", Option(value="b"))), ["a", "b"], {"c": "option", 1: "type"}),
        (
            field(type="date", min="2026-01-01", max="2026-12-31"),
            ["2026-11-30"],
            {"2025-12-31": "min", "2027-01-01": "max", "2026-02-30": "type", "20261130": "type", 5: "type"},
        ),
        (field(type="file"), ["upload-1"], {"": "type", 1: "type"}),
    ],
    ids=lambda each: each.type if isinstance(each, FormField) else "",
)
def test_each_type_takes_its_answers_and_says_what_is_wrong_with_others(
    one: FormField, good: list[object], bad: dict[object, str]
) -> None:
    for value in good:
        assert codes(one, value) == []
    for value, code in bad.items():
        assert codes(one, value) == [("/a", code)]


def test_choices_are_counted_and_each_is_an_option_once() -> None:
    many = field(type="multiselect", options=("x", "y", "z"), required=True, max=2)
    assert codes(many, ["x", "z"]) == []
    assert codes(many, []) == [("/a", "required")]
    assert codes(many, "x") == [("/a", "type")]
    assert codes(many, ["x", "x"]) == [("/a/1", "option")]
    assert codes(many, ["x", "y", "w"]) == [("/a", "max"), ("/a/2", "option")]
    assert codes(many, [1, ["x"]]) == [("/a/0", "option"), ("/a/1", "option")]


def test_a_violation_says_where_and_what_bound_and_never_the_answer() -> None:
    fields = [field(id="a/b~c", type="number", max=10), field(id="key", type="secret", pattern="^k-")]
    assert check_answers(fields, {"a/b~c": 11, "key": "hunter2", "more": 1}) == (
        Violation(path="/more", code="unknown", message="no such field"),
        Violation(path="/a~1b~0c", code="max", message="more than 10", limit=10),
        Violation(path="/key", code="pattern", message="does not have the form asked for"),
    )
    assert check_answers([field(min=5)], {"a": "abc"})[0].message == "less than 5 characters"


def test_a_field_is_asked_only_when_the_others_make_it_visible() -> None:
    fields = [
        field(id="method", type="select", options=("idw", "kriging"), required=True),
        field(id="power", type="number", required=True, visible_if={"method": "idw"}),
        field(id="model", visible_if={"method": ["kriging", "rbf"], "power": [None]}),
    ]
    assert check_answers(fields, {"method": "idw", "power": 2}) == ()
    assert check_answers(fields, {"method": "kriging"}) == ()
    assert [each.code for each in check_answers(fields, {"method": "idw"})] == ["required"]
    assert [each.path for each in check_answers(fields, {"method": "kriging", "power": 2})] == ["/power"]
    assert [each.code for each in check_answers(fields, {})] == ["required"]


def test_true_is_not_one() -> None:
    assert same_value(1, 1.0)
    assert not same_value(True, 1)
    assert not same_value(0, False)


@pytest.mark.parametrize("text", ["", "2026-1-1", "2026-W49-1", "2026-00-01", "２０２６-11-30", 20261130])
def test_only_days_of_the_calendar_are_dates(text: object) -> None:
    assert not is_date(text)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "number", "min": "low"}, "field 'a': min 'low' does not bound a number"),
        ({"type": "text", "max": 1.5}, "field 'a': max 1.5 does not bound a text"),
        ({"type": "text", "max": -1}, "field 'a': max -1 does not bound a text"),
        ({"type": "bool", "min": 0}, "field 'a': min 0 does not bound a bool"),
        ({"type": "date", "min": "soon"}, "field 'a': min 'soon' does not bound a date"),
        ({"type": "select"}, "field 'a' is a select without options; give at least one"),
        ({"pattern": "(a"}, "the pattern '(a' cannot be used: unclosed group"),
        ({"pattern": "(?=a)"}, "the pattern '(?=a)' cannot be used: look-around, including look-ahead"),
        ({"pattern": r"(a)\1"}, r"the pattern '(a)\\1' cannot be used: backreferences are not supported"),
        ({"pattern": "x" * 501}, "a pattern of 501 characters is over the limit of 500"),
    ],
)
def test_a_field_that_no_answer_could_be_checked_against_is_refused(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        field(**fields)
    assert str(refusal.value).startswith(message)


def test_no_pattern_makes_a_match_take_long() -> None:
    """A matcher that backtracks would not end, and the suite's time limit would."""
    assert not matches("^(a+)+$", "a" * 200_000 + "b")
    assert not matches("(x+x+)+y", "x" * 200_000)


def test_classes_mean_what_they_mean_on_a_page() -> None:
    assert matches(r"^\d+$", "12")
    assert not matches(r"^\d+$", "１２")
    assert matches(r"^[\w.]+$", "a_1.")
    assert not matches(r"^\w+$", "词")
    assert matches(r"^\W\D$", "词x")
    assert matches(r"\\d", r"\d")
    assert check_pattern("a") == "a"


NAMES = ("a", "b", "c", "d")
PATTERNS = ("^[a-z]*$", r"\d", "^.{2}$", "x|y")
ANSWERS = (
    st.booleans()
    | st.integers(-3, 12)
    | st.sampled_from((0.5, 2.0, 7.25))
    | st.sampled_from(("", "x", "xy", "12", "A", "词", "no"))
    | st.lists(st.sampled_from(("x", "y", "no")), max_size=3)
)


@st.composite
def forms(draw: st.DrawFn) -> list[FormField]:
    fields: list[FormField] = []
    for at, name in enumerate(NAMES[: draw(st.integers(1, 4))]):
        kind = draw(st.sampled_from(("text", "number", "integer", "bool", "select", "multiselect", "file")))
        bounded = kind in {"text", "number", "integer", "multiselect"}
        condition = (
            {draw(st.sampled_from(NAMES[:at])): draw(st.sampled_from((True, 1, "x", ["x", 2])))} if at else {}
        )
        fields.append(
            FormField(
                id=name,
                label=draw(st.sampled_from(("", "Label"))),
                help=draw(st.sampled_from(("", "what it is"))),
                type=kind,
                required=draw(st.booleans()),
                min=draw(st.none() | st.integers(0, 3)) if bounded else None,
                max=draw(st.none() | st.integers(1, 6)) if bounded else None,
                pattern=draw(st.none() | st.sampled_from(PATTERNS)) if kind == "text" else None,
                options=("x", "y", "12") if "select" in kind else (),
                visible_if=condition if draw(st.booleans()) else {},
            )
        )
    return fields


@settings(max_examples=400, deadline=None)
@given(forms(), st.dictionaries(st.sampled_from((*NAMES, "e")), ANSWERS, max_size=4))
def test_the_page_and_the_server_accept_the_same_answers(
    fields: list[FormField], answers: dict[str, object]
) -> None:
    on_the_page = jsonschema_rs.validator_for(form_schema(fields)).is_valid(answers)
    assert on_the_page == (check_answers(fields, answers) == ())


def test_a_schema_is_what_a_page_needs() -> None:
    fields = [
        field(id="cell", label="Cell", help="in metres", type="number", min=1, required=True),
        field(id="day", type="date", min="2026-01-01"),
        field(id="key", type="secret"),
        field(id="method", type="select", options=("idw", "rbf")),
        field(id="tags", type="multiselect", options=("a", "b"), required=True, max=2),
        field(id="power", type="integer", required=True, visible_if={"cell": 25}),
    ]
    assert form_schema(fields) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "cell": {"type": "number", "minimum": 1, "title": "Cell", "description": "in metres"},
            "day": {
                "type": "string",
                "format": "date",
                "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
                "formatMinimum": "2026-01-01",
            },
            "key": {"type": "string", "writeOnly": True},
            "method": {"enum": ["idw", "rbf"]},
            "tags": {
                "type": "array",
                "items": {"enum": ["a", "b"]},
                "uniqueItems": True,
                "minItems": 1,
                "maxItems": 2,
            },
            "power": {"type": "integer"},
        },
        "required": ["cell", "tags"],
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"cell": {"enum": [25]}}, "required": ["cell"]},
                "then": {"required": ["power"]},
                "else": {"properties": {"power": False}},
            }
        ],
    }
