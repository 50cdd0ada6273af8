"""`dialoom doctor`: find out what a model server can really do."""

import os
from contextlib import aclosing
from pathlib import Path

import msgspec

from dialoom.base.errors import StoreError
from dialoom.cli.config import load_config
from dialoom.cli.exits import ExitCode, NoModelError
from dialoom.cli.flags import ModelFlags
from dialoom.cli.model import announce, choose
from dialoom.cli.progress import say
from dialoom.cli.settings import Config
from dialoom.llm import EmbeddingOptions, ModelChoice, OpenAIEmbeddings, RetryPolicy, diagnose, open_provider
from dialoom.llm.doctor import DoctorLimits, Report
from dialoom.llm.profile import ANTHROPIC_PROFILE
from dialoom.net import DirectTransport


async def doctor(flags: ModelFlags, profile: Path | None) -> ExitCode:
    """Probe the chosen server, print what was found, and write its profile to `profile` when one is named."""
    config = load_config(flags.config, env=os.environ)
    async with aclosing(DirectTransport()) as transport:
        choice = await choose(flags, config, transport)
        if choice.mode == "offline":
            raise NoModelError("there is no model to examine; name one with --model, or see --explain-model")
        announce(choice)
        report = await _Examination(config, flags.timeout, transport).of(choice)
    print("\n".join(report.lines()))
    if profile is not None:
        _write(profile, report)
    return ExitCode.OK if report.ok else ExitCode.MODEL


class _Examination:
    """Asks as the settings say. The model they name for vectors is asked too, wherever it is."""

    def __init__(self, config: Config, timeout: float | None, transport: DirectTransport) -> None:
        self._config = config
        self._seconds = min(DoctorLimits().probe_seconds, config.requests.timeouts(timeout).total)
        self._transport = transport

    async def of(self, choice: ModelChoice) -> Report:
        limits = DoctorLimits(probe_seconds=self._seconds)
        embeddings = self._embeddings()
        if choice.base_url is not None and choice.provider != "anthropic":
            return await diagnose(
                choice.base_url,
                choice.model,
                api_key=choice.api_key,
                embeddings=embeddings,
                limits=limits,
                transport=self._transport,
            )
        headers = self._config.headers(choice, os.environ)
        # newer models of this wire hold an answer to a schema, so it is sent to see
        native = msgspec.structs.replace(ANTHROPIC_PROFILE, structured_mode="native")
        served = open_provider(choice, self._transport, headers=headers, profile=native)
        async with aclosing(served) as provider:
            return await diagnose(provider, choice.model, embeddings=embeddings, limits=limits)

    def _embeddings(self) -> OpenAIEmbeddings | None:
        server = self._config.embedding_server(os.environ)
        if server is None:
            return None
        options = EmbeddingOptions(request=self._seconds, retry=RetryPolicy(attempts=1))
        return OpenAIEmbeddings(
            server.base_url, server.key, model=server.model, options=options, transport=self._transport
        )


def _write(path: Path, report: Report) -> None:
    try:
        path.write_text(report.profile_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; choose another path") from error
    say(f'{path}: the profile; use it with profile = "{path}" in the [model] table of dialoom.toml')
