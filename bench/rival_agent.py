"""Runs the agent bench's tool loop in other frameworks, in the Python that has them: `rival_agent.py`.

It stands alone: the rival's Python has nothing of dialoom. Prints the versions of what it found as one JSON
object, then for each line on its standard input, `RIVAL STEPS`, the CPU seconds of one step. The model is
scripted on either side, and so is the tool: what is left is the framework.
"""

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import distributions
from typing import Any

QUESTION = "Look at every number."
ANSWER = "All of them were seen."
RESULT = "This number was looked at, and it is one of the better ones."


def pydantic_ai(steps: int) -> Callable[[], str]:
    ai = importlib.import_module("pydantic_ai")
    messages = importlib.import_module("pydantic_ai.messages")
    function = importlib.import_module("pydantic_ai.models.function")
    said = 0

    def model(_messages: list[Any], _info: Any) -> Any:
        nonlocal said
        said += 1
        if said > steps:
            return messages.ModelResponse(parts=[messages.TextPart(ANSWER)])
        call = messages.ToolCallPart("look", json.dumps({"number": said}), tool_call_id=f"call_{said}")
        return messages.ModelResponse(parts=[call])

    async def look(number: int) -> str:
        """Look at a number."""
        return RESULT if number else ""

    agent = ai.Agent(function.FunctionModel(model), tools=[look])
    limits = importlib.import_module("pydantic_ai.usage").UsageLimits(request_limit=None)

    def run() -> str:
        nonlocal said
        said = 0
        return str(asyncio.run(agent.run(QUESTION, usage_limits=limits)).output)

    return run


def openai_agents(steps: int) -> Callable[[], str]:
    agents = importlib.import_module("agents")
    responses = importlib.import_module("openai.types.responses")
    agents.set_tracing_disabled(True)

    class Scripted(agents.Model):
        """Calls the tool in every step, then answers."""

        said = 0

        async def get_response(self, *_: Any, **__: Any) -> Any:
            self.said += 1
            output = answer() if self.said > steps else call(self.said)
            return agents.ModelResponse(output=[output], usage=agents.Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    def call(number: int) -> Any:
        return responses.ResponseFunctionToolCall(
            arguments=json.dumps({"number": number}),
            call_id=f"call_{number}",
            name="look",
            type="function_call",
        )

    def answer() -> Any:
        text = responses.ResponseOutputText(annotations=[], text=ANSWER, type="output_text")
        return responses.ResponseOutputMessage(
            id="msg_1", content=[text], role="assistant", status="completed", type="message"
        )

    async def look(number: int) -> str:
        """Look at a number."""
        return RESULT if number else ""

    def run() -> str:
        agent = agents.Agent(name="agent", model=Scripted(), tools=[agents.function_tool(look)])
        done = agents.Runner.run(agent, QUESTION, max_turns=steps + 1)
        return str(asyncio.run(done).final_output)

    return run


RIVALS = {"pydantic-ai-slim": pydantic_ai, "openai-agents": openai_agents}


def main() -> None:
    installed = {each.name: each.version for each in distributions()}
    print(json.dumps({name: installed.get(name) for name in RIVALS}), flush=True)
    for line in sys.stdin:
        rival, steps = line.split()
        run = RIVALS[rival](int(steps))
        began = time.process_time()
        assert run() == ANSWER
        print((time.process_time() - began) / int(steps), flush=True)


if __name__ == "__main__":
    main()
