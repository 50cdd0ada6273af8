"""Tools are called whatever the server can do: by the wire, by a schema, or not at all."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.llm import (
    ChatOptions,
    ChatResponse,
    Message,
    MockProvider,
    OpenAIProvider,
    ProviderError,
    ReasoningDelta,
    ResponseCompleted,
    ResponseStarted,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
    UsageUpdate,
    Warned,
    WireProfile,
    assistant,
    chat,
    system,
    tool_result,
    user,
)
from dialoom.llm.events import Retrying
from dialoom.llm.json_schema import JsonSchema
from dialoom.llm.retry import ONCE
from dialoom.llm.tool_modes import ToolModeProvider
from dialoom.llm.tool_modes.schema import step_schema
from dialoom.llm.tool_modes.spoken import spoken
from dialoom.testing.wire import WireReply, WireServer
from tests.llm.served import DONE, chunk, sse, streamed

ASKED = [user("What is 7*8?")]
CALCULATOR = ToolSpec(
    name="calculator",
    description="Evaluate an\nexpression.",
    parameters={
        "type": "object",
        "properties": {"expression": {"type": "string"}},
        "required": ["expression"],
    },
)
CLOCK = ToolSpec(name="clock", description="The time.")
FREE = ChatOptions(tools=(CALCULATOR, CLOCK), retry=ONCE)
FORCED = msgspec.structs.replace(FREE, tool_choice="required")
STEP = '{"tool": "calculator", "arguments": {"expression": "7*8"}}'
CALLED = {"expression": "7*8"}
PEG = b'{"error":{"code":500,"message":"output does not match the expected peg-native format"}}'
CALL_DELTA = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "calculator", "arguments": "{"}}]}


def by_schema(llm: MockProvider) -> ToolModeProvider:
    return ToolModeProvider(llm, mode="schema", new_id=lambda: "1")


async def events_of(provider: Any, options: ChatOptions = FREE) -> list[Any]:
    async with provider.stream(ASKED, options) as stream:
        return [event async for event in stream]


def texts(events: list[Any]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


async def test_a_step_that_calls_a_tool_becomes_a_tool_call() -> None:
    llm = MockProvider().queue_text(STEP, chunks=7, usage=Usage(input_tokens=9))
    answer = await chat(by_schema(llm), ASKED, FREE)
    call = ToolCall(id="call_1", name="calculator", arguments=CALLED, raw='{"expression":"7*8"}')
    assert (answer.tool_calls, answer.text, answer.finish_reason) == ((call,), "", "tool_calls")
    assert answer.usage == answer.message.usage == Usage(input_tokens=9)


async def test_final_words_stream_while_they_grow() -> None:
    llm = MockProvider().queue_text('{"final": "It is fifty-six, \\u4f60 I \\"think\\"."}', chunks=12)
    events = await events_of(by_schema(llm))
    pieces = texts(events)
    assert len(pieces) > 3
    assert "".join(pieces) == 'It is fifty-six, 你 I "think".'
    assert events[-1].response.text == 'It is fifty-six, 你 I "think".'
    assert events[-1].response.finish_reason == "stop"


async def test_the_model_is_told_how_to_take_a_step_and_held_to_it() -> None:
    llm = MockProvider().queue_text('{"final":"ok"}')
    history = [
        system("Be brief."),
        *ASKED,
        assistant("Let me see.", calls=(ToolCall(id="a", name="calculator", arguments=CALLED, raw="{}"),)),
        tool_result("a", "56"),
    ]
    await chat(by_schema(llm), history, FREE)
    (request,) = llm.requests
    first, question, said, result = request.messages
    assert first.text == (
        "Be brief.\n\nReply with one JSON object and nothing else. You can use these tools:\n"
        "- calculator: Evaluate an expression. Arguments: "
        '{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"]}\n'
        '- clock: The time. Arguments: {"type":"object","properties":{}}\n'
        "To use a tool, reply like this:\n"
        '{"tool":"calculator","arguments":{"expression":"..."}}\n{"tool":"clock","arguments":{}}\n'
        'When you know the answer, reply like this:\n{"final":"..."}'
    )
    assert question == ASKED[0]
    assert said.text == 'Let me see.{"tool":"calculator","arguments":{"expression":"7*8"}}'
    assert result == user("Tool result: 56")
    assert (request.options.tools, request.options.tool_choice) == ((), None)
    assert request.options.response_schema == step_schema(FREE)


def test_the_schema_of_a_step_allows_a_call_or_an_answer() -> None:
    schema = JsonSchema(step_schema(FREE))
    forced = JsonSchema(step_schema(FORCED))
    for value, free_too, also_forced in (
        ({"tool": "calculator", "arguments": CALLED}, True, True),
        ({"tool": "clock", "arguments": {}}, True, True),
        ({"final": "56"}, True, False),
        ({"tool": "calculator", "arguments": {}}, False, False),
        ({"tool": "other", "arguments": {}}, False, False),
        ({"final": "56", "tool": "clock", "arguments": {}}, False, False),
    ):
        assert (schema.accepts(value), forced.accepts(value)) == (free_too, also_forced), value
    alone = ChatOptions(tools=(CLOCK,), tool_choice="required")
    assert "anyOf" not in step_schema(alone)


def test_schemas_that_refer_to_their_own_parts_still_do_inside_a_step() -> None:
    tree: dict[str, object] = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}, "n": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
    }
    options = ChatOptions(tools=(ToolSpec(name="plant", parameters=tree), CLOCK), response_schema=tree)
    schema = JsonSchema(step_schema(options))
    assert schema.accepts({"tool": "plant", "arguments": {"kids": [{"kids": [], "n": 1}]}})
    assert not schema.accepts({"tool": "plant", "arguments": {"kids": [{"n": "x"}]}})
    assert schema.accepts({"final": {"n": 2}})
    assert not schema.accepts({"final": "words"})


def test_a_schema_too_deep_to_rewrite_is_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(3000):
        deep = {"items": deep}
    with pytest.raises(UsageError, match="nested too deep"):
        step_schema(ChatOptions(tools=(ToolSpec(name="deep", parameters=deep),)))


async def test_a_final_answer_of_a_schema_is_its_json() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    llm = MockProvider().queue_text('{"final": {"n": 56}}', chunks=4)
    answer = await chat(by_schema(llm), ASKED, msgspec.structs.replace(FREE, response_schema=schema))
    assert answer.text == '{"n":56}'


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Fifty-six.", "Fifty-six."),
        ("", ""),
        ('{"tool": "shell", "arguments": {}}', '{"tool": "shell", "arguments": {}}'),
        ('```json\n{"final": "56"}\n```', "56"),
        ('{"final": "long ' + "x" * 30_000 + '"}', "long " + "x" * 30_000),
    ],
)
async def test_words_that_are_no_step_are_the_answer(said: str, text: str) -> None:
    answer = await chat(by_schema(MockProvider().queue_text(said, chunks=3)), ASKED, FREE)
    assert (answer.text, answer.tool_calls) == (text, ())


async def cut_answer(said: str) -> ChatResponse:
    llm = MockProvider().queue_text(said)
    whole = await chat(llm, ASKED)
    cut = msgspec.structs.replace(whole, finish_reason="length")
    script = MockProvider().queue_events(TextDelta(said), ResponseCompleted(cut))
    return await chat(by_schema(script), ASKED, FREE)


async def test_a_call_that_was_cut_must_not_be_run() -> None:
    answer = await cut_answer('{"tool": "calculator", "arguments": {"expression": "7')
    (call,) = answer.tool_calls
    assert (call.arguments, call.problem, call.raw) == (None, "truncated", '{"expression": "7')
    assert answer.finish_reason == "length"


async def test_final_words_that_were_cut_stay_as_they_were_shown() -> None:
    answer = await cut_answer('{"final": "It is fif')
    assert (answer.text, answer.tool_calls, answer.finish_reason) == ("It is fif", (), "length")


async def test_a_forced_call_that_does_not_come_is_an_error_not_an_answer() -> None:
    for mode in ("schema", "auto"):
        llm = MockProvider().queue_text("I would rather talk.").queue_text('{"x":1}')
        with pytest.raises(ProviderError, match="the model called no tool although it had to"):
            await chat(ToolModeProvider(llm, mode=mode), ASKED, FORCED)


async def test_thoughts_and_restarts_pass_through() -> None:
    restart = Retrying(attempt=2, wait=0.0, kind="connection", message="lost", restarts=True)
    llm = MockProvider().queue_events(
        ReasoningDelta("hm"), TextDelta('{"final": "a'), restart, TextDelta(STEP)
    )
    events = await events_of(by_schema(llm))
    answer = events[-1].response
    assert ReasoningDelta("hm") in events
    assert restart in events
    assert (answer.text, answer.reasoning, len(answer.tool_calls)) == ("", "", 1)


async def test_native_calls_pass_untouched() -> None:
    llm = MockProvider().queue_tool_call("c1", "calculator", CALLED).queue_text("56")
    llm.queue_tool_call("c2", "clock", {}).queue_text("no tools asked for")
    provider = ToolModeProvider(llm)
    assert (await chat(provider, ASKED, FREE)).tool_calls[0].id == "c1"
    assert (await chat(provider, ASKED, FREE)).text == "56"
    assert (await chat(provider, ASKED, FORCED)).tool_calls[0].id == "c2"
    assert (await chat(provider, ASKED)).text == "no tools asked for"
    assert llm.requests[0].options == FREE
    assert provider.id == "mock"
    assert [model.id for model in await provider.models()] == ["mock-model"]
    await provider.aclose()


async def test_a_mode_that_was_chosen_is_kept_to() -> None:
    llm = MockProvider().queue_text("prose").queue_error(ProviderError("bad_request", "no tools here"))
    provider = ToolModeProvider(llm, mode="native")
    assert (await chat(provider, ASKED, FORCED)).text == "prose"
    with pytest.raises(ProviderError, match="no tools here"):
        await chat(provider, ASKED, FREE)


async def test_prose_for_a_forced_call_is_never_seen_and_asked_for_by_schema_from_then_on() -> None:
    llm = MockProvider().queue_text("Sure, I will!", usage=Usage(output_tokens=4)).queue_text(STEP)
    llm.queue_text(STEP)
    provider = ToolModeProvider(llm)
    first = await events_of(provider, FORCED)
    assert texts(first) == []
    assert isinstance(first[0], Warned)
    assert first[-1].response.tool_calls[0].arguments == CALLED
    assert first[-1].response.warnings == ("tool_mode_changed",)
    assert provider.tool_mode() == "schema"
    second = await chat(provider, ASKED, FREE)
    assert (second.tool_calls[0].arguments, second.warnings) == (CALLED, ())
    assert [request.options.tools != () for request in llm.requests] == [True, False, False]


def refusing(status: int, body: bytes) -> WireReply:
    return WireReply(status=status, body=(body,))


def written(text: str) -> WireReply:
    return streamed(chunk({"content": text}), chunk(finish="stop"), DONE)


@pytest.mark.parametrize(
    "refusal",
    [
        refusing(500, PEG),
        refusing(400, b'{"error":"registry/tiny does not support tools"}'),
        refusing(400, b'{"error":{"message":"Unable to generate parser for this template."}}'),
    ],
    ids=["format", "tools", "template"],
)
async def test_a_server_that_cannot_call_tools_is_asked_by_schema(refusal: WireReply) -> None:
    async with WireServer([refusal, written(STEP)]) as server, OpenAIProvider(f"{server.url}/v1") as inner:
        events = await events_of(ToolModeProvider(inner))
    assert [type(event) for event in events[:2]] == [Warned, ResponseStarted]
    assert "tools are asked for by schema from now on" in events[0].message
    assert events[-1].response.tool_calls[0].arguments == CALLED
    body: Any = server.requests[1].json()
    assert "tools" not in body
    assert body["response_format"]["type"] == "json_schema"


async def test_an_answer_that_breaks_on_a_call_halfway_is_taken_back_and_asked_again() -> None:
    broken = streamed(chunk({"content": "Let me"}), chunk(CALL_DELTA), sse(msgspec.json.decode(PEG)))
    async with (
        WireServer([broken, written('{"final":"56"}')]) as server,
        OpenAIProvider(f"{server.url}/v1") as inner,
    ):
        events = await events_of(ToolModeProvider(inner))
    restart = next(event for event in events if isinstance(event, Retrying))
    assert restart.restarts
    assert texts(events) == ["Let me", "56"]
    assert (events[-1].response.text, events[-1].response.tool_calls) == ("56", ())


async def test_a_server_that_knows_neither_tools_nor_schemas_answers_without() -> None:
    refusals = [
        refusing(400, b'{"error":"tools are not supported"}'),
        refusing(400, b'{"error":"response_format is not supported"}'),
    ]
    async with (
        WireServer([*refusals, written("56, I guess"), *refusals]) as server,
        OpenAIProvider(f"{server.url}/v1") as inner,
    ):
        provider = ToolModeProvider(inner)
        answer = await chat(provider, ASKED, FREE)
        assert (answer.text, answer.warnings) == ("56, I guess", ("tool_mode_changed",) * 2)
        assert provider.tool_mode() == "off"
        with pytest.raises(ProviderError, match="response_format is not supported"):
            await chat(ToolModeProvider(inner), ASKED, FORCED)


async def test_trouble_that_has_nothing_to_do_with_tools_is_the_callers_to_see() -> None:
    for status, body in ((500, b"out of memory"), (401, b"no tools for you"), (400, b"bad temperature")):
        async with (
            WireServer([refusing(status, body)]) as server,
            OpenAIProvider(f"{server.url}/v1") as inner,
        ):
            provider = ToolModeProvider(inner)
            with pytest.raises(ProviderError):
                await chat(provider, ASKED, FREE)
            assert provider.tool_mode() == "native"


async def test_a_profile_says_where_to_begin_and_history_is_spoken_there() -> None:
    profile = WireProfile(tool_mode="schema")
    async with (
        WireServer([written(STEP), written("done")]) as server,
        OpenAIProvider(f"{server.url}/v1", profile=profile) as inner,
    ):
        provider = ToolModeProvider(inner)
        assert provider.profile == profile
        answer = await chat(provider, ASKED, FREE)
        history = [*ASKED, answer.message, tool_result(answer.tool_calls[0].id, "56")]
        await chat(provider, history, msgspec.structs.replace(FREE, tool_choice="none"))
    body: Any = server.requests[1].json()
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]


async def test_what_was_learned_of_too_many_models_is_forgotten() -> None:
    llm = MockProvider()
    provider = ToolModeProvider(llm)
    for number in range(1001):
        llm.queue_text("prose").queue_text(STEP)
        await chat(provider, ASKED, msgspec.structs.replace(FORCED, model=f"m{number}"))
    assert provider.tool_mode("m5") == "native"


IDS = st.sampled_from(["a", "b"])
HISTORY = st.lists(
    st.one_of(
        st.just(user("q")),
        st.just(assistant("said")),
        IDS.map(lambda i: assistant("", calls=(ToolCall(id=i, name="clock", arguments={}, raw="{}"),))),
        IDS.map(lambda i: tool_result(i, "done")),
    ),
    max_size=8,
)


@given(HISTORY)
def test_no_history_needs_a_server_that_knows_tools(history: list[Message]) -> None:
    said = spoken(history)
    assert all(message.role != "tool" and not message.tool_calls for message in said)
    assert sum(message.text == "said" for message in said) == sum(
        message.text == "said" for message in history
    )


async def test_usage_is_the_last_attempts() -> None:
    llm = (
        MockProvider()
        .queue_text("prose", usage=Usage(input_tokens=1))
        .queue_events(UsageUpdate(Usage(input_tokens=2)), TextDelta(STEP))
    )
    answer = await chat(ToolModeProvider(llm), ASKED, FORCED)
    assert answer.usage == Usage(input_tokens=2)
