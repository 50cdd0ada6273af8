"""Whatever a tool returns, the model gets text it can read and of a size it can bear."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import cast

import msgspec
import numpy
import pydantic
import pytest

from dialoom.base.cancel import CancelScope
from dialoom.llm.files import FilePart
from dialoom.llm.messages import TextPart, ToolCall
from dialoom.testing.clock import ManualClock
from dialoom.tools import ToolExecutionPolicy, ToolRegistry, ToolResult, ToolRun, tool
from tests.tools.calls import PATIENCE, call, facts, happened


class Mood(Enum):
    """How it is."""

    GOOD = "good"


@dataclass
class Place:
    """Where it is."""

    x: int


class Row(msgspec.Struct):
    """What it is."""

    n: int


class Model(pydantic.BaseModel):
    """Made by pydantic."""

    at: datetime


class Names(pydantic.RootModel[list[str]]):
    """A list that pydantic checks."""


class Count(int):
    """A number with a name."""


class Broken:
    """Fails when it is written."""

    def model_dump(self, *, mode: str) -> object:
        raise RuntimeError("no\nway")


def returning(value: object) -> ToolRegistry:
    @tool(name="give")
    async def give() -> object:
        return value

    return ToolRegistry([give])


async def given(value: object) -> ToolResult:
    return await returning(value).execute(call("give"))


NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("as it is\n", "as it is\n"),
        ("", ""),
        (None, "null"),
        (3, "3"),
        (True, "true"),
        (0.1, "0.1"),
        ([1, "a"], '[1,"a"]'),
        ((1, {2}), "[1,[2]]"),
        ({"ä": 1}, '{"ä":1}'),
        ({1: "a"}, '{"1":"a"}'),
        (Mood.GOOD, '"good"'),
        (Place(1), '{"x":1}'),
        (Row(1), '{"n":1}'),
        ([Model(at=NOON)], '[{"at":"2026-11-30T12:00:00Z"}]'),
        (NOON, '"2026-11-30T12:00:00Z"'),
        ("\ud83d\ude00 \ud800", "\U0001f600 \ufffd"),
        ({"\ud800": ["\udc00", 1, ("a",)]}, '{"\ufffd":["\ufffd",1,["a"]]}'),
        (numpy.int64(3), "3"),
        (numpy.float64(0.25), "0.25"),
        (Names(["a"]), '["a"]'),
        ({"mean": numpy.float32(0.5), "any": numpy.bool_(True)}, '{"mean":0.5,"any":true}'),
        (numpy.array([[1, 2], [3, 4]]), "[[1,2],[3,4]]"),
        (numpy.str_("钻孔"), "钻孔"),
        ({numpy.str_("a"): numpy.str_("b"), "of": Count(2)}, '{"a":"b","of":2}'),
        (FilePart(data=b"png", media_type="image/png", name="a.png"), "[image a.png, image/png, 3 bytes]"),
        (FilePart(data=b"%PDF-1", media_type="application/pdf"), "[document application/pdf, 6 bytes]"),
        (PurePosixPath("notes/today.txt"), '"notes/today.txt"'),
        (MappingProxyType({"a": {"b": 1}.values()}), '{"a":[1]}'),
        ([range(2), deque([1]), {"k": 1}.keys()], '[[0,1],[1],["k"]]'),
    ],
)
async def test_text_stays_text_and_values_become_json(value: object, content: str) -> None:
    result = await given(value)
    assert (result.content, result.is_error) == (content, False)


async def test_a_value_is_kept_beside_its_text_as_plain_json() -> None:
    assert await given([Place(1), Mood.GOOD]) == ToolResult(
        content='[{"x":1},"good"]', structured=[{"x": 1}, "good"]
    )
    assert await given("text") == ToolResult(content="text")


def circle() -> object:
    value: list[object] = []
    value.append(value)
    return value


def numbers() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"\x00", "the tool returned bytes; return text or JSON values"),
        (bytearray(b"a"), "the tool returned bytes; return text or JSON values"),
        (memoryview(b"a"), "the tool returned bytes; return text or JSON values"),
        (object(), "the tool returned object, which cannot be written as JSON"),
        ([{"a": 1j}], "the tool returned list, which cannot be written as JSON: complex"),
        (
            numbers(),
            "the tool returned a generator, which gives its values one by one; return them as a list",
        ),
        (Model, "the tool returned ModelMetaclass, which cannot be written as JSON"),
        (
            range(10**9),
            (
                "the tool returned range, which cannot be written as JSON:"
                " it has 1000000000 values, at most 1000000 are taken"
            ),
        ),
        (
            numpy.broadcast_to(numpy.int8(0), (2_000, 2_000)),
            (
                "the tool returned ndarray, which cannot be written as JSON:"
                " it has 4000000 values, at most 1000000 are taken"
            ),
        ),
        (circle(), "the tool returned a value that contains itself or is nested too deeply"),
        (Broken(), "the tool returned Broken, which cannot be written as JSON: no way"),
    ],
)
async def test_what_no_model_can_read_is_an_error_that_names_the_type(value: object, error: str) -> None:
    result = await given(value)
    assert (facts(result), result.is_error) == ({"error": error, "tool": "give"}, True)


def shared(leaf: object, *, levels: int = 9, wide: int = 10) -> list[object]:
    """Return a list of `wide` ** `levels` leaves that takes no more room than `levels` small ones."""
    value: list[object] = [leaf] * wide
    for _ in range(levels - 1):
        value = [value] * wide
    return value


@dataclass
class Holder:
    """Holds anything."""

    held: object


class Box(msgspec.Struct):
    """Holds anything, as a struct."""

    held: object


class Shelf(pydantic.BaseModel, extra="allow"):
    """Holds anything, as a model."""

    held: object


class Swelling:
    """Becomes much when it writes itself."""

    def model_dump(self, *, mode: str) -> object:
        return shared(1, levels=3)


MANY = "cannot be written as JSON: it has more than 1000000 values; return fewer"
LONG = "cannot be written as JSON: it has more than 67108864 characters; return fewer"
PAGE = FilePart(data=b"png", media_type="image/png")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (shared(0), f"list, which {MANY}"),
        ({"rows": tuple(shared(0))}, f"dict, which {MANY}"),
        (Holder(shared(0)), f"Holder, which {MANY}"),
        ([Box(shared(0))], f"list, which {MANY}"),
        (Shelf(held=shared(0)), f"Shelf, which {MANY}"),
        (Shelf(held=1, more=shared(0)), f"Shelf, which {MANY}"),
        ([Shelf(held=[Shelf(held=shared(0))])], f"list, which {MANY}"),
        ([Swelling()] * 1000, f"list, which {MANY}"),
        ({"a": deque(shared(0))}, f"dict, which {MANY}"),
        ([numpy.zeros(600_000), numpy.zeros(600_000)], f"list, which {MANY}"),
        (["x" * 1_000_000] * 70, f"list, which {LONG}"),
        ([{"k" * 1_000_000: 1}] * 70, f"list, which {LONG}"),
        (shared("x" * 1000, levels=5), f"list, which {LONG}"),
        ([PAGE, shared(0)], f"list, which {MANY}"),
        ({"page": PAGE, "rows": shared(0)}, f"dict, which {MANY}"),
        (ToolResult(structured=shared(0)), f"a result with list, which {MANY}"),
        (ToolResult(card=Shelf(held=shared(0))), f"a result with a card that is Shelf, which {MANY}"),
    ],
)
async def test_a_small_value_that_would_become_a_huge_text_is_refused_unwritten(
    value: object, error: str
) -> None:
    assert facts(await given(value))["error"] == f"the tool returned {error}"


async def test_a_value_within_the_bounds_is_written_as_often_as_it_stands_there() -> None:
    row = [0.5] * 1000
    assert (await given([row] * 998)).structured == [row] * 998
    assert (await given([Shelf(held="a")] * 3_000)).structured == [{"held": "a"}] * 3_000
    assert (await given([PAGE] * 2)).files == (PAGE, PAGE)


async def test_a_tool_may_return_a_result_of_its_own() -> None:
    own = ToolResult(content="sold out", structured={"left": 0}, is_error=True, card={"kind": "note"})
    assert await given(own) == own
    assert await given(ToolResult(content="\ud800", structured=Place(1), card=1)) == ToolResult(
        content="\ufffd", structured={"x": 1}, card=1
    )


async def test_a_result_that_is_no_text_or_no_json_is_an_error() -> None:
    not_text = await given(ToolResult(content=cast("str", 5)))
    assert facts(not_text)["error"] == "the tool returned a result whose content is not text"
    not_json = await given(ToolResult(structured=[1j]))
    assert (
        facts(not_json)["error"]
        == "the tool returned a result with list, which cannot be written as JSON: complex"
    )


async def test_a_long_text_is_cut_with_a_note() -> None:
    policy = ToolExecutionPolicy(max_result_chars=5)
    result = await returning("0123456789").execute(call("give"), policy=policy)
    assert result == ToolResult(content="01234\n[cut: the first 5 of 10 characters; the rest was not kept]")
    assert (await returning("01234").execute(call("give"), policy=policy)).content == "01234"


async def test_ten_megabytes_are_kept_elsewhere_and_the_model_is_told_where() -> None:
    kept: dict[str, str] = {}

    def spill(call: ToolCall, text: str) -> str:
        assert threading.current_thread() is not threading.main_thread()
        kept[call.id] = text
        return f"result {call.id}\nof today"

    big = ["x" * 100] * 100_000
    policy = ToolExecutionPolicy(spill=spill)
    result = await returning(big).execute(call("give"), policy=policy)
    assert kept == {"call_give": msgspec.json.encode(big).decode()}
    size = len(kept["call_give"])
    note = f"\n[cut: the first 50000 of {size} characters; all of it is kept as result call_give of today]"
    assert result.content == kept["call_give"][:50_000] + note
    assert result.structured == big


async def test_a_tool_has_a_bound_of_its_own() -> None:
    @tool(max_result_chars=3)
    def long() -> str:
        return "abcdef"

    assert (await ToolRegistry([long]).execute(call("long"))).content.startswith("abc\n[cut: ")


async def test_an_error_is_cut_like_any_answer() -> None:
    policy = ToolExecutionPolicy(max_result_chars=8)
    failing = await returning(b"").execute(call("give"), policy=policy)
    assert failing.content.startswith('{"error"\n[cut: ')


@pytest.mark.parametrize("fails", [True, False], ids=["raises", "names no place"])
async def test_a_spill_that_fails_costs_the_rest_and_not_the_answer(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def full(call: ToolCall, text: str) -> str:
        if fails:
            raise OSError("disk full")
        return cast("str", None)

    policy = ToolExecutionPolicy(max_result_chars=1, spill=full)
    result = await returning("abc").execute(call("give"), policy=policy)
    assert result.content == "a\n[cut: the first 1 of 3 characters; the rest was not kept]"
    (record,) = caplog.records
    assert record.getMessage() == "full result of a tool not kept"
    assert ("disk full" in caplog.text) == fails


@pytest.mark.parametrize("ends", ["by timeout", "by cancelling"])
async def test_a_spill_that_blocks_is_given_up_and_the_answer_kept(ends: str) -> None:
    started, free, clock, scope = threading.Event(), threading.Event(), ManualClock(), CancelScope()

    def blocked(call: ToolCall, text: str) -> str:
        started.set()
        free.wait(PATIENCE)
        return "too late"

    policy = ToolExecutionPolicy(max_result_chars=1, spill=blocked, timeout=4)
    run = ToolRun(clock=clock, cancel=scope)
    task = asyncio.create_task(returning("abc").execute(call("give"), run, policy=policy))
    await happened(started)
    finish: dict[str, Callable[[], None]] = {"by timeout": lambda: None, "by cancelling": scope.cancel}
    finish[ends]()
    if ends == "by timeout":
        await clock.advance(4)
    result = await task
    assert result.content == "a\n[cut: the first 1 of 3 characters; the rest was not kept]"
    assert scope.cancelled == (ends == "by cancelling")
    free.set()


PICTURE = FilePart(data=b"\x89PNG", media_type="image/png", name="cat.png")
HALF = FilePart(data=b"x", media_type="image/png", name="\ud800")
WHOLE = FilePart(data=b"x", media_type="image/png", name="\ufffd")
PAPER = FilePart(data=b"%PDF-1", media_type="application/pdf")


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (PICTURE, ToolResult(content="[image cat.png, image/png, 4 bytes]", files=(PICTURE,))),
        (
            ["Found:", PICTURE, TextPart("and"), PAPER, {"n": 2}],
            ToolResult(
                content="Found:\n[image cat.png, image/png, 4 bytes]\nand\n"
                '[document application/pdf, 6 bytes]\n{"n":2}',
                files=(PICTURE, PAPER),
            ),
        ),
        ((PICTURE, PICTURE), ToolResult(content=f"[{PICTURE.told}]\n[{PICTURE.told}]", files=(PICTURE,) * 2)),
        (ToolResult(content="a cat", files=(PICTURE,)), ToolResult(content="a cat", files=(PICTURE,))),
        (ToolResult(files=(PICTURE,)), ToolResult(content=f"[{PICTURE.told}]", files=(PICTURE,))),
        (
            {"pages": [{"n": 1, "scan": PAPER}], "cover": (PICTURE,)},
            ToolResult(
                content=f'{{"pages":[{{"n":1,"scan":"[{PAPER.told}]"}}],"cover":["[{PICTURE.told}]"]}}',
                structured={"pages": [{"n": 1, "scan": f"[{PAPER.told}]"}], "cover": [f"[{PICTURE.told}]"]},
                files=(PAPER, PICTURE),
            ),
        ),
        (TextPart("words"), ToolResult(content="words")),
        (HALF, ToolResult(content="[image \ufffd, image/png, 1 bytes]", files=(WHOLE,))),
        (ToolResult(content="a", files=(HALF,)), ToolResult(content="a", files=(WHOLE,))),
    ],
)
async def test_pictures_are_kept_beside_words_that_say_what_they_are(
    value: object, result: ToolResult
) -> None:
    assert await given(value) == result


async def test_a_list_with_a_picture_and_what_no_model_can_read_is_an_error() -> None:
    looped: list[object] = [PICTURE]
    looped.append(looped)
    assert facts(await given([PICTURE, b"x"]))["error"] == (
        "the tool returned bytes; return text or JSON values"
    )
    assert facts(await given(looped))["error"] == (
        "the tool returned a value that contains itself or is nested too deeply"
    )
    assert facts(await given({"seen": PICTURE, "raw": 1j}))["error"] == (
        "the tool returned dict, which cannot be written as JSON: complex"
    )
    ring: dict[str, object] = {"seen": PICTURE}
    ring["again"] = ring
    assert facts(await given(ring))["error"] == (
        "the tool returned a value that contains itself or is nested too deeply"
    )
    wrong = ToolResult(files=cast("tuple[FilePart, ...]", [b"x"]))
    assert facts(await given(wrong))["error"] == (
        "the tool returned a result whose files are no tuple of FilePart"
    )


async def test_pictures_beyond_the_bound_are_kept_elsewhere_and_named() -> None:
    kept: list[str] = []

    def spill(call: ToolCall, text: str) -> str:
        kept.append(text)
        return f"file {len(kept)}"

    policy = ToolExecutionPolicy(max_result_file_bytes=9, spill=spill)
    result = await returning([PAPER, PICTURE, "end"]).execute(call("give"), policy=policy)
    assert result == ToolResult(
        content="[too large to show: image cat.png, image/png, 4 bytes; it is kept as file 1]\n"
        f"[{PAPER.told}]\n[{PICTURE.told}]\nend",
        files=(PAPER,),
    )
    assert kept == [PICTURE.data_url]
    none = ToolExecutionPolicy(max_result_file_bytes=0)
    bare = await returning(PICTURE).execute(call("give"), policy=none)
    assert bare == ToolResult(
        content=f"[too large to show: {PICTURE.told}; it was not kept]\n[{PICTURE.told}]"
    )


async def test_of_very_many_pictures_the_first_are_shown() -> None:
    result = await returning([PICTURE] * 23).execute(call("give"))
    assert result.files == (PICTURE,) * 20
    assert result.content.startswith("[3 more files were not kept]\n[image cat.png")
