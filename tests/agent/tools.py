"""Tools that the tests of agents use."""

from dialoom.llm import ToolCall
from dialoom.tools import tool


@tool
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@tool(requires_approval=True)
async def refund(order: int, amount: int) -> str:
    """Give money back."""
    return f"refunded {amount} for order {order}"


def call(call_id: str, name: str, **arguments: object) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)
