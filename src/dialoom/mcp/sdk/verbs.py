"""The requests of the protocol, each as one function over a live connection."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import mcp_types as types
from mcp.client import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from dialoom.base.errors import UsageError
from dialoom.mcp.connection import Live
from dialoom.mcp.inputs import OnProgress
from dialoom.mcp.patience import Patience
from dialoom.mcp.sdk.soft import http_failure

MOST_ROUNDS: Final = 10
"""So often one call may ask for more input before it is given up."""
_BETWEEN_ROUNDS: Final = 0.1
"""Before asking again a server that wanted no input, only to be asked again."""

_CALL: Final = TypeAdapter[Any](types.CallToolResult | types.InputRequiredResult)
_READ: Final = TypeAdapter[Any](types.ReadResourceResult | types.InputRequiredResult)
_PROMPT: Final = TypeAdapter[Any](types.GetPromptResult | types.InputRequiredResult)
_COMPLETE: Final = TypeAdapter[Any](types.CompleteResult)
_REPLIES: Final = TypeAdapter[types.InputResponses](types.InputResponses)
_QUESTION: Final = TypeAdapter[types.InputRequest](types.InputRequest)
_EMPTY: Final = TypeAdapter[Any](types.EmptyResult)


class Round(NamedTuple):
    """What one round of a call brings along: answers to the questions of the last, and the server's note."""

    replies: types.InputResponses | None = None
    state: str | None = None


FIRST_ROUND: Final = Round()
MakeRequest: TypeAlias = Callable[[Round], Any]


def tool_call(name: str, arguments: Mapping[str, object]) -> MakeRequest:
    """Return what asks for a tool to be run, in each of its rounds."""
    return lambda turn: types.CallToolRequest(
        params=types.CallToolRequestParams(
            name=name, arguments=dict(arguments), input_responses=turn.replies, request_state=turn.state
        )
    )


def reading(uri: str) -> MakeRequest:
    """Return what asks for a resource."""
    return lambda turn: types.ReadResourceRequest(
        params=types.ReadResourceRequestParams(
            uri=uri, input_responses=turn.replies, request_state=turn.state
        )
    )


def prompting(name: str, arguments: Mapping[str, str]) -> MakeRequest:
    """Return what asks for a prompt."""
    return lambda turn: types.GetPromptRequest(
        params=types.GetPromptRequestParams(
            name=name, arguments=dict(arguments), input_responses=turn.replies, request_state=turn.state
        )
    )


async def ask_once(
    live: Live, make: MakeRequest, *, turn: Round, patience: Patience, on_progress: OnProgress | None
) -> Any:
    """Return the result of one round: the answer, or what more the server wants to know."""

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        patience.alive()
        if on_progress is not None:
            on_progress(progress, total, message)

    request = _made(make, turn)
    try:
        return await live.client.session.send_request(
            request, _ADAPTERS[type(request)], progress_callback=progressed
        )
    except PydanticSerializationError as error:
        raise UsageError(
            "an argument of an mcp request is no JSON; give texts, numbers, lists and dicts"
        ) from error


def _made(make: MakeRequest, turn: Round) -> Any:
    """Return the request. Raises `UsageError` where there can be none: the server has no part in that."""
    try:
        return make(turn)
    except (LookupError, TypeError, ValueError) as error:  # what pydantic raises is a ValueError
        raise UsageError(
            "no mcp request can be made of this; names and addresses are texts, and arguments a dict by name"
        ) from error


async def ask_until_done(
    live: Live,
    make: MakeRequest,
    *,
    turn: Round = FIRST_ROUND,
    patience: Patience,
    on_progress: OnProgress | None = None,
) -> Any:
    """Return the answer, with the server's questions on the way answered by the callbacks of the client."""
    for _ in range(MOST_ROUNDS + 1):
        result = await ask_once(live, make, turn=turn, patience=patience, on_progress=on_progress)
        if not isinstance(result, types.InputRequiredResult):
            return result
        patience.alive()
        turn = Round(await _replies(live, result.input_requests or {}), result.request_state)
        if not turn.replies:
            await asyncio.sleep(_BETWEEN_ROUNDS)
    raise MCPError(
        types.INTERNAL_ERROR, f"the server asked for more input {MOST_ROUNDS} times and got no further"
    )


