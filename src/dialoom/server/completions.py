"""The face other programs know: chat completions, models and embeddings as OpenAI's API has them.

Stateless: the caller brings the whole conversation and keeps what is answered. What is said through here is
in no conversation of this server.
"""

import base64
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import msgspec
from starlette.responses import Response, StreamingResponse

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.ids import new_id
from dialoom.dialog import Center
from dialoom.llm import ChatOptions, ChatResponse, FilePart, Message, ToolSpec
from dialoom.llm.events import (
    ReasoningDelta,
    RefusalDelta,
    ResponseCompleted,
    StreamEvent,
    TextDelta,
    ToolCallReady,
)
from dialoom.llm.messages import ToolCall, assistant, system, tool_result, user
from dialoom.server.hub import encode_event
from dialoom.server.inline_files import file_of_url, told_of
from dialoom.server.model_names import answer_events, find_model, gathered, named_models
from dialoom.server.problems import problem_of
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.sse import MEDIA_TYPE

Fields: TypeAlias = dict[str, Any]
_FINISH = {"stop": "stop", "tool_calls": "tool_calls", "length": "length", "content_filter": "content_filter"}
_SHOWING = frozenset({"user", "tool", "function"})
_Role = Literal["system", "developer", "user", "assistant", "tool", "function"]


class TextEmbedder(Protocol):
    """What makes vectors; `dialoom.rag.Embedder` is one."""

    @property
    def model(self) -> str: ...

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        """Return one row of numbers per text."""
        ...


class CalledFunction(msgspec.Struct, frozen=True):
    """A function a model called, with its arguments as text."""

    name: str
    arguments: str = ""


class CalledTool(msgspec.Struct, frozen=True):
    """One call in an assistant message."""

    id: str
    function: CalledFunction


