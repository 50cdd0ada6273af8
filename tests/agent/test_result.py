"""A result and a state go through JSON and through stores, whatever was said."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
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
from dialoom.llm import Message, MockProvider, assistant, tool_result, user
from dialoom.llm.pairing import paired
from dialoom.stores import JsonlCheckpointStore, SqliteCheckpointStore
from tests.agent.tools import add, call, refund
from tests.llm.test_messages import messages

rounds = st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=4), max_size=4)
"""Rounds of calls, each with whether it has a result and when that came."""


@given(messages)
def test_a_message_comes_back_from_a_checkpoint_as_it_was(message: Message) -> None:
    (codec,) = [each for each in AGENT_TYPES if each.type is Message]
    assert codec.decode(codec.encode(message)) == message


@given(rounds)
def test_a_history_answers_every_call_in_order_whenever_the_results_came(
    made: list[list[tuple[bool, int]]],
) -> None:
    turn: list[Message] = [user("Go.")]
    for number, each in enumerate(made):
        ids = [f"c{number}.{at}" for at in range(len(each))]
        turn.append(assistant("", calls=tuple(call(call_id, "add", a=1, b=1) for call_id in ids)))
        came = sorted((when, call_id) for call_id, (ended, when) in zip(ids, each, strict=True) if ended)
        turn += [tool_result(call_id, "2", name="add") for _, call_id in came]
    closed = history_of(State(turn=turn))
    assert paired(closed) == closed
    wanted = [f"c{number}.{at}" for number, each in enumerate(made) for at in range(len(each))]
    assert [part.call_id for message in closed for part in message.tool_results] == wanted
    waiting = history_of(State(turn=turn), waiting=True)
    assert sorted(map(Message.to_json, waiting)) == sorted(map(Message.to_json, turn))


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
