"""What a model gets of a long history: whole turns within limits, and nothing torn apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.agent import AgentSettings, ReActAgent
from dialoom.agent.history_limits import HistoryLimits, trim
from dialoom.base.errors import UsageError
from dialoom.llm import (
    ChatOptions,
    FilePart,
    Message,
    MockProvider,
    OpaquePart,
    ReasoningPart,
    RefusalPart,
    SourcePart,
    ToolCall,
    assistant,
    chat,
    system,
    tool_result,
    user,
)
from dialoom.llm.message_size import character_count, token_estimate
from dialoom.testing.wire_case import WireCase, read_cases
from dialoom.testing.wire_cases import CaseTarget, our_providers
from tests.llm.scripted_transport import ScriptedTransport

GUIDE = system("be brief")
CASES = {case.id: case for case in read_cases(Path(__file__).parents[1] / "llm" / "wire_cases.jsonl")}


def call(call_id: str) -> ToolCall:
    return ToolCall(id=call_id, name="look", arguments={}, raw="{}")


FIRST = (user("one"), assistant("", calls=(call("c1"),)), tool_result("c1", "sunny"), assistant("done"))
SECOND = (user("two"), assistant("done two"))
LAST = (user("three"),)
HISTORY = (GUIDE, *FIRST, *SECOND, *LAST)


@pytest.mark.promise("agent-018", "agent-020", "agent-021", "agent-022")
@pytest.mark.parametrize(
    ("most", "kept"),
    [
        (8, (*FIRST, *SECOND, *LAST)),
        (7, (*SECOND, *LAST)),
        (4, (*SECOND, *LAST)),
        (3, LAST),
        (1, LAST),
    ],
)
def test_a_model_gets_the_newest_whole_turns_within_a_number_of_messages(
    most: int, kept: tuple[Message, ...]
) -> None:
    assert trim(HISTORY, HistoryLimits(messages=most)) == (GUIDE, *kept)


@pytest.mark.promise("agent-019")
def test_a_model_gets_the_newest_whole_turns_within_a_number_of_characters() -> None:
    fits = sum(map(character_count, (GUIDE, *SECOND, *LAST)))
    assert trim(HISTORY, HistoryLimits(characters=fits)) == (GUIDE, *SECOND, *LAST)
    assert trim(HISTORY, HistoryLimits(characters=fits - 1)) == (GUIDE, *LAST)


def test_tokens_are_counted_as_the_caller_counts_them_or_estimated() -> None:
    assert trim(HISTORY, HistoryLimits(tokens=40, count_tokens=lambda _: 10)) == (GUIDE, *SECOND, *LAST)
    fits = sum(map(token_estimate, (GUIDE, *SECOND, *LAST)))
    assert trim(HISTORY, HistoryLimits(tokens=fits)) == (GUIDE, *SECOND, *LAST)
    assert [token_estimate(user(text)) for text in ("", "a" * 30, "天" * 30, "\ud83d")] == [4, 14, 34, 5]


def test_without_limits_or_messages_nothing_is_left_out() -> None:
    assert trim(HISTORY, HistoryLimits()) == HISTORY
    assert trim((), HistoryLimits(messages=1)) == ()
    assert trim((GUIDE,), HistoryLimits(messages=1, turns=1)) == (GUIDE,)


@pytest.mark.parametrize("name", ["tokens", "files", "file_bytes"])
def test_a_limit_below_one_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is 0; give 1 or more, or None for no limit"):
        HistoryLimits(**{name: 0})


def picture(name: str, *, size: int = 10) -> FilePart:
    return FilePart(data=b"x" * size, media_type="image/png", name=name)


def gone(name: str, *, size: int = 10) -> str:
    return f"[image {name}, image/png, {size} bytes: left out, there are newer files]"


A, B, C, D = map(picture, ("a", "b", "c", "d"))
LOOKED = (
    user("see", files=(A,)),
    assistant("", calls=(call("c1"),)),
    tool_result("c1", "two", files=(B, C)),
    assistant("seen"),
    user("and this", files=(D,)),
)


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({"files": 4}, (A, B, C, D)),
        ({"files": 3}, (B, C, D)),
        ({"files": 2}, (C, D)),
        ({"files": 1}, (D,)),
        ({"file_bytes": 40}, (A, B, C, D)),
        ({"file_bytes": 39}, (B, C, D)),
        ({"file_bytes": 19}, (D,)),
        ({"file_bytes": 9}, ()),
        ({"files": 3, "file_bytes": 20}, (C, D)),
        ({"files": 1, "file_bytes": 40}, (D,)),
    ],
)
def test_the_newest_files_stay_and_older_ones_become_a_line(
    limits: dict[str, Any], kept: tuple[FilePart, ...]
) -> None:
    view = trim(LOOKED, HistoryLimits(**limits))
    assert tuple(file for message in view for file in message.files) == kept
    lines = [gone(each.name) for each in (B, C) if each not in kept]
    assert view[0].text == ("see" if A in kept else f"{gone('a')}\nsee")
    assert view[2].tool_results[0].content == "\n".join(["two", *lines])
    assert view[4].text == ("and this" if D in kept else f"{gone('d')}\nand this")
    assert (view[1], view[3]) == (LOOKED[1], LOOKED[3])
    assert trim(view, HistoryLimits(**limits)) == view


def test_behind_a_file_that_has_no_room_none_is_sent() -> None:
    small, large, last = picture("small", size=1), picture("large", size=50), picture("last")
    view = trim((user("", files=(small, large, last)),), HistoryLimits(file_bytes=20))
    assert [part for part in view[0].parts if isinstance(part, FilePart)] == [last]
    assert view[0].text == f"{gone('small', size=1)}\n{gone('large', size=50)}\n"


def test_a_turn_is_not_left_out_for_a_picture_that_is_not_sent() -> None:
    view = trim(LOOKED, HistoryLimits(files=1, tokens=2000))
    assert len(view) == len(LOOKED)
    assert trim(LOOKED, HistoryLimits(tokens=2000)) == LOOKED[4:]


async def test_an_agent_sends_no_more_files_than_its_limits_say() -> None:
    llm = MockProvider().queue_text("done")
    agent = ReActAgent(llm, settings=AgentSettings(history=HistoryLimits(files=1)))
    result = await agent.continue_with(LOOKED[:4], "and now?")
    (request,) = llm.requests
    assert [file for message in request.messages for file in message.files] == [C]
    assert [file for message in result.history for file in message.files] == [A, B, C]


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"messages": "5"}, "messages is '5'; give 1 or more, or None for no limit"),
        ({"turns": 2.5}, "turns is 2.5; give 1 or more, or None for no limit"),
        ({"characters": True}, "characters is True; give 1 or more, or None for no limit"),
        (
            {"count_tokens": 5},
            "count_tokens is a value of type int; give a function of a message, or leave it out",
        ),
    ],
)
def test_a_limit_that_is_no_whole_number_is_refused(limits: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        HistoryLimits(**limits)
    assert str(caught.value) == told


def test_the_words_of_an_activated_skill_stay_with_their_call_and_what_stands_beside_them() -> None:
    both = assistant("", calls=(call("skill"), call("other")))
    words = msgspec.structs.replace(tool_result("skill", "always cite"), mark="skill")
    turn = (user("one"), both, tool_result("other", "x"), words, assistant("done"))
    kept = (both, tool_result("other", "x"), words)
    late = (*turn, tool_result("other", "again"), *LAST)
    assert trim((*turn, *LAST), HistoryLimits(turns=1)) == (*kept, *LAST)
    assert trim(late, HistoryLimits(turns=1)) == (*kept, *LAST)  # a second answer to a call says nothing
    assert trim((*turn, *SECOND, *LAST), HistoryLimits(messages=6)) == (*kept, *SECOND, *LAST)
    assert trim((*turn, *SECOND, *LAST), HistoryLimits(messages=5)) == (*kept, *LAST)


def test_a_marked_message_keeps_the_results_that_come_behind_it() -> None:
    asks = msgspec.structs.replace(assistant("", calls=(call("a"), call("b"))), mark="skill")
    turn = (user("one"), asks, tool_result("a", "1"), tool_result("b", "2"))
    assert trim((*turn, *LAST), HistoryLimits(turns=1)) == (*turn[1:], *LAST)


def test_what_was_said_between_a_skills_call_and_its_words_goes_with_its_turn() -> None:
    asks = assistant("", calls=(call("skill"),))
    words = msgspec.structs.replace(tool_result("skill", "always cite"), mark="skill")
    assert trim((user("one"), asks, user("hurry"), words, *LAST), HistoryLimits(turns=1)) == (
        asks,
        words,
        *LAST,
    )


def test_words_between_a_call_and_its_result_do_not_part_them() -> None:
    slow = (user("one"), assistant("", calls=(call("c1"),)), user("hurry"), tool_result("c1", "sunny"))
    assert trim((*SECOND, *slow), HistoryLimits(turns=1)) == slow
    assert trim((*SECOND, *slow, *LAST), HistoryLimits(turns=1)) == LAST


def test_everything_that_is_sent_counts() -> None:
    parts = (
        SourcePart(index=1, id="s", title="t", text="12"),
        RefusalPart("345"),
        OpaquePart("anthropic", "{}"),
        ReasoningPart("signed", "sig"),
        ReasoningPart("seldom sent back"),
    )
    assert character_count(Message(role="assistant", parts=parts)) == 2 + 3 + 2 + 6
    unread = ToolCall(id="1", name="f", arguments={"a": 1})
    assert character_count(assistant("", calls=(unread,))) == len('{"a":1}')


def test_a_growing_history_is_read_once_and_another_one_anew() -> None:
    read: list[Message] = []

    def count(message: Message) -> int:
        read.append(message)
        return 1

    window = HistoryLimits(tokens=3, count_tokens=count).window()
    for end in range(1, len(HISTORY) + 1):
        window.fit(list(HISTORY[:end]))
    assert read == list(HISTORY)
    assert window.fit(HISTORY[:5]) == trim(HISTORY[:5], HistoryLimits(messages=3))
    assert read == [*HISTORY, *HISTORY[:5]]


def test_a_counter_that_fails_leaves_the_window_as_it_was() -> None:
    fails = [True]

    def count(message: Message) -> int:
        if fails and message == FIRST[2]:
            raise ValueError(fails.pop())
        return 1

    window = HistoryLimits(characters=10_000, tokens=4, count_tokens=count).window()
    with pytest.raises(ValueError, match="True"):
        window.fit(HISTORY)
    assert window.fit(HISTORY) == (GUIDE, *SECOND, *LAST)


@pytest.mark.promise("agent-020", "agent-021", "agent-022")
@pytest.mark.parametrize("name", ["oai-r-orphan", "ant-r-orphan"])
async def test_a_trimmed_history_is_one_that_a_server_accepts(name: str) -> None:
    case = CASES[name]
    whole = msgspec.structs.replace(case.request, history_limits={})
    history = msgspec.structs.replace(case, request=whole).history()
    limits = HistoryLimits(messages=case.request.history_limits["max_messages"])
    transport = ScriptedTransport([case.reply(case.pieces, now=0)])
    asked = await sent(case, transport, trim(history, limits))
    roles = [message["role"] for message in asked["messages"]]
    assert roles == (["system", "user"] if name == "oai-r-orphan" else ["user"])
    assert "q2" in str(asked["messages"][-1])


async def sent(case: WireCase, transport: ScriptedTransport, history: Sequence[Message]) -> dict[str, Any]:
    target = CaseTarget(root="http://127.0.0.1:1", wire=case.provider, api_key="k", profile=case.profile)
    provider = our_providers(transport)(target)
    answer = await chat(provider, history, ChatOptions(model="m", tools=case.tools))
    assert answer.text == case.expect["text"]
    return transport.requests[0].json()


IDS = st.sampled_from(["c1", "c2", "c3"])
FILES = st.lists(st.builds(picture, st.sampled_from("ab"), size=st.integers(1, 15)), max_size=2).map(tuple)
MESSAGES = st.one_of(
    st.just(GUIDE),
    st.builds(user, st.text(max_size=5), files=FILES),
    st.builds(assistant, st.text(max_size=5), calls=st.lists(st.builds(call, IDS), max_size=2).map(tuple)),
    st.builds(tool_result, IDS, st.text(max_size=5), files=FILES),
)
MARKED = st.builds(
    lambda message, mark: msgspec.structs.replace(message, mark=mark),
    MESSAGES,
    st.sampled_from([None, None, None, "skill"]),
)
LIMITS = st.builds(
    HistoryLimits,
    turns=st.none() | st.integers(1, 4),
    messages=st.none() | st.integers(1, 9),
    characters=st.none() | st.integers(1, 30),
    tokens=st.none() | st.integers(1, 60),
    files=st.none() | st.integers(1, 3),
    file_bytes=st.none() | st.integers(1, 30),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(MARKED, max_size=16), LIMITS)
def test_any_view_keeps_what_must_stay_and_parts_nothing(
    history: list[Message], limits: HistoryLimits
) -> None:
    numbered = [msgspec.structs.replace(message, id=str(at)) for at, message in enumerate(history)]
    view = trim(numbered, limits)
    places = [int(message.id or 0) for message in view]
    assert places == sorted(set(places))
    must = {at for at, each in enumerate(history) if each.role == "system" or each.mark}
    newest = max((at for at, each in enumerate(history) if each.role == "user"), default=0)
    assert must | set(range(newest, len(history))) <= set(places)
    for asked, answered in pairs(history):
        assert (asked in places) == (answered in places)
    sent = [len(file.data) for message in view for file in message.files]
    assert len(sent) <= (limits.files or len(sent))
    assert sum(sent) <= (limits.file_bytes or sum(sent))
    assert trim(view, limits) == view
    assert len(trim(numbered, HistoryLimits(messages=len(history) + 1))) == len(history)


@settings(max_examples=150, deadline=None)
@given(st.lists(MARKED, max_size=16), LIMITS)
def test_a_window_over_a_growing_history_shows_what_a_fresh_one_does(
    history: list[Message], limits: HistoryLimits
) -> None:
    window = limits.window()
    for end in range(len(history) + 1):
        assert window.fit(history[:end]) == trim(history[:end], limits)


def pairs(history: Sequence[Message]) -> list[tuple[int, int]]:
    """Return the places of each call and of the first result that answers it."""
    asked: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for at, message in enumerate(history):
        found += [(asked.pop(each.call_id), at) for each in message.tool_results if each.call_id in asked]
        asked |= dict.fromkeys((each.id for each in message.tool_calls), at)
    return found
