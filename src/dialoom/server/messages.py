"""The other face programs know: messages as Anthropic's API has them, whole or as its events. Stateless."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from starlette.responses import Response, StreamingResponse

from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.ids import new_id
from dialoom.dialog import Center
from dialoom.llm import ChatOptions, ChatResponse, FilePart, Message, ToolSpec
from dialoom.llm.events import ReasoningDelta, ResponseCompleted, StreamEvent, TextDelta, ToolCallReady
from dialoom.llm.messages import ToolCall, assistant, system, tool_result, user
from dialoom.server.hub import encode_event
from dialoom.server.inline_files import inline_file, told_of
from dialoom.server.model_names import answer_events, find_model, gathered
from dialoom.server.problems import problem_of
from dialoom.server.routes import AnyRoute, Call, Nothing, Route
from dialoom.server.sse import MEDIA_TYPE

Fields: TypeAlias = dict[str, Any]
_STOPPED = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
_CHOICES: dict[str, Literal["auto", "none", "required"]] = {
    "auto": "auto", "any": "required", "tool": "required", "none": "none",
}  # fmt: skip


class TextBlock(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Words."""

    text: str


class PictureSource(msgspec.Struct, frozen=True):
    """The bytes of a picture; one that is elsewhere is not fetched."""

    type: Literal["base64"]
    media_type: str
    data: str


class PictureBlock(msgspec.Struct, frozen=True, tag_field="type", tag="image"):
    """A picture in a user message, or in a tool's answer."""

    source: PictureSource


class CallBlock(msgspec.Struct, frozen=True, tag_field="type", tag="tool_use"):
    """A call in an assistant message."""

    id: str
    name: str
    input: Fields = {}


class ResultBlock(msgspec.Struct, frozen=True, tag_field="type", tag="tool_result"):
    """A tool's answer in a user message."""

    tool_use_id: str
    content: str | list[TextBlock | PictureBlock] = ""
    is_error: bool = False


class ThoughtBlock(msgspec.Struct, frozen=True, tag_field="type", tag="thinking"):
    """A thought that comes back; it is not sent on."""

    thinking: str = ""


Block: TypeAlias = TextBlock | PictureBlock | CallBlock | ResultBlock | ThoughtBlock


