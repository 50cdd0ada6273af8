"""Arithmetic without `eval`: its own small parser, exact rational numbers, a bound on everything."""

import math
import re
from collections.abc import Callable, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from typing import Final, NamedTuple, NoReturn, TypeAlias

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line

Number: TypeAlias = Fraction | float

MAX_LENGTH: Final = 1000
MAX_DEPTH: Final = 50
MAX_BITS: Final = 10_000
"""Bits of a numerator or denominator: about 3,000 digits."""
MAX_SHOWN_DIGITS: Final = 50
"""Digits after the point of a number that is shown exactly."""

_SHOWN_PRECISION: Final = 17
_TOKEN: Final = re.compile(
    r"\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(\w+)|(//|\*\*|.))"
)
_SPELLINGS: Final = str.maketrans("×·÷−（）＋－＊／％＾．，", "**/-()+-*/%^.,")
_CONSTANTS: Final[Mapping[str, float]] = {"pi": math.pi, "e": math.e}


def evaluate(text: str) -> Number:
    """Return the value of `text`: a `Fraction` as long as the result is exact, else a float.

    Raises `UsageError` on what is no arithmetic, has no finite real value, or goes past a bound.
    """
    if len(text) > MAX_LENGTH:
        raise UsageError(f"the expression has {len(text)} characters; at most {MAX_LENGTH} are computed")
    parser = _Parser(_tokens(text.translate(_SPELLINGS)))
    try:
        value = parser.sum()
    except ZeroDivisionError:
        raise UsageError("division by zero") from None
    except OverflowError:
        raise UsageError("the numbers get too large") from None
    parser.expect("")
    return value


def show(value: Number) -> str:
    """Return `value` in decimal digits: whole, exact where the digits end soon, else to 17 digits."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if value.denominator == 1:
        return str(value.numerator)
    places = _decimal_places(value.denominator)
    if places is None:
        with localcontext(prec=_SHOWN_PRECISION, Emax=MAX_EMAX, Emin=MIN_EMIN):
            return str(Decimal(value.numerator) / Decimal(value.denominator))
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


class _Token(NamedTuple):
    text: str
    place: int
    """Characters before it."""


def _tokens(text: str) -> list[_Token]:
    tokens = [
        _Token(found[0].strip(), found.start(found.lastindex or 0))
        for found in _TOKEN.finditer(text.rstrip())
    ]
    return [*tokens, _Token("", len(text))]


class _Parser:
    """One method for each strength of binding, from the weakest."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def expect(self, text: str) -> None:
        if self._take(text) is None:
            self._refuse()

    def sum(self) -> Number:
        value = self._product()
        while operator := self._take("+", "-"):
            right = self._product()
            value = _bounded(value + right if operator == "+" else value - right)
        return value

    def _product(self) -> Number:
        value = self._signed()
        while operator := self._take("*", "/", "//", "%"):
            value = _multiply(operator, value, self._signed())
        return value

    def _signed(self) -> Number:
        if sign := self._take("-", "+"):
            value = self._deeper(self._signed)
            return -value if sign == "-" else value
        return self._power()

    def _power(self) -> Number:
        base = self._atom()
        if self._take("**", "^"):
            return _raise(base, self._deeper(self._signed))
        return base

    def _atom(self) -> Number:
        token = self._tokens[self._next]
        if self._take("("):
            value = self._deeper(self.sum)
            self.expect(")")
            return value
        if token.text[:1].isalpha():
            self._next += 1
            return self._named(token.text.lower())
        if not token.text.lstrip(".")[:1].isdecimal():
            self._refuse()
        self._next += 1
        return _number(token.text)

    def _named(self, name: str) -> Number:
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        function = _FUNCTIONS.get(name)
        if function is None:
            known = ", ".join([*_FUNCTIONS, *_CONSTANTS])
            raise UsageError(f"there is no {one_line(name, 40)!r} here; there are {known}")
        self.expect("(")
        arguments = [self._deeper(self.sum)]
        while self._take(","):
            arguments.append(self._deeper(self.sum))
        self.expect(")")
        return _bounded(_apply(name, function, arguments))

    def _take(self, *texts: str) -> str | None:
        token = self._tokens[self._next]
        if token.text not in texts:
            return None
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token.text

    def _deeper(self, parse: Callable[[], Number]) -> Number:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UsageError(f"the expression is nested more than {MAX_DEPTH} levels deep")
        value = parse()
        self._depth -= 1
        return value

    def _refuse(self) -> NoReturn:
        token = self._tokens[self._next]
        what = f"{one_line(token.text, 20)!r} at character {token.place + 1}" if token.text else "the end"
        raise UsageError(f"the expression is not arithmetic: did not expect {what}")


