"""One response read from bytes: what it says, however it is cut, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.net.direct.answer import MAX_HEAD_BYTES, Answer, BrokenAnswerError
from dialoom.testing.wire import split_bytes

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


def read(*pieces: bytes, end: bool = False) -> Answer:
    answer = Answer()
    for piece in pieces:
        answer.feed(memoryview(piece))
    if end:
        answer.end()
    return answer


def said(answer: Answer) -> tuple[int, dict[str, str], bytes, bool, bool]:
    return answer.status, answer.headers, b"".join(answer.pieces), answer.complete, answer.reusable


def refusal(*pieces: bytes, end: bool = False) -> str:
    with pytest.raises(BrokenAnswerError) as caught:
        read(*pieces, end=end)
    return str(caught.value)


WHOLE = {
    "length": (OK + b"Content-Length: 2\r\n\r\nok", b"ok", True),
    "chunked": (CHUNKED + b"2\r\nok\r\n3 \r\n on\r\n0\r\n\r\n", b"ok on", True),
    "extensions and trailers": (CHUNKED + b"2;a=b\r\nok\r\n0\r\nx-late: 1\r\n\r\n", b"ok", True),
    "length and chunks": (
        OK + b"content-length: 9\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"ok",
        True,
    ),
    "line feeds only": (b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok", b"ok", True),
    "no body": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    "told to close": (OK + b"connection: close\r\ncontent-length: 2\r\n\r\nok", b"ok", False),
    "of old": (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", b"ok", False),
    "after interim ones": (
        b"HTTP/1.1 100 Continue\r\nx-a: 1\r\n\r\nHTTP/1.1 103 Early\r\n\r\n"
        + OK
        + b"content-length: 2\r\n\r\nok",
        b"ok",
        True,
    ),
}


@pytest.mark.parametrize(("words", "body", "reusable"), WHOLE.values(), ids=WHOLE)
def test_an_answer_says_the_same_however_it_is_cut(words: bytes, body: bytes, reusable: bool) -> None:
    whole = said(read(words))
    assert whole[2:] == (body, True, reusable)
    assert "x-a" not in whole[1]
    assert "x-late" not in whole[1]
    for cut in range(1, len(words)):
        assert said(read(words[:cut], words[cut:])) == whole
    assert said(read(*(words[at : at + 1] for at in range(len(words))))) == whole


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    cuts=st.lists(st.integers(min_value=1, max_value=400), max_size=12),
)
def test_any_chunks_come_out_as_they_went_in(chunks: list[bytes], cuts: list[int]) -> None:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in chunks)
    words = CHUNKED + framed + b"0\r\n\r\n"
    answer = read(*split_bytes(words, cuts))
    assert said(answer) == (200, {"transfer-encoding": "chunked"}, b"".join(chunks), True, True)


@given(
    junk=st.binary(max_size=300), head=st.sampled_from([b"", OK, CHUNKED, OK + b"content-length: 3\r\n\r\n"])
)
def test_whatever_comes_is_an_answer_or_a_broken_one(junk: bytes, head: bytes) -> None:
    try:
        answer = read(head, junk, end=True)
    except BrokenAnswerError:
        return
    assert answer.complete
    assert not answer.reusable


def test_each_chunk_of_a_read_is_a_piece_of_its_own() -> None:
    assert list(read(CHUNKED + b"2\r\nok\r\n1\r\n!\r\n").pieces) == [b"ok", b"!"]


def test_headers_that_come_twice_are_one_and_their_letters_are_kept() -> None:
    lines = "Set-Cookie: a=b\r\nset-cookie: c=d\r\nx-a: café\r\n".encode() + b"x-b: caf\xe9\r\n"
    assert read(OK + lines + b"content-length: 0\r\n\r\n").headers == {
        "set-cookie": "a=b, c=d",
        "x-a": "café",
        "x-b": "café",
        "content-length": "0",
    }


def test_a_body_without_a_length_ends_with_its_connection() -> None:
    assert said(read(OK + b"\r\nok")) == (200, {}, b"ok", False, False)
    assert said(read(OK + b"\r\nok", end=True)) == (200, {}, b"ok", True, False)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (b"", "Server disconnected without sending a response."),
        (OK + b"content-le", "Server disconnected without sending a response."),
        (OK + b"content-length: 5\r\n\r\nok", "peer closed connection without sending complete message body"),
        (CHUNKED + b"5\r\nok", "peer closed connection without sending complete message body"),
        (CHUNKED + b"2\r\nok\r\n", "peer closed connection without sending complete message body"),
    ],
)
def test_a_connection_that_ends_too_early_is_no_end_of_an_answer(words: bytes, why: str) -> None:
    assert refusal(words, end=True) == why


@pytest.mark.parametrize(
    "words",
    [
        b"220 mail.example ESMTP\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
        OK + b"transfer-encoding: gzip\r\n\r\n",
        OK + b"transfer-encoding: gzip, chunked\r\n\r\n",
        OK + b"content-length: -2\r\n\r\n",
        OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n",
        OK + b"x-a : b\r\n\r\n",
        OK + b"x-a: b\0\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"1" * 40 + b"\r\n",
        CHUNKED + b"2\r\nokay",
        CHUNKED + b"3\r\nok\r\n0\r\n\r\n",
    ],
)
def test_what_is_not_framed_as_http_is_refused(words: bytes) -> None:
    assert refusal(words)


@pytest.mark.parametrize(
    "words",
    [
        OK + b"x-a: " + b"a" * MAX_HEAD_BYTES,
        OK + b"x-a: a\r\n" * (MAX_HEAD_BYTES // 8),
        b"HTTP/1.1 100 Continue\r\n\r\n" * (MAX_HEAD_BYTES // 24),
        CHUNKED + b"2\r\nok\r\n0\r\nx-late: " + b"a" * MAX_HEAD_BYTES,
        CHUNKED + b"2\r\nok\r\n2;" + b"a" * MAX_HEAD_BYTES,
    ],
    ids=["a header", "headers", "interim answers", "a trailer", "an extension"],
)
def test_what_is_no_body_is_bounded(words: bytes) -> None:
    pieces = [words[at : at + 1000] for at in range(0, len(words), 1000)]
    assert refusal(*pieces, b"x" * 2000) == f"more than {MAX_HEAD_BYTES} bytes that are no body"


@pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\n\r\n", b"\0junk"])
def test_more_than_was_asked_for_ends_the_use_of_a_connection(more: bytes) -> None:
    for close in (b"", b"connection: close\r\n"):
        answer = read(OK + close + b"content-length: 2\r\n\r\nok" + more)
        assert said(answer)[2:] == (b"ok", True, False)
