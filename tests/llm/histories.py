"""Histories of every kind: calls, results, foreign thoughts, files, half characters, what cards leave."""

from hypothesis import strategies as st

from dialoom.conversation import prompt
from dialoom.llm import (
    FilePart,
    Message,
    OpaquePart,
    Origin,
    Part,
    ReasoningPart,
    RefusalPart,
    SourcePart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResultPart,
)
from tests.conversation.strategies import ENTRIES

PICTURE = FilePart(data=b"x", media_type="image/png")
SPEECH = FilePart(data=b"x", media_type="audio/wav")
HERE, THERE = Origin("anthropic", "claude"), Origin("openai", "gpt")

ids = st.sampled_from(["c1", "c2", "c:1", "c_1", ""])
words = st.sampled_from(["", " ", "a", "\ud83d", "b\n"])
calls = st.builds(
    ToolCall,
    id=ids,
    name=st.sampled_from(["lookup", "", "查 x"]),
    arguments=st.sampled_from([None, {}, {"city": "Rome"}]),
)
parts: st.SearchStrategy[Part] = st.one_of(
    words.map(TextPart),
    words.map(RefusalPart),
    st.just(PICTURE),
    st.builds(ReasoningPart, words, st.none() | st.just("s")),
    st.builds(SourcePart, index=st.just(1), id=words, title=words, text=words),
    st.builds(OpaquePart, st.sampled_from(["anthropic", "x"]), st.sampled_from(["{}", "{", '{"type":"o"}'])),
    calls.map(ToolCallPart),
    st.builds(
        ToolResultPart,
        call_id=ids,
        content=words,
        is_error=st.booleans(),
        files=st.sampled_from([(), (PICTURE,), (SPEECH, PICTURE)]),
    ),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    parts=st.lists(parts, max_size=4).map(tuple),
    origin=st.sampled_from([None, HERE, THERE]),
)
histories = st.lists(messages, max_size=8) | st.lists(ENTRIES, max_size=8).map(lambda log: [*prompt(log)])
