"""Answers of the workbench number their passages in the order in which people read of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from dialoom.conversation import CardEntry, TextEntry
from dialoom.llm import MockProvider, ResponseStarted, StreamEvent, TextDelta, ToolCall, ToolCallReady
from dialoom.llm.mock import Gate
from dialoom.server import Parts
from dialoom.server.numbered import Numbering, as_read, numbering_of
from dialoom.server.shown import Transcript
from dialoom.tools import Tool, tool
from tests.server.live import Live, copied, following, served

PASSAGES: list[object] = [
    {"index": at, "id": f"{name}.md", "title": name, "text": f"all of {name}"}
    for at, name in enumerate(("north", "east", "south", "west"), 1)
]


async def ground(_conversation: str, _question: str) -> list[object]:
    return PASSAGES


def words(*pieces: str) -> Sequence[StreamEvent]:
    return [ResponseStarted(), *map(TextDelta, pieces)]


async def asked(live: Live, conversation: str, text: str = "Where?") -> list[dict[str, Any]]:
    path = f"/api/v1/conversations/{conversation}"
    async with following(live, f"{path}/events") as events:
        await live.client.post(f"{path}/messages", json={"text": text})
        return await events.until("RUN_FINISHED")


def streamed(events: list[dict[str, Any]]) -> list[str]:
    """Return the texts that came as pieces, each whole."""
    texts: dict[str, str] = {}
    for event in events:
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            texts[event["messageId"]] = texts.get(event["messageId"], "") + event["delta"]
    return list(texts.values())


def told(events: list[dict[str, Any]]) -> list[tuple[int, str] | str]:
    """Return what a page is told of an answer, in its order: words, and the passages behind new numbers."""
    seen: list[tuple[int, str] | str] = []
    for event in events:
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            seen.append(event["delta"])
        elif event.get("name") == "run.cited":
            seen += [(each["index"], each["title"]) for each in event["value"]["sources"]]
    return seen


async def test_the_passage_behind_a_number_is_told_before_the_words_that_cite_it(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    async with served(copied(parts, ground=ground), tmp_path) as live:
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        gate = Gate()
        provider.queue_events(*words("South [3], ", "east [2], "), gate, TextDelta("south [3]."))
        async with following(live, f"{path}/events") as events:
            await live.client.post(f"{path}/messages", json={"text": "Where?"})
            begun = [*await events.until("run.cited"), *await events.until("run.cited")]
            run = (await live.client.get(f"{path}/entries")).json()["run"]
            shown = [(each["index"], each["title"], each["text"]) for each in run["sources"]]
            assert (run["text"], shown) == (
                "South [1], east [2], ",
                [(1, "south", "all of south"), (2, "east", "all of east")],
            )
            gate.opened.set()
            ended = await events.until("RUN_FINISHED")
        assert told(begun + ended) == [(1, "south"), "South [1], ", (2, "east"), "east [2], ", "south [1]."]
        assert (await live.client.get(f"/api/v1/runs/{run['id']}")).json()["sources"] == []


async def test_an_answer_begins_with_one_streamed_shown_listed_and_exported_alike(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    async with served(copied(parts, ground=ground), tmp_path) as live:
        conversation = await live.begin()
        provider.queue_events(*words("In the south [", "3], the ea", "st [2] and", " the south [3]"))
        events = await asked(live, conversation)
        expected = "In the south [1], the east [2] and the south [1]"
        assert streamed(events) == [expected]
        path = f"/api/v1/conversations/{conversation}"
        question, answer = (await live.client.get(f"{path}/entries")).json()["entries"]
        assert answer["content"] == expected
        assert [(each["index"], each["title"]) for each in answer["sources"]] == [
            (1, "south"),
            (2, "east"),
            (3, "north"),
            (4, "west"),
        ]
        assert "sources" not in question
        assert expected in (await live.client.get(f"{path}/export?format=md")).text
        stored = (
            await live.client.get(f"{path}/export?format=yaml")
        ).text  # for programs: as the model said it
        assert "south [3], the east [2]" in stored
        sent = [event["value"]["entry"] for event in events if event.get("name") == "entry.appended"]
        assert sent == [question, answer]
        provider.queue_events(*words("East [2]."))
        assert streamed(await asked(live, conversation)) == ["East [1]."]  # each question counts anew
        assert "[3], the east [2]" in provider.requests[-1].messages[-2].text  # as the model numbered it


async def test_an_answer_that_goes_on_after_its_tools_counts_on(
    parts: Parts, provider: MockProvider, tools: list[Tool], tmp_path: Path
) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    tools.append(look)
    async with served(copied(parts, ground=ground), tmp_path) as live:
        conversation = await live.begin()
        call = ToolCall(id="c", name="look", arguments={}, raw="{}")
        provider.queue_events(*words("By the west [4] I look."), ToolCallReady(index=0, call=call))
        provider.queue_events(*words("North [1], west ", "[4]."))
        events = await asked(live, conversation)
        entries = (await live.client.get(f"/api/v1/conversations/{conversation}/entries")).json()["entries"]
        said = [each["content"] for each in entries if each["role"] == "assistant"]
        assert said == ["By the west [1] I look.", "North [2], west [1]."]
        assert streamed(events) == said
        assert [each["title"] for each in entries[-1]["sources"]] == ["west", "north", "east", "south"]
        cited = [each for each in told(events) if isinstance(each, tuple)]
        assert cited == [(1, "west"), (1, "west"), (2, "north")]  # each answer tells of all that it may cite


def talk(*answers: str) -> list[TextEntry]:
    question = TextEntry(role="user", content="?", meta={"sources": PASSAGES})
    return [question, *(TextEntry(role="assistant", content=answer) for answer in answers)]


ANSWER = st.lists(
    st.sampled_from(["word ", "[1]", "[2]", "[3]", "[4]", "[1, 4]", "[9]", "`[2]`", "\n"]), max_size=12
).map("".join)


@given(st.lists(ANSWER, max_size=4))
def test_streams_windows_and_exports_count_alike(answers: list[str]) -> None:
    log = talk(*answers)
    transcript = Transcript(log)
    exported = [cast("TextEntry", each).content for each in as_read(log)]
    for at, answer in enumerate(answers, 1):
        shown, after = transcript.numbering(at).answered(answer)
        numbers = numbering_of(reversed(log[:at])).begin()
        assert numbers is not None
        assert "".join(map(numbers.feed, answer)) + numbers.close() == shown == exported[at]
        listed = cast("list[dict[str, object]]", after.listed())
        assert sorted(str(each["title"]) for each in listed) == ["east", "north", "south", "west"]
        assert [each["index"] for each in listed] == [1, 2, 3, 4]


def test_what_was_taken_back_counts_no_more() -> None:
    transcript = Transcript([*talk("[3]", "[2]"), *talk("[4]")])
    transcript.truncate(2)
    assert transcript.numbering(2) == Numbering(PASSAGES, (3,))
    transcript.add(TextEntry(role="assistant", content="[1]"))
    assert transcript.numbering(3) == Numbering(PASSAGES, (3, 1))
    transcript.truncate(0)
    assert transcript.numbering(0) == Numbering([])


def test_passages_that_another_program_numbered_are_left_as_they_are() -> None:
    foreign: list[object] = [{"index": 7, "title": "a"}, "no passage"]
    shown, after = Numbering(foreign).answered("So [7].")
    assert (shown, after.listed()) == ("So [7].", foreign)


def test_cards_and_questions_without_passages_are_no_matter() -> None:
    log = [CardEntry(type="Plot", payload="{}"), *talk("[2]"), TextEntry(role="user", content="[2]?")]
    assert [getattr(each, "content", "") for each in as_read(log)] == ["", "?", "[1]", "[2]?"]
    assert numbering_of(reversed(log)) == Numbering([])
    assert numbering_of([CardEntry(type="Plot", payload="{}")]) == Numbering([])
