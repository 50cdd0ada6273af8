"""A result and a state go through JSON and through stores, whatever was said."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dialoom.agent import (
    AGENT_TYPES,
    AgentResult,
    AgentSpec,
    ReActAgent,
    agent_graph,
    begin,
    history_of,
    result_of,
)
from dialoom.base.errors import UsageError
from dialoom.graph import RunOptions, State
from dialoom.llm import (
    Message,
    MockProvider,
    OpaquePart,
    ReasoningPart,
    RefusalPart,
    SourcePart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
    user,
)
from dialoom.llm.pairing import paired
from dialoom.stores import JsonlCheckpointStore, SqliteCheckpointStore
from tests.agent.tools import add, call, refund

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
ids = st.sampled_from(["c1", "c2", "c3"])
calls = st.builds(
    ToolCall,
    id=ids,
    name=words,
    arguments=st.none() | st.dictionaries(words, json_values, max_size=3),
    raw=words,
    problem=st.sampled_from([None, "truncated", "invalid_json"]),
)
parts = st.one_of(
    st.builds(TextPart, words),
    st.builds(ReasoningPart, words, st.none() | words),
    st.builds(SourcePart, index=st.integers(1, 9), id=words, title=words, text=words),
    st.builds(ToolCallPart, calls),
    st.builds(ToolResultPart, call_id=ids, content=words, is_error=st.booleans()),
    st.builds(RefusalPart, words),
    st.builds(OpaquePart, words, words),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "tool", "system"]),
    parts=st.lists(parts, max_size=4).map(tuple),
)


@given(messages)
def test_a_message_comes_back_from_a_checkpoint_as_it_was(message: Message) -> None:
    (codec,) = [each for each in AGENT_TYPES if each.type is Message]
    assert codec.decode(codec.encode(message)) == message


@given(st.lists(messages, max_size=8))
def test_a_history_answers_every_call_in_order_whatever_was_said(turn: list[Message]) -> None:
    for message in turn:
        made = [each.id for each in message.tool_calls]
        assume(len(made) == len(set(made)))  # providers see to that
    closed = history_of(State(turn=turn))
    assert paired(closed) == closed
    waiting = history_of(State(turn=turn), waiting=True)
    assert [each for each in closed if each in waiting] == [*waiting]


async def test_half_a_character_in_a_question_is_kept_as_a_replacement() -> None:
    model = MockProvider().queue_text("Yes.")
    result = await ReActAgent(model).run("Is it \ud83d?")
    assert AgentResult.from_json(result.to_json()).history[0].text == "Is it \ufffd?"


@pytest.mark.parametrize("store", [SqliteCheckpointStore, JsonlCheckpointStore])
async def test_a_store_keeps_half_a_character_as_a_replacement(store: Any, tmp_path: Path) -> None:
    with store(tmp_path / "threads", types=AGENT_TYPES) as opened:
        agent = ReActAgent(MockProvider().queue_text("Yes."), store=opened)
        assert (await agent.run("Is it \ud83d?", RunOptions(thread_id="t"))).finished
        kept = opened.load("t")
    assert kept is not None
    assert kept.state["turn"][0].text == "Is it \ufffd?"


async def test_a_result_that_waits_goes_through_json_and_back() -> None:
    model = MockProvider().queue_tool_calls(
        call("c1", "refund", order=9, amount=30), call("c2", "add", a=1, b=1)
    )
    result = await ReActAgent(model, [refund, add]).run("Refund order 9.")
    again = AgentResult.from_json(result.to_json())
    assert again.pending == result.pending
    assert again.standing is not None
    assert again.to_dict() == result.to_dict()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", '{"format": 2}', '{"format": 1}', '{"format": 1, "answer": 5}', "\udcff"],
)
def test_what_is_no_result_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="this is no agent result"):
        AgentResult.from_json(text)


async def test_a_standing_that_was_spoiled_is_refused() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "refund", order=9, amount=30))
    fields = (await ReActAgent(model, [refund]).run("Refund order 9.")).to_dict()
    with pytest.raises(UsageError, match="this is no agent result: its data cannot be read"):
        AgentResult.from_dict({**fields, "standing": {"id": 5}})


def test_the_end_of_a_run_that_never_began_is_a_result_too() -> None:
    spec = AgentSpec(provider=MockProvider())
    run = agent_graph(spec).run_sync({"nowhere": 1})
    result = result_of(run, spec)
    assert (result.stop_reason, result.answer, result.history) == ("error", "", ())
    assert result.error is not None
    assert "there is no such channel" in result.error


def test_a_turn_begins_with_its_messages_and_nothing_used() -> None:
    inputs = begin([user("Hello.")], seen=3)
    assert (inputs["turn"], inputs["seen"], inputs["outcome"], inputs["rounds"]) == (
        [user("Hello.")],
        3,
        "",
        0,
    )
