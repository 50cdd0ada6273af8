"""Turns of any shape: whatever waits, in whatever order it is answered, each call runs once, in its place."""

import asyncio
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.agent import AgentResult, AgentSettings, Approve, Deny, Edit, ReActAgent
from dialoom.llm import MockProvider
from dialoom.llm.pairing import paired
from dialoom.tools import ToolContext, ToolExecutionPolicy, tool
from tests.agent.tools import call

Kind = Literal["plain", "fails", "approve", "deny", "edit", "ask"]
KINDS: tuple[Kind, ...] = ("plain", "fails", "approve", "deny", "edit", "ask")
ANSWERS: dict[str, object] = {"approve": Approve(), "deny": Deny("no"), "edit": Edit({"n": -1}), "ask": 7}

plans = st.lists(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4), min_size=1, max_size=3)


class Shop:
    """Tools that count how often they do something."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []

        @tool
        async def plain(n: int) -> str:
            return self.do("plain", n)

        @tool
        def fails(n: int) -> str:
            self.do("fails", n)
            raise ValueError(n)

        @tool
        async def ask(n: int, ctx: ToolContext) -> str:
            return f"{self.do('ask', n, answer := ctx.ask(n))} {answer}"

        def asked_first(name: str) -> Any:
            @tool(name=name, requires_approval=True)
            async def run(n: int) -> str:
                return self.do(name, n)

            return run

        self.tools = [plain, fails, ask, *map(asked_first, ("approve", "deny", "edit"))]

    def do(self, name: str, n: int, *_: object) -> str:
        self.done.append((name, n))
        return f"{name} {n}"


def expected(kind: Kind, n: int) -> str:
    if kind == "edit":
        return 'edit -1\n[the arguments were changed to {"n":-1}]'
    if kind == "deny":
        return '{"error":"denied","tool":"deny","message":"no"}'
    if kind == "fails":
        return f'{{"error":"ValueError: {n}","tool":"fails"}}'
    return f"ask {n} 7" if kind == "ask" else f"{kind} {n}"


async def carry(plan: list[list[Kind]], agent: ReActAgent, data: st.DataObject) -> AgentResult:
    """Answer what waits, some of it at a time, through JSON each time."""
    result = await agent.run("Go.")
    while result.stop_reason == "needs_approval":
        result = AgentResult.from_json(result.to_json())
        assert not result.answer
        waiting = [each.id for each in result.pending]
        some = data.draw(st.lists(st.sampled_from(waiting), min_size=1, unique=True))
        kinds = {call_id: plan[int(call_id[0])][int(call_id[2])] for call_id in some}
        result = await agent.resume(result, {call_id: ANSWERS[kind] for call_id, kind in kinds.items()})
    return result


@settings(max_examples=60)
@given(plan=plans, parallel=st.booleans(), data=st.data())
def test_each_call_of_a_turn_runs_once_and_is_answered_in_its_place(
    plan: list[list[Kind]], parallel: bool, data: st.DataObject
) -> None:
    shop, model = Shop(), MockProvider()
    for number, kinds in enumerate(plan):
        made = [call(f"{number}.{at}", kind, n=10 * number + at) for at, kind in enumerate(kinds)]
        model.queue_tool_calls(*made)
    agent = ReActAgent(
        model.queue_text("Done."),
        shop.tools,
        settings=AgentSettings(policy=ToolExecutionPolicy(parallel=parallel)),
    )
    result = asyncio.run(carry(plan, agent, data))
    assert (result.answer, result.stop_reason) == ("Done.", "finished")
    told = [(part.call_id, part.content) for message in result.history for part in message.tool_results]
    wanted = [
        (f"{number}.{at}", expected(kind, 10 * number + at))
        for number, kinds in enumerate(plan)
        for at, kind in enumerate(kinds)
    ]
    assert told == wanted
    assert paired(result.history) == result.history
    ran = [
        (kind, -1 if kind == "edit" else 10 * number + at)
        for number, kinds in enumerate(plan)
        for at, kind in enumerate(kinds)
        if kind != "deny"
    ]
    assert sorted(shop.done) == sorted(ran)
    assert len(model.requests) == len(plan) + 1
