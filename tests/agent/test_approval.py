"""A person is asked before a call runs, and says yes, no, or something else."""

import asyncio
import gc

import msgspec
import pytest

from dialoom.agent import (
    AGENT_TYPES,
    AgentResult,
    AgentSettings,
    Approval,
    ApprovalRequested,
    Approve,
    Deny,
    Edit,
    Question,
    ReActAgent,
    ToolFinished,
    ToolStarted,
)
from dialoom.base.errors import UsageError
from dialoom.graph import MemoryCheckpointStore, RunOptions
from dialoom.llm import Gate, MockProvider, TextDelta, ToolCallReady, ToolCallStarted
from dialoom.tools import ToolContext, ToolExecutionPolicy, tool
from tests.agent.tools import call, refund

THREAD = RunOptions(thread_id="t")
ORDER_9 = call("c1", "refund", order=9, amount=30)


def results_of(result: AgentResult) -> list[tuple[str, str]]:
    return [(part.call_id, part.content) for message in result.history for part in message.tool_results]


async def test_a_call_that_needs_approval_waits_and_says_all_that_a_form_needs() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9)
    result = await ReActAgent(model, [refund]).run("Refund order 9.")
    assert result.stop_reason == "needs_approval"
    assert not result.finished
    assert result.error is None
    assert result.pending == (
        Approval(
            id="c1",
            tool="refund",
            arguments={"order": 9, "amount": 30},
            schema=dict(refund.parameters_schema()),
            question="tools[0]#approval",
        ),
    )
    assert results_of(result) == []


async def test_an_approved_call_runs_as_the_model_wrote_it() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Done.")
    agent = ReActAgent(model, [refund])
    waiting = await agent.run("Refund order 9.")
    result = await agent.resume(waiting, {"c1": Approve()})
    assert (result.answer, result.stop_reason) == ("Done.", "finished")
    assert results_of(result) == [("c1", "refunded 30 for order 9")]


async def test_a_denied_call_is_not_run_and_the_model_reads_why() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Sorry.")
    agent = ReActAgent(model, [refund])
    waiting = await agent.run("Refund order 9.")
    result = await agent.resume(waiting, {"c1": Deny("too late")})
    assert results_of(result) == [("c1", '{"error":"denied","tool":"refund","message":"too late"}')]
    assert result.answer == "Sorry."


async def test_an_edited_call_runs_with_the_new_arguments_and_the_model_is_told_so() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Done.")
    agent = ReActAgent(model, [refund])
    waiting = await agent.run("Refund order 9.")
    result = await agent.resume(waiting, {"c1": Edit({"order": 9, "amount": 20})})
    assert results_of(result) == [
        ("c1", 'refunded 20 for order 9\n[the arguments were changed to {"order":9,"amount":20}]')
    ]


async def test_an_edit_that_the_tool_cannot_take_is_asked_for_again_with_the_reason() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Done.")
    agent = ReActAgent(model, [refund])
    waiting = await agent.run("Refund order 9.")
    again = await agent.resume(waiting, {"c1": Edit({"order": 9, "amount": "much"})})
    assert again.stop_reason == "needs_approval"
    refused = "the answer does not fit: $.amount: expected integer, got string"
    assert [each.refused for each in again.pending] == [refused]
    done = await agent.resume(again, {"c1": Edit({"order": 9, "amount": 10})})
    assert done.finished


@pytest.mark.parametrize(
    "said",
    [
        {"type": "approve"},
        {"type": "deny", "reason": "no"},
        {"type": "edit", "arguments": {"order": 9, "amount": 1}},
    ],
)
async def test_decisions_may_come_as_json(said: object) -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Done.")
    agent = ReActAgent(model, [refund])
    assert (await agent.resume(await agent.run("Refund order 9."), {"c1": said})).finished


@pytest.mark.parametrize("stored", [False, True], ids=["without a store", "with a store"])
@pytest.mark.parametrize("said", ["yes", True, None, Approve, {"type": "maybe"}, {"type": "edit"}], ids=repr)
async def test_an_answer_that_decides_nothing_is_refused_and_the_call_waits_on(
    said: object, stored: bool
) -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Done.")
    agent = ReActAgent(model, [refund], store=MemoryCheckpointStore() if stored else None)
    waiting = await agent.run("Refund order 9.", THREAD)
    told = f"{said!r} decides nothing; answer with Approve(), Deny(reason) or Edit(arguments)"
    with pytest.raises(UsageError) as caught:
        await agent.resume(waiting, {"c1": said})
    assert str(caught.value) == told
    assert (await agent.resume(waiting, {"c1": Approve()})).finished


