"""Recorded responses of real servers, once for each size of pieces they are cut into."""

from collections.abc import Iterator
from pathlib import Path

from dialoom.testing.wire import WireReply, split_bytes

FOLDER = Path(__file__).with_name("recorded")
CUTS = (1, 7, 1_000_000)
_FRAMING = {"transfer-encoding", "content-length", "connection", "keep-alive"}


def recorded_replies(name: str) -> Iterator[WireReply]:
    whole = (FOLDER / f"{name}.txt").read_bytes().partition(b"### response\n")[2].replace(b"\r\n", b"\n")
    head, _, body = whole.partition(b"\n\n")
    status, *lines = head.decode().split("\n")
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    headers = {name: value for name, value in fields.items() if name.lower() not in _FRAMING}
    for size in CUTS:
        pieces = split_bytes(body, range(size, len(body), size))
        yield WireReply(status=int(status.split()[1]), headers=headers, body=pieces)
