"""What came of asking a model for a value."""

from typing import Generic, Literal, TypeVar

import msgspec

from dialoom.llm.json_schema import Violation
from dialoom.llm.usage import Usage

StructuredMode = Literal["native", "tool", "prompt"]

T_co = TypeVar("T_co", covariant=True)


class StructuredResult(msgspec.Struct, Generic[T_co], frozen=True, kw_only=True):
    """A checked value, or what is wrong with the last answer.

    `value` is None unless `ok`. `raw` is the last answer as the model wrote it, `rounds` the requests it
    took, repairs included, `usage` their sum, and `mode` how the last one was asked for.
    """

    ok: bool
    value: T_co | None = None
    violations: tuple[Violation, ...] = ()
    raw: str = ""
    rounds: int = 1
    mode: StructuredMode = "native"
    usage: Usage = Usage()
