"""Types that tools of the tests take."""

from dataclasses import dataclass
from enum import Enum
from typing import Annotated, NotRequired, TypedDict

import msgspec
import pydantic


class Color(Enum):
    """Of the paint."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Point:
    """A place on the plan."""

    x: int
    y: float = 0.5


@dataclass(frozen=True)
class Circle:
    """Round."""

    center: Point
    radius: float = 1.0


@dataclass(frozen=True)
class Square:
    """Not round."""

    center: Point
    side: float = 1.0


class Size(TypedDict):
    """In metres."""

    width: int
    depth: NotRequired[int]


class Line(msgspec.Struct, frozen=True):
    """One line of an order."""

    sku: str
    qty: Annotated[int, msgspec.Meta(ge=1)]
    parts: list["Line"] = []


class Address(pydantic.BaseModel):
    """Where to send it."""

    street: str = pydantic.Field(min_length=2)
    others: "list[Address]" = []
