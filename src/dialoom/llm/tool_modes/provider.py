"""A provider whose tools work whatever its server can do: by the wire, by a schema, or not at all."""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Literal

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id as fresh_id
from dialoom.llm.around import AroundProvider
from dialoom.llm.assembly import Assembly
from dialoom.llm.errors import ErrorKind, ProviderError
from dialoom.llm.events import (
    FellBack,
    ResponseCompleted,
    Retrying,
    StreamEvent,
    TextDelta,
    ToolCallStarted,
    Warned,
)
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.profile import DEFAULT_PROFILE
from dialoom.llm.provider import Provider, ResponseStream
from dialoom.llm.response import ChatResponse
from dialoom.llm.structured.ask import instructed
from dialoom.llm.tool_modes.reader import StepReader
from dialoom.llm.tool_modes.schema import instruction, step_schema
from dialoom.llm.tool_modes.spoken import spoken

ToolMode = Literal["native", "schema", "off"]

_MODES: tuple[ToolMode, ...] = ("native", "schema", "off")
_ABOUT_TOOLS = re.compile(
    r"\b(tools?|tool_choice|function|peg|parser|template|jinja|grammar|response_format|json_schema)\b",
    re.IGNORECASE,
)
_REFUSALS: tuple[ErrorKind, ...] = ("bad_request", "server_error")
_MAX_REMEMBERED = 1000


