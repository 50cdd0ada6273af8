"""A model is asked for a value, and the value is what was asked for."""

import dataclasses
import datetime as dt
from typing import Any

import msgspec
import pydantic
import pytest

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.base.errors import UsageError
from dialoom.llm import (
    ChatOptions,
    MockProvider,
    OpenAIProvider,
    ProviderError,
    RefusalDelta,
    ResponseCompleted,
    TextDelta,
    Usage,
    WireProfile,
    assistant,
    system,
    user,
)
from dialoom.llm.json_schema import Violation
from dialoom.llm.retry import ONCE
from dialoom.llm.structured import StructuredResult, chat_structured
from dialoom.testing.wire import WireReply, WireServer

ASKED = [user("Where is she, and for how long?")]
STAY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
RIGHT = '{"city":"Rome","days":3}'
WRONG = '{"city":"Rome","days":"three"}'
VALUE = {"city": "Rome", "days": 3}
DAYS = Violation("$.days", "expected integer, got string")


class Line(msgspec.Struct):
    qty: int


class Order(msgspec.Struct):
    lines: list[Line]
    due: dt.date | None = None


@dataclasses.dataclass
class Stay:
    city: str
    days: int


class Booking(pydantic.BaseModel):
    city: str
    days: int = pydantic.Field(ge=1)

    @pydantic.field_validator("city")
    @classmethod
    def known(cls, city: str) -> str:
        if city == "Atlantis":
            raise ValueError("no such city")
        return city


def completion(text: str, **fields: Any) -> WireReply:
    message = {"role": "assistant", "content": text, **fields}
    body = {"id": "cc-1", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}
    return WireReply(headers={"content-type": "application/json"}, body=(msgspec.json.encode(body),))


@pytest.mark.promise("llm-037", "llm-040")
@pytest.mark.parametrize(
    "said", [RIGHT, f"```json\n{RIGHT}\n```", f"Well: {WRONG}, no: {RIGHT}!", f"<think>{{</think>{RIGHT}"]
)
async def test_a_valid_answer_gives_the_checked_value(said: str) -> None:
    llm = MockProvider().queue_text(said)
    assert await chat_structured(llm, ASKED, STAY) == StructuredResult(
        ok=True, value=VALUE, raw=said, rounds=1, mode="prompt"
    )
    llm.assert_done()


@pytest.mark.promise("llm-036")
async def test_a_provider_of_any_kind_is_given_the_schema_in_words_as_well() -> None:
    llm = MockProvider().queue_text(WRONG).queue_text(RIGHT)
    result = await chat_structured(llm, [system("Be brief."), *ASKED], STAY)
    assert result.value == VALUE
    first = llm.requests[0]
    assert first.options.response_schema == STAY
    assert first.messages[0].text.startswith("Be brief.\n\nReply with one JSON value and nothing else.")
    assert '"days":{"type":"integer"}' in first.messages[0].text
    assert first.messages[1:] == tuple(ASKED)


@pytest.mark.promise("llm-038")
async def test_violations_go_back_and_the_repaired_answer_is_taken() -> None:
    llm = MockProvider().queue_text(WRONG, usage=Usage(input_tokens=5, output_tokens=2))
    llm.queue_text(RIGHT, usage=Usage(input_tokens=9))
    result = await chat_structured(llm, ASKED, STAY)
    assert result == StructuredResult(
        ok=True,
        value=VALUE,
        raw=RIGHT,
        rounds=2,
        mode="prompt",
        usage=Usage(input_tokens=14, output_tokens=2),
    )
    *_, said, complaint = llm.requests[1].messages
    assert said.text == WRONG
    assert complaint.text.startswith(
        "That answer does not match the schema:\n- $.days: expected integer, got string\n"
    )


@pytest.mark.promise("llm-039", "llm-041")
async def test_a_hopeless_answer_ends_after_the_last_repair_with_its_violations() -> None:
    llm = MockProvider().queue_text(WRONG).queue_text("I cannot.").queue_text(WRONG)
    result = await chat_structured(llm, ASKED, STAY, max_repair_rounds=2)
    assert result == StructuredResult(ok=False, violations=(DAYS,), raw=WRONG, rounds=3, mode="prompt")
    llm.assert_done()
    assert "- $: the answer holds no JSON" in llm.requests[2].messages[-1].text


async def test_without_repair_rounds_the_first_answer_counts() -> None:
    llm = MockProvider().queue_text("")
    result = await chat_structured(llm, ASKED, STAY, max_repair_rounds=0)
    assert (result.ok, result.rounds) == (False, 1)
    for rounds in (-1, 11):
        with pytest.raises(UsageError, match="use 0 to 10"):
            await chat_structured(llm, ASKED, STAY, max_repair_rounds=rounds)


