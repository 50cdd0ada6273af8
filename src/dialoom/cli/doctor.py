"""`dialoom doctor`: find out what a model server can really do."""

from contextlib import aclosing
from pathlib import Path

from dialoom.base.errors import StoreError
from dialoom.cli.exits import ExitCode, NoModelError
from dialoom.cli.flags import ModelFlags
from dialoom.cli.model import announce, choose
from dialoom.cli.progress import say
from dialoom.llm import ModelChoice, diagnose, open_provider
from dialoom.llm.doctor import Report
from dialoom.net import Httpx2Transport


async def doctor(flags: ModelFlags, profile: Path | None) -> ExitCode:
    """Probe the chosen server, print what was found, and write its profile to `profile` when one is named."""
    async with aclosing(Httpx2Transport()) as transport:
        choice = await choose(flags, transport)
        if choice.mode == "offline":
            raise NoModelError("there is no model to examine; name one with --model, or see --explain-model")
        announce(choice)
        report = await _examine(choice, transport)
    print("\n".join(report.lines()))
    if profile is not None:
        _write(profile, report)
    return ExitCode.OK if report.ok else ExitCode.MODEL


async def _examine(choice: ModelChoice, transport: Httpx2Transport) -> Report:
    if choice.base_url is not None and choice.provider != "anthropic":
        return await diagnose(choice.base_url, choice.model, api_key=choice.api_key, transport=transport)
    async with aclosing(open_provider(choice, transport)) as provider:
        return await diagnose(provider, choice.model)


def _write(path: Path, report: Report) -> None:
    try:
        path.write_text(report.profile_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; choose another path") from error
    say(f'{path}: the profile; use it with profile = "{path}" in the [model] table of dialoom.toml')
