"""Examines a model server, within bounds of time and tokens."""

from collections.abc import Awaitable, Callable

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.llm.doctor.probes import (
    chat_findings,
    probe_models,
    probe_parallel,
    probe_schema,
    probe_tools,
    probe_window,
    schema_unsent,
)
from dialoom.llm.doctor.probing import UNREACHABLE, DoctorLimits, Probing
from dialoom.llm.doctor.report import Finding, Report
from dialoom.llm.doctor.vision import probe_vision
from dialoom.llm.errors import ProviderError
from dialoom.llm.messages import user
from dialoom.llm.openai.embeddings import EmbeddingOptions, OpenAIEmbeddings
from dialoom.llm.openai.provider import OpenAIProvider
from dialoom.llm.profile import DEFAULT_PROFILE, WireProfile, profile_of
from dialoom.llm.provider import Provider
from dialoom.llm.retry import ONCE
from dialoom.net.address import safe_url
from dialoom.net.direct import DirectTransport
from dialoom.net.transport import HttpTransport

DEFAULT_LIMITS = DoctorLimits()


async def diagnose(
    target: Provider | str,
    model: str | None = None,
    *,
    api_key: str | None = None,
    embeddings: OpenAIEmbeddings | None = None,
    limits: DoctorLimits = DEFAULT_LIMITS,
    transport: HttpTransport | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Report:
    """Return what a provider, or the server at a base URL, can really do with `model`.

    A handful of short prompts and one long one are sent. Vectors are asked of `embeddings`, and without
    them of a base URL. A server that cannot be reached is a finding, not an error. Raises `UsageError` on a
    bad URL or key.
    """
    if not isinstance(target, str):
        examination = _Examination(Probing(target, model, limits, clock), profile_of(target))
        return await examination.run(target.id, embeddings)
    lent = transport or DirectTransport()
    try:
        provider = await _reachable(target, api_key, model, limits=limits, transport=lent, clock=clock)
        examination = _Examination(Probing(provider, model, limits, clock), provider.profile)
        options = EmbeddingOptions(request=limits.probe_seconds, retry=ONCE)
        same = OpenAIEmbeddings(
            target, api_key, model=model or "", options=options, transport=lent, clock=clock
        )
        return await examination.run(safe_url(target), embeddings or same)
    finally:
        if transport is None:
            await lent.aclose()


async def _reachable(
    base_url: str,
    api_key: str | None,
    model: str | None,
    *,
    limits: DoctorLimits,
    transport: HttpTransport,
    clock: Clock,
) -> OpenAIProvider:
    """Return a provider whose profile leaves out what makes the server refuse everything."""
    plain = OpenAIProvider(base_url, api_key, transport=transport, clock=clock)
    try:
        await Probing(plain, model, limits, clock).ask(user("Say ready."), max_tokens=1)
    except ProviderError as error:
        if error.kind == "bad_request" and "stream_options" in str(error):
            silent = msgspec.structs.replace(plain.profile, usage_in_stream=False)
            return OpenAIProvider(base_url, api_key, transport=transport, profile=silent, clock=clock)
    return plain


class _Examination:
    """The probes in their order; what one finds decides about the next."""

    def __init__(self, probing: Probing, profile: WireProfile | None) -> None:
        self._probing = probing
        self._profile = profile or DEFAULT_PROFILE
        self._findings: list[Finding] = []
        self._window: int | None = None

    async def run(self, server: str, embeddings: OpenAIEmbeddings | None = None) -> Report:
        probing = self._probing
        listed, self._window = await probe_models(probing)
        self._findings.append(listed)
        if await self._chats():
            await self._shapes()
            await self._within_time("pictures", probe_vision)
            await self._within_time("long prompts", self._long_prompts)
        if embeddings is not None:
            await self._within_time("embeddings", lambda _: _probe_embeddings(embeddings))
        changes = {name: value for each in self._findings for name, value in each.changes.items()}
        return Report(
            server=server,
            model=probing.model or "",
            findings=tuple(self._findings),
            profile=msgspec.structs.replace(self._profile, **changes),
            context_window=self._window,
            usage=probing.usage,
            seconds=probing.seconds,
        )

    async def _shapes(self) -> None:
        """Find out how values and calls are had: by a schema, by a tool, or only in words."""
        mode = self._profile.structured_mode
        if mode == "native":
            await self._within_time("json schema", probe_schema)
        else:
            self._findings.append(schema_unsent(mode))
        schema = self._findings[-1]
        await self._within_time(
            "tools", lambda each: probe_tools(each, schema_enforced=schema.verdict == "yes")
        )
        tools = self._findings[-1].verdict == "yes"
        if schema.verdict == "no":
            changes = {"structured_mode": "tool" if tools else "prompt"}
            self._findings[-2] = msgspec.structs.replace(schema, changes=changes)
        if tools:
            await self._within_time("parallel calls", probe_parallel)

    async def _chats(self) -> bool:
        try:
            answer = await self._probing.ask(user("How many legs has a spider? Answer briefly."))
        except ProviderError as error:
            verdict = "no" if error.kind in UNREACHABLE else "unknown"
            self._findings.append(Finding(probe="chat", verdict=verdict, detail=str(error)))
            return False
        self._findings += chat_findings(answer)
        return True

    async def _long_prompts(self, probing: Probing) -> Finding:
        found, window = await probe_window(probing)
        self._window = window or self._window
        return found

    async def _within_time(self, name: str, probe: Callable[[Probing], Awaitable[Finding]]) -> None:
        if self._probing.seconds >= self._probing.limits.seconds:
            self._findings.append(Finding(probe=name, verdict="unknown", detail="no time was left"))
            return
        self._findings.append(await probe(self._probing))


async def _probe_embeddings(embeddings: OpenAIEmbeddings) -> Finding:
    try:
        found = await embeddings.embed(["a river", "a mountain"])
    except ProviderError as error:
        return Finding(probe="embeddings", verdict="no", detail=str(error))
    return Finding(probe="embeddings", verdict="yes", detail=f"{len(found.vectors[0])} dimensions")
