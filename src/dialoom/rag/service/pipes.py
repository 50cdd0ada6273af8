"""The service on two pipes: a line of JSON in, lines of JSON out, many requests at a time."""

import asyncio
import json
import os
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from threading import Thread
from typing import Any, Protocol, TypeVar

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.rag.service.lines import MAX_LINE_BYTES, LineSplitter, TooLongLine
from dialoom.rag.service.requests import AnyRequest, RequestError, Response, Shutdown, early_id
from dialoom.rag.service.service import RagService, refused
from dialoom.rag.service.settings import ServiceSettings

_T = TypeVar("_T")
_PIECE = 65_536
_WAITING_LINES = 64
_WAITING_RESPONSES = 256
_FAREWELL = 30.0
"""Seconds that running requests have to end after a shutdown or the end of the input."""
_LAST_WORDS = 5.0


def encode_line(response: Response) -> bytes:
    """A response as one line of UTF-8, whatever half characters somebody's loader or model let in."""
    try:
        return msgspec.json.encode(response) + b"\n"
    except UnicodeEncodeError:
        return replace_surrogates(json.dumps(response, ensure_ascii=False)).encode() + b"\n"


class HasFileno(Protocol):
    """An open file, such as `sys.stdin` or one end of a pipe."""

    def fileno(self) -> int: ...


async def serve(reader: HasFileno, writer: HasFileno, settings: ServiceSettings) -> None:
    """Answer the lines of `reader` on `writer` until a `shutdown` or the end of the input.

    Then what is running is waited for, and cancelled when it takes long. Raises as `RagService.open` does,
    before a line is read, and `OSError` at the end when `writer` took no more, a full disk say; a reader that
    left is no error, and nothing a line holds makes it raise.
    """
    service = RagService(settings)
    await service.open()
    output = _Output(writer.fileno())
    desk = _Desk(service, output)
    try:
        await desk.work(_Input(reader.fileno()))
    finally:
        await output.close()


class _Desk:
    """One run of the service: what came in and has not been answered yet."""

    def __init__(self, service: RagService, output: "_Output") -> None:
        self._service = service
        self._output = output

    async def work(self, lines: "_Input") -> None:
        last: Shutdown | None = None
        async with asyncio.TaskGroup() as group:
            tasks: set[asyncio.Task[None]] = set()
            while last is None and (line := await lines.get()) is not None:
                request = await self._read(line)
                if isinstance(request, Shutdown):
                    last = request
                elif request is not None:
                    task = group.create_task(self._answer(request))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            await self._finish(set(tasks))
        if last is not None:
            await self._answer(last)

    async def _read(self, line: bytes | TooLongLine) -> AnyRequest | None:
        try:
            if isinstance(line, TooLongLine):
                message = f"the line is longer than {MAX_LINE_BYTES} bytes; send less at a time"
                raise RequestError("limit", message, id=early_id(line.head))
            return self._service.accept(line)
        except RequestError as error:
            await self._output.put({"id": error.id, **refused(error.code, str(error))})
            return None

    async def _answer(self, request: AnyRequest) -> None:
        try:
            async for line in self._service.answer(request):
                await self._output.put(line)
        except asyncio.CancelledError:  # it did not stop when it was asked to; its client still hears of it
            self._output.put_if_room({"id": request.id, **refused("cancelled", "the request was cancelled")})
            raise

    async def _finish(self, tasks: set[asyncio.Task[None]]) -> None:
        """Wait for what is running, then ask it to stop, then stop it."""
        if tasks:
            await asyncio.wait(tasks, timeout=_FAREWELL)
            self._service.cancel_all()
            await asyncio.wait(tasks, timeout=_LAST_WORDS)
        for task in tasks:
            task.cancel()


class _Input:
    """Lines of a file, read by a thread: a file is not always something an event loop can wait for."""

    def __init__(self, file: int) -> None:
        self._lines: asyncio.Queue[bytes | TooLongLine | None] = asyncio.Queue(_WAITING_LINES)
        loop = asyncio.get_running_loop()
        Thread(target=self._read, args=(file, loop), name="dialoom-rag-in", daemon=True).start()

    async def get(self) -> bytes | TooLongLine | None:
        """The next line, None at the end."""
        return await self._lines.get()

    def _read(self, file: int, loop: asyncio.AbstractEventLoop) -> None:
        splitter = LineSplitter()
        with suppress(_EndedError):
            while piece := _read_piece(file):
                for line in splitter.feed(piece):
                    _on_loop(loop, self._lines.put(line))
            for line in (*splitter.finish(), None):
                _on_loop(loop, self._lines.put(line))


class _Output:
    """Responses on their way into a file, written by a thread: a reader that is slow holds up nobody."""

    def __init__(self, file: int) -> None:
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING_RESPONSES)
        self._written = asyncio.Event()
        self._failure: OSError | None = None
        loop = asyncio.get_running_loop()
        Thread(target=self._write, args=(file, loop), name="dialoom-rag-out", daemon=True).start()

    async def put(self, response: Response) -> None:
        """Send one line; waits while too many are on their way."""
        if self._failure is None:
            await self._lines.put(encode_line(response))

    def put_if_room(self, response: Response) -> None:
        """Send one line unless too many are on their way."""
        with suppress(asyncio.QueueFull):
            self._lines.put_nowait(encode_line(response))

    async def close(self) -> None:
        """Wait until everything is written, as long as somebody reads. Raises what else hindered it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS):
                await self._lines.put(None)
                await self._written.wait()
        if self._failure is not None and not isinstance(self._failure, BrokenPipeError):
            raise self._failure

    async def _take(self) -> list[bytes | None]:
        lines = [await self._lines.get()]
        while not self._lines.empty():
            lines.append(self._lines.get_nowait())
        return lines

    async def _finish(self, failure: OSError | None = None) -> None:
        self._failure = failure
        self._written.set()
        while failure is not None:  # nobody reads any more: let those go that wait to be written
            await self._lines.get()

    def _write(self, file: int, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(_EndedError):
            try:
                while True:
                    lines = _on_loop(loop, self._take())
                    _write_all(file, b"".join(line for line in lines if line is not None))
                    if None in lines:
                        break
            except OSError as error:
                _on_loop(loop, self._finish(error))
            _on_loop(loop, self._finish())


class _EndedError(Exception):
    """The event loop is closed: the service is over."""


def _on_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _T]) -> _T:
    try:
        return asyncio.run_coroutine_threadsafe(work, loop).result()
    except (RuntimeError, CancelledError) as error:
        work.close()
        raise _EndedError from error


def _read_piece(file: int) -> bytes:
    try:
        return os.read(file, _PIECE)
    except OSError:  # closed under our feet: the end
        return b""


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
