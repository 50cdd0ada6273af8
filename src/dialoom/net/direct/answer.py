"""One response as it is read: bytes in, a head and the pieces of a body out, without any I/O."""

from collections import deque

from httptools import HttpParserError, HttpResponseParser

MAX_HEAD_BYTES = 100 * 1024
"""For everything that is no body: the head, interim answers before it, the lines between chunks, trailers."""


class BrokenAnswerError(Exception):
    """What came is no HTTP, or ended before its own end. Says what it was, in a few words."""


class Answer:
    """Reads one response; the same bytes give the same body however they are cut.

    `silent`: not a byte has come. `began`: the head is there. `complete`: the body is whole. `reusable`: the
    connection is then at the beginning of its next response. Each of `pieces` is what one chunk has brought
    in one read.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.silent = True
        self.began = False
        self.complete = False
        self.reusable = False
        self.pieces: deque[bytes] = deque()
        self._overhead = 0
        self._ends_by_closing = False
        self.on_body = self.pieces.append
        self._parser = HttpResponseParser(self)
        # as h11 reads it: with one response on a connection at a time nothing can be smuggled in
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: memoryview) -> None:
        """Read on. Raises `BrokenAnswerError`; what had come before it stays in `pieces`."""
        held = len(self.pieces)
        self.silent = False
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            self.reusable = False
            if not self.complete:
                raise BrokenAnswerError(_words_of(error)) from error
        if len(self.pieces) > held:
            self._overhead = 0
        else:
            self._count(len(data))

    def end(self) -> None:
        """The connection has ended. Raises `BrokenAnswerError` unless that ends the body."""
        self.reusable = False
        if self.complete:
            return
        if not self.began:
            raise BrokenAnswerError("Server disconnected without sending a response.")
        if not self._ends_by_closing:
            raise BrokenAnswerError("peer closed connection without sending complete message body")
        self.complete = True

    def on_message_begin(self) -> None:
        if self.complete:
            raise BrokenAnswerError("more than one answer")  # whatever it is, nobody has asked for it

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.began:
            return  # a trailer
        key, text = name.decode("latin-1").lower(), _text(value)
        held = self.headers.get(key)
        self.headers[key] = text if held is None else f"{held}, {text}"

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status == 101 or status < 100:
            raise BrokenAnswerError(f"status {status} is no answer")
        if status < 200:
            return
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=False)  # heads only
        coding = self.headers.get("transfer-encoding", "")
        if coding and coding.lower() != "chunked":
            raise BrokenAnswerError("a transfer encoding other than chunked")
        self.status = status
        self.began = True
        self._ends_by_closing = not coding and "content-length" not in self.headers
        self.reusable = self._parser.should_keep_alive()

    def on_message_complete(self) -> None:
        if self.began:
            self.complete = True
        else:
            self.headers.clear()  # an interim answer: the real one is still to come

    def _count(self, size: int) -> None:
        self._overhead += size
        if self._overhead > MAX_HEAD_BYTES and not self.complete:
            raise BrokenAnswerError(f"more than {MAX_HEAD_BYTES} bytes that are no body")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _words_of(error: HttpParserError) -> str:
    cause = error.__context__
    return str(cause if isinstance(cause, BrokenAnswerError) else error)
