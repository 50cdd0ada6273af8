"""Forms: asked, answered once, restored by their definition; secrets stay out of everything."""

import pytest
from pydantic import ValidationError

from dialoom.base.errors import UsageError
from dialoom.conversation import CardEntry, Conversation, prompt, screen
from dialoom.conversation.cards import (
    DEFAULT_CARDS,
    Form,
    FormDefinition,
    FormField,
    FormRegistry,
    FormRequest,
    InvalidAnswersError,
    LockedForm,
    UnknownCard,
)
from dialoom.conversation.cards.form import without_secrets

LOGIN = FormDefinition(
    form_id="login",
    title="Sign in",
    fields=(
        FormField(id="user", label="User", required=True),
        FormField(id="password", label="Password", type="secret", required=True),
        FormField(id="remember", type="bool"),
    ),
    submit_label="Go",
)


def test_a_form_is_answered_once() -> None:
    form = LOGIN.card(card_id="f1")
    sent = form.submit({"user": "ada", "password": "hunter2"})
    assert sent.status == "submitted"
    assert sent.submitted_values == {"user": "ada"}
    assert [each.current_value for each in sent.fields] == ["ada", None, None]
    with pytest.raises(UsageError, match="this form is submitted; it takes no answers any more"):
        sent.submit({"user": "bob", "password": "x"})
    assert DEFAULT_CARDS.act(form, "submit", {"values": {"user": "ada", "password": "hunter2"}}) == sent


def test_a_status_of_another_product_leaves_a_form_to_be_answered() -> None:
    pending = LOGIN.card().changed(status="Pending")
    assert not pending.is_done
    assert pending.submit({"user": "ada", "password": "x"}).status == "submitted"
    answered = LOGIN.card().changed(status="Submitted")
    assert answered.is_done
    assert answered.note("zh") == "[表单“Sign in”已提交]"


def test_wrong_answers_change_nothing_and_say_what_is_wrong() -> None:
    with pytest.raises(InvalidAnswersError) as refusal:
        LOGIN.card().submit({"user": "", "remember": "yes"})
    assert str(refusal.value) == "/user: an answer is needed, and 2 more; correct and submit again"
    assert [(each.path, each.code) for each in refusal.value.violations] == [
        ("/user", "required"),
        ("/password", "required"),
        ("/remember", "type"),
    ]
    with pytest.raises(InvalidAnswersError, match="/user: an answer is needed; correct and submit again"):
        LOGIN.card().submit({"password": "x"})


def test_a_page_gets_the_schema_of_the_answers() -> None:
    schema = LOGIN.card().schema_of_answers()
    assert schema["required"] == ["user", "password"]


def test_a_secret_is_in_no_entry_file_screen_or_prompt() -> None:
    hostile = (
        "type: Form\nid: f1\ntitle: Sign in\nformId: login\nstatus: submitted\n"
        "fields:\n- {id: password, type: secret, currentValue: hunter2, default: hunter2}\n"
        "submittedValues: {password: hunter2, user: ada}\n"
    )
    card = DEFAULT_CARDS.decode("Form", hostile)
    sent = LOGIN.card({"password": "hunter2"}).submit({"user": "ada", "password": "hunter2"})
    smuggled = sent.model_copy(update={"submitted_values": {"user": "ada", "password": "hunter2"}})
    conversation = Conversation()
    for each in (card, sent, smuggled):
        conversation.append(DEFAULT_CARDS.encode(each))
    for text in (
        conversation.to_yaml(),
        conversation.to_json(),
        repr(screen(conversation.entries)),
        repr(prompt(conversation.entries)),
        smuggled.note("en"),
    ):
        assert "hunter2" not in text
        assert "ada" in text


def test_values_that_are_no_mapping_are_refused_not_lost() -> None:
    with pytest.raises(ValidationError):
        Form.model_validate(5)
    card = DEFAULT_CARDS.decode("Form", "formId: f\nsubmittedValues: 5\n")
    assert isinstance(card, UnknownCard)
    assert card.reason == "submittedValues: Input should be a valid dictionary"
    assert isinstance(DEFAULT_CARDS.decode("Form", "formId: f\nfields: [5]\n"), UnknownCard)
    assert isinstance(DEFAULT_CARDS.decode("Form", "formId: f\nfields: 5\n"), UnknownCard)


