"""What a program hands to an agent is looked at where it is handed over, and a slip is named in one line."""

from collections.abc import Callable
from typing import Any

import pytest

from dialoom.agent import (
    AgentLimits,
    AgentNode,
    AgentObserver,
    AgentSettings,
    AgentSpec,
    Approve,
    Deny,
    Edit,
    Guards,
    HistoryLimits,
    ReActAgent,
)
from dialoom.base.errors import UsageError
from dialoom.llm import FilePart, Message, MockProvider, OpaquePart, assistant, user
from tests.agent.tools import add

A_PROVIDER = 'the provider of an agent; give a provider, such as OpenAIProvider("http://127.0.0.1:11434/v1")'
WORDS = "give words, or a message made by user(...)"
MESSAGES = "give messages, such as result.history"
A_GUARD = "guards are functions in a tuple, as in Guards(input=(check,)); make them that"
ANY: Any = None
"""A value of the wrong type, as a program without a type checker writes one."""


def agent(**given: Any) -> ReActAgent:
    return ReActAgent(MockProvider(), **given)


def refuse(text: str) -> None:
    raise AssertionError(text)


MADE: dict[str, tuple[Callable[[], object], str]] = {
    "no provider": (lambda: ReActAgent(ANY), f"None was given as {A_PROVIDER}"),
    "a name": (
        lambda: ReActAgent("openai:gpt-4o"),
        f"a value of type str was given as {A_PROVIDER}",
    ),
    "the class of one": (
        lambda: AgentSpec(provider=MockProvider),
        f"the class MockProvider itself was given as {A_PROVIDER}",
    ),
    "other tools": (
        lambda: AgentSpec(provider=MockProvider(), tools=[add]),
        "a value of type list was given as the tools of an agent; give ToolRegistry([...])",
    ),
    "one tool": (
        lambda: agent(tools=add),
        "tools are given as a list, such as [search]; this is a value of type FunctionTool",
    ),
    "an agent": (
        lambda: agent(tools=[agent()]),
        "ReActAgent is no tool; decorate a function with @tool, or subclass Tool",
    ),
    "system": (
        lambda: agent(system=["Be brief."]),
        "a value of type list was given as the system prompt of an agent; give words, or leave it out",
    ),
    "settings": (
        lambda: agent(settings=AgentLimits()),
        "a value of type AgentLimits was given as the settings of an agent; give AgentSettings(...)",
    ),
    "limits of another kind": (
        lambda: AgentSettings(limits=HistoryLimits(messages=5)),
        "a value of type HistoryLimits was given as limits of an agent's settings; give AgentLimits(...)",
    ),
    "options as a dict": (
        lambda: AgentSettings(options={"temperature": 0}),
        "a value of type dict was given as options of an agent's settings; give ChatOptions(...)",
    ),
    "no guards": (
        lambda: AgentSettings(guards=ANY),
        "None was given as guards of an agent's settings; give Guards(...)",
    ),
    "repairs": (lambda: AgentSettings(repairs=-1), "an agent has -1 repairs; give 0 or more"),
    "a path": (
        lambda: agent(store="threads.db"),
        (
            "a value of type str was given as the store of an agent; "
            "give a CheckpointStore, such as MemoryCheckpointStore()"
        ),
    ),
    "no name": (lambda: agent(name=None), "None was given as the name of an agent; give a word"),
    "an empty name": (
        lambda: agent(name=""),
        "an agent has an empty name; give it a word, or leave it out",
    ),
    "an observer": (
        lambda: agent().add_observer(AgentObserver),
        (
            "the class AgentObserver itself was given as an observer; "
            "give an AgentObserver, or another object with on_event(event)"
        ),
    ),
    "an observer of a node": (
        lambda: AgentNode(agent()).add_observer(print),
        (
            "a value of type builtin_function_or_method was given as an observer; "
            "give an AgentObserver, or another object with on_event(event)"
        ),
    ),
    "a node": (
        lambda: AgentNode(MockProvider()),
        "a value of type MockProvider was given as the agent of a node; give a ReActAgent",
    ),
    "one guard": (lambda: Guards(input=refuse), A_GUARD),
    "no guard": (lambda: Guards(input=(None,)), A_GUARD),
    "an agent of the same name": (
        lambda: agent(tools=[agent().as_handoff("Knows more.")]),
        "agent 'agent' is to hand over to another agent 'agent'; give one of them another name",
    ),
    "a reason": (
        lambda: Deny(ANY),
        "None was given as the reason to deny a call; give words, or nothing: Deny()",
    ),
    "an edit": (
        lambda: Edit([1]),
        'a value of type list was given as what a call is edited to; give arguments, as in Edit({"n": 1})',
    ),
}