@pytest.mark.parametrize("order", [("c1", "c2", "c3"), ("c3", "c1", "c2"), ("c2", "c3", "c1")])
async def test_several_approvals_are_answered_one_by_one_in_any_order(order: tuple[str, ...]) -> None:
    model = MockProvider()
    model.queue_tool_calls(*(call(f"c{n}", "refund", order=n, amount=n) for n in (1, 2, 3)))
    model.queue_text("All done.")
    agent = ReActAgent(model, [refund])
    result = await agent.run("Refund all.")
    left = ["c1", "c2", "c3"]
    for call_id in order:
        assert [each.id for each in result.pending] == left
        assert len(model.requests) == 1, "the model waits for the whole round"
        result = await agent.resume(result, {call_id: Approve()})
        left.remove(call_id)
    assert result.answer == "All done."
    assert results_of(result) == [(f"c{n}", f"refunded {n} for order {n}") for n in (1, 2, 3)]
    told = [part.content for message in model.requests[1].messages for part in message.tool_results]
    assert sorted(told) == [f"refunded {n} for order {n}" for n in (1, 2, 3)]


async def test_what_needs_no_approval_runs_at_once_and_only_once() -> None:
    runs: list[str] = []

    @tool
    async def look(what: str) -> str:
        runs.append(what)
        return "seen"

    model = MockProvider().queue_tool_calls(ORDER_9, call("c2", "look", what="order 9")).queue_text("Done.")
    agent = ReActAgent(model, [refund, look])
    waiting = await agent.run("Refund order 9.")
    assert results_of(waiting) == [("c2", "seen")]
    result = await agent.resume(waiting, {"c1": Approve()})
    assert runs == ["order 9"]
    assert results_of(result) == [("c1", "refunded 30 for order 9"), ("c2", "seen")]


async def test_calls_that_are_run_one_after_another_wait_for_the_one_before_them() -> None:
    order: list[str] = []

    @tool
    async def note(what: str) -> str:
        order.append(what)
        return what

    calls = [
        call("c1", "note", what="first"),
        call("c2", "refund", order=1, amount=2),
        call("c3", "note", what="last"),
    ]
    model = MockProvider().queue_tool_calls(*calls)
    model.queue_text("Done.")
    settings = AgentSettings(policy=ToolExecutionPolicy(parallel=False))
    agent = ReActAgent(model, [refund, note], settings=settings)
    waiting = await agent.run("In order, please.")
    assert (order, [each.id for each in waiting.pending]) == (["first"], ["c2"])
    result = await agent.resume(waiting, {"c2": Approve()})
    assert order == ["first", "last"]
    assert [call_id for call_id, _ in results_of(result)] == ["c1", "c2", "c3"]


async def test_answers_that_belong_to_no_call_are_refused_and_name_those_that_wait() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9)
    agent = ReActAgent(model, [refund])
    waiting = await agent.run("Refund order 9.")
    with pytest.raises(UsageError, match="no call 'c9' waits for an answer; waiting: c1"):
        await agent.resume(waiting, {"c9": Approve()})


async def test_two_answers_to_one_result_run_its_call_once_and_the_second_says_so() -> None:
    runs: list[int] = []

    @tool(requires_approval=True)
    async def pay(amount: int) -> str:
        runs.append(amount)
        return "paid"

    model = MockProvider().queue_tool_calls(call("c1", "pay", amount=30)).queue_text("Done.")
    agent = ReActAgent(model, [pay])
    waiting = await agent.run("Pay.")
    first = agent.resume_stream(waiting, {"c1": Approve()})
    assert [each async for each in first if isinstance(each, ToolFinished)]
    assert first.result.finished
    for again in (waiting, AgentResult.from_json(waiting.to_json())):
        with pytest.raises(UsageError, match="this result was answered already, and its calls may have run"):
            await agent.resume(again, {"c1": Approve()})
    assert runs == [30]


@pytest.mark.parametrize("way", ["cancelled", "forgotten"])
async def test_an_answer_whose_run_was_left_counts_when_its_call_had_begun(way: str) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    @tool(requires_approval=True)
    async def pay() -> str:
        begun.set()
        await gate.wait()
        return "paid"

    agent = ReActAgent(MockProvider().queue_tool_calls(call("c1", "pay")), [pay])
    waiting = await agent.run("Pay.")
    if way == "cancelled":
        running = asyncio.ensure_future(agent.resume(waiting, {"c1": Approve()}))
        await begun.wait()
        running.cancel()
        await asyncio.wait({running})
    else:
        before = asyncio.all_tasks()
        assert await anext(agent.resume_stream(waiting, {"c1": Approve()}))
        gc.collect()
        await asyncio.wait(asyncio.all_tasks() - before, timeout=60)
    with pytest.raises(UsageError, match="this result was answered already"):
        await agent.resume(waiting, {"c1": Approve()})


