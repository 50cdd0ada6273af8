"""Questions of servers as the fields of a form."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dialoom.conversation.cards import FormField, FormRegistry
from dialoom.dialog.questions import form_of
from dialoom.mcp.asking import question_of
from dialoom.mcp.question_fields import fields_of_schema

CHOICES = [{"const": "a", "title": "First"}, {"const": "b"}]
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As in the book", "maxLength": 40},
        "born": {"type": "string", "format": "date"},
        "age": {"type": "integer", "minimum": 0, "default": 30},
        "sure": {"type": "boolean"},
        "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
        "pick": {"type": "string", "oneOf": CHOICES},
        "many": {"type": "array", "items": {"anyOf": CHOICES}},
        "nested": {"type": "object"},
        "open": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
}


def test_every_kind_of_property_is_a_field():
    options = [{"value": "a", "label": "First"}, {"value": "b", "label": "b"}]
    sizes = [{"value": "s", "label": "Small"}, {"value": "l", "label": "Large"}]
    name = {"id": "name", "label": "Your name", "help": "As in the book", "type": "text", "max": 40}
    assert fields_of_schema(SCHEMA) == [
        {**name, "required": True},
        {"id": "born", "label": "born", "type": "date", "required": False},
        {"id": "age", "label": "age", "default": 30, "type": "integer", "min": 0, "required": False},
        {"id": "sure", "label": "sure", "type": "bool", "required": False},
        {"id": "size", "label": "size", "type": "select", "options": sizes, "required": False},
        {"id": "pick", "label": "pick", "type": "select", "options": options, "required": False},
        {"id": "many", "label": "many", "type": "multiselect", "options": options, "required": False},
    ]


def test_a_dialog_shows_the_question_as_a_form():
    question = question_of({"message": "who?", "requestedSchema": SCHEMA}, server="s", tool="t")
    form = form_of(question, FormRegistry(), title="t")
    assert (form.title, form.inline, len(form.fields)) == ("who?", True, 7)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
_KEYS = ("title", "description", "default", "enum", "enumNames", "oneOf", "items", "minLength", "minimum")
_PROPERTY = st.dictionaries(st.sampled_from(_KEYS), _JSON).flatmap(
    lambda fields: st.sampled_from(["string", "integer", "number", "boolean", "array", "object"]).map(
        lambda kind: {**fields, "type": kind}
    )
)


@given(st.dictionaries(st.text(min_size=1, max_size=4), _PROPERTY, max_size=4), _JSON)
def test_whatever_a_server_asks_the_fields_are_good_or_left_out(properties: dict[str, Any], required: Any):
    for field in fields_of_schema({"properties": properties, "required": required}):
        assert FormField.model_validate(field).id in properties
