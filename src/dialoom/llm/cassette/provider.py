"""A provider that plays recorded answers, or records those of another."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.assembly import Assembly
from dialoom.llm.capabilities import Capability, Model
from dialoom.llm.cassette.difference import difference
from dialoom.llm.cassette.masking import joined, mask_of, masked
from dialoom.llm.cassette.recording import FORMAT, Failure, Recording, read_recordings, request_of
from dialoom.llm.closing import ClosedOnExit
from dialoom.llm.errors import ProviderError
from dialoom.llm.events import ResponseCompleted, StreamEvent
from dialoom.llm.json_values import fields_of
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.provider import Provider, ResponseStream
from dialoom.llm.switch import StopSwitch

MAX_BYTES = 256 * 1024 * 1024


class CassetteProvider(ClosedOnExit):
    """Plays the answers in the file `path`; with `record` it asks that provider and writes them there.

    One line of JSON is one question with its whole answer, event by event; an answer that was left early or
    cancelled is not recorded. Playing, each request takes the first unused line that asked the same; one
    that asks anything else is refused, and told what differs. No header is ever written, and `secrets` and
    all that looks like a key are masked. It has no profile, so that both ways ask alike.
    """

    def __init__(
        self,
        path: Path | str,
        record: Provider | None = None,
        *,
        secrets: Collection[str] = (),
        id: str = "cassette",  # noqa: A002 - a provider's name is its id
    ) -> None:
        """Recording begins the file anew with its first answer. `record` is owned: `aclose` closes it."""
        self.id = id
        self._path = Path(path)
        self._record = record
        self._mask = mask_of([secret for secret in secrets if secret])
        self._unused: list[Recording] | None = None
        self._written = False
        self._writing = asyncio.Lock()

    async def aclose(self) -> None:
        if self._record is not None:
            await self._record.aclose()

    async def models(self) -> tuple[Model, ...]:
        """Return the models that can be asked, or that gave the answers still unplayed."""
        if self._record is not None:
            return await self._record.models()
        last = (recording.events[-1] for recording in await self._recordings() if recording.events)
        names = {event.response.model: None for event in last if isinstance(event, ResponseCompleted)}
        able = Capability.TEXT | Capability.TOOLS | Capability.STREAMING
        return tuple(Model(id=name, provider=self.id, capabilities=able) for name in names)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Ask for one answer. Raises `UsageError` for a question that was not recorded."""
        request = fields_of(masked(request_of(messages, options), self._mask))
        assembly = Assembly()
        if self._record is not None:
            events = self._recorded(self._record, messages, options, request=request, assembly=assembly)
        else:
            events = _played(await self._take(request), options, assembly)
        async with aclosing(events):
            yield ResponseStream(events, assembly)

    async def _recorded(
        self,
        provider: Provider,
        messages: Sequence[Message],
        options: ChatOptions,
        *,
        request: dict[str, object],
        assembly: Assembly,
    ) -> AsyncGenerator[StreamEvent, None]:
        heard: list[StreamEvent] = []
        try:
            async with provider.stream(messages, options) as stream:
                async for event in stream:
                    heard.append(event)
                    assembly.add(event)
                    if isinstance(event, ResponseCompleted):
                        await self._write(request, heard, None)
                    yield event
        except ProviderError as error:
            await self._write(request, heard, Failure.of(error))
            raise

    async def _write(
        self, request: dict[str, object], heard: list[StreamEvent], failure: Failure | None
    ) -> None:
        plain = _plain(joined(heard), failure)
        hidden = masked(plain, self._mask)
        if hidden == plain:  # nothing to hide, so the pieces may stay as they came
            hidden = _plain(heard, failure)
        line = msgspec.json.encode({"format": FORMAT, "request": request, **fields_of(hidden)}) + b"\n"
        async with self._writing:
            await asyncio.to_thread(_append, self._path, line, anew=not self._written)
            self._written = True

    async def _take(self, request: dict[str, object]) -> Recording:
        unused = await self._recordings()
        for at, recording in enumerate(unused):
            if difference(recording.request, request) is None:
                return unused.pop(at)
        if not unused:
            raise UsageError(f"the cassette {self._path.name} has no answer left; record this question too")
        found = difference(unused[0].request, request)
        raise UsageError(f"the cassette {self._path.name} holds no such question: {found}; record it anew")

    async def _recordings(self) -> list[Recording]:
        if self._unused is None:
            text = await asyncio.to_thread(_read, self._path)
            self._unused = read_recordings(text, self._path.name)
        return self._unused


async def _played(
    recording: Recording, options: ChatOptions, assembly: Assembly
) -> AsyncGenerator[StreamEvent, None]:
    with StopSwitch(options.cancel) as switch:
        for event in recording.events:
            await asyncio.sleep(0)  # a real answer lets other tasks run between its pieces
            switch.check()
            assembly.add(event)
            yield event
    if recording.error is not None:
        arrived = assembly.message(recording.error.origin)
        raise recording.error.error(arrived if arrived.parts else None)


def _plain(events: Sequence[StreamEvent], failure: Failure | None) -> dict[str, object]:
    text = msgspec.json.encode({"events": events, "error": failure})
    return msgspec.json.decode(text, type=dict[str, object])


def _append(path: Path, line: bytes, *, anew: bool) -> None:
    with path.open("wb" if anew else "ab") as file:
        file.write(line)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"the cassette {path} cannot be read: {error.strerror}; record it first") from error
    if len(text) > MAX_BYTES:
        raise UsageError(f"the cassette {path} has more than {MAX_BYTES} bytes; record fewer questions in it")
    return text
