"""Errors as RFC 9457 problem documents: a status, a stable code, one line for people, values for a page."""

import logging
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec
from starlette.responses import Response

from dialoom.base.errors import ConflictError, DialoomError, StoreError, UsageError
from dialoom.base.text import one_line, replace_surrogates
from dialoom.conversation.attachments import AttachmentNotFoundError
from dialoom.conversation.cards.form_check import InvalidAnswersError
from dialoom.conversation.store import ConversationNotFoundError
from dialoom.dialog.errors import AlreadyAnsweredError, DialogClosedError, RunInProgressError
from dialoom.llm import ProviderError
from dialoom.server.own_paths import without_folders

_log = logging.getLogger("dialoom.server")

MEDIA_TYPE = "application/problem+json"
Params: TypeAlias = Mapping[str, object]
_TITLES: Mapping[int, str] = {
    400: "Bad request",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    412: "Changed meanwhile",
    413: "Too large",
    415: "Unsupported content type",
    422: "Not accepted",
    428: "Precondition needed",
    429: "Too many calls",
    500: "Internal error",
    501: "Not available here",
    502: "The model did not answer",
    503: "Not available now",
    507: "No space left",
}
_ANTHROPIC_KINDS: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
# The first class that fits wins, so the narrow ones stand first.
_STATUSES: tuple[tuple[type[DialoomError], int], ...] = (
    (ConversationNotFoundError, 404),
    (AttachmentNotFoundError, 404),
    (AlreadyAnsweredError, 409),
    (DialogClosedError, 409),
    (ConflictError, 409),
    (StoreError, 503),
    (ProviderError, 502),
    (UsageError, 422),
)


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What every refusal looks like; `code` is for programs, `params` are the values its words need."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    params: dict[str, object] = {}


class ProblemError(DialoomError):
    """A refusal with its HTTP status."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        params: Params | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        vars(self)["code"] = code
        self.status = status
        self.params = dict(params or {})
        self.headers = dict(headers or {})

    def response(self, path: str) -> Response:
        """Return the problem document, or the same in the words that clients of a face under `/v1/` read."""
        if path.startswith("/v1/messages"):
            return self._plain({"type": "error", "error": self.anthropic_error()})
        if path.startswith("/v1/"):
            return self._plain({"error": self.openai_error()})
        document = ProblemDocument(
            type="about:blank",
            title=_TITLES.get(self.status, "Error"),
            status=self.status,
            code=self.code,
            detail=replace_surrogates(str(self)),
            params=self.params,
        )
        content = msgspec.json.encode(document)
        return Response(content, self.status, headers=self.headers, media_type=MEDIA_TYPE)

    def openai_error(self) -> dict[str, object]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"message": replace_surrogates(str(self)), "type": kind, "code": self.code, "param": None}

    def anthropic_error(self) -> dict[str, object]:
        usual = "invalid_request_error" if self.status < 500 else "api_error"
        kind = _ANTHROPIC_KINDS.get(self.status, usual)
        return {"type": kind, "message": replace_surrogates(str(self)), "code": self.code}

    def _plain(self, fields: Mapping[str, object]) -> Response:
        content = msgspec.json.encode(fields)
        return Response(content, self.status, headers=self.headers, media_type="application/json")


def not_found(what: str, name: str, *, then: str = "list those there are") -> ProblemError:
    """Return the refusal for a thing that is not there; `then` is what to do."""
    return ProblemError(404, "not_found", f"there is no {what} {one_line(name, 80)!r}; {then}")


def wrong_method(allowed: Iterable[str]) -> ProblemError:
    """Return the refusal of a method that a path does not have."""
    told = ", ".join(allowed)
    return ProblemError(405, "method_not_allowed", f"this path takes {told}", headers={"Allow": told})


def problem_of(error: Exception) -> ProblemError:
    """Return what an error of ours means to a caller; any other is logged and told without its words."""
    match error:
        case ProblemError():
            return error
        case InvalidAnswersError(violations=violations):
            params = {"violations": [msgspec.to_builtins(each) for each in violations]}
            return ProblemError(422, "invalid_input", str(error), params=params)
        case RunInProgressError(run_id=run_id):
            return ProblemError(409, "run_active", str(error), params={"runId": run_id})
        case StoreError():
            status = next(status for kind, status in _STATUSES if isinstance(error, kind))
            return ProblemError(status, error.code, one_line(without_folders(str(error)), 500))
        case DialoomError():
            status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 422)
            return ProblemError(status, error.code, one_line(str(error), 500))
        case _:
            _log.error("a call failed", exc_info=error)
            return ProblemError(500, "internal", "this call failed here; the server's log says why")