def _number(text: str) -> Number:
    _, _, exponent = text.lower().partition("e")
    if len(exponent) > 5 or abs(int(exponent or 0)) > MAX_BITS:
        raise UsageError(f"the number {one_line(text, 40)} is too large or too small")
    return _bounded(Fraction(text))


def _multiply(operator: str, left: Number, right: Number) -> Number:
    match operator:
        case "*":
            return _bounded(left * right)
        case "/":
            return _bounded(left / right)
        case "//":
            return _bounded(_exact(left // right))
        case _:
            return _bounded(left % right)


def _raise(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        if abs(base) == 1:
            return base ** (exponent.numerator % 2)
        doublings = max(base.numerator.bit_length(), base.denominator.bit_length()) - 1
        if doublings * abs(exponent) > MAX_BITS:
            raise OverflowError
        return _bounded(base ** int(exponent))
    value: object = float(base) ** float(exponent)
    if not isinstance(value, float):
        raise UsageError("the power of a negative number has no real value")
    return _bounded(value)


def _bounded(value: Number) -> Number:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise OverflowError
        return value
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise OverflowError
    return value


def _exact(value: Number | int) -> Number:
    return Fraction(value) if isinstance(value, int) else value


def _decimal_places(denominator: int) -> int | None:
    """Return how many digits after the point show a fraction exactly, or None past the bound."""
    for places in range(1, MAX_SHOWN_DIGITS + 1):
        if 10**places % denominator == 0:
            return places
    return None


class _Function(NamedTuple):
    least: int
    most: int
    compute: Callable[..., Number | int]


def _apply(name: str, function: _Function, arguments: list[Number]) -> Number:
    if not function.least <= len(arguments) <= function.most:
        raise UsageError(f"{name} was given {len(arguments)} values; it takes {_count(function)}")
    try:
        return _exact(function.compute(*arguments))
    except ValueError:
        raise UsageError(f"{name} has no real value for {', '.join(map(show, arguments))}") from None


def _count(function: _Function) -> str:
    if function.least == function.most:
        return str(function.least)
    return f"{function.least} or more" if function.most > 2 else f"{function.least} to {function.most}"


def _whole(value: Number, *, most: int) -> int:
    if value != math.floor(value):
        raise ValueError
    if abs(value) > most:
        raise OverflowError
    return int(value)


def _absolute(value: Number) -> Number:
    return abs(value)


def _least(*values: Number) -> Number:
    return min(values)


def _most(*values: Number) -> Number:
    return max(values)


def _round(value: Number, places: Number = Fraction(0)) -> Number:
    digits = _whole(places, most=MAX_SHOWN_DIGITS)
    scaled = Fraction(value) * Fraction(10) ** digits
    half_up = math.floor(abs(scaled) + Fraction(1, 2))
    return Fraction(half_up if scaled >= 0 else -half_up) / Fraction(10) ** digits


def _sqrt(value: Number) -> Number:
    if isinstance(value, Fraction) and value >= 0:
        roots = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if (roots[0] ** 2, roots[1] ** 2) == (value.numerator, value.denominator):
            return Fraction(*roots)
    return math.sqrt(value)


def _log(value: Number, base: Number = math.e) -> float:
    return math.log(value) / math.log(base)


def _factorial(value: Number) -> int:
    return math.factorial(_whole(value, most=1000))


def _of_integers(compute: Callable[..., int]) -> Callable[..., int]:
    return lambda *values: compute(*(_whole(value, most=1 << MAX_BITS) for value in values))


_MANY: Final = MAX_LENGTH
_FUNCTIONS: Final[Mapping[str, _Function]] = {
    "abs": _Function(1, 1, _absolute),
    "round": _Function(1, 2, _round),
    "floor": _Function(1, 1, math.floor),
    "ceil": _Function(1, 1, math.ceil),
    "min": _Function(1, _MANY, _least),
    "max": _Function(1, _MANY, _most),
    "sqrt": _Function(1, 1, _sqrt),
    "exp": _Function(1, 1, math.exp),
    "ln": _Function(1, 1, math.log),
    "log": _Function(1, 2, _log),
    "log2": _Function(1, 1, math.log2),
    "log10": _Function(1, 1, math.log10),
    "sin": _Function(1, 1, math.sin),
    "cos": _Function(1, 1, math.cos),
    "tan": _Function(1, 1, math.tan),
    "asin": _Function(1, 1, math.asin),
    "acos": _Function(1, 1, math.acos),
    "atan": _Function(1, 1, math.atan),
    "factorial": _Function(1, 1, _factorial),
    "gcd": _Function(1, _MANY, _of_integers(math.gcd)),
    "lcm": _Function(1, _MANY, _of_integers(math.lcm)),
}
