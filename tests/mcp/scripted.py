"""A server in this process that answers as its script says, at the other end of a `MemoryTransport`."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from dialoom.mcp import MCPClient, MCPOptions, MemoryTransport

Answer = Callable[[Mapping[str, Any]], Any]
EVERYTHING = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
}


class Refused(Exception):  # noqa: N818 - what a script raises, named for what it does
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.problem = {"code": code, "message": message, **({"data": data} if data is not None else {})}


class Scripted:
    """Answers each method with what its function returns; None means never. `heard` is all that came."""

    def __init__(self, answers: Mapping[str, Answer] | None = None, *, able: Any = None) -> None:
        self.heard: list[Mapping[str, Any]] = []
        self.answers: dict[str, Answer] = {"initialize": self._initialize, **(answers or {})}
        self._able = EVERYTHING if able is None else able
        self._ends: list[MemoryTransport] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._news = asyncio.Condition()

    def client(
        self, options: MCPOptions | None = None, *, kind: type[MemoryTransport] = MemoryTransport
    ) -> MCPClient:
        return MCPClient.over(lambda: self.transport(kind), name="scripted", options=options)

    def transport(self, kind: type[MemoryTransport] = MemoryTransport) -> MemoryTransport:
        """A new connection to this server; the client's end is a `kind`."""
        ours, plain = MemoryTransport.pair()
        theirs = kind(plain._incoming, plain._outgoing)
        self._ends.append(ours)
        self._tasks.append(asyncio.get_running_loop().create_task(self._serve(ours)))
        return theirs

    def asked(self, method: str) -> list[Mapping[str, Any]]:
        """The params of each request or notice of that name."""
        return [each.get("params", {}) for each in self.heard if each.get("method") == method]

    async def until_asked(self, method: str, count: int = 1) -> None:
        await self.until(lambda: len(self.asked(method)) >= count)

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something is true of what was heard."""
        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(happened)

    async def say(self, line: bytes | Mapping[str, Any]) -> None:
        """Send a line on the newest connection."""
        await self._ends[-1].send(line if isinstance(line, bytes) else json.dumps(line).encode())

    async def tell(self, method: str, **params: Any) -> None:
        await self.say({"jsonrpc": "2.0", "method": method, "params": params})

    async def hang_up(self) -> None:
        await self._ends[-1].aclose()

    async def _serve(self, end: MemoryTransport) -> None:
        while (line := await end.receive()) is not None:
            assert isinstance(line, bytes)
            message = json.loads(line)
            self.heard.append(message)
            answer = self.answers.get(message.get("method", ""))
            if "id" in message and "method" in message:
                await self._answer(end, message, answer)
            async with self._news:
                self._news.notify_all()

    async def _answer(self, end: MemoryTransport, message: Mapping[str, Any], answer: Answer | None) -> None:
        try:
            if answer is None:
                raise Refused(-32601, "Method not found")
            result = answer(message.get("params", {}))
        except Refused as refused:
            outcome: dict[str, Any] = {"error": refused.problem}
        else:
            if result is None:
                return
            outcome = {"result": result}
        await end.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode())

    def _initialize(self, params: Mapping[str, Any]) -> Any:
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": self._able,
            "serverInfo": {"name": "scripted", "version": "2"},
            "instructions": "Be brief.",
        }


def paged(key: str, pages: Mapping[str | None, tuple[list[Any], str | None]]) -> Answer:
    """Answers a listing by its cursor: the items of that page, and the next cursor."""

    def answer(params: Mapping[str, Any]) -> Any:
        items, following = pages[params.get("cursor")]
        return {key: items, **({"nextCursor": following} if following is not None else {})}

    return answer


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}