@pytest.mark.promise("cards-018")
def test_a_form_card_is_a_request_with_definition_and_answers_and_back() -> None:
    forms = FormRegistry(LOGIN)
    request = FormRequest(LOGIN, {"user": "ada"})
    card = request.card(card_id="f1")
    assert card == Form(
        id="f1",
        form_id="login",
        title="Sign in",
        fields=(LOGIN.fields[0].changed(current_value="ada"), *LOGIN.fields[1:]),
        submit_label="Go",
    )
    assert forms.request(card) == request
    with pytest.raises(UsageError, match="no form 'login' is registered; add its definition first"):
        FormRegistry().request(card)


def test_a_definition_added_later_replaces_the_one_before() -> None:
    forms = FormRegistry()
    forms.add(LOGIN)
    newer = LOGIN.changed(title="Welcome")
    forms.add(newer)
    assert forms.find("login") == newer
    assert forms.restore(LOGIN.card()).title == "Welcome"


def test_an_answered_form_stays_as_it_was_asked() -> None:
    sent = LOGIN.card().submit({"user": "ada", "password": "x"})
    assert FormRegistry().restore(sent) is sent


@pytest.mark.promise("cards-031")
def test_a_form_without_a_form_id_is_a_placeholder_unless_it_brings_its_own_definition() -> None:
    card = DEFAULT_CARDS.decode("Form", "type: Form\ntitle: Grid\n")
    assert isinstance(card, UnknownCard)
    assert card.reason == "the form has no formId; it cannot be restored"
    inline = Form(title="Grid", inline=True, fields=(FormField(id="cell", type="number"),))
    entry = DEFAULT_CARDS.encode(inline)
    assert DEFAULT_CARDS.decode_entry(entry, FormRegistry()) == inline


def test_a_locked_form_takes_no_answers_and_is_written_as_it_came() -> None:
    entry = DEFAULT_CARDS.encode(LOGIN.card(card_id="f1"))
    locked = DEFAULT_CARDS.decode_entry(entry, FormRegistry())
    assert isinstance(locked, LockedForm)
    assert DEFAULT_CARDS.encode(locked) == entry
    with pytest.raises(UsageError, match="this Form card can only be looked at"):
        DEFAULT_CARDS.act(locked, "submit", {"values": {"user": "a", "password": "b"}})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ("[{id: a}, {id: a}]", "two fields of a form have the same id; give each its own"),
        ("[{id: a, visibleIf: {b: 1}}]", "visibleIf names 'b', which is no field of the form"),
        ("[{id: ''}]", "fields.0.id: String should have at least 1 character"),
        ("[{id: a, type: slider}]", "fields.0.type: Input should be 'text'"),
        ("[{id: a, pattern: '('}]", "the pattern '(' cannot be used: unclosed group"),
    ],
)
def test_a_form_that_cannot_be_asked_is_a_placeholder(fields: str, reason: str) -> None:
    entry = CardEntry(type="Form", payload=f"formId: f\nfields: {fields}\n")
    card = DEFAULT_CARDS.decode_entry(entry)
    assert isinstance(card, UnknownCard)
    assert card.reason.startswith(reason)


@pytest.mark.parametrize("odd", [None, 7, ["key"], {"a": 1}])
def test_secrets_are_left_out_of_what_is_no_form(odd: object) -> None:
    fields = [{"id": odd, "type": "secret", "default": 1}, odd, {"id": "key", "type": "secret", "default": 1}]
    assert without_secrets({"fields": fields, "values": {"key": 1, "n": 2}, "other": odd}) == {
        "fields": [{"id": odd, "type": "secret"}, odd, {"id": "key", "type": "secret"}],
        "values": {"n": 2},
        "other": odd,
    }
    assert without_secrets({"fields": odd}) == {"fields": odd}
