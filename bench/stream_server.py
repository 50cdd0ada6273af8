"""A loopback server for the stream bench, in a process of its own: `python -m bench.stream_server`.

Prints its address. `/burst/…` writes a whole answer at once, `/paced/…` one event per write. Ends with its
standard input.
"""

import asyncio
import sys

import msgspec

CHUNKS = 1_000
PACE_SECONDS = 0.0005
_WORD = "word and more "


def _openai() -> list[bytes]:
    def event(delta: dict[str, str], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return b"data: %b\n\n" % msgspec.json.encode({**head, "choices": [choice]})

    words = [event({"content": _WORD}) for _ in range(CHUNKS)]
    return [event({"role": "assistant", "content": ""}), *words, event({}, "stop"), b"data: [DONE]\n\n"]


def _anthropic() -> list[bytes]:
    def event(kind: str, **fields: object) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))

    message: dict[str, object] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    text = {"type": "text", "text": ""}
    words = [
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": _WORD})
        for _ in range(CHUNKS)
    ]
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        event("message_start", message=message),
        event("content_block_start", index=0, content_block=text),
        *words,
        event("content_block_stop", index=0),
        event("message_delta", delta=end, usage={"output_tokens": CHUNKS}),
        event("message_stop"),
    ]


_EVENTS = {"chat/completions": _openai(), "messages": _anthropic()}
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _framed(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            await reader.readexactly(length)
            path = head.split(" ", 2)[1].partition("?")[0]
            events = next(each for end, each in _EVENTS.items() if path.endswith(end))
            writer.write(_HEAD)
            if path.startswith("/paced"):
                for each in events:
                    writer.write(_framed(each))
                    await writer.drain()
                    await asyncio.sleep(PACE_SECONDS)
            else:
                writer.writelines(map(_framed, events))
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
