"""What is stored of a checkpoint comes back as it was; what cannot be stored is named."""

import enum
import uuid
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.errors import StoreError, UsageError
from dialoom.graph import AppendLog, Checkpoint, Frontier, Op
from dialoom.graph.codec import (
    COMPRESS_FROM,
    CheckpointCodec,
    UnreadableError,
    pack,
    unpack,
)
from dialoom.graph.codec_fields import FieldWriter
from dialoom.graph.codec_types import Opaque, TypeCodec, TypeRegistry, codec_of
from dialoom.graph.codec_values import ValueReader, ValueWriter, tagged_text
from dialoom.graph.frozen import freeze
from dialoom.testing.checkpoint_contract import checkpoint_after


class Colour(enum.Enum):
    RED = "red"


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True)
class Place:
    name: str
    seen: set[int] = field(default_factory=set)
    length: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.name))


class Point(NamedTuple):
    x: int
    y: Colour


class Note(msgspec.Struct, frozen=True):
    text: str
    at: Place | None = None


class Form(pydantic.BaseModel):
    title: str = pydantic.Field(alias="Title")
    raw: bytes = b""


TYPES = (Colour, Access, Place, Point, Note, Form)
EVERYTHING: list[Any] = [
    Colour.RED,
    Access.READ | Access.WRITE,
    Place("Xi'an", {1, 2}),
    Point(1, Colour.RED),
    Note("hi", Place("here")),
    Form(Title="t", raw=b"x"),
    (1, ("two", [3])),
    {1, 2},
    frozenset({Colour.RED}),
    {1: "int", (2, 3): "tuple", "s": None},
    {"$type": "set", "value": [1]},
    datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1),
    date(2026, 1, 1),
    time(1, 2, 3),
    timedelta(days=-1, microseconds=5),
    Decimal("1.10"),
    uuid.UUID(int=7),
    b"\x00\xff",
    bytearray(b"ab"),
    float("inf"),
    2**64,
    -(2**200),
]
BOTH = pytest.mark.parametrize("text", [False, True])


def holding(value: Any) -> Checkpoint:
    return checkpoint_after(None, "a", Op("cell", "set", freeze(value)))


def round_trip(codec: CheckpointCodec, checkpoint: Checkpoint) -> Checkpoint:
    return codec.decode(codec.encode(checkpoint, omit=frozenset()), {})


@BOTH
@pytest.mark.parametrize("value", EVERYTHING, ids=repr)
def test_every_kind_of_value_comes_back_as_the_type_it_was(value: Any, text: bool) -> None:
    back = round_trip(CheckpointCodec(TYPES, text=text), holding([value])).state["cell"]
    assert back == [value]
    assert type(back[0]) is type(freeze(value))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=6) | st.just("$type") | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers(), max_size=1)
    ),
    max_leaves=12,
)


@BOTH
@given(value=JSON)
@settings(deadline=None)
def test_any_nesting_of_plain_data_comes_back_equal_and_read_only(value: Any, text: bool) -> None:
    checkpoint = holding(value)
    back = round_trip(CheckpointCodec(text=text), checkpoint)
    assert back == checkpoint
    assert repr(back.state) == repr(checkpoint.state)
    assert type(back.state["cell"]) is type(checkpoint.state["cell"])


def test_a_log_comes_back_as_the_list_it_showed() -> None:
    log = AppendLog.of(["a", "b"])
    codec = CheckpointCodec()
    assert round_trip(codec, holding(log)).state["cell"] == ["a", "b"]


def test_subclasses_of_lists_and_dicts_are_stored_as_what_they_extend() -> None:
    class Words(list[str]):
        pass

    class Facts(dict[str, int]):
        pass

    checkpoint = checkpoint_after(None, "a", Op("cell", "set", [Words(["x"]), Facts(y=1)]))
    assert round_trip(CheckpointCodec(), checkpoint).state["cell"] == [["x"], {"y": 1}]


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1, {"b": object()}]}, "channel 'cell'['a'][1]['b'] holds a object"),
        ([(1, {3: object()})], "channel 'cell'[0][1][3] holds a object"),
        (Place("x", {Point(1, Colour.RED)}), "channel 'cell' holds a Place"),  # nobody registered it
        ({"deep": ["\ud800"]}, "channel 'cell'['deep'][0] holds text with half a surrogate pair"),
        ({"\ud800": 1}, "channel 'cell' holds text with half a surrogate pair"),
        (AppendLog.of([object()]), "channel 'cell'[0] holds a object"),
    ],
)
@BOTH
def test_what_cannot_be_stored_is_named_by_the_path_to_it(value: Any, where: str, text: bool) -> None:
    checkpoint = checkpoint_after(None, "a", Op("fine", "set", 1), Op("cell", "set", value))
    with pytest.raises(StoreError) as refused:
        CheckpointCodec(text=text).encode(checkpoint)
    assert str(refused.value) == (
        f"{where}, which cannot be stored; write plain data, or give the store its class: types=[...]"
    )


