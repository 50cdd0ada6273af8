"""A program in any language as a `Provider`, so that what it reads of the wire can be scored.

The program is started once. It gets one question per line on its standard input, as the JSON of `Question`,
asks the server that the question names, and writes one line of JSON, a `Reading`, to its standard output.
When it ends instead, the last line of its error output is told.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Self

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm.assembly import Assembly
from dialoom.llm.capabilities import Model
from dialoom.llm.errors import ErrorKind, ProviderError
from dialoom.llm.events import ResponseCompleted, StreamEvent, WarningCode
from dialoom.llm.messages import (
    CallProblem,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    assistant,
)
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.provider import ResponseStream
from dialoom.llm.response import ChatResponse, FinishReason
from dialoom.llm.usage import Usage
from dialoom.mcp.stdio import StdioTransport
from dialoom.mcp.transport import Oversize
from dialoom.testing.wire_cases import CaseTarget

MAX_LINE_BYTES = 16 * 1024 * 1024
MOST_STARTS = 5
"""A program that ends by itself is started again, until it was started so often."""
_CLIENT = "client"


class SaidCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call; `arguments` None and a `problem` mean that it must not be run."""

    id: str
    name: str
    arguments: dict[str, object] | None = None
    problem: CallProblem | None = None


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the talk. `raw` is what the program itself gave back for it, None for all others."""

    role: str
    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[SaidCall, ...] = ()
    tool_call_id: str = ""
    raw: msgspec.Raw | None = None


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool the model may call; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: dict[str, object]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What the program is to ask. `base_url` is `root` and `/v1`; `wire` is `openai` or `anthropic`.

    `response_schema` is what the answer's text is to be held to; it is checked by the runner.
    """

    case: str
    wire: str
    root: str
    base_url: str
    api_key: str
    model: str
    stream: bool
    messages: tuple[Said, ...]
    tools: tuple[OfferedTool, ...]
    response_schema: dict[str, object] | None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there was no answer. Without a `kind` it counts as an error of no type."""

    message: str
    kind: ErrorKind | None = None
    retryable: bool | None = None
    partial_text: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What the program made of the answer: an `error`, or the rest.

    `raw` is any JSON: it comes back with this message when the talk goes on, so that a client can send its
    own form of what was said.
    """

    error: Failure | None = None
    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    finish_reason: FinishReason = "stop"
    tool_calls: tuple[SaidCall, ...] = ()
    usage: Usage = Usage()
    warnings: tuple[WarningCode, ...] = ()
    raw: msgspec.Raw = msgspec.Raw(b"null")


class ClientFailedError(Exception):
    """The client did not read the answer, and did not say why by a kind of ours."""


class ClientProgram:
    """Starts the program `argv`, without a shell; `provider` makes what `run_cases` scores.

    An async context manager; leaving ends the program. Raises `UsageError` for one that cannot be started.
    """

    def __init__(self, argv: Sequence[str], *, cwd: str | None = None) -> None:
        if not argv:
            raise UsageError("there is no program to start; give its command")
        self._argv = tuple(argv)
        self._cwd = cwd
        self._child: StdioTransport | None = None
        self._starts = 0

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    def provider(self, target: CaseTarget) -> "ClientProvider":
        """Return the program as the provider that is asked at `target`."""
        return ClientProvider(self, target)

    async def ask(self, question: Question) -> Reading:
        """Return what the program read. Raises `ClientFailedError`; a wait that is cancelled ends it."""
        child = self._child or await self._start()
        try:
            line = await _answer_of(child, msgspec.json.encode(question))
        except BaseException:
            await self._end(hurry=True)  # its late answer would be taken for the next one
            raise
        try:
            return msgspec.json.decode(line, type=Reading)
        except (ValueError, RecursionError) as error:
            said = one_line(line.decode(errors="replace"), 80)
            raise ClientFailedError(f"it wrote what is no reading: {said}: {one_line(str(error))}") from error

    async def _start(self) -> StdioTransport:
        if self._starts >= MOST_STARTS:
            raise ClientFailedError(f"it ended {MOST_STARTS} times and is not started again")
        self._starts += 1
        command, *arguments = self._argv
        child = StdioTransport(command, arguments, cwd=self._cwd, max_line_bytes=MAX_LINE_BYTES)
        try:
            await child.open()
        except OSError as error:
            raise UsageError(
                f"cannot start {command}: {error.strerror}; check the command of the client"
            ) from error
        self._child = child
        return child

    async def _end(self, *, hurry: bool = False) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.aclose(hurry=hurry)


