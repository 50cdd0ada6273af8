"""Tool calls put together from fragments, by the rules of what servers really do."""

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.llm import ToolCall, ToolCallDelta, ToolCallReady, ToolCallStarted
from dialoom.llm.tool_deltas import CallFragment, ToolCallAssembler, parse_arguments


def part(arguments: str = "", *, index: int | None = 0, id: str = "", name: str = "") -> CallFragment:  # noqa: A002 - as on the wire
    return CallFragment(index=index, id=id, name=name, arguments=arguments)


def assemble(*deltas: list[CallFragment], cut: bool = False, taken: tuple[str, ...] = ()) -> list[ToolCall]:
    numbers = count(1)
    assembler = ToolCallAssembler(lambda: f"new{next(numbers)}", taken)
    events = [event for delta in deltas for event in assembler.add(delta)] + list(assembler.finish(cut=cut))
    calls = [event.call for event in events if isinstance(event, ToolCallReady)]
    for place, call in enumerate(calls):
        pieces = [e.arguments for e in events if isinstance(e, ToolCallDelta) and e.index == place]
        assert "".join(pieces) == call.raw
        started = [e for e in events if isinstance(e, ToolCallStarted) and e.index == place]
        assert started == [ToolCallStarted(index=place, id=call.id, name=call.name)]
    assert len(assembler) == len(calls)
    return calls


def brief(calls: list[ToolCall]) -> list[tuple[str, str, Any]]:
    return [(call.id, call.name, call.problem or call.arguments) for call in calls]


def test_fragments_of_two_calls_may_be_interleaved() -> None:
    calls = assemble(
        [part(id="a", name="f"), part(id="b", name="g", index=1)],
        [part('{"x":'), part('{"y":', index=1)],
        [part("2}", index=1), part("1}")],
    )
    assert brief(calls) == [("a", "f", {"x": 1}), ("b", "g", {"y": 2})]


def test_another_id_under_the_same_index_is_another_call() -> None:
    assert brief(assemble([part("{}", id="a", name="f")], [part('{"y":1}', id="b", name="g")])) == [
        ("a", "f", {}),
        ("b", "g", {"y": 1}),
    ]


def test_another_id_without_a_name_is_a_new_call_only_behind_a_whole_one() -> None:
    assert brief(assemble([part('{"x":', id="a", name="f")], [part("1}", id="b")])) == [("a", "f", {"x": 1})]
    assert brief(assemble([part("{}", id="a", name="f")], [part("{}", id="b")])) == [
        ("a", "f", {}),
        ("b", "unnamed", {}),
    ]


def test_without_an_index_a_new_id_opens_a_call_and_the_rest_continues_the_last() -> None:
    calls = assemble(
        [part('{"x":', id="a", name="f", index=None)],
        [part("1}", index=None)],
        [part("{}", id="b", name="g", index=None)],
    )
    assert brief(calls) == [("a", "f", {"x": 1}), ("b", "g", {})]


def test_without_index_and_id_calls_are_told_apart_by_name_and_whole_arguments() -> None:
    together = assemble([part("", name="f", index=None), part("", name="g", index=None)])
    assert brief(together) == [("call_new1", "f", {}), ("call_new2", "g", {})]
    in_turn = assemble([part("{}", name="f", index=None)], [part("{}", name="f", index=None)])
    assert brief(in_turn) == [("call_new1", "f", {}), ("call_new2", "f", {})]
    same_index = assemble([part("{}", name="f")], [part("{}", name="g")])
    assert brief(same_index) == [("call_new1", "f", {}), ("call_new2", "g", {})]
    nameless = assemble([part('{"x":1}', index=None)], [part("", name="f", index=None)])
    assert brief(nameless) == [("call_new1", "f", {"x": 1})]


def test_a_name_repeated_with_each_fragment_counts_once() -> None:
    calls = assemble(*([part(piece, id="a", name="f")] for piece in ('{"x"', ":", "1}")))
    assert brief(calls) == [("a", "f", {"x": 1})]
    without_id = assemble(*([part(piece, name="f")] for piece in ('{"x"', ":", "1}")))
    assert brief(without_id) == [("call_new1", "f", {"x": 1})]


def test_an_id_that_is_known_already_is_replaced_and_kept_beside() -> None:
    (call,) = assemble([part("{}", id="lookup:0", name="lookup")], taken=("lookup:0",))
    assert (call.id, call.provider_id) == ("call_new1", "lookup:0")
    first, second = assemble([part("{}", id="a", name="f"), part("{}", id="a", name="g", index=1)])
    assert (first.id, second.id, second.provider_id) == ("a", "call_new1", "a")


