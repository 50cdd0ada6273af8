"""Looks for model servers on this machine, and on no other."""

import asyncio

from dialoom.llm.capabilities import Capability
from dialoom.llm.resolve import Probe
from dialoom.llm.wire.models import read_models
from dialoom.net.transport import HttpRequest, HttpTimeouts, HttpTransport, TransportError

PROBE_SECONDS = 0.25
_MAX_BYTES = 1024 * 1024
_SERVERS = (
    ("ollama", "http://127.0.0.1:11434", "/api/tags"),
    ("lmstudio", "http://127.0.0.1:1234", "/v1/models"),
    ("llamacpp", "http://127.0.0.1:8080", "/v1/models"),
)


async def probe_loopback(
    transport: HttpTransport,
    servers: tuple[tuple[str, str, str], ...] = _SERVERS,
    *,
    seconds: float = PROBE_SECONDS,
) -> tuple[Probe, ...]:
    """Return what answers at the usual addresses of Ollama, LM Studio and llama.cpp, in that order.

    One GET each, all at once, `seconds` at most; no key and no prompt is sent. Never raises for what
    a server does. A program asks once: the answer costs up to a quarter of a second.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_probe(transport, provider, root, path=path, seconds=seconds))
            for provider, root, path in servers
        ]
    return tuple(task.result() for task in tasks)


async def _probe(transport: HttpTransport, provider: str, root: str, *, path: str, seconds: float) -> Probe:
    base_url = f"{root}/v1"
    limits = HttpTimeouts(connect=seconds, read=seconds, total=seconds)
    request = HttpRequest(method="GET", url=root + path, timeouts=limits, max_bytes=_MAX_BYTES)
    try:
        async with transport.request(request) as response:
            status, listing = response.status, await response.aread(_MAX_BYTES)
    except TransportError as error:
        why = "nobody listens there" if error.kind == "connect" else str(error)
        return Probe(provider=provider, base_url=base_url, why=why)
    models = read_models(listing, provider) if status == 200 else None
    if models is None:
        return Probe(provider=provider, base_url=base_url, why="what listens there lists no models")
    names = tuple(model.id for model in models if model.offers(Capability.TEXT))
    return Probe(provider=provider, base_url=base_url, models=names)
