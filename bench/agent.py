"""What a step of the tool loop costs, and that it stays the same however long the run has been.

A step is one request to the model, one call of a tool and all that lies between. The model is scripted and
the tool answers at once, so what is measured is the loop. Other frameworks run the same script in the Python
that `DIALOOM_RIVALS_PYTHON` names; without it their rows are left out, and standard error says so.
"""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench.child import Child, child, rivals_python
from bench.measure import medians
from bench.report import Row
from bench.rival_agent import ANSWER, QUESTION, RESULT
from dialoom.agent import AgentLimits, AgentSettings, ReActAgent
from dialoom.llm import MockProvider
from dialoom.tools import tool

PACKAGES: tuple[str, ...] = ("msgspec",)
RIVAL_SCRIPT = str(Path(__file__).with_name("rival_agent.py"))
STEPS = (20, 100, 300)
ROUNDS = 5
MOST_MS = 0.3
MOST_GROWTH = 1.3
MOST_OF_A_RIVAL = 0.2


def rows() -> list[Row]:
    """Return the CPU of a step at each length of run: against its bound, itself and the rivals."""
    with ExitStack() as stack:
        found: dict[str, Child] = {}
        if python := rivals_python("the rows of other agents are left out"):
            rival = stack.enter_context(child(*python, "-P", RIVAL_SCRIPT))
            found = {name: rival for name, version in json.loads(rival.line()).items() if version}
        taken = {steps: _in_turn(steps, found) for steps in STEPS}
    short, long = taken[STEPS[0]][""], taken[STEPS[-1]][""]
    return [
        Row(f"step of {STEPS[-1]}", "ms", long, f"{MOST_MS:g} ms of CPU", MOST_MS, must=1.0),
        Row(f"step of {STEPS[-1]}", "ms", long, f"the same of {STEPS[0]}", short, must=MOST_GROWTH),
        *(
            Row(f"step of {steps}", "ms", costs[""], name, costs[name], must=MOST_OF_A_RIVAL)
            for steps, costs in taken.items()
            for name in found
        ),
    ]


def _in_turn(steps: int, rivals: dict[str, Child]) -> dict[str, float]:
    """Return the median milliseconds of a step for us (`""`) and for each rival, run turn by turn."""
    measures: dict[str, Callable[[], float]] = {"": partial(_ours, steps)}
    for name, rival in rivals.items():
        measures[name] = partial(rival.figure, f"{name} {steps}")
    return {name: 1e3 * seconds for name, seconds in medians(measures, rounds=ROUNDS).items()}


@tool
async def look(number: int) -> str:
    """Look at a number."""
    return RESULT if number else ""


def _ours(steps: int) -> float:
    """Return the CPU seconds of one step of a run with so many."""
    provider = MockProvider()
    for number in range(1, steps + 1):
        provider.queue_tool_call(f"call_{number}", "look", {"number": number})
    provider.queue_text(ANSWER)
    began = time.process_time()
    agent = ReActAgent(provider, [look], settings=AgentSettings(limits=AgentLimits(iterations=steps + 1)))
    result = asyncio.run(agent.run(QUESTION))
    seconds = time.process_time() - began
    assert result.answer == ANSWER
    return seconds / steps
