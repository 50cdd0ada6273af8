"""A tool server that misbehaves as it is told: `python hostile_stdio.py [SWITCH ...]`. Standard library only.

Switches say how it starts, ends and lists; which tool is called says how a call goes. What it notices
(cancellations, its children's process ids) it appends to the file named by HOSTILE_LOG.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SWITCHES = frozenset(sys.argv[1:])
SCHEMA = {"type": "object"}
GOOD = {"name": "echo", "inputSchema": SCHEMA}
STORM = 2000


class Hostile:
    """Answers requests one after the other."""

    def __init__(self) -> None:
        self.pending: Any = None
        self.listings = 0

    def answer(self, request: Mapping[str, Any]) -> None:
        method, request_id = request["method"], request.get("id")
        params = request.get("params", {})
        match method:
            case "server/discover" if "silent-discover" in SWITCHES:
                note("asked server/discover")
            case "initialize" if "no-init" in SWITCHES:
                return
            case "initialize":
                send(request_id, initialized(params))
            case "tools/list":
                self.listings += 1
                self.list_tools(request_id, params)
            case "tools/call":
                self.call(request_id, params)
            case "notifications/cancelled":
                note(f"cancelled {params['requestId']} {params.get('reason')}")
            case _ if request_id is None:
                return
            case _:
                reply(request_id, error={"code": -32601, "message": "Method not found"})

    def list_tools(self, request_id: Any, params: Mapping[str, Any]) -> None:
        cursor = params.get("cursor")
        if "bad-tools" in SWITCHES:
            broken = [{"name": "lost"}, {"name": "void", "inputSchema": None}, {"inputSchema": SCHEMA}, 7]
            send(request_id, {"tools": [GOOD, *broken]})
        elif "pages" in SWITCHES:
            page = int(cursor or 0)
            tools = [{"name": f"tool-{page}-{each}", "inputSchema": SCHEMA} for each in range(3)]
            send(request_id, {"tools": tools, **({"nextCursor": str(page + 1)} if page < 3 else {})})
        elif "circle" in SWITCHES:
            send(request_id, {"tools": [GOOD], "nextCursor": "a" if cursor == "b" else "b"})
        else:
            send(request_id, {"tools": [GOOD]})

    def call(self, request_id: Any, params: Mapping[str, Any]) -> None:
        """Run the tool of that name: a method below."""
        tool = getattr(self, params["name"].replace("-", "_"), self.unknown)
        tool(request_id, params.get("arguments") or {}, params.get("_meta") or {})

    def echo(self, request_id: Any, arguments: Mapping[str, Any], _: object) -> None:
        text(request_id, json.dumps(arguments))

    def noise(self, request_id: Any, *_: object) -> None:
        print("DEBUG about to answer")
        sys.stdout.write("INFO: done ")
        text(request_id, "through the noise")

    def bad_utf8(self, request_id: Any, *_: object) -> None:
        answer = {"jsonrpc": "2.0", "id": request_id, "result": {"content": [block("a?b")]}}
        sys.stdout.buffer.write(json.dumps(answer).encode().replace(b"?", b"\xff") + b"\n")
        sys.stdout.buffer.flush()

    def big(self, request_id: Any, arguments: Mapping[str, Any], _: object) -> None:
        text(request_id, "x" * arguments["bytes"])

    def slow(self, request_id: Any, *_: object) -> None:
        note(f"slow {request_id}")

    def progress(self, request_id: Any, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        for step in range(arguments["steps"]):
            time.sleep(arguments["seconds"])
            about = {"progressToken": meta["progressToken"], "progress": step, "total": arguments["steps"]}
            tell("notifications/progress", about)
        if not arguments.get("never"):
            text(request_id, "at last")

    def storm(self, request_id: Any, *_: object) -> None:
        for _number in range(STORM):
            tell("notifications/tools/list_changed")
        text(request_id, "over")

    def count_listings(self, request_id: Any, *_: object) -> None:
        text(request_id, str(self.listings))

    def tell_changed(self, request_id: Any, arguments: Mapping[str, Any], _: object) -> None:
        tell(f"notifications/{arguments['kind']}/list_changed")
        text(request_id, "told")

    def crash(self, *_: object) -> None:
        print("the disk is on fire", file=sys.stderr, flush=True)
        os._exit(3)

    def env(self, request_id: Any, arguments: Mapping[str, Any], _: object) -> None:
        text(request_id, json.dumps({name: os.environ.get(name) for name in arguments["names"]}))

    def argv(self, request_id: Any, *_: object) -> None:
        text(request_id, json.dumps(sys.argv[1:]))

    def failing(self, request_id: Any, *_: object) -> None:
        send(request_id, {"content": [block("it did not work")], "isError": True})

    def odd(self, request_id: Any, *_: object) -> None:
        blocks = [{"type": "hologram", "shape": 1}, {"type": "text", "text": None}, "bare words"]
        send(request_id, {"content": blocks, "structuredContent": {"kept": True}})

    def empty(self, request_id: Any, *_: object) -> None:
        send(request_id, {"structuredContent": {"kept": True}})

    def unknown(self, request_id: Any, *_: object) -> None:
        reply(request_id, error={"code": -32602, "message": "no such tool"})

    def both(self, request_id: Any, *_: object) -> None:
        send(request_id, {"content": [block("kept it")], "structuredContent": {"kept": True}})

    def picture(self, request_id: Any, *_: object) -> None:
        send(request_id, {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]})

    def refused(self, request_id: Any, *_: object) -> None:
        reply(request_id, error={"code": -32602, "message": "no such argument", "data": {"name": "x"}})

    def chatter(self, request_id: Any, *_: object) -> None:
        print("last words: token=sk-secret-0123456789abcdef", file=sys.stderr, flush=True)
        text(request_id, "said")

    def ask(self, request_id: Any, *_: object) -> None:
        schema = {"type": "object", "properties": {"color": {"type": "string", "default": "green"}}}
        self.question(request_id, "elicitation/create", message="Which color?", requestedSchema=schema)

    def sample(self, request_id: Any, arguments: Mapping[str, Any], _: object) -> None:
        said = [{"role": "user", "content": block("Say hi.")}]
        if arguments.get("picture"):
            said[0]["content"] = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        self.question(
            request_id, "sampling/createMessage", messages=said, maxTokens=9, systemPrompt="Be kind."
        )

    def roots(self, request_id: Any, *_: object) -> None:
        self.question(request_id, "roots/list")

    def question(self, request_id: Any, method: str, **params: Any) -> None:
        """Ask the client something; its answer becomes the answer to the call."""
        self.pending = request_id
        write({"jsonrpc": "2.0", "id": "q1", "method": method, **({"params": params} if params else {})})

    def take_answer(self, answer: Mapping[str, Any]) -> None:
        text(self.pending, json.dumps(answer.get("result") or answer.get("error")))


def initialized(params: Mapping[str, Any]) -> dict[str, Any]:
    able = {"tools": {"listChanged": True}}
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": able,
        "serverInfo": {"name": "hostile", "version": "1"},
        "instructions": json.dumps(params["capabilities"]),
    }


def block(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def text(request_id: Any, words: str) -> None:
    send(request_id, {"content": [block(words)]})


def send(request_id: Any, result: Mapping[str, Any]) -> None:
    reply(request_id, result=result)


def tell(method: str, params: Mapping[str, Any] | None = None) -> None:
    write({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})


def reply(request_id: Any, **outcome: Any) -> None:
    write({"jsonrpc": "2.0", "id": request_id, **outcome})


def write(message: Mapping[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def note(words: str) -> None:
    with Path(os.environ["HOSTILE_LOG"]).open("a", encoding="utf-8") as log:
        log.write(words + "\n")


def told_to_end(*_: object) -> None:
    note("told end")
    if "ignore-term" not in SWITCHES:
        os._exit(0)


def main() -> None:
    note(f"pid {os.getpid()}")
    if "dies-at-start" in SWITCHES:
        sys.exit("cannot import name 'FastMCP'; token=sk-secret-0123456789abcdef")
    signal.signal(signal.SIGTERM, told_to_end)
    if "grandchild" in SWITCHES:
        child = subprocess.Popen(["sleep", "300"])
        note(f"grandchild {child.pid}")
    if "slow-start" in SWITCHES:
        time.sleep(60)
    if "noise-first" in SWITCHES:
        print("Starting server v1.2 ...\n{'not': 'json'}", flush=True)
    hostile = Hostile()
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message:
            hostile.answer(message)
        else:
            hostile.take_answer(message)
    while "ignore-eof" in SWITCHES:
        time.sleep(1)


if __name__ == "__main__":
    main()
