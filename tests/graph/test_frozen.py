"""State cannot be changed by those who read it."""

import copy
import json
import pickle
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.graph.frozen import MAX_DEPTH, FrozenDict, FrozenList, freeze
from dialoom.graph.state import State

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)

LIST_CHANGES = {
    "item": lambda x: x.__setitem__(0, 9),
    "delete": lambda x: x.__delitem__(0),
    "add": lambda x: x.__iadd__([9]),
    "repeat": lambda x: x.__imul__(2),
    "append": lambda x: x.append(9),
    "clear": lambda x: x.clear(),
    "extend": lambda x: x.extend([9]),
    "insert": lambda x: x.insert(0, 9),
    "pop": lambda x: x.pop(),
    "remove": lambda x: x.remove(1),
    "reverse": lambda x: x.reverse(),
    "sort": lambda x: x.sort(),
}
DICT_CHANGES = {
    "item": lambda x: x.__setitem__("a", 9),
    "delete": lambda x: x.__delitem__("a"),
    "or": lambda x: x.__ior__({"b": 9}),
    "clear": lambda x: x.clear(),
    "pop": lambda x: x.pop("a"),
    "popitem": lambda x: x.popitem(),
    "setdefault": lambda x: x.setdefault("b", 9),
    "update": lambda x: x.update(b=9),
}


@pytest.mark.parametrize("change", LIST_CHANGES.values(), ids=LIST_CHANGES.keys())
def test_a_frozen_list_refuses_every_change(change: Any) -> None:
    frozen = freeze([1, 2])
    with pytest.raises(TypeError, match="state is read-only; return the new value"):
        change(frozen)
    assert frozen == [1, 2]


@pytest.mark.parametrize("change", DICT_CHANGES.values(), ids=DICT_CHANGES.keys())
def test_a_frozen_dict_and_a_state_refuse_every_change(change: Any) -> None:
    for frozen in (freeze({"a": 1}), State(a=1)):
        with pytest.raises(TypeError, match="state is read-only; return the new value"):
            change(frozen)
        assert frozen == {"a": 1}


@given(PLAIN)
def test_a_frozen_value_equals_the_plain_one_and_freezes_once(value: Any) -> None:
    frozen = freeze(value)
    assert frozen == value
    assert freeze(frozen) == frozen
    if isinstance(frozen, FrozenList | FrozenDict):
        assert freeze(frozen) is frozen


@given(st.lists(PLAIN))
def test_copies_are_plain_and_free(value: list[Any]) -> None:
    frozen = freeze(value)
    for copied in (list(frozen), frozen.copy(), copy.copy(frozen), copy.deepcopy(frozen)):
        assert type(copied) is list
        assert copied == value
    assert pickle.loads(pickle.dumps(freeze({"k": value}))) == {"k": value}


def test_a_deep_copy_can_be_changed_at_any_depth() -> None:
    thawed = copy.deepcopy(freeze({"a": [{"b": [1]}]}))
    thawed["a"][0]["b"].append(2)
    assert thawed == {"a": [{"b": [1, 2]}]}


def test_what_the_writer_keeps_is_not_what_the_state_holds() -> None:
    mine = {"list": [1], "set": {1}, "tuple": ([1],), "dict": OrderedDict(a=[1])}
    frozen = freeze(mine)
    mine["list"].append(2)  # type: ignore[attr-defined]
    mine["set"].add(2)  # type: ignore[attr-defined]
    mine["tuple"][0].append(2)  # type: ignore[index]
    mine["dict"]["a"].append(2)  # type: ignore[call-overload, index]
    assert frozen == {"list": [1], "set": {1}, "tuple": ([1],), "dict": {"a": [1]}}
    assert type(frozen["set"]) is frozenset
    assert type(frozen["dict"]) is FrozenDict


def test_objects_of_other_classes_pass_by_identity() -> None:
    thing = object()
    assert freeze([thing])[0] is thing


def test_frozen_values_are_ready_for_json() -> None:
    assert json.dumps(State(a=freeze([{"b": (1, 2)}]))) == '{"a": [{"b": [1, 2]}]}'


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match=f"nested deeper than {MAX_DEPTH} levels"):
        freeze(endless)


def test_an_empty_channel_says_what_to_do() -> None:
    with pytest.raises(KeyError, match="channel 'typo' has no value; check the name, give it a default, or"):
        State(a=1)["typo"]
    assert State(a=1).get("typo") is None
