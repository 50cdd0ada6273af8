"""What is sent: a projection of the messages that the Messages wire accepts, whatever they went through."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given

from dialoom.base.errors import UsageError
from dialoom.llm import (
    ChatOptions,
    Message,
    OpaquePart,
    Origin,
    Part,
    ReasoningPart,
    RefusalPart,
    SourcePart,
    TextPart,
    ToolCall,
    ToolSpec,
    WireProfile,
    assistant,
    system,
    tool_result,
    user,
)
from dialoom.llm.anthropic.request import message_body
from dialoom.llm.options import DEFAULT_OPTIONS
from dialoom.llm.profile import ANTHROPIC_PROFILE
from tests.llm.histories import HERE, THERE, histories


def body(
    *messages: Message, options: ChatOptions = DEFAULT_OPTIONS, profile: WireProfile = ANTHROPIC_PROFILE
) -> Any:
    return msgspec.json.decode(message_body(messages, options, profile=profile, provider="anthropic"))


def turns(*messages: Message) -> Any:
    return body(*messages)["messages"]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def said(*parts: Part, origin: Origin | None = HERE) -> Message:
    return Message(role="assistant", parts=parts, origin=origin)


def call(call_id: str, name: str = "lookup", **arguments: object) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


@pytest.mark.promise("llm-007", "llm-008", "llm-012")
def test_a_plain_question_is_sent_plainly() -> None:
    assert body(system("Be brief."), user("Hi"), assistant("Hello."), user("Bye")) == {
        "max_tokens": 8192,
        "system": [text("Be brief.")],
        "messages": [
            {"role": "user", "content": [text("Hi")]},
            {"role": "assistant", "content": [text("Hello.")]},
            {"role": "user", "content": [text("Bye")]},
        ],
        "stream": True,
    }
    assert body(user("Hi"), profile=WireProfile(default_max_tokens=100, streaming=False)) == {
        "max_tokens": 100,
        "messages": [{"role": "user", "content": [text("Hi")]}],
        "stream": False,
    }


def test_every_option_has_its_field() -> None:
    options = ChatOptions(
        model="m",
        temperature=0.5,
        top_p=0.9,
        max_tokens=20,
        stop=("END",),
        seed=3,
        tools=(ToolSpec(name="now", description="The time"), ToolSpec(name="plain")),
        tool_choice="required",
        parallel_tool_calls=False,
        response_schema={"type": "object"},
        extra_body={"thinking": {"type": "adaptive"}, "top_p": 0.8},
    )
    schema = {"type": "object", "properties": {}}
    sent = {
        "model": "m",
        "max_tokens": 20,
        "messages": [],
        "stream": True,
        "temperature": 0.5,
        "top_p": 0.8,
        "stop_sequences": ["END"],
        "tools": [
            {"name": "now", "description": "The time", "input_schema": schema},
            {"name": "plain", "input_schema": schema},
        ],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "thinking": {"type": "adaptive"},
    }
    assert body(options=options) == sent
    native = body(options=options, profile=WireProfile(structured_mode="native"))
    asked = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert native == {**sent, "output_config": asked}
    assert "output_config" not in body(profile=WireProfile(structured_mode="native"))


@pytest.mark.parametrize(
    ("choice", "parallel", "sent"),
    [
        (None, None, None),
        ("auto", None, {"type": "auto"}),
        ("none", None, {"type": "none"}),
        ("none", True, {"type": "none"}),
        ("required", None, {"type": "any"}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", True, {"type": "any", "disable_parallel_tool_use": False}),
    ],
)
def test_the_choice_of_tools_is_told_in_the_words_of_the_wire(choice: Any, parallel: Any, sent: Any) -> None:
    tools = (ToolSpec(name="now"),)
    options = ChatOptions(tools=tools, tool_choice=choice, parallel_tool_calls=parallel)
    assert body(options=options).get("tool_choice") == sent
    assert "tool_choice" not in body(options=msgspec.structs.replace(options, tools=()))


@pytest.mark.promise("llm-010")
def test_results_follow_their_calls_in_one_user_turn_before_any_words() -> None:
    asked = assistant("I look.", calls=(call("c1", city="Rome"), call("c2", city="Bern")))
    failed = tool_result("c2", "no such city", is_error=True)
    assert turns(user("q"), asked, failed, user("Hurry!"), tool_result("c1", "sunny")) == [
        {"role": "user", "content": [text("q")]},
        {
            "role": "assistant",
            "content": [
                text("I look."),
                {"type": "tool_use", "id": "c1", "name": "lookup", "input": {"city": "Rome"}},
                {"type": "tool_use", "id": "c2", "name": "lookup", "input": {"city": "Bern"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "sunny"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "no such city", "is_error": True},
                text("Hurry!"),
            ],
        },
    ]


def test_a_call_nobody_answered_and_a_result_nobody_asked_for_do_not_break_the_next_question() -> None:
    cut = msgspec.structs.replace(call("c1"), arguments=None, raw='{"ci', problem="truncated")
    assert turns(user("q"), tool_result("c9", "?"), assistant("", calls=(cut,)), user("again")) == [
        {"role": "user", "content": [text("q")]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "lookup", "input": {}}]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": "cancelled: this call was never finished",
                    "is_error": True,
                },
                text("again"),
            ],
        },
    ]


def test_thoughts_go_back_signed_and_only_to_whom_they_came_from() -> None:
    signed = ReasoningPart("hm  \n", signature="c2ln")
    sealed = OpaquePart("anthropic", '{"type":"redacted_thinking","data":"x" , "z":1.50}')
    foreign = OpaquePart("openai", '{"type":"item"}')
    broken = (OpaquePart("anthropic", "{"), OpaquePart("anthropic", "[" * 5000), OpaquePart("anthropic", "7"))
    mine = said(signed, sealed, ReasoningPart("unsigned"), foreign, *broken, TextPart("42"))
    raw = message_body([user("q"), mine], DEFAULT_OPTIONS, profile=ANTHROPIC_PROFILE, provider="anthropic")
    assert sealed.block.encode() in raw
    thinking = {"type": "thinking", "thinking": "hm  \n", "signature": "c2ln"}
    redacted = {"type": "redacted_thinking", "data": "x", "z": 1.5}
    assert turns(user("q"), mine)[1]["content"] == [thinking, redacted, text("42")]
    unknown = said(signed, TextPart("42"), origin=None)
    assert turns(user("q"), unknown)[1]["content"] == [thinking, text("42")]
    theirs = said(signed, TextPart("42"), origin=THERE)
    assert turns(user("q"), theirs)[1]["content"] == [text("42")]


def test_empty_words_are_left_out_and_roles_still_alternate() -> None:
    source = SourcePart(index=1, id="a", title="A", text="fact")
    rendered = '<source id="1" title="A">\nfact\n</source>\n'
    assert turns(
        user(" \n"),
        user("a"),
        user("b", sources=(source,)),
        said(ReasoningPart("only thought")),
        said(RefusalPart("No.")),
        assistant("\t"),
        assistant("Really."),
        tool_result("c", "orphan"),
    ) == [
        {"role": "user", "content": [text("a"), text(rendered), text("b")]},
        {"role": "assistant", "content": [text("No."), text("Really.")]},
    ]


def test_a_history_that_begins_with_an_answer_is_given_a_beginning() -> None:
    assert turns(assistant("Sunny."), user("q2"))[0] == {
        "role": "user",
        "content": [text("(the conversation goes on)")],
    }


def test_an_answer_to_be_continued_has_no_blanks_at_its_end() -> None:
    assert turns(user("q"), assistant("It is \n"))[-1]["content"] == [text("It is")]
    assert turns(user("q"), assistant("It is \n"), user("?"))[1]["content"] == [text("It is \n")]


def test_ids_and_names_are_spelt_as_the_wire_wants_them() -> None:
    odd = (call("functions.a:0", "ns.look up"), call("functions_a:0"), call("", ""))
    asked = assistant("", calls=odd)
    results = [tool_result(each.id, f"r{at}") for at, each in enumerate(odd)]
    again = assistant("", calls=(call("functions.a:0"),))
    sent = turns(user("q"), asked, *results, again, tool_result("functions.a:0", "r3"))
    calls = [(block["id"], block["name"]) for turn in sent for block in turn["content"] if "name" in block]
    answers = [
        (block["tool_use_id"], block["content"])
        for turn in sent
        for block in turn["content"]
        if "tool_use_id" in block
    ]
    assert calls == [
        ("functions_a_0", "ns_look_up"),
        ("functions_a_0_2", "lookup"),
        ("call", "unnamed"),
        ("functions_a_0_3", "lookup"),
    ]
    assert answers == [(name, f"r{at}") for at, (name, _) in enumerate(calls)]


def test_cache_marks_stand_at_the_end_of_what_stays_and_of_what_was_said() -> None:
    mark = {"type": "ephemeral", "ttl": "1h"}
    options = ChatOptions(cache="1h", tools=(ToolSpec(name="a"), ToolSpec(name="b")))
    sent = body(system("S"), user("q"), user("r"), options=options)
    assert sent["system"] == [{**text("S"), "cache_control": mark}]
    assert sent["messages"][-1]["content"] == [text("q"), {**text("r"), "cache_control": mark}]
    assert not any("cache_control" in tool for tool in sent["tools"])
    without = body(said(ReasoningPart("hm", "s")), options=options)
    assert ["cache_control" in tool for tool in without["tools"]] == [False, True]
    assert "cache_control" not in without["messages"][-1]["content"][0]
    assert body(options=ChatOptions(cache="5m")) == {"max_tokens": 8192, "messages": [], "stream": True}


def test_what_is_no_json_is_refused_before_it_is_sent() -> None:
    with pytest.raises(UsageError, match="the request cannot be written as JSON"):
        body(options=ChatOptions(extra_body={"x": object()}))


@given(histories)
def test_any_history_becomes_one_the_wire_accepts_and_stays_as_it_is(history: list[Message]) -> None:
    before = copy.deepcopy(history)
    sent = body(*history)
    assert history == before
    roles = [turn["role"] for turn in sent["messages"]]
    assert roles == [("user", "assistant")[at % 2] for at in range(len(roles))]
    open_calls: list[str] = []
    seen: set[str] = set()
    for turn in sent["messages"]:
        kinds = [block["type"] for block in turn["content"]]
        assert kinds
        assert all(block["text"].strip() for block in turn["content"] if block["type"] == "text")
        assert all(block["signature"] for block in turn["content"] if block["type"] == "thinking")
        assert kinds == sorted(kinds, key=lambda kind: (kind != "tool_result", kind == "tool_use"))
        results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
        assert results == open_calls
        open_calls = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        assert not seen & set(open_calls)
        assert len(set(open_calls)) == len(open_calls)
        seen |= set(open_calls)
    assert not open_calls
