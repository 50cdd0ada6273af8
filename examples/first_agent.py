"""An agent with a tool: the model calls it, reads the result and answers.

Run it: `python examples/first_agent.py`. A script stands in for the model, so that it runs anywhere; put any
provider of `dialoom.llm` there.
"""

import asyncio

from dialoom.agent import ReActAgent
from dialoom.llm import MockProvider
from dialoom.tools.builtin import calculator


async def main() -> None:
    model = MockProvider()
    model.queue_tool_call("c1", "calculator", {"expression": "7*8"})
    model.queue_text("7 times 8 equals 56.")
    agent = ReActAgent(model, [calculator], system="You are a careful assistant.")
    result = await agent.run("What is 7 multiplied by 8?")
    for message in result.history:
        print(f"{message.role}: {message.text or message.tool_calls or message.tool_results}")


if __name__ == "__main__":
    asyncio.run(main())
