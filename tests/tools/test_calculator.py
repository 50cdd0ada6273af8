"""The calculator is exact where numbers can be, and no expression makes it run, hang or fill the memory."""

import math
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.tools import ToolRegistry
from dialoom.tools.builtin import calculator
from dialoom.tools.builtin.expression import MAX_LENGTH, evaluate, show
from tests.tools.calls import call, facts


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7*8", "56"),
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("2 - 3 - 4", "-5"),
        ("0.1 + 0.2", "0.3"),
        ("1/3*3", "1"),
        ("1/3", "0.33333333333333333"),
        ("-1/8", "-0.125"),
        ("10/4", "2.5"),
        ("-2^2", "-4"),
        ("(-2)^2", "4"),
        ("2^-2", "0.25"),
        ("2**3**2", "512"),
        ("4 ^ 0.5", "2"),
        ("2 * -3", "-6"),
        ("+5", "5"),
        ("17 % 5", "2"),
        ("-7 % 3", "2"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("7.5 // 2", "3"),
        ("pi // 1", "3"),
        ("1.5e3 + .5", "1500.5"),
        ("1e-3", "0.001"),
        ("99999999999999999999 + 1", "100000000000000000000"),
        ("2^64", "18446744073709551616"),
        ("0^5", "0"),
        ("(-1)^(10^3000 + 1)", "-1"),
        ("10^400/3", "3.3333333333333333E+399"),
        ("2 × 3 ÷ 4 − 1", "0.5"),
        ("max（１＋２，０．５）＊２－１", "5"),
        ("sqrt(16/9) * 3", "4"),
        ("sqrt(2)", repr(math.sqrt(2))),
        ("abs(-3/4)", "0.75"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.345, 2)", "2.35"),
        ("round(1234, -2)", "1200"),
        ("floor(-1.5)", "-2"),
        ("ceil(1.2)", "2"),
        ("min(3, 1/3, 2)", "0.33333333333333333"),
        ("max(1, 2.5)", "2.5"),
        ("exp(0)", "1"),
        ("ln(e)", "1"),
        ("log(e^2)", "2"),
        ("log(8, 2)", "3"),
        ("log2(8) + log10(1000)", "6"),
        ("sin(0) + cos(0) + tan(0)", "1"),
        ("asin(0) + acos(1) + atan(0)", "0"),
        ("factorial(20)", "2432902008176640000"),
        ("gcd(12, 18) + lcm(4, 6)", "18"),
        ("SQRT(4)", "2"),
        ("exp(50)", repr(math.exp(50))),
    ],
)
async def test_expressions_have_their_value(expression: str, value: str) -> None:
    result = await ToolRegistry([calculator]).execute(call("calculator", expression=expression))
    assert result.content == value


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "the expression is not arithmetic: did not expect the end"),
        ("1 +", "the expression is not arithmetic: did not expect the end"),
        ("1 2", "the expression is not arithmetic: did not expect '2' at character 3"),
        ("(1", "the expression is not arithmetic: did not expect the end"),
        ("1)", "the expression is not arithmetic: did not expect ')' at character 2"),
        ("5!", "the expression is not arithmetic: did not expect '!' at character 2"),
        ("1,000", "the expression is not arithmetic: did not expect ',' at character 2"),
        ("sqrt 4", "the expression is not arithmetic: did not expect '4' at character 6"),
        ("__import__('os')", "the expression is not arithmetic: did not expect '__import__' at character 1"),
        ("1/0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("0 ^ -1", "division by zero"),
        ("9^9^9", "the numbers get too large"),
        ("2^10001", "the numbers get too large"),
        ("(10^3000)*(10^3000)", "the numbers get too large"),
        ("1e9999", "the numbers get too large"),
        ("1e999999", "the number 1e999999 is too large or too small"),
        ("exp(1000)", "the numbers get too large"),
        ("1e308 * pi * 10", "the numbers get too large"),
        ("factorial(1001)", "the numbers get too large"),
        ("factorial(2.5)", "factorial has no real value for 2.5"),
        ("sqrt(-4)", "sqrt has no real value for -4"),
        ("(-8)^(1/3)", "the power of a negative number has no real value"),
        ("log(1, 2, 3)", "log was given 3 values; it takes 1 to 2"),
        ("abs(1, 2)", "abs was given 2 values; it takes 1"),
        ("(" * 60 + "1" + ")" * 60, "the expression is nested more than 50 levels deep"),
        ("-" * 60 + "1", "the expression is nested more than 50 levels deep"),
        ("1" * (MAX_LENGTH + 1), "the expression has 1001 characters; at most 1000 are computed"),
    ],
)
async def test_what_has_no_value_is_told(expression: str, problem: str) -> None:
    result = await ToolRegistry([calculator]).execute(call("calculator", expression=expression))
    assert facts(result) == {"error": f"UsageError: {problem}", "tool": "calculator"}


def test_an_unknown_name_is_told_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"there is no 'system' here; there are abs, round, .*, lcm, pi, e"):
        evaluate("system(1)")


@given(st.integers(-(10**20), 10**20), st.integers(-(10**20), 10**20), st.sampled_from("+-*"))
def test_integers_are_exact(left: int, right: int, operator: str) -> None:
    expected = {"+": left + right, "-": left - right, "*": left * right}[operator]
    assert show(evaluate(f"({left}) {operator} ({right})")) == str(expected)


@given(st.decimals(-(10**12), 10**12, places=20, allow_nan=False))
def test_what_is_shown_exactly_reads_back_as_the_same_number(value: Decimal) -> None:
    assert evaluate(show(Fraction(value))) == Fraction(value)


@given(st.text("0123456789.eE+-*/%^() ,sqrtpimax", max_size=40) | st.text(max_size=40))
def test_any_text_has_a_value_or_is_refused(text: str) -> None:
    with suppress(UsageError):
        assert show(evaluate(text))
