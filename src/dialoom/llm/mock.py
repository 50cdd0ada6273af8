"""A provider that says what it was told to, for tests and examples without a model."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Self

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.assembly import Assembly
from dialoom.llm.capabilities import Capability, Model
from dialoom.llm.errors import ProviderError
from dialoom.llm.events import (
    ResponseCompleted,
    ResponseStarted,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallReady,
    ToolCallStarted,
    UsageUpdate,
)
from dialoom.llm.messages import Message, Origin, ToolCall
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.provider import ResponseStream
from dialoom.llm.question import question_of
from dialoom.llm.response import ChatResponse
from dialoom.llm.switch import StopSwitch
from dialoom.llm.usage import Usage


class Gate:
    """Holds a scripted answer at one place, so that a test can act while it is under way.

    `await gate.reached.wait()`, act, then `gate.opened.set()`.
    """

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()


class MockRequest(msgspec.Struct, frozen=True):
    """What the mock was asked."""

    messages: tuple[Message, ...]
    options: ChatOptions


_Step = StreamEvent | Gate | BaseException


class MockProvider:
    """Plays one queued answer per request, in order, and keeps what it was asked in `requests`."""

    def __init__(self, *, id: str = "mock", model: str = "mock-model") -> None:  # noqa: A002 - a provider's word for its name
        self.id = id
        self.requests: list[MockRequest] = []
        self._model = model
        self._scripts: deque[tuple[_Step, ...]] = deque()

    def queue_text(self, text: str, *, chunks: int = 1, usage: Usage | None = None) -> Self:
        """Answer with `text`, streamed in at most `chunks` pieces of equal length."""
        size = max(1, -(-len(text) // max(1, chunks)))
        pieces = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
        return self.queue_events(*pieces, *([UsageUpdate(usage)] if usage else ()))

    def queue_tool_call(self, call_id: str, name: str, arguments: Mapping[str, object]) -> Self:
        """Answer with one tool call."""
        raw = msgspec.json.encode(arguments).decode()
        return self.queue_tool_calls(ToolCall(id=call_id, name=name, arguments=dict(arguments), raw=raw))

    def queue_tool_calls(self, *calls: ToolCall) -> Self:
        """Answer with several tool calls at once."""
        return self.queue_events(
            *(event for index, call in enumerate(calls) for event in _call_events(index, call))
        )

    def queue_error(self, error: BaseException) -> Self:
        """Answer with an error before the first piece."""
        return self.queue_events(error)

    def queue_events(self, *steps: StreamEvent | Gate | BaseException) -> Self:
        """Answer with exactly these events; a `Gate` holds the answer, an exception ends it.

        `ResponseStarted` and `ResponseCompleted` are added where the script does not have its own.
        """
        self._scripts.append(steps)
        return self

    def assert_done(self) -> None:
        """Raise `AssertionError` while queued answers have not been asked for."""
        left = len(self._scripts)
        assert not left, f"{left} queued answers were never asked for"

    async def models(self) -> tuple[Model, ...]:
        able = Capability.TEXT | Capability.TOOLS | Capability.STREAMING
        return (Model(id=self._model, provider=self.id, capabilities=able),)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Play the next queued answer. Raises `UsageError` when none is left."""
        self.requests.append(MockRequest(question_of(messages, options), options))
        if not self._scripts:
            raise UsageError(f"the mock has no answer for request {len(self.requests)}; queue one more")
        assembly = Assembly()
        with StopSwitch(options.cancel) as switch:
            async with aclosing(self._play(self._scripts.popleft(), assembly, switch)) as events:
                yield ResponseStream(events, assembly)

    async def aclose(self) -> None:
        """Let go of nothing: there is no connection."""

    async def _play(
        self, script: tuple[_Step, ...], assembly: Assembly, switch: StopSwitch
    ) -> AsyncGenerator[StreamEvent, None]:
        if not any(isinstance(step, ResponseStarted) for step in script):
            script = (ResponseStarted(model=self._model), *script)
        for step in script:
            await asyncio.sleep(0)  # a real answer lets other tasks run between its pieces
            switch.check()
            if isinstance(step, Gate):
                step.reached.set()
                await switch.wait(step.opened.wait)
                continue
            if isinstance(step, BaseException):
                raise _with_partial(step, assembly)
            assembly.add(step)
            yield step
        if not any(isinstance(step, ResponseCompleted) for step in script):
            yield ResponseCompleted(self._response(assembly))

    def _response(self, assembly: Assembly) -> ChatResponse:
        message = assembly.message(Origin(self.id, self._model))
        return ChatResponse(
            message=message,
            finish_reason="tool_calls" if message.tool_calls else "stop",
            usage=assembly.usage,
            model=self._model,
            warnings=tuple(assembly.warnings),
        )


def _call_events(index: int, call: ToolCall) -> tuple[StreamEvent, ...]:
    return (
        ToolCallStarted(index=index, id=call.id, name=call.name),
        ToolCallDelta(index=index, arguments=call.raw),
        ToolCallReady(index=index, call=call),
    )


def _with_partial(error: BaseException, assembly: Assembly) -> BaseException:
    if isinstance(error, ProviderError) and error.partial is None:
        message = assembly.message()
        error.partial = message if message.parts else None
    return error