class ToolModeProvider(AroundProvider):
    """Asks another provider, and finds out how far its tools can be trusted.

    `native` uses the wire's own calls. `schema` asks for one JSON object, a call or a final answer, and turns
    it into a call; it needs no more of a server than that it enforces a schema. `off` leaves the tools out.
    With `auto` a server that refuses tools, breaks on them, or answers a forced call with prose is asked
    again in the next mode, and from then on at once; a `Warned` event says so, after a `Retrying` one when
    something of the refused answer was already streamed.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        mode: ToolMode | Literal["auto"] = "auto",
        new_id: Callable[[], str] = fresh_id,
    ) -> None:
        """Raises `UsageError` for a mode that there is not."""
        if mode not in {"auto", *_MODES}:
            raise UsageError(f"there is no tool mode {mode!r}; use auto, {', '.join(_MODES)}")
        super().__init__(provider)
        self._mode: ToolMode | Literal["auto"] = mode
        self._new_id = new_id
        self._learned: dict[str | None, ToolMode] = {}

    def tool_mode(self, model: str | None = None) -> ToolMode:
        """Return the mode in which `model` is asked next."""
        if self._mode != "auto":
            return self._mode
        profile = self.profile
        return self._learned.get(model, profile.tool_mode if profile else "native")

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Ask for one answer. Raises `ProviderError` `invalid_response` when a forced call cannot be had."""
        mode = self.tool_mode(options.model)
        if not options.tools or options.tool_choice == "none":
            asked = messages if mode == "native" else self._spoken(messages)
            async with self._provider.stream(asked, options) as stream:
                yield stream
            return
        assembly = Assembly()
        async with aclosing(self._events(mode, messages, options, assembly=assembly)) as events:
            yield ResponseStream(events, assembly)

    async def _events(
        self, mode: ToolMode, messages: Sequence[Message], options: ChatOptions, *, assembly: Assembly
    ) -> AsyncGenerator[StreamEvent, None]:
        while True:
            streamed = False
            try:
                async with aclosing(self._asked(mode, messages, options, assembly=assembly)) as events:
                    async for event in events:
                        streamed = True
                        yield event
                return
            except ProviderError as error:
                lower = self._next_mode(mode, error, options)
                if lower is None:
                    raise
                news = _news(mode, lower, error, streamed=streamed)
            self._learned[options.model] = mode = lower
            if len(self._learned) > _MAX_REMEMBERED:
                self._learned.clear()
            for event in news:
                assembly.add(event)
                yield event

    def _asked(
        self, mode: ToolMode, messages: Sequence[Message], options: ChatOptions, *, assembly: Assembly
    ) -> AsyncGenerator[StreamEvent, None]:
        if mode == "native":
            return self._native(messages, options, assembly)
        if mode == "schema":
            return self._by_schema(messages, options, assembly)
        return self._without(messages, options, assembly)

    def _next_mode(self, mode: ToolMode, error: ProviderError, options: ChatOptions) -> ToolMode | None:
        refused = isinstance(error, _NoCallError) or (
            error.kind in _REFUSALS and _ABOUT_TOOLS.search(str(error)) is not None
        )
        if self._mode != "auto" or not refused or mode == "off":
            return None
        lower = _MODES[_MODES.index(mode) + 1]
        return None if lower == "off" and options.tool_choice == "required" else lower

    async def _native(
        self, messages: Sequence[Message], options: ChatOptions, assembly: Assembly
    ) -> AsyncGenerator[StreamEvent, None]:
        """Pass the answer on; of a forced call nothing before it is one, for it may be prose instead."""
        held: list[StreamEvent] | None = [] if options.tool_choice == "required" else None
        async with self._provider.stream(messages, options) as stream:
            async for event in stream:
                if held is not None and isinstance(event, ToolCallStarted):
                    for earlier in held:
                        yield _added(earlier, assembly)
                    held = None
                if held is None:
                    yield _added(event, assembly)
                elif isinstance(event, ResponseCompleted) and self._mode == "auto":
                    raise _no_call(event.response)
                else:
                    held.append(event)
        for event in held or ():
            yield _added(event, assembly)

    async def _by_schema(
        self, messages: Sequence[Message], options: ChatOptions, assembly: Assembly
    ) -> AsyncGenerator[StreamEvent, None]:
        reader = StepReader(options, self._new_id)
        asked = instructed(self._spoken(messages), instruction(options))
        schema = step_schema(options)
        async with self._provider.stream(asked, _toolless(options, schema)) as stream:
            async for event in stream:
                match event:
                    case TextDelta():
                        for said in reader.feed(event.text):
                            yield _added(said, assembly)
                    case ResponseCompleted():
                        for said in reader.finish(cut=event.response.finish_reason == "length"):
                            yield _added(said, assembly)
                        yield _completed(event.response, reader, options, assembly=assembly)
                    case _:
                        if isinstance(event, Retrying | FellBack):
                            reader = StepReader(options, self._new_id)
                        yield _added(event, assembly)

    async def _without(
        self, messages: Sequence[Message], options: ChatOptions, assembly: Assembly
    ) -> AsyncGenerator[StreamEvent, None]:
        asked = _toolless(options, options.response_schema)
        async with self._provider.stream(self._spoken(messages), asked) as stream:
            async for event in stream:
                yield _added(_with_warnings(event, assembly), assembly)

    def _spoken(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return spoken(messages, (self.profile or DEFAULT_PROFILE).tool_files)


class _NoCallError(ProviderError):
    """A forced call did not come."""


def _no_call(response: ChatResponse) -> _NoCallError:
    return _NoCallError(
        "invalid_response",
        "the model called no tool although it had to; ask again, or choose a model that can call tools",
        origin=response.message.origin,
        partial=response.message,
    )


def _toolless(options: ChatOptions, schema: object) -> ChatOptions:
    return msgspec.structs.replace(
        options, tools=(), tool_choice=None, parallel_tool_calls=None, response_schema=schema
    )


def _added(event: StreamEvent, assembly: Assembly) -> StreamEvent:
    assembly.add(event)
    return event


def _with_warnings(event: StreamEvent, assembly: Assembly) -> StreamEvent:
    if not isinstance(event, ResponseCompleted):
        return event
    return ResponseCompleted(msgspec.structs.replace(event.response, warnings=tuple(assembly.warnings)))


def _completed(
    response: ChatResponse, reader: StepReader, options: ChatOptions, *, assembly: Assembly
) -> ResponseCompleted:
    if options.tool_choice == "required" and not reader.called:
        raise _no_call(response)
    reason = response.finish_reason
    called = reader.called and reason == "stop"
    return ResponseCompleted(
        msgspec.structs.replace(
            response,
            message=assembly.message(response.message.origin),
            finish_reason="tool_calls" if called else reason,
            warnings=tuple(assembly.warnings),
        )
    )


def _news(mode: ToolMode, lower: ToolMode, error: ProviderError, *, streamed: bool) -> list[StreamEvent]:
    how = "asked for by schema" if lower == "schema" else "left out"
    said = f"tools are {how} from now on, because in {mode} mode: {error}"
    warned = Warned(code="tool_mode_changed", message=said)
    if not streamed:
        return [warned]
    restart = Retrying(attempt=2, wait=0.0, kind=error.kind, message=str(error), restarts=True)
    return [restart, warned]
