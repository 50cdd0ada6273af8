"""The calculator as a tool."""

from typing import Annotated

from dialoom.tools.builtin.expression import evaluate, show
from dialoom.tools.function import tool


@tool(idempotent=True)
async def calculator(
    expression: Annotated[str, "such as (2 + 3) * 4 ^ 2, 17 % 5, round(sqrt(2), 3) or max(1, 2.5)"],
) -> str:
    """Work out an arithmetic expression.

    Whole numbers, fractions and decimals are exact. Knows + - * / // % ^ and parentheses; abs, round, floor,
    ceil, min, max, sqrt, exp, ln, log(x, base), log2, log10, sin, cos, tan, asin, acos, atan (in radians),
    factorial, gcd, lcm; pi and e.
    """
    return show(evaluate(expression))