async def test_an_empty_answer_is_repaired_too() -> None:
    llm = MockProvider().queue_text("").queue_text(RIGHT)
    assert (await chat_structured(llm, ASKED, STAY)).value == VALUE
    assert llm.requests[1].messages[-2] == assistant("(no answer)")


async def test_a_refusal_is_not_argued_with() -> None:
    llm = MockProvider().queue_events(RefusalDelta("No."))
    llm.queue_text("{}")
    result = await chat_structured(llm, ASKED, STAY, max_repair_rounds=0)
    assert result.violations == (Violation("$", "the model refused to answer"),)


async def test_a_filtered_answer_ends_the_rounds() -> None:
    llm = MockProvider().queue_text("x")
    with_reason = await answer_of(llm, "content_filter")
    script = MockProvider().queue_events(TextDelta("x"), ResponseCompleted(with_reason))
    result = await chat_structured(script, ASKED, STAY, max_repair_rounds=3)
    assert (result.ok, result.rounds) == (False, 1)


async def test_an_answer_cut_at_its_limit_says_so() -> None:
    cut = await answer_of(MockProvider().queue_text('{"city": "Ro'), "length")
    script = MockProvider().queue_events(TextDelta('{"city": "Ro'), ResponseCompleted(cut))
    result = await chat_structured(script, ASKED, STAY, max_repair_rounds=0)
    assert result.violations == (Violation("$", "the answer was cut off at its token limit"),)


async def answer_of(llm: MockProvider, reason: Any) -> Any:
    async with llm.stream(ASKED) as stream:
        async for _ in stream:
            pass
    return msgspec.structs.replace(stream.response, finish_reason=reason)


async def test_a_struct_a_dataclass_and_a_pydantic_model_come_back_as_themselves() -> None:
    llm = MockProvider().queue_text('{"lines":[{"qty":2}],"due":"2026-11-30"}').queue_text(RIGHT)
    llm.queue_text(RIGHT).queue_text('{"value":[1,2]}').queue_text('{"value":{"qty":7}}')
    order = await chat_structured(llm, ASKED, Order)
    stay = await chat_structured(llm, ASKED, Stay)
    booking = await chat_structured(llm, ASKED, Booking)
    numbers = await chat_structured(llm, ASKED, list[int])
    either = await chat_structured(llm, ASKED, Line | None)
    assert order.value == Order(lines=[Line(2)], due=dt.date(2026, 11, 30))
    assert stay.value == Stay("Rome", 3)
    assert booking.value == Booking(city="Rome", days=3)
    assert numbers.value == [1, 2]
    assert either.value == Line(7)


async def test_a_type_is_asked_for_without_room_for_other_fields_but_read_with_it() -> None:
    llm = MockProvider().queue_text('{"lines":[{"qty":2,"note":"x"}]}')
    result = await chat_structured(llm, ASKED, Order)
    assert result.value == Order(lines=[Line(2)])
    asked: Any = llm.requests[0].options.response_schema
    assert asked["additionalProperties"] is False
    assert asked["$defs"]["Line"]["additionalProperties"] is False


async def test_what_only_the_type_forbids_is_a_violation_with_its_path() -> None:
    class Even(msgspec.Struct):
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("must be even")

    class Pair(msgspec.Struct):
        left: Even

    odd = MockProvider().queue_text('{"left":{"number":3}}')
    assert (await chat_structured(odd, ASKED, Pair, max_repair_rounds=0)).violations == (
        Violation("$.left", "must be even"),
    )
    nowhere = MockProvider().queue_text('{"city":"Atlantis","days":1}')
    assert (await chat_structured(nowhere, ASKED, Booking, max_repair_rounds=0)).violations == (
        Violation("$.city", "Value error, no such city"),
    )
    bare = MockProvider().queue_text('{"number":3}')
    assert (await chat_structured(bare, ASKED, Even, max_repair_rounds=0)).violations == (
        Violation("$", "must be even"),
    )


async def test_a_type_of_ones_own_reads_and_refuses_as_pydantic_does() -> None:
    class Even:
        @classmethod
        def model_json_schema(cls) -> dict[str, object]:
            return {"type": "object", "properties": {"n": {"type": "integer"}}}

        @classmethod
        def model_validate_json(cls, json_data: bytes) -> object:
            raise ValueError("never\neven")

    llm = MockProvider().queue_text('{"n":1}')
    result = await chat_structured(llm, ASKED, Even, max_repair_rounds=0)
    assert result.violations == (Violation("$", "never even"),)


