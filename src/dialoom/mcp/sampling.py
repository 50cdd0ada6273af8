"""A server borrows our model: what it wants said is shown first, and said only when somebody consents."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from dialoom.llm.messages import Message, assistant, system, user
from dialoom.llm.options import ChatOptions
from dialoom.llm.provider import Provider, chat
from dialoom.llm.response import FinishReason

MOST_TOKENS: Final = 4_096


class SamplingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a server wants a model to answer, as it would be sent."""

    server: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None = None
    stop: tuple[str, ...] = ()


Consent: TypeAlias = Callable[[SamplingRequest], Awaitable[bool]]


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """Lends `provider` to servers. `consent` is asked each time; there is no default for that."""

    provider: Provider
    consent: Consent
    model: str | None = None
    max_tokens: int = MOST_TOKENS
    """No answer is longer, whatever the server asks for."""


class SamplingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the model said."""

    text: str
    model: str
    stop_reason: str


_STOP_REASONS: Final[dict[FinishReason, str]] = {"stop": "endTurn", "length": "maxTokens"}


async def answer(sampling: Sampling, request: SamplingRequest) -> SamplingAnswer | None:
    """Return the model's answer, None when it was not consented to. Raises `ProviderError`."""
    if not await sampling.consent(request):
        return None
    response = await chat(
        sampling.provider,
        request.messages,
        ChatOptions(
            model=sampling.model,
            max_tokens=min(request.max_tokens, sampling.max_tokens),
            temperature=request.temperature,
            stop=request.stop,
        ),
    )
    return SamplingAnswer(
        text=response.text,
        model=response.model,
        stop_reason=_STOP_REASONS.get(response.finish_reason, response.finish_reason),
    )


def sampling_messages(turns: tuple[tuple[str, str], ...], *, instructions: str | None) -> tuple[Message, ...]:
    """Return what a model reads: `instructions` and the turns, each a role and its text."""
    said = tuple(assistant(text) if role == "assistant" else user(text) for role, text in turns)
    return (system(instructions), *said) if instructions else said
