"""From a request to a provider that can be asked: decide, look around, name the model."""

from collections.abc import Mapping

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.llm.anthropic.provider import AnthropicProvider
from dialoom.llm.capabilities import Capability
from dialoom.llm.offline.provider import OfflineProvider
from dialoom.llm.ollama.provider import OllamaProvider
from dialoom.llm.openai.provider import OpenAIProvider
from dialoom.llm.probe import probe_loopback
from dialoom.llm.profile import ANTHROPIC_PROFILE, DEFAULT_PROFILE, WireProfile
from dialoom.llm.provider import Provider
from dialoom.llm.resolve import ModelChoice, ModelRequest, Step, resolve_model
from dialoom.net.transport import HttpTransport


async def choose_model(request: ModelRequest, transport: HttpTransport) -> ModelChoice:
    """Return the model that answers, with a name where its server tells one.

    Local servers are looked for only when nothing names a server, and a server is asked for its models
    only when nobody named one. Raises `UsageError`, and `ProviderError` when that server cannot tell.
    """
    choice = resolve_model(request)
    if choice.wants_probe:
        choice = resolve_model(request, await probe_loopback(transport))
    if choice.mode == "offline" or choice.model is not None:
        return choice
    models = await open_provider(choice, transport).models()
    first = next((model.id for model in models if model.offers(Capability.TEXT)), None)
    why = f"the first chat model it lists, {first}" if first else "lists no chat model; it decides itself"
    step = Step(f"models of {choice.base_url}", "chosen" if first else "passed over", why)
    return msgspec.structs.replace(choice, model=first, steps=(*choice.steps, step))


def open_provider(
    choice: ModelChoice,
    transport: HttpTransport | None = None,
    *,
    profile: WireProfile | None = None,
    headers: Mapping[str, str] | None = None,
    num_ctx: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Provider:
    """Return the provider of a choice; ask it with `ChatOptions(model=choice.model)` and `aclose` it.

    `profile` says how the server departs from the common wire, as `diagnose` found it; `headers` go out
    with every request. With `num_ctx` Ollama is asked by its own wire for a context window of so many tokens;
    other servers have theirs set where they are started.
    """
    if choice.base_url is None:
        return OfflineProvider()
    if choice.provider == "anthropic":
        return AnthropicProvider(
            choice.base_url,
            choice.api_key,
            transport=transport,
            headers={**_token(choice), **(headers or {})},
            profile=profile or ANTHROPIC_PROFILE,
            clock=clock,
        )
    if choice.provider == "ollama" and num_ctx is not None:
        return OllamaProvider(
            choice.base_url,
            choice.api_key,
            num_ctx=num_ctx,
            transport=transport,
            profile=profile or DEFAULT_PROFILE,
            clock=clock,
        )
    return OpenAIProvider(
        choice.base_url,
        choice.api_key,
        transport=transport,
        headers=headers,
        id=choice.provider,
        profile=profile,
        clock=clock,
    )


def _token(choice: ModelChoice) -> dict[str, str]:
    return {"authorization": f"Bearer {choice.auth_token}"} if choice.auth_token else {}
