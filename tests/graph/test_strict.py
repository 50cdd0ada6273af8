"""A graph built strict refuses what could change in place: for tests, which find such a node at its write."""

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict

from dialoom.graph import START, GraphBuilder, Reducers, RunResult


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Fixed:
    items: tuple[Any, ...] = ()


@dataclass
class Loose:
    items: list[int] = field(default_factory=list)


class FixedStruct(msgspec.Struct, frozen=True):
    inner: Any = None


class LooseStruct(msgspec.Struct):
    inner: Any = None


class FixedModel(BaseModel):
    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)
    inner: Any = None


class LooseModel(BaseModel):
    inner: Any = None


def written(value: Any, *, strict: bool = True, reducer: Any = Reducers.overwrite) -> RunResult:
    builder = GraphBuilder("strict")
    builder.add_channel("x", reducer)
    builder.add_node("node", lambda _: {"x": value}, blocking=False)
    builder.add_edge(START, "node")
    return builder.build(strict=strict).run_sync()


@pytest.mark.parametrize(
    "value",
    [
        1,
        [1, {"a": [2.5, None, b"x"]}],
        {1, 2},
        (Colour.RED, Decimal(1), UUID(int=1), PurePosixPath("/x"), datetime(2026, 1, 1, tzinfo=UTC)),
        Fixed((1, FixedStruct("x"))),
        FixedStruct(Fixed()),
        FixedModel(inner=(1, 2)),
    ],
)
def test_what_cannot_change_is_written(value: Any) -> None:
    assert written(value).state == written(value, strict=False).state


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (Loose(), "it is a Loose"),
        ([1, {"a": LooseStruct()}], "it[1]['a'] is a LooseStruct"),
        (Fixed((1, deque())), "it.items[1] is a deque"),
        (FixedStruct(LooseModel()), "it.inner is a LooseModel"),
        (FixedModel(inner=[1]), "it.inner is a list"),
        (frozenset({object}) | {Fixed((bytearray,))}, ""),
        ({FixedStruct(Fixed((lambda: None,)))}, "it (in the set).inner.items[0] is a function"),
    ],
)
def test_what_can_change_is_refused_with_the_way_to_it(value: Any, where: str) -> None:
    assert written(value, strict=False).stop_reason == "finished"
    result = written(value)
    if not where:
        assert result.errors == ()
        return
    (error,) = result.errors
    assert error.node == "node"
    assert error.message == (
        f"write to channel 'x' refused: {where}, which can change in place; declare it frozen or write plain"
        " data (the graph is built with strict=True)"
    )


def test_every_reducer_is_strict() -> None:
    for reducer, value in (
        (Reducers.append, [Loose()]),
        (Reducers.merge, {"a": Loose()}),
        (Reducers.custom(lambda _, new: new), Loose()),
    ):
        assert written(value, reducer=reducer).stop_reason == "error"
