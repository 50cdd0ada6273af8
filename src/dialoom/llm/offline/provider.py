"""Answers without any model: quotes what the given passages say themselves."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager

from dialoom.llm.assembly import Assembly
from dialoom.llm.capabilities import Capability, Model
from dialoom.llm.events import ResponseCompleted, ResponseStarted, StreamEvent, TextDelta
from dialoom.llm.messages import Message, Origin
from dialoom.llm.offline.asking import subject_of
from dialoom.llm.offline.phrases import CHINESE, ENGLISH, say, suggest
from dialoom.llm.offline.quote import best_quotes
from dialoom.llm.offline.words import is_chinese
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.provider import ResponseStream
from dialoom.llm.question import question_of
from dialoom.llm.response import ChatResponse
from dialoom.llm.switch import StopSwitch

OFFLINE = "offline"


class OfflineProvider:
    """Quotes the sources of the last user message, each quote with its `[n]`. Deterministic.

    When they hold nothing on the question it says so; without a source it says that, and how to get a model.
    It never makes a sentence up, and it has no use for the options but `cancel`.
    """

    id = OFFLINE

    async def models(self) -> tuple[Model, ...]:
        return (Model(id=OFFLINE, provider=OFFLINE, capabilities=Capability.TEXT | Capability.STREAMING),)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        assembly, messages = Assembly(), question_of(messages, options)
        with StopSwitch(options.cancel) as switch:
            async with aclosing(_events(messages, assembly, switch)) as events:
                yield ResponseStream(events, assembly)

    async def aclose(self) -> None:
        """Let go of nothing: there is no connection."""


async def _events(
    messages: Sequence[Message], assembly: Assembly, switch: StopSwitch
) -> AsyncGenerator[StreamEvent, None]:
    switch.check()
    yield ResponseStarted(model=OFFLINE)
    for piece in _answer(messages):
        await asyncio.sleep(0)  # let a reader show each piece, and a cancel be heard
        switch.check()
        event = TextDelta(piece)
        assembly.add(event)
        yield event
    message = assembly.message(Origin(OFFLINE, OFFLINE))
    yield ResponseCompleted(ChatResponse(message=message, finish_reason="stop", model=OFFLINE))


def _answer(messages: Sequence[Message]) -> Iterator[str]:
    asked = next((message for message in reversed(messages) if message.role == "user"), None)
    question = asked.text if asked else ""
    phrases = CHINESE if is_chinese(question) else ENGLISH
    if asked is None or not asked.sources:
        yield phrases.no_model
        return
    if subject_of(question).is_missing:
        yield from suggest(asked.sources, phrases)
        return
    yield from (piece for piece in say(best_quotes(question, asked.sources), phrases) if piece)