def test_arguments_cut_off_are_truncated_and_the_calls_before_them_are_not() -> None:
    calls = assemble(
        [part('{"a":1}', id="a", name="f")], [part('{"b":', id="b", name="g", index=1)], cut=True
    )
    assert brief(calls) == [("a", "f", {"a": 1}), ("b", "g", "truncated")]


@pytest.mark.parametrize(
    ("raw", "arguments", "problem"),
    [
        ("", {}, None),
        (" \n", {}, None),
        ("null", {}, None),
        ("{}", {}, None),
        ('"{\\"x\\": 1}"', {"x": 1}, None),
        ("[1]", None, "not_object"),
        ("7", None, "not_object"),
        ('"[]"', None, "not_object"),
        ('{"x":', None, "truncated"),
        ('{"x": "a', None, "truncated"),
        ("{'x': 1}", None, "invalid_json"),
        ('{"x": NaN}', None, "invalid_json"),
        ('{"x": "\\ud83d"}', None, "invalid_json"),
        ('"words"', None, "invalid_json"),
        ('{"x":1}{"y":2}', None, "invalid_json"),
        ('{"x":' * 100_000, None, "invalid_json"),
    ],
)
def test_arguments_are_an_object_or_have_a_problem(raw: str, arguments: object, problem: str | None) -> None:
    assert parse_arguments(raw, cut=False) == (arguments, problem)


def test_nothing_at_all_where_the_answer_was_cut_is_not_no_arguments() -> None:
    assert parse_arguments("", cut=True) == (None, "truncated")
    assert parse_arguments('{"x', cut=True) == (None, "truncated")


@given(
    st.lists(
        st.lists(
            st.builds(
                CallFragment,
                index=st.none() | st.integers(0, 2),
                id=st.sampled_from(["", "a", "b"]),
                name=st.sampled_from(["", "f", "g"]),
                arguments=st.sampled_from(["", "{}", '{"x":', "1}", "\x00"]),
            ),
            max_size=3,
        ),
        max_size=6,
    ),
    st.booleans(),
)
def test_whatever_comes_calls_have_distinct_ids_names_and_lose_no_character(
    deltas: list[list[CallFragment]], cut: bool
) -> None:
    calls = assemble(*deltas, cut=cut)
    assert len({call.id for call in calls}) == len(calls)
    assert all(call.id and call.name for call in calls)
    assert all((call.arguments is None) == (call.problem is not None) for call in calls)
    sent = [fragment for delta in deltas for fragment in delta]
    new = sum(len(each.arguments) for each in sent if not (each.id and each.name))  # others may say all again
    assert new <= sum(len(call.raw) for call in calls) <= sum(len(each.arguments) for each in sent)


def test_a_whole_call_that_is_said_again_is_one_call() -> None:
    pieces = [
        CallFragment(index=0, id="c1", name="f", arguments='{"x":'),
        CallFragment(index=0, arguments="1}"),
    ]
    again = CallFragment(index=0, id="c1", name="f", arguments='{"x":1}')
    (call,) = assemble(*([piece] for piece in pieces), [again], [again])
    assert (call.arguments, call.raw, call.problem) == ({"x": 1}, '{"x":1}', None)


def test_a_long_call_whose_name_comes_with_each_piece_is_read_once() -> None:
    within = r"\"}y"  # looked at anew with each piece, a call of so many takes hours
    pieces = ['{"x":"', *[within] * 100_000, '"}']
    (call,) = assemble(*([CallFragment(index=0, name="f", arguments=piece)] for piece in pieces))
    assert call.arguments == {"x": '"}y' * 100_000}


@given(st.recursive(st.none() | st.text() | st.integers(0, 99), st.lists), st.text(max_size=30), st.data())
def test_a_call_is_seen_to_be_whole_however_it_is_cut(value: object, more: str, data: st.DataObject) -> None:
    raw = json.dumps({"x": value, more: "}"}, ensure_ascii=data.draw(st.booleans()))
    raw = json.dumps(raw) if data.draw(st.booleans()) else raw
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    again = CallFragment(name="f", arguments="{}")
    calls = assemble(*([CallFragment(name="f", arguments=piece)] for piece in pieces if piece), [again])
    assert [call.raw for call in calls] == [raw, "{}"]


def test_a_fragment_that_says_nothing_begins_no_call() -> None:
    assert assemble([CallFragment(index=0), CallFragment()]) == []
