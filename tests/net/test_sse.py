"""The event stream grammar of the HTML standard, however the bytes are cut."""

from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.net import EventTooLargeError, SseEvent, SseParser


def event(data: str, *, kind: str = "message", named: str = "", retry: int | None = None) -> SseEvent:
    return SseEvent(kind, data, named, retry)


def parse(stream: bytes) -> list[SseEvent]:
    return SseParser().feed(stream)


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(b"data: one\n\ndata: two\n\n", [event("one"), event("two")], id="two events"),
        pytest.param(b"data: a\rdata: b\r\r", [event("a\nb")], id="bare carriage returns"),
        pytest.param(b"data: a\r\ndata: b\r\n\r\n", [event("a\nb")], id="carriage return and line feed"),
        pytest.param(b"data: a\ndata: b\rdata: c\r\n\n", [event("a\nb\nc")], id="line ends mixed"),
        pytest.param(
            b"data:no\n\ndata:  two\n\n", [event("no"), event(" two")], id="one blank belongs to the colon"
        ),
        pytest.param(b": a comment\n:\ndata: x\n\n", [event("x")], id="comments say nothing"),
        pytest.param(b"data\n\ndata:\n\n", [event(""), event("")], id="empty data is an event"),
        pytest.param(b"event: ping\n\ndata: x\n\n", [event("x")], id="a name without data is dropped"),
        pytest.param(b"event: ping\ndata: x\n\n", [event("x", kind="ping")], id="a named event"),
        pytest.param(b"event:\ndata: x\n\n", [event("x")], id="an empty name is no name"),
        pytest.param(
            b"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
            [event("a", named="7"), event("b", named="7"), event("c")],
            id="an id holds until another",
        ),
        pytest.param(
            b"id: 7\n\nid: a\0b\ndata: x\n\n", [event("x", named="7")], id="an id with a NUL is ignored"
        ),
        pytest.param(
            b"retry: 1500\ndata: a\n\nretry: x\nretry: -1\ndata: b\n\n",
            [event("a", retry=1500), event("b")],
            id="retry is digits or nothing",
        ),
        pytest.param(b"\xef\xbb\xbfdata: x\n\n", [event("x")], id="a byte order mark first"),
        pytest.param(
            b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [event("x")], id="a byte order mark later is a name"
        ),
        pytest.param(
            "data: a\u2028b\u2029c\x85d\x0be\n\n".encode(),
            [event("a\u2028b\u2029c\x85d\x0be")],
            id="other line separators are text",
        ),
        pytest.param(b"data: \xff\xe4\xbd\n\n", [event("\ufffd\ufffd")], id="broken bytes become marks"),
        pytest.param(b"other: x\nDATA: y\n\ndata: z\n\n", [event("z")], id="unknown fields are skipped"),
        pytest.param(b"data: cut off", [], id="an unfinished event waits"),
    ],
)
def test_the_grammar_of_the_standard(stream: bytes, events: list[SseEvent]) -> None:
    assert parse(stream) == events


def test_the_end_of_the_stream_drops_what_is_unfinished_unless_asked() -> None:
    parser = SseParser()
    assert parser.feed(b"data: whole\n\ndata: cut") == [event("whole")]
    assert parser.finish() == event("cut")
    assert SseParser().finish() is None
    waiting = SseParser()
    assert waiting.feed(b"data: x\r") == []
    assert waiting.finish() == event("x")


@given(
    lines=st.lists(
        st.sampled_from(
            ["data: a", "data:b", "data", "event: e", "id: 1", "id", "retry: 5", ": c", "", "", "x: é中🌍"]
        )
        | st.text(alphabet="dat:\u2028\x00é🌍 ", max_size=8),
        max_size=12,
    ),
    ends=st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=12, max_size=12),
    mark=st.booleans(),
    cuts=st.lists(st.integers(0, 200), max_size=20),
)
def test_any_cut_gives_the_same_events(
    lines: list[str], ends: list[str], mark: bool, cuts: list[int]
) -> None:
    text = "".join(line + end for line, end in zip(lines, ends, strict=False))
    stream = (b"\xef\xbb\xbf" if mark else b"") + text.encode()
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    parser, by_byte = SseParser(), SseParser()
    pieces = [parser.feed(stream[a:b]) for a, b in pairwise(edges)]
    bytewise = [by_byte.feed(stream[at : at + 1]) for at in range(len(stream))]
    whole = parse(stream)
    assert list(chain(*pieces)) == whole
    assert list(chain(*bytewise)) == whole


def test_an_endless_line_is_refused_whole_or_in_pieces() -> None:
    parser = SseParser(max_line_bytes=10)
    with pytest.raises(EventTooLargeError, match="a line of the event stream is longer than 10 bytes"):
        parser.feed(b"data: 12345678\n")
    dripping = SseParser(max_line_bytes=10)
    with pytest.raises(EventTooLargeError, match="longer than 10 bytes"):
        for _ in range(20):
            dripping.feed(b"x")


def test_an_endless_event_is_refused() -> None:
    parser = SseParser(max_event_bytes=10)
    with pytest.raises(EventTooLargeError, match="an event of the stream has more than 10 bytes of data"):
        for _ in range(5):
            parser.feed(b"data: 123\n")


def test_a_comment_takes_no_room_in_an_event() -> None:
    parser = SseParser(max_event_bytes=4)
    assert parser.feed(b": a long comment indeed\ndata: ab\n\ndata: cd\n\n") == [event("ab"), event("cd")]


def test_lines_of_data_without_a_value_are_counted_as_well() -> None:
    parser = SseParser(max_event_bytes=3)
    assert [event.data for event in parser.feed(b"data\ndata\ndata\n\n")] == ["\n\n"]
    with pytest.raises(EventTooLargeError, match="more than 3 bytes of data"):
        parser.feed(b"data\n" * 4)
