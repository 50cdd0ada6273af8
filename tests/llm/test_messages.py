"""Messages are plain values: they compare, they travel as JSON, and they refuse what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.llm import (
    FilePart,
    Message,
    OpaquePart,
    Origin,
    ReasoningPart,
    RefusalPart,
    SourcePart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
    Usage,
    assistant,
    system,
    tool_result,
    user,
)

SOURCE = SourcePart(index=1, id="a#1", title="A", text="alpha")
CALL = ToolCall(id="c1", name="lookup", arguments={"city": "Rome"}, raw='{"city":"Rome"}')

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
calls = st.builds(
    ToolCall,
    id=text,
    name=text,
    arguments=st.none() | st.dictionaries(text, json_values, max_size=3),
    raw=text,
    problem=st.none() | st.sampled_from(["truncated", "invalid_json", "not_object"]),
    provider_id=st.none() | text,
)
parts = st.one_of(
    st.builds(TextPart, text),
    st.builds(FilePart, data=st.binary(min_size=1, max_size=9), media_type=st.just("image/png"), name=text),
    st.builds(ReasoningPart, text, st.none() | text),
    st.builds(SourcePart, index=st.integers(1, 99), id=text, title=text, text=text),
    st.builds(ToolCallPart, calls),
    st.builds(ToolResultPart, call_id=text, content=text, name=st.none() | text, is_error=st.booleans()),
    st.builds(RefusalPart, text),
    st.builds(OpaquePart, text, text),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    parts=st.lists(parts, max_size=4).map(tuple),
    name=st.none() | text,
    id=st.none() | text,
    created=st.none() | st.floats(0, 4e9),
    origin=st.none() | st.builds(Origin, text, text),
    usage=st.none() | st.builds(Usage, input_tokens=st.none() | st.integers(0, 9)),
)


def test_the_short_forms_say_what_they_mean() -> None:
    assert system("Be brief.") == Message(role="system", parts=(TextPart("Be brief."),))
    assert user("Hi", sources=(SOURCE,)) == Message(role="user", parts=(SOURCE, TextPart("Hi")))
    assert assistant("", calls=(CALL,)) == Message(role="assistant", parts=(ToolCallPart(CALL),))
    assert tool_result("c1", "sunny", is_error=True) == Message(
        role="tool", parts=(ToolResultPart(call_id="c1", content="sunny", is_error=True),)
    )


def test_a_message_is_read_by_what_its_parts_are() -> None:
    message = Message(
        role="assistant",
        parts=(
            ReasoningPart("hm "),
            ReasoningPart("yes"),
            TextPart("It is "),
            SOURCE,
            TextPart("sunny."),
            RefusalPart("no"),
            ToolCallPart(CALL),
            ToolResultPart(call_id="c1", content="x"),
        ),
    )
    assert (message.text, message.reasoning, message.refusal) == ("It is sunny.", "hm yes", "no")
    assert (message.sources, message.tool_calls) == ((SOURCE,), (CALL,))
    assert message.tool_results == (ToolResultPart(call_id="c1", content="x"),)


def test_json_holds_what_was_said_and_no_defaults() -> None:
    assert user("Hi").to_json() == '{"role":"user","parts":[{"type":"text","text":"Hi"}]}'


@given(messages)
def test_every_message_survives_the_way_through_json_and_through_a_dict(message: Message) -> None:
    assert Message.from_json(message.to_json()) == message
    assert Message.from_dict(message.to_dict()) == message


def test_fields_of_a_later_version_are_skipped() -> None:
    line = '{"role":"user","parts":[{"type":"text","text":"Hi","colour":"red"}],"mood":"good"}'
    assert Message.from_json(line) == user("Hi")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '{"role":"king"}',
        '{"role":"user","parts":[{"type":"video"}]}',
        b"\xff",
        "[" * 100_000,
    ],
)
def test_what_is_no_message_is_refused_in_one_line(text: str | bytes) -> None:
    with pytest.raises(UsageError, match=r"this is not a message: .*; write messages with") as caught:
        Message.from_json(text)
    assert "\n" not in str(caught.value)


def test_a_dict_that_is_no_message_is_refused() -> None:
    with pytest.raises(UsageError, match="this is not a message"):
        Message.from_dict({"role": 1})


def test_half_a_character_cannot_be_written_and_the_error_says_what_to_do() -> None:
    with pytest.raises(UsageError, match=r"lone surrogate.*replace_surrogates"):
        user("\ud83d").to_json()


@given(
    st.lists(
        st.builds(
            Usage, input_tokens=st.none() | st.integers(0, 9), output_tokens=st.none() | st.integers(0, 9)
        )
    )
)
def test_later_token_counts_replace_earlier_ones_and_silence_changes_nothing(reports: list[Usage]) -> None:
    total = Usage()
    for report in reports:
        total = total.updated(report)
    told = [report.input_tokens for report in reports if report.input_tokens is not None]
    assert total.input_tokens == (told[-1] if told else None)
    assert total.updated(Usage()) == total