@pytest.mark.parametrize("slip", MADE)
def test_a_part_that_is_none_is_refused_where_it_is_given(slip: str) -> None:
    make, told = MADE[slip]
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value) == told


ASKED: dict[str, tuple[Any, str]] = {
    "nothing": ("", "the question is empty; give some words to answer"),
    "blanks": (" \n", "the question is empty; give some words to answer"),
    "an empty message": (user(""), "the question is empty; give some words to answer"),
    "none": (None, f"None was given as a question; {WORDS}"),
    "bytes": (b"2 + 3?", f"a value of type bytes was given as a question; {WORDS}"),
    "a dict": ({"role": "user"}, f"a value of type dict was given as a question; {WORDS}"),
    "an answer": (assistant("5"), f"the question is a message of role assistant; {WORDS}"),
}


@pytest.mark.parametrize("asked", ASKED)
async def test_a_question_in_which_nothing_is_asked_is_refused_before_a_model_is_asked(asked: str) -> None:
    question, told = ASKED[asked]
    model = MockProvider()
    with pytest.raises(UsageError) as caught:
        await ReActAgent(model).run(question)
    assert str(caught.value) == told
    with pytest.raises(UsageError, match="question"):
        ReActAgent(model).run_stream(question)
    assert model.requests == []


async def test_what_only_one_provider_can_read_is_a_question_as_well() -> None:
    shown = Message(role="user", parts=(OpaquePart("mock", '{"type":"image"}'),))
    assert (await ReActAgent(MockProvider().queue_text("A heron.")).run(shown)).answer == "A heron."


async def test_a_file_without_words_is_a_question_as_well() -> None:
    shown = user("", files=(FilePart(data=b"png", media_type="image/png"),))
    assert (await ReActAgent(MockProvider().queue_text("A heron.")).run(shown)).answer == "A heron."


HISTORIES: dict[str, tuple[Any, str]] = {
    "none": (None, f"None was given as a history; {MESSAGES}"),
    "a result": (
        ReActAgent(MockProvider().queue_text("5")).run_sync("2 + 3?"),
        f"a value of type AgentResult was given as a history; {MESSAGES}",
    ),
    "words": ("2 + 3?", f"a value of type str was given as a history; {MESSAGES}"),
    "dicts": (
        [user("2 + 3?"), assistant("5").to_dict()],
        (
            f"a value of type dict was given as a message of a history; {MESSAGES};"
            " Message.from_dict reads stored ones"
        ),
    ),
}


@pytest.mark.parametrize("before", HISTORIES)
async def test_a_history_that_is_none_is_refused(before: str) -> None:
    history, told = HISTORIES[before]
    with pytest.raises(UsageError) as caught:
        await agent().continue_with(history, "Sure?")
    assert str(caught.value) == told


def test_a_history_may_be_anything_that_gives_messages() -> None:
    model = MockProvider().queue_text("Yes.")
    said = (message for message in (user("2 + 3?"), assistant("5")))
    result = ReActAgent(model).continue_with_sync(said, "Sure?")
    assert [message.text for message in result.history] == ["2 + 3?", "5", "Sure?", "Yes."]


async def test_what_is_resumed_how_and_with_which_answers_is_looked_at_as_well() -> None:
    waiting = agent()
    for resume, told in (
        (lambda: waiting.resume(ANY), "None was given as what is to be resumed; give a result, or the name"),
        (lambda: waiting.resume("t", ANY), "None was given as the answers of people; give them by call id"),
        (lambda: waiting.resume("t", options=ANY), "None was given as the options of a run; give RunOptions"),
        (lambda: waiting.run("Hi.", "t"), "a value of type str was given as the options of a run; give"),
    ):
        with pytest.raises(UsageError) as caught:
            await resume()
        assert str(caught.value).startswith(told)
    with pytest.raises(UsageError, match="as the options of a run"):
        waiting.resume_stream("t", options=ANY)
    with pytest.raises(UsageError, match="as the options of a run"):
        waiting.resume_sync("t", {"c1": Approve()}, options=ANY)
