"""An answer recorded once is played back, event by event, to the question it was given to."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import (
    CassetteProvider,
    ChatOptions,
    MockProvider,
    OpaqueBlock,
    Origin,
    ProviderError,
    ReasoningDelta,
    ReasoningEnded,
    Reply,
    TextDelta,
    ToolCall,
    ToolSpec,
    assistant,
    chat,
    system,
    user,
)
from dialoom.llm.cassette.difference import difference
from dialoom.llm.options import DEFAULT_OPTIONS
from dialoom.llm.profile import profile_of
from tests.llm.served import HELLO, read_all

KEY = "sk-marker-0123456789abcdef"


async def recorded(path: Path, mock: MockProvider, *questions: Any, **made: Any) -> list[Any]:
    """Ask each question through a recording cassette; return events, then the error where there was one."""
    async with CassetteProvider(path, mock, **made) as provider:
        return [await everything(provider, question) for question in questions or (HELLO,)]


async def everything(
    provider: CassetteProvider, question: Any, options: ChatOptions = DEFAULT_OPTIONS
) -> tuple[Any, ...]:
    try:
        async with provider.stream(question, options) as stream:
            return (*await read_all(stream), stream.response)
    except ProviderError as error:
        return (*error.args, error.kind, error.retryable, error.reply, error.origin, error.partial)


async def test_what_was_recorded_is_played_back_event_by_event(tmp_path: Path) -> None:
    call = ToolCall(id="c1", name="now", arguments={"zone": "UTC"}, raw='{"zone":"UTC"}')
    mock = (
        MockProvider()
        .queue_events(
            ReasoningDelta("hm"),
            ReasoningEnded("sig"),
            OpaqueBlock(provider="m", block="{}"),
            TextDelta("你好"),
        )
        .queue_tool_calls(call)
    )
    questions = ([user("one")], [user("two"), assistant("", calls=(call,))])
    heard = await recorded(tmp_path / "tape.jsonl", mock, *questions)
    player = CassetteProvider(tmp_path / "tape.jsonl")
    assert [await everything(player, question) for question in questions] == heard
    assert len((tmp_path / "tape.jsonl").read_bytes().splitlines()) == 2


async def test_a_failure_is_played_back_with_all_it_told(tmp_path: Path) -> None:
    error = ProviderError(
        "rate_limit",
        "slow down; wait a little and ask again",
        origin=Origin("desk", "tiny"),
        reply=Reply(status=429, retry_after=7.0, request_id="r-1"),
        retryable=False,
    )
    mock = MockProvider().queue_error(error).queue_events(TextDelta("Half"), ProviderError("timeout", "late"))
    heard = await recorded(tmp_path / "t", mock, HELLO, HELLO)
    player = CassetteProvider(tmp_path / "t")
    assert [await everything(player, HELLO) for _ in range(2)] == heard
    assert heard[1][-1].text == "Half"


async def test_questions_may_come_back_in_another_order_but_each_answer_is_given_once(tmp_path: Path) -> None:
    mock = MockProvider().queue_text("A").queue_text("B")
    await recorded(tmp_path / "t", mock, [user("a")], [user("b")])
    player = CassetteProvider(tmp_path / "t")
    assert (await chat(player, [user("b")])).text == "B"
    assert (await chat(player, [user("a")])).text == "A"
    with pytest.raises(UsageError, match="the cassette t has no answer left; record this question too"):
        await chat(player, [user("a")])


@pytest.mark.parametrize(
    ("messages", "options", "said"),
    [
        ([user("What is it?")], {}, "messages[0].parts[0].text differs from character 5 on"),
        ([system("x"), user("What if?")], {}, "messages[0].role differs from character 0 on"),
        ([user("What"), user("x")], {}, "messages[0].parts[0].text differs from character 4 on"),
        ([user("What now?")], {"seed": 3}, "seed is asked for and was not recorded"),
        ([user("What now?")], {"temperature": 0.5}, "temperature was 0.0 and is 0.5"),
        ([user("What now?")], {"temperature": None}, "temperature was recorded and is not asked for"),
        ([user("What now?")], {"tools": (ToolSpec(name="a"),)}, "tools is asked for and was not recorded"),
    ],
)
async def test_another_question_is_refused_and_told_where_it_differs(
    tmp_path: Path, messages: Any, options: dict[str, Any], said: str
) -> None:
    calm = {"temperature": 0.0}
    async with CassetteProvider(tmp_path / "t", MockProvider().queue_text("Hi")) as recorder:
        await chat(recorder, [user("What now?")], ChatOptions(**calm))
    with pytest.raises(UsageError) as caught:
        await chat(CassetteProvider(tmp_path / "t"), messages, ChatOptions(**(calm | options)))
    assert str(caught.value) == f"the cassette t holds no such question: {said}; record it anew"
    assert "What" not in str(caught.value)


async def test_how_a_question_is_asked_and_what_stores_add_to_it_makes_no_difference(tmp_path: Path) -> None:
    await recorded(tmp_path / "t", MockProvider().queue_text("Hi"), [user("Hello")])
    stored = msgspec.structs.replace(user("Hello"), id="m1", created=1.0, origin=Origin("a", "b"))
    options = ChatOptions(extra_headers={"x-trace": "7"}, cancel=CancelScope())
    assert (await chat(CassetteProvider(tmp_path / "t"), [stored], options)).text == "Hi"


async def test_no_key_gets_onto_a_cassette_however_it_tries(tmp_path: Path) -> None:
    secret = 'pass"word\\7'
    options = ChatOptions(
        extra_headers={"authorization": f"Bearer {KEY}", "x-api-key": KEY},
        extra_body={"api_key": "plain", "deep": [{"auth_token": "plain"}], "seed": 4},
    )
    mock = MockProvider().queue_events(
        TextDelta("It is sk-mar"), TextDelta("ker-0123456789abcdef, "), TextDelta(f"and {secret}.")
    )
    mock.queue_error(ProviderError("auth", f"bad key {KEY}; check the api key"))
    question = [user(f"My key is {KEY} and my word {secret}")]
    async with CassetteProvider(tmp_path / "t", mock, secrets=(secret, "")) as recorder:
        assert KEY in (await chat(recorder, question, options)).text
        with pytest.raises(ProviderError):
            await chat(recorder, question, options)
    tape = (tmp_path / "t").read_text(encoding="utf-8")
    for hidden in (KEY, "marker", "plain", "word\\\\7", "authorization", "x-api-key"):
        assert hidden not in tape
    player = CassetteProvider(tmp_path / "t", secrets=(secret,))
    assert (await chat(player, question, options)).text == "It is ***, and ***."


async def test_an_answer_left_early_or_cancelled_is_not_recorded(tmp_path: Path) -> None:
    scope = CancelScope()
    mock = MockProvider().queue_text("a b c", chunks=3).queue_text("a b c", chunks=3).queue_text("whole")
    async with CassetteProvider(tmp_path / "t", mock) as recorder:
        async with recorder.stream(HELLO) as stream:
            await anext(stream)
        with pytest.raises(Cancelled):
            async with recorder.stream(HELLO, ChatOptions(cancel=scope)) as stream:
                await anext(stream)
                scope.cancel()
                await read_all(stream)
        await chat(recorder, HELLO)
    player = CassetteProvider(tmp_path / "t")
    assert (await chat(player, HELLO)).text == "whole"


async def test_playing_can_be_cancelled(tmp_path: Path) -> None:
    scope = CancelScope()
    await recorded(tmp_path / "t", MockProvider().queue_text("a b c", chunks=3))
    async with CassetteProvider(tmp_path / "t").stream(HELLO, ChatOptions(cancel=scope)) as stream:
        await anext(stream)
        scope.cancel()
        with pytest.raises(Cancelled):
            await read_all(stream)


async def test_answers_recorded_at_once_are_whole_lines(tmp_path: Path) -> None:
    mock = MockProvider()
    for number in range(20):
        mock.queue_text(str(number) * 1000, chunks=7)
    async with CassetteProvider(tmp_path / "t", mock) as recorder, asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(chat(recorder, [user(str(number))]))
    player = CassetteProvider(tmp_path / "t")
    said = {(await chat(player, [user(str(number))])).text[0] for number in range(20)}
    assert len((tmp_path / "t").read_bytes().splitlines()) == 20
    assert said == set("0123456789")


async def test_recording_begins_the_file_anew(tmp_path: Path) -> None:
    for text in ("old", "new"):
        await recorded(tmp_path / "t", MockProvider().queue_text(text))
    assert (await chat(CassetteProvider(tmp_path / "t"), HELLO)).text == "new"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "line 1 of the cassette t cannot be read: Input data was truncated; record it anew"),
        (b"[" * 100_000, "line 1 of the cassette t cannot be read: "),
        (b'{"format":9,"request":{},"events":[]}', "it has format 9, this reads 1"),
        (
            b'{"format":1,"request":{},"events":[{"type":"made.up"}]}',
            "line 1 of the cassette t cannot be read",
        ),
    ],
)
async def test_a_broken_cassette_names_its_line(tmp_path: Path, line: bytes, said: str) -> None:
    (tmp_path / "t").write_bytes(line)
    with pytest.raises(UsageError) as caught:
        await chat(CassetteProvider(tmp_path / "t"), HELLO)
    assert said in str(caught.value)


async def test_a_cassette_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file or directory; record it first"):
        await chat(CassetteProvider(tmp_path / "none"), HELLO)


async def test_a_cassette_too_large_to_hold_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoom.llm.cassette.provider.MAX_BYTES", 10)
    (tmp_path / "t").write_bytes(b"x" * 11)
    with pytest.raises(UsageError, match="has more than 10 bytes"):
        await chat(CassetteProvider(tmp_path / "t"), HELLO)


async def test_a_question_that_is_no_json_is_refused(tmp_path: Path) -> None:
    recorder = CassetteProvider(tmp_path / "t", MockProvider())
    with pytest.raises(UsageError, match="the request cannot be written as JSON"):
        await chat(recorder, HELLO, ChatOptions(extra_body={"x": object()}))


async def test_half_a_character_in_a_question_does_not_stop_a_recording(tmp_path: Path) -> None:
    await recorded(tmp_path / "t", MockProvider().queue_text("Hi"), [user("\ud83d")])
    assert (await chat(CassetteProvider(tmp_path / "t"), [user("\ud83d")])).text == "Hi"


async def test_models_are_the_providers_own_or_those_that_answered(tmp_path: Path) -> None:
    mock = MockProvider(model="tiny").queue_text("Hi").queue_error(ProviderError("auth", "no"))
    recorder = CassetteProvider(tmp_path / "t", mock)
    assert [model.id for model in await recorder.models()] == ["tiny"]
    await chat(recorder, HELLO)
    with pytest.raises(ProviderError):
        await chat(recorder, HELLO)
    async with CassetteProvider(tmp_path / "t", id="tape") as player:
        assert [(model.id, model.provider) for model in await player.models()] == [("tiny", "tape")]
        assert profile_of(player) is profile_of(recorder) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, json_values)
def test_a_difference_is_told_exactly_when_there_is_one(one: Any, other: Any) -> None:
    same = msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
    assert (difference(one, other) is None) == same
    assert difference(one, one) is None


@pytest.mark.parametrize(
    ("recorded_value", "asked", "said"),
    [
        ({"a": {}}, {"a": {"b": 1}}, "a.b is asked for and was not recorded"),
        ({"a": [1, 2]}, {"a": [1]}, "a had 2 items and has 1"),
        ({"a": [1]}, {"a": "x"}, "a was a list and is text"),
        ({"a": {}}, {"a": None}, "a was an object and is None"),
    ],
)
def test_a_difference_is_told_by_its_place(recorded_value: Any, asked: Any, said: str) -> None:
    assert difference(recorded_value, asked) == said
