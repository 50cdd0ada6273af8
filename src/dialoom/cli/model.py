"""From flags, config and environment to a model that can be asked."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import msgspec

from dialoom.cli.config import load_config
from dialoom.cli.exits import NoModelError
from dialoom.cli.flags import ModelFlags
from dialoom.cli.settings import Config
from dialoom.llm import (
    ChatOptions,
    ModelChoice,
    ModelRequest,
    ModelSettings,
    Provider,
    ProviderError,
    ToolModeProvider,
    choose_model,
    open_provider,
)
from dialoom.net import DirectTransport, HttpTransport


class OpenModel(msgspec.Struct, frozen=True):
    """A choice, the provider that serves it, and how it is asked."""

    choice: ModelChoice
    provider: Provider
    options: ChatOptions


@asynccontextmanager
async def open_model(flags: ModelFlags) -> AsyncGenerator[OpenModel]:
    """Choose a model. Nothing is sent to it here: `announce` it first.

    Raises `NoModelError` when there is none and `flags` do not allow going without.
    """
    async with aclosing(DirectTransport()) as transport:
        config = load_config(flags.config, env=os.environ)
        choice = await choose(flags, config, transport)
        profile, headers = config.wire_profile(), config.headers(choice, os.environ)
        window = config.model.num_ctx
        served = open_provider(choice, transport, profile=profile, headers=headers, num_ctx=window)
        async with aclosing(ToolModeProvider(served)) as provider:  # small servers know no tools
            options = config.chat_options(choice.model, max_tokens=flags.max_tokens, timeout=flags.timeout)
            yield OpenModel(choice, provider, options)


async def choose(flags: ModelFlags, config: Config, transport: HttpTransport) -> ModelChoice:
    """Return the model that `flags`, the config and the environment come to.

    Raises `NoModelError`, and `ProviderError` for a server that does not list its models in time.
    """
    seconds = config.requests.timeouts(flags.timeout).total
    try:
        async with asyncio.timeout(seconds):
            choice = await choose_model(_request(flags, config), transport)
    except TimeoutError as error:
        raise ProviderError(
            "timeout", f"no list of models came within {seconds:g} s; name a model, or allow more time"
        ) from error
    if flags.explain_model:
        _explain(choice)
    if choice.mode == "offline" and flags.require_model and not flags.offline:
        raise NoModelError("no model was found; name one with --model, or see --explain-model")
    return choice


def announce(choice: ModelChoice) -> None:
    """Say on stderr who is about to be asked, before any question leaves this process."""
    if choice.mode == "offline":
        line = "offline: no model is asked; answers quote the documents"
    else:
        line = f"{choice.label} at {choice.base_url}"
    print(line, file=sys.stderr, flush=True)


def _request(flags: ModelFlags, config: Config) -> ModelRequest:
    named = ModelSettings(model=flags.model, base_url=flags.base_url)
    needs_key = not flags.offline and not config.is_passed_over(named)
    return ModelRequest(
        flags=named,
        config=config.model_settings(os.environ, with_key=needs_key),
        env=os.environ,
        offline=flags.offline,
        probe=not flags.no_probe,
    )


def _explain(choice: ModelChoice) -> None:
    """Print one line per place that was looked at."""
    width = max(len(step.source) for step in choice.steps)
    for step in choice.steps:
        print(f"{step.source:<{width}}  {step.verdict:<11}  {step.why}", file=sys.stderr)