class TextPiece(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Words."""

    text: str


class InputTextPiece(msgspec.Struct, frozen=True, tag_field="type", tag="input_text"):
    """Words, as the newer API calls them."""

    text: str


class PictureAddress(msgspec.Struct, frozen=True):
    """A picture as a data URL."""

    url: str


class PicturePiece(msgspec.Struct, frozen=True, tag_field="type", tag="image_url"):
    """A picture that a person or a tool shows."""

    image_url: PictureAddress


Piece: TypeAlias = TextPiece | InputTextPiece | PicturePiece


class ChatMessage(msgspec.Struct, frozen=True):
    """One message as callers write it; a person's and a tool's hold pictures."""

    role: _Role
    content: str | list[Piece] | None = None
    tool_calls: list[CalledTool] | None = None
    tool_call_id: str | None = None
    name: str | None = None


class OfferedFunction(msgspec.Struct, frozen=True):
    """A function the model may call."""

    name: str
    description: str = ""
    parameters: Fields = {}


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool the model may call: a function."""

    function: OfferedFunction


class WantedFunction(msgspec.Struct, frozen=True):
    """The function that is to be called."""

    name: str = ""


class WantedTool(msgspec.Struct, frozen=True):
    """The one tool that is to be called."""

    function: WantedFunction = WantedFunction()


class StreamChoices(msgspec.Struct, frozen=True):
    """What a stream ends with."""

    include_usage: bool = False


class NamedSchema(msgspec.Struct, frozen=True):
    """The JSON Schema of an answer."""

    schema: Fields = {}


class AnswerFormat(msgspec.Struct, frozen=True):
    """What an answer has to be: any text, any JSON object, or one of a schema."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    json_schema: NamedSchema = NamedSchema()


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for an answer; fields it does not know are left aside."""

    model: Annotated[str, msgspec.Meta(max_length=300)] = ""
    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1, max_length=10_000)]
    stream: bool = False
    stream_options: StreamChoices | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=1)] | None = None
    tools: list[OfferedTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | WantedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: AnswerFormat = AnswerFormat()


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model under the name it is asked by."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str


class ModelList(msgspec.Struct, frozen=True):
    """Every model there is."""

    data: list[ListedModel]
    object: Literal["list"] = "list"


class EmbeddingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Texts to make vectors of."""

    input: str | Annotated[list[str], msgspec.Meta(max_length=2048)]
    model: str = ""
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How long the vectors are to be; another length than the embedder's own is refused."""


class Completions:
    """Serves the models of a center to programs that speak chat completions."""

    def __init__(self, center: Center, embedder: TextEmbedder | None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._center = center
        self._embedder = embedder
        self._clock = clock

    def routes(self) -> list[AnyRoute]:
        routes: list[AnyRoute] = [
            Route("GET", "/v1/models", self.models, answer=ModelList, summary="List models"),
            Route(
                "POST", "/v1/chat/completions", self.complete, body=ChatRequest, answer=Fields,
                refusals=(502,), also=(MEDIA_TYPE,), summary="Answer a conversation that the caller keeps",
            ),
        ]  # fmt: skip
        if self._embedder is not None:
            routes.append(
                Route(
                    "POST", "/v1/embeddings", self.embed, body=EmbeddingRequest, answer=Fields,
                    summary="Make vectors of texts",
                )
            )  # fmt: skip
        return routes

    async def models(self, _call: Call[Nothing, Nothing]) -> ModelList:
        found = await named_models(self._center)
        return ModelList([ListedModel(id=each.name, owned_by=each.provider.id) for each in found])

    async def complete(self, call: Call[Nothing, ChatRequest]) -> Fields | Response:
        asked = call.body
        named = await find_model(self._center, asked.model)
        messages, options = list(_messages(asked.messages)), _options(asked)
        head = {"id": f"chatcmpl-{new_id()}", "created": int(self._clock.now()), "model": named.name}
        events = answer_events(named, messages, options)
        if asked.stream:
            counted = asked.stream_options is not None and asked.stream_options.include_usage
            lines = _stream(events, head, counted=counted)
            return StreamingResponse(lines, headers={"X-Accel-Buffering": "no"}, media_type=MEDIA_TYPE)
        last = (await gathered(events))[-1]
        assert isinstance(last, ResponseCompleted)
        return _whole(last.response, head)

    async def embed(self, call: Call[Nothing, EmbeddingRequest]) -> Fields:
        assert self._embedder is not None
        asked = call.body
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        matrix = await self._embedder.embed_documents(texts)
        if texts and asked.dimensions not in {None, matrix.shape[1]}:
            raise UsageError(f"vectors here have {matrix.shape[1]} dimensions; leave dimensions out")
        if asked.encoding_format == "base64":
            rows: list[object] = [base64.b64encode(row.astype("<f4").tobytes()).decode() for row in matrix]
        else:
            rows = matrix.tolist()
        data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return {"object": "list", "data": data, "model": self._embedder.model, "usage": usage}


def _messages(given: Sequence[ChatMessage]) -> Iterator[Message]:
    for message in given:
        text, files = _text(message.content), _files(message.content)
        if files and message.role not in _SHOWING:
            raise UsageError(
                f"a message of role {message.role} holds no pictures; put them in one of the user"
            )
        match message.role:
            case "system" | "developer":
                yield system(text)
            case "user":
                yield user(text, files=files)
            case "assistant":
                yield assistant(text, calls=tuple(map(_call, message.tool_calls or ())))
            case "tool" | "function":
                call_id = message.tool_call_id or message.name or ""
                yield tool_result(call_id, text or told_of(files), name=message.name, files=files)


def _text(content: str | list[Piece] | None) -> str:
    if not isinstance(content, list):
        return content or ""
    return "\n".join(each.text for each in content if not isinstance(each, PicturePiece))


def _files(content: str | list[Piece] | None) -> tuple[FilePart, ...]:
    if not isinstance(content, list):
        return ()
    return tuple(file_of_url(each.image_url.url) for each in content if isinstance(each, PicturePiece))


def _call(call: CalledTool) -> ToolCall:
    try:
        arguments = msgspec.json.decode(call.function.arguments or "{}", type=dict[str, object])
    except msgspec.DecodeError:
        return ToolCall(
            id=call.id, name=call.function.name, raw=call.function.arguments, problem="invalid_json"
        )
    return ToolCall(id=call.id, name=call.function.name, arguments=arguments, raw=call.function.arguments)


def _options(asked: ChatRequest) -> ChatOptions:
    stop = (asked.stop,) if isinstance(asked.stop, str) else tuple(asked.stop or ())
    tools, choice = asked.tools or [], asked.tool_choice
    if isinstance(choice, WantedTool):  # offered alone, it is the one that is called
        wanted, choice = choice.function.name, "required"
        tools = [each for each in tools if each.function.name == wanted]
        if not tools:
            raise UsageError(f"tool_choice names {wanted[:80]!r}, which is not among the tools; offer it")
    return ChatOptions(
        temperature=asked.temperature,
        top_p=asked.top_p,
        max_tokens=asked.max_completion_tokens or asked.max_tokens,
        stop=stop,
        seed=asked.seed,
        tools=tuple(_tool(each.function) for each in tools),
        tool_choice=choice,
        parallel_tool_calls=asked.parallel_tool_calls,
        response_schema=asked.response_format.json_schema.schema or None,
        json_mode=asked.response_format.type != "text",
    )


def _tool(function: OfferedFunction) -> ToolSpec:
    parameters = function.parameters or {"type": "object", "properties": {}}
    return ToolSpec(name=function.name, description=function.description, parameters=parameters)


def _whole(response: ChatResponse, head: Fields) -> Fields:
    message: Fields = {"role": "assistant", "content": response.text or None}
    if response.message.refusal:
        message["refusal"] = response.message.refusal
    if response.reasoning:
        message["reasoning_content"] = response.reasoning
    if response.tool_calls:
        message["tool_calls"] = [_called(call) for call in response.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(response)}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": _usage(response)}


async def _stream(
    events: AsyncGenerator[StreamEvent], head: Fields, *, counted: bool
) -> AsyncGenerator[bytes]:
    """Yield the lines of a stream. A failure on the way is its last event: the status was sent long ago."""
    chunk = {**head, "object": "chat.completion.chunk"}
    yield _line(chunk, {"role": "assistant", "content": ""}, None)
    calls = 0
    try:
        async with aclosing(events) as opened:
            async for event in opened:
                match event:
                    case TextDelta(text=text):
                        yield _line(chunk, {"content": text}, None)
                    case ReasoningDelta(text=text):
                        yield _line(chunk, {"reasoning_content": text}, None)
                    case RefusalDelta(text=text):
                        yield _line(chunk, {"refusal": text}, None)
                    case ToolCallReady(call=call):
                        yield _line(chunk, {"tool_calls": [{"index": calls, **_called(call)}]}, None)
                        calls += 1
                    case ResponseCompleted(response=response):
                        yield _line(chunk, {}, _finish(response))
                        if counted:
                            yield _data({**chunk, "choices": [], "usage": _usage(response)})
                    case _:
                        pass
    except DialoomError as error:
        yield _data({"error": problem_of(error).openai_error()})
    yield b"data: [DONE]\n\n"


def _line(chunk: Fields, delta: Fields, finish: str | None) -> bytes:
    return _data({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _data(fields: Fields) -> bytes:
    return b"data: %s\n\n" % encode_event(fields)


def _called(call: ToolCall) -> Fields:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}


def _finish(response: ChatResponse) -> str:
    return _FINISH.get(response.finish_reason, "stop")


def _usage(response: ChatResponse) -> Fields:
    read, written = response.usage.input_tokens or 0, response.usage.output_tokens or 0
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