def test_the_path_leads_into_registered_objects() -> None:
    with pytest.raises(StoreError, match=r"channel 'cell'\['at'\]\['seen'\] holds"):
        CheckpointCodec(TYPES).encode(holding(Note("x", Place("y", seen="\ud800"))))  # type: ignore[arg-type] - hostile


def test_other_fields_are_named_too() -> None:
    checkpoint = msgspec.structs.replace(checkpoint_after(None, "a"), outbox=([object()],))
    with pytest.raises(StoreError, match="checkpoint 'a' holds a object, which cannot be stored"):
        CheckpointCodec().encode(checkpoint)
    checkpoint = msgspec.structs.replace(checkpoint_after(None, "a"), frontier=Frontier(("\ud800",)))
    with pytest.raises(StoreError, match="checkpoint 'a' names something with half a surrogate"):
        CheckpointCodec().encode(checkpoint)


def test_what_nests_deeper_than_200_levels_is_refused_at_its_depth() -> None:
    value: list[Any] = []
    for _ in range(300):
        value = [value]
    with pytest.raises(StoreError, match="holds something nested deeper than 200 levels"):
        CheckpointCodec().encode(checkpoint_after(None, "a", Op("cell", "set", value)))


@BOTH
def test_a_type_nobody_knows_is_opaque_and_saved_again_as_it_was(text: bool) -> None:
    checkpoint = holding({"place": Place("x", {1}), "n": 1})
    stored = CheckpointCodec(TYPES, text=text).encode(checkpoint, omit=frozenset())
    stranger = CheckpointCodec(text=text)
    seen = stranger.decode(stored, {})
    place = Opaque("Place", {"name": "x", "seen": {1}, "length": 1})
    assert seen.state == {"cell": {"place": place, "n": 1}}
    again = stranger.encode(seen, omit=frozenset())
    assert CheckpointCodec(TYPES, text=text).decode(again, {}) == checkpoint


def test_a_class_that_gained_and_lost_fields_reads_what_was_stored_before() -> None:
    @dataclass(frozen=True)
    class Old:
        kept: int
        gone: int

    @dataclass(frozen=True)
    class New:
        kept: int
        fresh: str = "new"

    old = TypeCodec("Thing", Old, lambda thing: {"kept": thing.kept, "gone": thing.gone}, Old)
    stored = CheckpointCodec([old]).encode(holding(Old(1, 2)), omit=frozenset())
    new = msgspec.structs.replace(codec_of(New), name="Thing")
    assert CheckpointCodec([new]).decode(stored, {}).state == {"cell": New(1)}


def test_a_type_given_by_its_dotted_name_is_recognised_without_an_import() -> None:
    codec = TypeCodec("fraction", "fractions.Fraction", str, str)
    from fractions import Fraction

    assert round_trip(CheckpointCodec([codec]), holding(Fraction(1, 2))).state == {"cell": "1/2"}


def test_a_derived_field_that_was_not_stored_is_derived_again() -> None:
    codec = codec_of(Place)
    assert codec.decode({"name": "four", "seen": set()}) == Place("four")


