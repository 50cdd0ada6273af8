"""The models of a center under the names other programs use for them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from dialoom.base.errors import DialoomError
from dialoom.base.text import one_line
from dialoom.dialog import Center
from dialoom.llm import ChatOptions, Message, Model, Provider
from dialoom.llm.events import StreamEvent
from dialoom.server.problems import ProblemError

ASK_SECONDS = 10.0
"""How long a provider has to say which models it offers."""


class NamedModel(msgspec.Struct, frozen=True):
    """A provider and the model it is asked for; `name` is what callers call it: `provider:model`."""

    name: str
    provider: Provider
    model: str


class _Choices(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a center's settings that says which providers are switched off."""

    disabled_providers: list[str] = []


async def named_models(center: Center) -> list[NamedModel]:
    """Return every model that can be asked; a provider that is off, or cannot say, has none."""
    found: list[NamedModel] = []
    off = msgspec.convert(center.to_dict(), _Choices).disabled_providers
    for provider_id in (each for each in center.provider_ids if each not in off):
        provider = center.get_provider(provider_id)
        assert provider is not None
        models, _ = await models_of(provider)
        found += [NamedModel(f"{provider_id}:{each.id}", provider, each.id) for each in models]
    return found


async def models_of(provider: Provider) -> tuple[tuple[Model, ...], str]:
    """Return the models of a provider, and why they are not known: "" when they are."""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            return await provider.models(), ""
    except TimeoutError:
        return (), f"it did not say within {ASK_SECONDS:g} s which models it has"
    except DialoomError as error:
        return (), one_line(str(error), 300)


async def find_model(center: Center, name: str) -> NamedModel:
    """Return the model called `name`: in full, by its own name alone, or "" for the default.

    Raises `ProblemError` when there is none.
    """
    models = await named_models(center)
    default = center.default_provider
    for each in models:
        if name in {each.name, each.model} or (not name and each.provider is default):
            return each
    known = ", ".join(each.name for each in models[:20]) or "none"
    told = f"there is no model {name[:80]!r}; there are: {known}"
    if not name:
        told = f"no model can be asked here; switch a provider on, or name one of: {known}"
    raise ProblemError(404, "model_not_found", told)


async def answer_events(
    asked: NamedModel, messages: Sequence[Message], options: ChatOptions
) -> AsyncGenerator[StreamEvent]:
    """Yield the events of one answer. Whoever stops reading stops the model."""
    chosen = msgspec.structs.replace(options, model=asked.model)
    async with asked.provider.stream(messages, chosen) as stream:
        async for event in stream:
            yield event


async def gathered(events: AsyncGenerator[StreamEvent]) -> list[StreamEvent]:
    """Return all events of an answer; the last one is `ResponseCompleted`."""
    async with aclosing(events) as opened:
        return [event async for event in opened]