class SaidMessage(msgspec.Struct, frozen=True):
    """One message as callers write it."""

    role: Literal["user", "assistant"]
    content: str | list[Block]


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool the model may call."""

    name: str
    description: str = ""
    input_schema: Fields = {}


class ToolChoice(msgspec.Struct, frozen=True):
    """Which tool is to be called: as the model likes, any, the named one, or none."""

    type: Literal["auto", "any", "tool", "none"] = "auto"
    name: str = ""
    disable_parallel_tool_use: bool = False


class MessagesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for an answer; fields it does not know are left aside."""

    model: Annotated[str, msgspec.Meta(max_length=300)] = ""
    messages: Annotated[list[SaidMessage], msgspec.Meta(min_length=1, max_length=10_000)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    system: str | list[TextBlock] = ""
    stream: bool = False
    temperature: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    stop_sequences: list[str] = []
    tools: list[OfferedTool] = []
    tool_choice: ToolChoice | None = None


class Messages:
    """Serves the models of a center to programs that speak messages."""

    def __init__(self, center: Center) -> None:
        self._center = center

    def routes(self) -> list[AnyRoute]:
        return [
            Route(
                "POST", "/v1/messages", self.answer, body=MessagesRequest, answer=Fields, refusals=(502,),
                also=(MEDIA_TYPE,), summary="Answer a conversation that the caller keeps",
            ),
        ]  # fmt: skip

    async def answer(self, call: Call[Nothing, MessagesRequest]) -> Fields | Response:
        asked = call.body
        named = await find_model(self._center, asked.model)
        messages = [*_guide(asked.system), *(each for said in asked.messages for each in _messages(said))]
        options = _options(asked)
        head = {"id": f"msg_{new_id()}", "type": "message", "role": "assistant", "model": named.name}
        events = answer_events(named, messages, options)
        if asked.stream:
            return StreamingResponse(
                _stream(events, head), headers={"X-Accel-Buffering": "no"}, media_type=MEDIA_TYPE
            )
        last = (await gathered(events))[-1]
        assert isinstance(last, ResponseCompleted)
        return {**head, **_whole(last.response)}


def _options(asked: MessagesRequest) -> ChatOptions:
    tools, choice = asked.tools, asked.tool_choice or ToolChoice()
    if choice.type == "tool":  # offered alone, it is the one that is called
        tools = [each for each in tools if each.name == choice.name]
        if not tools:
            raise UsageError(
                f"tool_choice names {choice.name[:80]!r}, which is not among the tools; offer it"
            )
    return ChatOptions(
        max_tokens=asked.max_tokens,
        temperature=asked.temperature,
        top_p=asked.top_p,
        stop=tuple(asked.stop_sequences),
        tools=tuple(_tool(each) for each in tools),
        tool_choice=None if asked.tool_choice is None else _CHOICES[choice.type],
        parallel_tool_calls=False if choice.disable_parallel_tool_use else None,
    )


def _guide(text: str | list[TextBlock]) -> Iterator[Message]:
    if words := _words(text):
        yield system(words)


def _messages(said: SaidMessage) -> Iterator[Message]:
    """Yield what one message says; results come before the words beside them, as they answer a call."""
    if isinstance(said.content, str):
        yield user(said.content) if said.role == "user" else assistant(said.content)
        return
    texts = [block for block in said.content if isinstance(block, TextBlock)]
    calls = [block for block in said.content if isinstance(block, CallBlock)]
    results = [block for block in said.content if isinstance(block, ResultBlock)]
    files = _files(said.content)
    if said.role == "assistant":
        if results or files:
            raise UsageError(
                "an assistant message holds no tool results and no pictures; put them in a user message"
            )
        yield assistant(_words(texts), calls=tuple(map(_call, calls)))
        return
    if calls:
        raise UsageError("a user message holds no tool calls; put them in an assistant message")
    yield from map(_result, results)
    if texts or files or not results:
        yield user(_words(texts), files=files)


def _result(block: ResultBlock) -> Message:
    words, files = _words(block.content), _files(block.content)
    return tool_result(block.tool_use_id, words or told_of(files), is_error=block.is_error, files=files)


def _words(content: str | Sequence[Block]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


def _files(content: str | Sequence[Block]) -> tuple[FilePart, ...]:
    blocks = () if isinstance(content, str) else content
    sources = [each.source for each in blocks if isinstance(each, PictureBlock)]
    return tuple(inline_file(each.media_type, each.data) for each in sources)


def _call(block: CallBlock) -> ToolCall:
    raw = msgspec.json.encode(block.input).decode()
    return ToolCall(id=block.id, name=block.name, arguments=dict(block.input), raw=raw)


def _tool(offered: OfferedTool) -> ToolSpec:
    parameters = offered.input_schema or {"type": "object", "properties": {}}
    return ToolSpec(name=offered.name, description=offered.description, parameters=parameters)


def _whole(response: ChatResponse) -> Fields:
    content: list[Fields] = []
    if response.reasoning:
        content.append({"type": "thinking", "thinking": response.reasoning, "signature": ""})
    if words := response.text or response.message.refusal:
        content.append({"type": "text", "text": words})
    content += [_called(call, call.arguments or {}) for call in response.tool_calls]
    return {"content": content, **_ending(response), "usage": _usage(response)}


async def _stream(events: AsyncGenerator[StreamEvent], head: Fields) -> AsyncGenerator[bytes]:
    """Yield the events of a stream. A failure on the way is its last one: the status was sent long ago."""
    nothing = {"input_tokens": 0, "output_tokens": 0}
    empty: Fields = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": nothing}
    yield _event("message_start", message=empty)
    blocks = _Blocks()
    try:
        async with aclosing(events) as opened:
            async for event in opened:
                for line in blocks.take(event):
                    yield line
    except DialoomError as error:
        yield _event("error", error=problem_of(error).anthropic_error())


class _Blocks:
    """The content blocks of one stream: one is open at a time, numbered from 0."""

    def __init__(self) -> None:
        self._count = 0
        self._open = ""

    def take(self, event: StreamEvent) -> Iterator[bytes]:
        match event:
            case TextDelta(text=text):
                yield from self._begin("text", {"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": text})
            case ReasoningDelta(text=text):
                yield from self._begin("thinking", {"type": "thinking", "thinking": "", "signature": ""})
                yield self._delta({"type": "thinking_delta", "thinking": text})
            case ToolCallReady(call=call):
                yield from self._begin(call.id, _called(call, {}))
                yield self._delta({"type": "input_json_delta", "partial_json": call.raw})
            case ResponseCompleted(response=response):
                yield from self._end()
                yield _event("message_delta", delta=_ending(response), usage=_usage(response))
                yield _event("message_stop")
            case _:
                pass

    def _begin(self, name: str, block: Fields) -> Iterator[bytes]:
        if self._open != name:
            yield from self._end()
            self._open = name
            yield _event("content_block_start", index=self._count, content_block=block)

    def _delta(self, delta: Fields) -> bytes:
        return _event("content_block_delta", index=self._count, delta=delta)

    def _end(self) -> Iterator[bytes]:
        if self._open:
            yield _event("content_block_stop", index=self._count)
            self._open, self._count = "", self._count + 1


def _event(kind: str, **fields: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), encode_event({"type": kind, **fields}))


def _called(call: ToolCall, arguments: Fields) -> Fields:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}


def _ending(response: ChatResponse) -> Fields:
    return {"stop_reason": _STOPPED.get(response.finish_reason, "end_turn"), "stop_sequence": None}


def _usage(response: ChatResponse) -> Fields:
    usage = response.usage
    return {"input_tokens": usage.input_tokens or 0, "output_tokens": usage.output_tokens or 0}