@pytest.mark.parametrize(
    ("types", "told"),
    [
        ([Colour, Colour], "two types would be stored as 'Colour'; give one a TypeCodec of its own name"),
        ([TypeCodec("set", Colour, str, str)], "two types would be stored as 'set'"),
        ([object], "object is no enum, dataclass, Struct, named tuple or model; give it a TypeCodec"),
    ],
)
def test_a_type_that_cannot_be_told_apart_or_stored_is_refused_at_once(types: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        TypeRegistry(types)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x91" * 100_000,
        b"\x93\x01\x02\x03",
        msgspec.msgpack.encode({"id": 1}),
        msgspec.msgpack.encode({"state": msgspec.msgpack.Ext(7, b"x")}),
        msgspec.msgpack.encode({"state": msgspec.msgpack.Ext(1, b"\x91\x01")}),
        msgspec.msgpack.encode({"state": msgspec.msgpack.Ext(1, msgspec.msgpack.encode(["uuid", "no"]))}),
    ],
)
def test_bytes_that_are_no_checkpoint_are_an_error_and_nothing_worse(data: bytes) -> None:
    with pytest.raises(UnreadableError, match="its data cannot be read"):
        CheckpointCodec().decode(data, {})


@given(st.binary(max_size=200), st.integers(0, 400))
@settings(deadline=None)
def test_damaged_bytes_never_raise_anything_else(noise: bytes, at: int) -> None:
    whole = CheckpointCodec(TYPES).encode(holding(EVERYTHING[:6]), omit=frozenset())
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    with suppress(UnreadableError):
        CheckpointCodec(TYPES).decode(damaged, {})


def test_large_data_is_compressed_and_small_data_is_not() -> None:
    small, large = b"x" * COMPRESS_FROM, b"x" * (COMPRESS_FROM + 1)
    assert pack(small) == b"\x00" + small
    assert len(pack(large)) < 1_000
    assert [unpack(pack(small)), unpack(pack(large))] == [small, large]


@pytest.mark.parametrize(
    ("packed", "told"),
    [
        (b"", "unknown form"),
        (b"\x07abc", "unknown form"),
        (b"\x01abc", "cannot be decompressed"),
        (b"\x01" + zlib.compress(b"x" * 100)[:-4], "cut off or too large"),
    ],
)
def test_packed_bytes_that_are_damaged_are_an_error(packed: bytes, told: str) -> None:
    with pytest.raises(UnreadableError, match=told):
        unpack(packed)


def test_a_small_file_cannot_grow_to_any_size() -> None:
    bomb = pack(b"\x00" * 1_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(UnreadableError, match="too large"):
        unpack(bomb, limit=999_999)
    assert len(unpack(bomb, limit=1_000_000)) == 1_000_000


def test_a_checkpoint_beyond_all_bounds_is_refused() -> None:
    with pytest.raises(StoreError, match="keep large values elsewhere and their names in the state"):
        CheckpointCodec(max_bytes=1_000).encode(holding("x" * 1_000))


class Cat(msgspec.Struct, frozen=True, tag="cat"):
    lives: int = 9


class Dog(msgspec.Struct, frozen=True, tag="dog"):
    name: str


class Shelter(msgspec.Struct, frozen=True):
    pair: tuple[str, Any]
    pets: tuple[Cat | Dog | None, ...] = ()
    by_name: dict[str, Dog] = {}
    maybe: Cat | None = None
    mixed: int | tuple[int, ...] = 0


def through_fields(shelter: Shelter) -> Shelter:
    fields = FieldWriter(ValueWriter(TypeRegistry(), tagged_text, text=True)).fields(shelter)
    return msgspec.convert(ValueReader(TypeRegistry(), text=True).value(fields), Shelter)


def test_a_struct_of_the_engine_comes_back_with_every_kind_of_field() -> None:
    shelter = Shelter(
        pair=("two", (1, None)),
        pets=(Cat(lives=3), Dog(name="rex"), None),
        by_name={"rex": Dog(name="rex")},
        maybe=Cat(),
        mixed=(1, 2),
    )
    assert through_fields(shelter) == shelter


@given(
    st.builds(
        Shelter,
        pair=st.tuples(st.text(), st.tuples(st.integers())),
        pets=st.lists(st.builds(Cat) | st.builds(Dog) | st.none()).map(tuple),
        by_name=st.dictionaries(st.text(), st.builds(Dog)),
        maybe=st.none() | st.builds(Cat),
        mixed=st.integers() | st.lists(st.integers()).map(tuple),
    )
)
@settings(deadline=None)
def test_structs_of_the_engine_come_back_by_the_types_of_their_fields(shelter: Shelter) -> None:
    assert through_fields(shelter) == shelter