async def test_what_cannot_be_asked_for_is_said_before_any_request() -> None:
    llm = MockProvider()
    with pytest.raises(UsageError, match="no answer can be asked for as"):
        await chat_structured(llm, ASKED, CancelScope)
    with pytest.raises(UsageError, match="nothing is fetched"):
        await chat_structured(llm, ASKED, {"$ref": "http://127.0.0.1:9/x.json"})
    assert llm.requests == []


async def test_a_hostile_pattern_is_checked_in_no_time() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}, "required": ["a"]}
    llm = MockProvider().queue_text(msgspec.json.encode({"a": "a" * 50_000 + "!"}).decode())
    result = await chat_structured(llm, ASKED, schema, max_repair_rounds=0)
    assert [each.path for each in result.violations] == ["$.a"]


@pytest.mark.promise("llm-055")
async def test_a_stopped_call_makes_no_further_request() -> None:
    scope = CancelScope()
    llm = MockProvider().queue_text(WRONG).queue_text(RIGHT)

    class Stops(MockProvider):
        def stream(self, messages: Any, options: Any = None) -> Any:
            scope.cancel() if llm.requests else None
            return llm.stream(messages, options)

    with pytest.raises(Cancelled):
        await chat_structured(Stops(), ASKED, STAY, options=ChatOptions(cancel=scope))
    stopped = CancelScope()
    stopped.cancel()
    fresh = MockProvider().queue_text(RIGHT)
    with pytest.raises(Cancelled):
        await chat_structured(fresh, ASKED, STAY, options=ChatOptions(cancel=stopped))
    assert fresh.requests == []


async def test_a_server_that_enforces_schemas_is_asked_to() -> None:
    async with WireServer([completion(RIGHT)]) as server, OpenAIProvider(f"{server.url}/v1") as llm:
        result = await chat_structured(llm, ASKED, STAY)
    assert (result.value, result.mode) == (VALUE, "native")
    sent: Any = server.requests[0].json()
    assert sent["response_format"]["json_schema"]["schema"] == STAY
    assert sent["messages"] == [{"role": "user", "content": ASKED[0].text}]


async def test_a_server_that_refuses_schemas_is_asked_in_words() -> None:
    refusal = WireReply(status=400, body=(b'{"error":{"message":"response_format is not supported"}}',))
    async with (
        WireServer([refusal, completion(RIGHT)]) as server,
        OpenAIProvider(f"{server.url}/v1") as llm,
    ):
        result = await chat_structured(llm, ASKED, STAY)
    assert (result.value, result.mode, result.rounds) == (VALUE, "prompt", 2)
    sent: Any = server.requests[1].json()
    assert "response_format" not in sent
    assert sent["messages"][0]["role"] == "system"


async def test_any_other_failure_is_the_callers_to_see() -> None:
    refusal = WireReply(status=401, body=(b"{}",))
    async with WireServer([refusal]) as server, OpenAIProvider(f"{server.url}/v1") as llm:
        with pytest.raises(ProviderError, match="check the api key"):
            await chat_structured(llm, ASKED, STAY)
        with pytest.raises(ProviderError, match="the script has no reply"):
            await chat_structured(llm, ASKED, STAY, mode="prompt", options=ChatOptions(retry=ONCE))


async def test_a_tool_can_carry_the_answer() -> None:
    profile = WireProfile(structured_mode="tool", streaming=False)

    def calling(arguments: str) -> WireReply:
        call = {"id": "c1", "type": "function", "function": {"name": "answer", "arguments": arguments}}
        return completion("", tool_calls=[call])

    async with (
        WireServer([calling(WRONG), completion("Rome"), calling(RIGHT)]) as server,
        OpenAIProvider(f"{server.url}/v1", profile=profile) as llm,
    ):
        result = await chat_structured(llm, ASKED, STAY, max_repair_rounds=2)
    assert (result.value, result.mode, result.rounds, result.raw) == (VALUE, "tool", 3, RIGHT)
    first, second, third = (request.json() for request in server.requests)
    assert (first["tool_choice"], "response_format" in first) == ("required", False)
    replies: Any = second["messages"]
    assert replies[-1]["role"] == "tool"
    assert "- $.days: expected integer, got string" in replies[-1]["content"]
    last: Any = third["messages"]
    assert last[-1]["content"].endswith("Call answer with the whole corrected answer.")


async def test_a_profile_can_say_that_only_words_help() -> None:
    profile = WireProfile(structured_mode="prompt", streaming=False)
    async with (
        WireServer([completion(RIGHT)]) as server,
        OpenAIProvider(f"{server.url}/v1", profile=profile) as llm,
    ):
        assert (await chat_structured(llm, ASKED, STAY)).mode == "prompt"
    assert "response_format" not in server.requests[0].json()
