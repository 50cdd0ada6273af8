"""Calls that stop to ask a person: the question pauses the agent's run, the answer takes the call up again.

A server of 2026-07-28 answers with what it wants to know and a state to send back. Both are kept in the
run's journal, so the answer may come days later and in another process, and nothing is called twice. An
older server asks while the call hangs: there the call is cancelled for as long as a person thinks, and made
again with the answer at hand. Where nobody can be asked the server is told so.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Protocol, cast

import msgspec

from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.text import one_line
from dialoom.llm.json_schema import JsonSchema
from dialoom.mcp.asked import CANCELLED
from dialoom.mcp.errors import McpError
from dialoom.mcp.inputs import Elicit, Fields, OnProgress, with_defaults
from dialoom.mcp.json_shapes import object_of
from dialoom.mcp.question_fields import DONE, fields_of_page, fields_of_schema
from dialoom.mcp.results import clean_text
from dialoom.net.address import safe_url, split_url
from dialoom.tools.context import ToolContext

MAX_LEGS: Final = 10
"""So often one call may come back with another question."""
MAX_QUESTIONS: Final = 20
"""So many things it may ask at once."""


class DumpsItself(Protocol):
    """A message of the protocol, which writes itself as JSON values."""

    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, Any]: ...


class CallsTools(Protocol):
    """The part of a client that calls tools; the answer may be an `InputRequiredResult`.

    `on_elicit` is asked while the call is under way; `input_responses` and `request_state` take up a call
    that wanted to know something. Raises `McpError`.
    """

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        on_progress: OnProgress | None = None,
        on_elicit: Elicit | None = None,
        input_responses: Mapping[str, Fields] | None = None,
        request_state: str | None = None,
        pause_for_input: bool = False,
    ) -> DumpsItself: ...

    async def answer_input(self, request: Fields) -> Fields:
        """Answer a server's request that is not for a person, such as sampling, by the client's own rules."""
        ...


def fields_of(message: DumpsItself) -> dict[str, object]:
    """Return a message of the protocol as JSON values."""
    return message.model_dump(mode="json", by_alias=True)


class _Finished(Exception):  # noqa: N818 - no error: how a call that came to its end leaves the journal
    def __init__(self, result: Fields) -> None:
        super().__init__("finished")
        self.result = result


class AskingCall:
    """One call of one tool, with whatever it asks on its way. `server` is the name people know it by."""

    def __init__(self, client: CallsTools, ctx: ToolContext, *, server: str, tool: str) -> None:
        self._client = client
        self._ctx = ctx
        self._server = server
        self._tool = tool
        self._asked = 0

    async def result(self, arguments: Fields) -> Fields:
        """Return the `CallToolResult` as JSON values.

        Raises `McpError`, `Interrupted` while a person is waited for, and what stopping the run raises.
        """
        responses: dict[str, Fields] | None = None
        state: str | None = None
        for leg in range(1, MAX_LEGS + 1):
            send = partial(self._paused, arguments, responses, state)
            try:
                paused: Fields = msgspec.json.decode(await self._ctx.aonce(f"mcp/{leg}", send))
            except _Finished as finished:
                return finished.result
            responses = await self._answered(paused, leg)
            known = paused.get("requestState")
            state = known if isinstance(known, str) else None
        raise McpError(
            f"tool {one_line(self._tool, 80)} asked more than {MAX_LEGS} times; call it in another way",
            server=self._server,
            kind="protocol",
        )

    async def _paused(
        self, arguments: Fields, responses: Mapping[str, Fields] | None, state: str | None
    ) -> str:
        """Return as JSON what the call wants to know. Raises `_Finished` when it wants nothing more."""
        answer = await self._sent(arguments, responses, state)
        if answer.get("resultType") != "input_required":
            raise _Finished(answer)
        return msgspec.json.encode(answer).decode()

    async def _sent(
        self, arguments: Fields, responses: Mapping[str, Fields] | None, state: str | None
    ) -> Fields:
        questions: asyncio.Queue[tuple[Fields, asyncio.Future[Fields]]] = asyncio.Queue(MAX_QUESTIONS)

        async def elicited(params: Fields) -> Fields:
            reply: asyncio.Future[Fields] = asyncio.get_running_loop().create_future()
            await questions.put((params, reply))
            return await reply

        async def call() -> Fields | DialoomError:
            try:
                answer = await self._client.call_tool(
                    self._tool,
                    arguments,
                    on_progress=self._show,
                    on_elicit=elicited,
                    input_responses=responses,
                    request_state=state,
                    pause_for_input=True,
                )
            except DialoomError as error:
                return error  # a group would wrap it
            return fields_of(answer)

        pause: BaseException | None = None
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(call())
            try:
                await self._answer_until_done(calling, questions)
            except BaseException as error:  # noqa: BLE001 - raised below, as itself and not in a group
                pause = error
                calling.cancel()
        if pause is not None:
            raise pause
        answer = calling.result()
        if isinstance(answer, DialoomError):
            raise answer
        return answer

    async def _answer_until_done(
        self,
        calling: "asyncio.Task[Fields | DialoomError]",
        questions: "asyncio.Queue[tuple[Fields, asyncio.Future[Fields]]]",
    ) -> None:
        while not calling.done():
            asking = asyncio.ensure_future(questions.get())
            try:
                await asyncio.wait({calling, asking}, return_when=asyncio.FIRST_COMPLETED)
                if asking.done():
                    params, reply = asking.result()
                    answer = self._ask(params, key=self._next_key(params))
                    if not reply.done():
                        reply.set_result(answer)
            finally:
                asking.cancel()

    async def _answered(self, paused: Fields, leg: int) -> dict[str, Fields]:
        answers: dict[str, Fields] = {}
        for key, request in list(object_of(paused.get("inputRequests")).items())[:MAX_QUESTIONS]:
            wants = object_of(request)
            if wants.get("method") == "elicitation/create":
                answers[key] = self._ask(object_of(wants.get("params")), key=f"mcp/{leg}/{key}")
            else:
                answers[key] = await self._client.answer_input(wants)
        return answers

    def _next_key(self, params: Fields) -> str:
        """Name a question by its place and its words: made again, the call may ask something else there."""
        self._asked += 1
        words = msgspec.json.encode([params.get("message"), params.get("requestedSchema"), params.get("url")])
        return f"mcp/asked/{self._asked}/{hashlib.sha256(words).hexdigest()[:16]}"

    def _ask(self, params: Fields, *, key: str) -> Fields:
        """Return what a person answered. Raises `Interrupted` when nobody has yet."""
        question = question_of(params, server=self._server, tool=self._tool)
        if question is None:
            return {"action": "decline"}
        try:
            return self._ctx.ask(question, key=key, schema=partial(answer_of, params))
        except UsageError:  # run by nobody who could ask
            return CANCELLED

    def _show(self, progress: float, total: float | None, message: str | None) -> None:
        self._ctx.emit({"progress": progress, "total": total, "message": one_line(message or "", 300)})


def question_of(params: Fields, *, server: str, tool: str) -> dict[str, object] | None:
    """Return what a person is shown of an elicitation, as JSON values; None for one that cannot be shown.

    `title` and `fields` are the form, `schema` its JSON Schema, `url` the page to open. The words are the
    server's, cleaned.
    """
    message = params.get("message")
    words = clean_text(message) if isinstance(message, str) else ""
    question: dict[str, object] = {"kind": "mcp_elicitation", "server": server, "tool": tool, "title": words}
    if params.get("mode") == "url":
        url = params.get("url")
        try:
            split_url(url if isinstance(url, str) else "")
        except UsageError:
            return None
        shown = cast("str", url)
        return {**question, "url": shown, "host": safe_url(shown), "fields": fields_of_page(shown)}
    schema = object_of(params.get("requestedSchema"))
    return {**question, "schema": schema, "fields": fields_of_schema(schema)} if schema else None


def answer_of(params: Fields, answer: object) -> Fields:
    """Return a person's answer as the server wants it.

    An answer is `{"action": "accept", "content": {...}}`, `{"action": "decline"}`, `{"action": "cancel"}`,
    or the content alone. Fields left out get the defaults of the form. Raises `UsageError` for content that
    does not fit the form, and for anything else.
    """
    if not isinstance(answer, Mapping):
        raise UsageError('it is no answer; give the fields of the form, or {"action": "decline"}')
    given = cast("Fields", answer)
    action, content = given.get("action"), given
    if action in {"decline", "cancel"} and len(given) == 1:
        return {"action": action}
    if action == "accept" and set(given) <= {"action", "content"}:
        content = object_of(given.get("content"))
    if params.get("mode") == "url":
        return {"action": "decline" if content.get(DONE) is False else "accept"}
    schema = object_of(params.get("requestedSchema"))
    given = {key: value for key, value in content.items() if value is not None}
    filled = with_defaults({"action": "accept", "content": given}, schema)
    violations = JsonSchema(schema).check(filled["content"])
    if violations:
        raise UsageError("; ".join(f"{each.path}: {each.message}" for each in violations))
    return filled