async def test_two_answers_at_once_are_one_answer_and_one_conflict() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Done.")
    agent = ReActAgent(model, [refund])
    waiting = await agent.run("Refund order 9.")
    both = await asyncio.gather(*(agent.resume(waiting, {"c1": Approve()}) for _ in range(2)))
    assert sorted(each.stop_reason for each in both) == ["conflict", "finished"]
    model.assert_done()


async def test_an_answer_that_met_another_run_of_its_thread_may_be_given_again() -> None:
    gate = Gate()
    model = MockProvider().queue_tool_calls(ORDER_9).queue_events(gate, TextDelta("Hm.")).queue_text("Done.")
    agent = ReActAgent(model, [refund])
    waiting = await agent.run("Refund order 9.", THREAD)
    other = asyncio.ensure_future(agent.run("Hello?", THREAD))
    await gate.reached.wait()
    assert (await agent.resume(waiting, {"c1": Approve()})).stop_reason == "conflict"
    gate.opened.set()
    await other
    assert (await agent.resume(waiting, {"c1": Approve()})).finished


async def test_a_result_whose_answer_was_refused_takes_another_one() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Done.")
    agent = ReActAgent(model, [refund])
    waiting = await agent.run("Refund order 9.")
    assert (await agent.resume(waiting, {"c1": Edit({"order": "nine"})})).pending[0].refused
    assert (await agent.resume(waiting, {"c1": Approve()})).finished


async def test_two_calls_of_one_name_are_answered_by_their_questions() -> None:
    calls = (call("c1", "refund", order=1, amount=1), call("c1", "refund", order=2, amount=2))
    model = MockProvider().queue_tool_calls(*calls).queue_text("Done.")
    agent = ReActAgent(model, [refund])
    waiting = await agent.run("Refund both.")
    questions = [each.question for each in waiting.pending]
    with pytest.raises(UsageError) as caught:
        await agent.resume(waiting, {"c1": Approve()})
    assert str(caught.value) == f"2 calls 'c1' wait; answer each by its question: {', '.join(questions)}"
    assert (await agent.resume(waiting, dict.fromkeys(questions, Approve()))).finished


async def test_answers_for_a_thread_that_is_not_there_name_it() -> None:
    agent = ReActAgent(MockProvider(), [refund], store=MemoryCheckpointStore())
    with pytest.raises(UsageError, match="there is no thread 'order-8' to resume; begin it with run"):
        await agent.resume("order-8", {"c1": Approve()})


async def test_with_a_store_the_second_answer_to_one_approval_is_refused() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Done.")
    agent = ReActAgent(model, [refund], store=MemoryCheckpointStore())
    waiting = await agent.run("Refund order 9.", THREAD)
    assert waiting.standing is None, "the store knows"
    assert (await agent.resume(waiting, {"c1": Approve()})).finished
    with pytest.raises(UsageError, match="no call 'c1' waits for an answer; waiting: nothing, so resume"):
        await agent.resume("t", {"c1": Approve()})


async def test_a_result_that_is_over_cannot_be_resumed() -> None:
    agent = ReActAgent(MockProvider().queue_text("Hello."))
    over = await agent.run("Hi.", THREAD)
    for where in (over, "t"):
        with pytest.raises(UsageError, match="nothing is left to resume of thread 't'; ask anew"):
            await agent.resume(where)


async def test_bad_calls_of_a_tool_that_needs_approval_are_answered_without_asking_anybody() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "refund", order="nine")).queue_text("Sorry.")
    result = await ReActAgent(model, [refund]).run("Refund order nine.")
    assert result.finished
    assert '"error":"invalid_arguments"' in results_of(result)[0][1]


async def test_listeners_hear_of_a_wait_at_once_and_of_the_run_when_it_is_allowed() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Done.")
    agent = ReActAgent(model, [refund])
    stream = agent.run_stream("Refund order 9.")
    heard = [event async for event in stream]
    assert [event.approval.id for event in heard if isinstance(event, ApprovalRequested)] == ["c1"]
    assert not any(isinstance(event, ToolStarted) for event in heard)
    resumed = agent.resume_stream(stream.result, {"c1": Approve()})
    heard = [event async for event in resumed]
    assert heard[:2] == [
        ToolStarted(call=ORDER_9),
        ToolFinished(call_id="c1", tool="refund", content="refunded 30 for order 9"),
    ]
    assert not any(isinstance(event, ApprovalRequested) for event in heard)