class ClientProvider:
    """`Provider` over a program, for one case."""

    id = _CLIENT

    def __init__(self, program: ClientProgram, target: CaseTarget) -> None:
        self._program = program
        self._target = target

    async def models(self) -> tuple[Model, ...]:
        """Nobody asks a client for its models."""
        return ()

    async def aclose(self) -> None:
        """The program is ended by the one who started it."""

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Give the program's reading as a stream of one event."""
        async with aclosing(self._answer(messages, options)) as events:
            yield ResponseStream(events, Assembly())

    async def _answer(
        self, messages: Sequence[Message], options: ChatOptions
    ) -> AsyncGenerator[StreamEvent, None]:
        reading = await self._program.ask(self._question(messages, options))
        if reading.error is not None:
            raise _error(reading.error)
        message = Message(role="assistant", parts=tuple(_parts(reading)))
        yield ResponseCompleted(
            ChatResponse(
                message=message,
                finish_reason=reading.finish_reason,
                usage=reading.usage,
                warnings=reading.warnings,
            )
        )

    def _question(self, messages: Sequence[Message], options: ChatOptions) -> Question:
        target, schema = self._target, options.response_schema
        return Question(
            case=target.case,
            wire=target.wire,
            root=target.root,
            base_url=target.base_url,
            api_key=target.api_key,
            model=options.model or "",
            stream=target.profile.streaming,
            messages=tuple(map(_said, messages)),
            tools=tuple(
                OfferedTool(name=tool.name, description=tool.description, parameters=dict(tool.parameters))
                for tool in options.tools
            ),
            response_schema=None if schema is None else dict(schema),
        )


async def _answer_of(child: StdioTransport, line: bytes) -> bytes:
    """Return the line the program answers with. Raises `ClientFailedError` when it has ended."""
    with suppress(OSError):  # it ended, and perhaps not without an answer
        await child.send(line)
    match await child.receive():
        case None:
            said = "".join(f": {last}" for last in child.stderr_tail[-1:])
            raise ClientFailedError(f"it ended without an answer{said}")
        case Oversize():
            raise ClientFailedError(f"it wrote a line of more than {MAX_LINE_BYTES} bytes")
        case bytes() as answer:
            return answer


def _error(failure: Failure) -> Exception:
    if failure.kind is None:
        return ClientFailedError(failure.message)
    partial = assistant(failure.partial_text) if failure.partial_text else None
    return ProviderError(failure.kind, failure.message, retryable=failure.retryable, partial=partial)


def _parts(reading: Reading) -> list[Part]:
    said: list[Part] = []
    if reading.reasoning:
        said.append(ReasoningPart(reading.reasoning))
    if reading.text:
        said.append(TextPart(reading.text))
    if reading.refusal:
        said.append(RefusalPart(reading.refusal))
    said += [
        ToolCallPart(ToolCall(id=call.id, name=call.name, arguments=call.arguments, problem=call.problem))
        for call in reading.tool_calls
    ]
    return [*said, OpaquePart(_CLIENT, bytes(reading.raw).decode())]


def _said(message: Message) -> Said:
    if message.role == "tool":
        (result,) = message.tool_results
        return Said(role="tool", content=result.content, tool_call_id=result.call_id)
    raws = [part.block for part in message.parts if isinstance(part, OpaquePart)]
    return Said(
        role=message.role,
        content=message.text,
        reasoning=message.reasoning,
        tool_calls=tuple(
            SaidCall(id=call.id, name=call.name, arguments=call.arguments) for call in message.tool_calls
        ),
        raw=msgspec.Raw(raws[0].encode()) if raws else None,
    )
