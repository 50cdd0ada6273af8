"""Asks a server which models it has."""

from dialoom.llm.capabilities import Model
from dialoom.llm.failures import MAX_ERROR_BYTES
from dialoom.llm.wire.endpoint import Endpoint
from dialoom.llm.wire.models import read_models
from dialoom.net.transport import HttpTransport, TransportError, read_head

MODELS_SECONDS = 30.0
_MAX_MODELS_BYTES = 8 * 1024 * 1024


async def list_models(
    endpoint: Endpoint, transport: HttpTransport, path: str, *, quota_codes: frozenset[str]
) -> tuple[Model, ...]:
    """Return what the server lists under `path`. Raises `ProviderError`."""
    request = endpoint.get(path, seconds=MODELS_SECONDS)
    try:
        async with transport.request(request) as response:
            if response.status // 100 != 2:
                body = await read_head(response, MAX_ERROR_BYTES)
                raise endpoint.refused(
                    response.status, response.headers, body, model="", quota_codes=quota_codes
                )
            listing = await response.aread(_MAX_MODELS_BYTES)
    except TransportError as error:
        raise endpoint.unreachable(error, model="", partial=None) from error
    models = read_models(listing, endpoint.provider_id)
    if models is None:
        raise endpoint.error("invalid_response", f"{endpoint!r} sent no list of models", model="")
    return models