async def test_the_words_said_with_a_call_are_the_reason_shown_for_it() -> None:
    model = MockProvider().queue_events(
        TextDelta("The parcel\nnever came."),
        ToolCallStarted(index=0, id="c1", name="refund"),
        ToolCallReady(index=0, call=ORDER_9),
    )
    result = await ReActAgent(model, [refund]).run("Refund order 9.")
    approval = result.pending[0]
    assert isinstance(approval, Approval)
    assert approval.reason == "The parcel never came."


@tool
async def book(day: str, ctx: ToolContext) -> str:
    """Book a day, when a person names the hour."""
    hour = ctx.ask({"form": f"which hour on {day}?"}, schema=int)
    name = ctx.ask("whose name?")
    return f"booked {day} at {hour} for {name}"


@tool
def book_plainly(day: str, ctx: ToolContext) -> str:
    """The same in a thread."""
    return f"booked {day} at {ctx.ask({'form': f'which hour on {day}?'}, key='hour', schema=int)}"


async def test_a_tool_asks_while_it_runs_and_begins_anew_with_each_answer() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "book", day="Monday")).queue_text("Booked.")
    agent = ReActAgent(model, [book])
    first = await agent.run("Book Monday.")
    assert (first.stop_reason, first.error) == ("needs_approval", None)
    assert first.pending == (
        Question(
            id="c1",
            tool="book",
            payload={"form": "which hour on Monday?"},
            question="tools[0]#tool/1/1",
        ),
    )
    refused = await agent.resume(AgentResult.from_json(first.to_json()), {"c1": "noon"})
    assert refused.pending[0].refused == "the answer does not fit: Expected `int`, got `str`"
    second = await agent.resume(refused, {"c1": 12})
    assert [each.payload for each in second.pending if isinstance(each, Question)] == ["whose name?"]
    done = await agent.resume(second, {"c1": "Ada"})
    assert results_of(done) == [("c1", "booked Monday at 12 for Ada")]


class Form(msgspec.Struct):
    fields: tuple[str, ...]


async def test_a_form_is_asked_as_json_values_and_what_is_none_is_an_error_the_model_reads() -> None:
    @tool
    async def fill(what: str, ctx: ToolContext) -> str:
        return str(ctx.ask(Form(("hour", "name")) if what == "form" else object()))

    calls = (call("c1", "fill", what="form"), call("c2", "fill", what="anything"))
    waiting = await ReActAgent(MockProvider().queue_tool_calls(*calls), [fill]).run("Fill it in.")
    assert [each.payload for each in waiting.pending if isinstance(each, Question)] == [
        {"fields": ["hour", "name"]}
    ]
    assert results_of(waiting) == [
        ("c2", '{"error":"TypeError: cannot be written as JSON: object","tool":"fill"}')
    ]


async def test_a_plain_tool_asks_from_its_thread() -> None:
    model = MockProvider().queue_tool_calls(call("c1", "book_plainly", day="Monday")).queue_text("Booked.")
    agent = ReActAgent(model, [book_plainly], store=MemoryCheckpointStore())
    waiting = await agent.run("Book Monday.")
    done = await agent.resume(waiting, {"c1": 12})
    assert results_of(done) == [("c1", "booked Monday at 12")]


async def test_a_new_question_leaves_what_waited_unanswered_and_the_history_in_order() -> None:
    model = MockProvider().queue_tool_calls(ORDER_9).queue_text("Never mind, then.")
    agent = ReActAgent(model, [refund], store=MemoryCheckpointStore())
    await agent.run("Refund order 9.", THREAD)
    result = await agent.run("Never mind.", THREAD)
    assert [message.role for message in result.history] == ["user", "assistant", "tool", "user", "assistant"]
    assert results_of(result) == [("c1", "cancelled: this call was never finished")]


def test_every_value_of_an_agent_that_a_store_meets_has_a_name() -> None:
    assert [each.name for each in AGENT_TYPES] == [
        "dialoom.message",
        "dialoom.spent",
        "dialoom.call_end",
        "dialoom.summary",
        "dialoom.approval",
        "dialoom.question",
        "dialoom.approve",
        "dialoom.deny",
        "dialoom.edit",
    ]
