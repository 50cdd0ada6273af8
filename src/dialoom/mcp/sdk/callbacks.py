"""A server's questions and notices, between the SDK's types and JSON values."""

import logging
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import mcp_types as types
from pydantic import FileUrl

from dialoom.base.errors import DialoomError
from dialoom.mcp.inputs import Elicit, MCPAnswers, OnNotice, with_defaults
from dialoom.mcp.sampling import Sampling, SamplingRequest, answer, sampling_messages

_log = logging.getLogger("dialoom.mcp")

_REFUSED: Final = -1


def client_options(
    server: str, answers: MCPAnswers, *, elicit: Elicit, on_notice: OnNotice
) -> dict[str, Any]:
    """Return what the SDK's client is made with: it tells a server only of what can be answered."""
    options: dict[str, Any] = {
        "client_info": types.Implementation(name="dialoom", version=version("dialoom")),
        "message_handler": _Notices(on_notice),
    }
    if answers.interactive:
        options["elicitation_callback"] = _Elicitation(elicit)
    if answers.sampling is not None:
        options["sampling_callback"] = _Sampler(server, answers.sampling)
    if answers.roots is not None:
        options["list_roots_callback"] = _Roots(answers.roots)
    return options


class _Notices:
    def __init__(self, on_notice: OnNotice) -> None:
        self._on_notice = on_notice

    async def __call__(self, message: types.ServerNotification | Exception) -> None:
        if isinstance(message, Exception):
            _log.debug("a message could not be read", extra={"error": type(message).__name__})
            return
        notice = message.model_dump(by_alias=True, mode="json", exclude_none=True)
        self._on_notice(notice["method"], notice.get("params") or {})


class _Elicitation:
    def __init__(self, elicit: Elicit) -> None:
        self._elicit = elicit

    async def __call__(
        self, _context: object, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        fields = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        reply = await self._elicit(fields)
        return types.ElicitResult.model_validate(with_defaults(reply, fields.get("requestedSchema")))


class _Roots:
    def __init__(self, roots: tuple[str, ...] | Callable[[], Sequence[str]]) -> None:
        self._roots = roots

    async def __call__(self, _context: object) -> types.ListRootsResult:
        places = self._roots() if callable(self._roots) else self._roots
        return types.ListRootsResult(roots=[_root(each) for each in places])


class _Sampler:
    def __init__(self, server: str, sampling: Sampling) -> None:
        self._server = server
        self._sampling = sampling

    async def __call__(
        self, _context: object, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        turns: list[tuple[str, str]] = []
        for message in params.messages:
            text = _text(message.content)
            if text is None:
                return types.ErrorData(code=types.INVALID_PARAMS, message="only text can be sampled here")
            turns.append((message.role, text))
        request = SamplingRequest(
            server=self._server,
            messages=sampling_messages(tuple(turns), instructions=params.system_prompt),
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            stop=tuple(params.stop_sequences or ()),
        )
        try:
            said = await answer(self._sampling, request)
        except DialoomError as error:
            return types.ErrorData(code=types.INTERNAL_ERROR, message=f"the model failed ({error.code})")
        if said is None:
            return types.ErrorData(code=_REFUSED, message="the person refused the sampling request")
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(type="text", text=said.text),
            model=said.model,
            stop_reason=said.stop_reason,
        )


def _text(content: object) -> str | None:
    """Return the words of a sampling message, None when there is more to it than words."""
    blocks: list[object] = [*content] if isinstance(content, list) else [content]
    texts = [block.text for block in blocks if isinstance(block, types.TextContent)]
    return "\n".join(texts) if len(texts) == len(blocks) else None


def _root(place: str) -> types.Root:
    uri = place if place.startswith("file://") else Path(place).absolute().as_uri()
    return types.Root(uri=FileUrl(uri), name=Path(place).name or None)