async def list_page(live: Live, kind: str, cursor: str | None) -> tuple[list[Any], str | None]:
    """Return one page of a listing and the cursor of the next."""
    client = live.client
    match kind:
        case "tools":
            page = await client.list_tools(cursor=cursor, cache_mode="refresh")
            return list(page.tools), page.next_cursor
        case "resources":
            page = await client.list_resources(cursor=cursor, cache_mode="refresh")
            return list(page.resources), page.next_cursor
        case "resourceTemplates":
            page = await client.list_resource_templates(cursor=cursor, cache_mode="refresh")
            return list(page.resource_templates), page.next_cursor
        case _:
            page = await client.list_prompts(cursor=cursor, cache_mode="refresh")
            return list(page.prompts), page.next_cursor


async def complete(
    live: Live, reference: Mapping[str, str], *, argument: tuple[str, str], known: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what the argument of a prompt or a resource template may be, given its beginning."""

    def completing(_: Round) -> types.CompleteRequest:
        if "uri" in reference:
            ref: Any = types.ResourceTemplateReference(type="ref/resource", uri=reference["uri"])
        else:
            ref = types.PromptReference(type="ref/prompt", name=reference["name"])
        return types.CompleteRequest(
            params=types.CompleteRequestParams(
                ref=ref,
                argument=types.CompletionArgument(name=argument[0], value=argument[1]),
                context=types.CompletionContext(arguments=dict(known)) if known else None,
            )
        )

    request = _made(completing, FIRST_ROUND)
    result = await live.client.session.send_request(request, _COMPLETE)
    return tuple(result.completion.values)


async def subscribe(live: Live, uri: str) -> None:
    """Ask an older server to tell of changes of a resource."""
    request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
    await live.client.session.send_request(request, _EMPTY)


async def unsubscribe(live: Live, uri: str) -> None:
    """Ask an older server to tell no more of them."""
    request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
    await live.client.session.send_request(request, _EMPTY)


async def tell_roots_changed(live: Live) -> None:
    """Tell an older server that our folders are others now; newer ones ask each time."""
    if not is_modern(live):
        await live.client.session.send_notification(types.RootsListChangedNotification())


def is_modern(live: Live) -> bool:
    """Whether the connection speaks the stateless revisions."""
    return live.client.protocol_version in MODERN_PROTOCOL_VERSIONS


def is_header_mismatch(error: BaseException | None) -> bool:
    """Whether a server wants headers that the tool's listing, read anew, will bring."""
    return isinstance(error, MCPError) and error.code == types.HEADER_MISMATCH


def is_unknown_method(error: MCPError) -> bool:
    """Whether a server does not know what it was asked for."""
    return error.code == types.METHOD_NOT_FOUND and http_failure(error.data) is None


def kept_round(replies: Mapping[str, Mapping[str, object]] | None, state: str | None) -> Round:
    """Return the round that takes up a call where it waited for input. Raises `UsageError`."""
    try:
        return Round(None if replies is None else _REPLIES.validate_python(replies), state)
    except ValidationError as error:
        raise UsageError(
            f"an answer does not fit the protocol ({error.error_count()} problems); give it as it was made"
        ) from error


async def answer_request(live: Live, request: Mapping[str, object]) -> dict[str, Any]:
    """Answer a question of the server's, given as JSON values, by the callbacks of the client."""
    asked: types.InputRequest = _QUESTION.validate_python(request)
    replies = await _replies(live, {"0": asked})
    return replies["0"].model_dump(by_alias=True, mode="json", exclude_none=True)


async def _replies(live: Live, requests: types.InputRequests) -> types.InputResponses:
    session = live.client.session
    replies: types.InputResponses = {}
    for key, request in requests.items():
        meta = request.params.meta if request.params else None
        context = ClientRequestContext(session=session, request_id=key, meta=meta)
        reply = await session.dispatch_input_request(context, request)
        if isinstance(reply, types.ErrorData):
            raise MCPError.from_error_data(reply)
        replies[key] = reply
    return replies


_ADAPTERS: Final[Mapping[type, TypeAdapter[Any]]] = {
    types.CallToolRequest: _CALL,
    types.ReadResourceRequest: _READ,
    types.GetPromptRequest: _PROMPT,
}
