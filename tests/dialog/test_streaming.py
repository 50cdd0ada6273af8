"""An answer that comes in, by hand and by a run: began, pieces, thoughts apart, ended."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.conversation import TextEntry
from dialoom.dialog import Center, Dialog
from dialoom.llm import Gate, MockProvider, ReasoningDelta, TextDelta
from tests.dialog.talk import add, call, calling, center_of, finished, said, soon


def heard_of(dialog: Dialog) -> list[tuple[object, ...]]:
    """Connect to all that tells of a stream."""
    heard: list[tuple[object, ...]] = []
    dialog.stream_began.connect(lambda: heard.append(("began",)))
    dialog.stream_delta.connect(lambda text: heard.append(("delta", text)))
    dialog.stream_reasoning.connect(lambda text: heard.append(("reasoning", text)))
    dialog.stream_ended.connect(lambda text: heard.append(("ended", text)))
    dialog.message_appended.connect(lambda index: heard.append(("appended", index)))
    dialog.run_finished.connect(lambda result: heard.append(("finished", result.text)))
    dialog.run_failed.connect(lambda message: heard.append(("failed", message)))
    return heard


@pytest.mark.promise(
    "dialog-051",
    "dialog-052",
    "dialog-053",
    "dialog-054",
    "dialog-055",
    "dialog-056",
    "dialog-057",
    "dialog-058",
)
def test_a_host_takes_an_answer_in_by_hand() -> None:
    dialog = Center().new_dialog().append_message("user", "hi")
    heard = heard_of(dialog)
    dialog.begin_assistant_message().append_delta("lost").begin_assistant_message()
    family = "👨‍👩‍👧"  # three people joined to one character
    dialog.append_delta("**bo").append_delta("ld** ").append_delta(family[:2]).append_delta(family[2:])
    assert (dialog.is_streaming, dialog.streaming_content) == (True, f"**bold** {family}")
    dialog.end_assistant_message()
    assert heard == [
        ("began",),
        ("delta", "lost"),
        ("began",),
        ("delta", "**bo"),
        ("delta", "ld** "),
        ("delta", family[:2]),
        ("delta", family[2:]),
        ("appended", 1),
        ("ended", f"**bold** {family}"),
    ]
    assert said(dialog)[-1] == ("assistant", f"**bold** {family}")
    assert (dialog.is_streaming, dialog.streaming_content) == (False, "")


@pytest.mark.promise("dialog-059", "dialog-060")
def test_an_answer_without_a_word_is_ended_and_not_appended() -> None:
    dialog = Center().new_dialog()
    heard = heard_of(dialog)
    dialog.begin_assistant_message().append_reasoning("hm").end_assistant_message()
    assert heard == [("began",), ("reasoning", "hm"), ("ended", "")]
    assert dialog.messages == ()


@pytest.mark.promise("dialog-061", "dialog-063", "dialog-064", "dialog-068", "dialog-069")
def test_thoughts_are_shown_while_they_come_and_stored_with_their_answer() -> None:
    dialog = Center().new_dialog()
    dialog.begin_assistant_message().append_reasoning("let me ").append_reasoning("think").append_delta("4")
    assert (dialog.reasoning_content, dialog.streaming_content) == ("let me think", "4")
    dialog.end_assistant_message()
    assert dialog.last_message == TextEntry(role="assistant", content="4", reasoning="let me think")
    assert (dialog.reasoning_content, dialog.is_streaming) == ("let me think", False)
    dialog.begin_assistant_message()
    assert (dialog.reasoning_content, dialog.is_streaming) == ("", True)


def test_pieces_without_a_beginning_are_refused() -> None:
    dialog = Center().new_dialog()
    for change in (lambda: dialog.append_delta("x"), lambda: dialog.append_reasoning("x")):
        with pytest.raises(UsageError, match="no answer was begun; call begin_assistant_message first"):
            change()
    with pytest.raises(UsageError):
        dialog.end_assistant_message()


@pytest.mark.promise(
    "dialog-062",
    "dialog-065",
    "dialog-066",
    "dialog-070",
    "dialog-071",
    "dialog-072",
    "dialog-073",
    "dialog-076",
    "dialog-080",
    "dialog-082",
)
async def test_a_run_tells_every_round_and_keeps_its_thoughts() -> None:
    mock = MockProvider()
    mock.queue_events(ReasoningDelta("add them"), *calling(call("c1", "add", a=1, b=2)))
    mock.queue_events(ReasoningDelta("done"), TextDelta("It is "), TextDelta("3.")).queue_text("Bye.")
    dialog = center_of(mock, add).new_dialog()
    heard = heard_of(dialog)
    await finished(dialog.send("1 + 2?"))
    assert heard == [
        ("appended", 0),
        ("began",),
        ("reasoning", "add them"),
        ("appended", 1),
        ("ended", ""),
        ("appended", 2),
        ("began",),
        ("reasoning", "done"),
        ("delta", "It is "),
        ("delta", "3."),
        ("appended", 3),
        ("ended", "It is 3."),
        ("finished", "It is 3."),
    ]
    assert [getattr(entry, "reasoning", "") for entry in dialog.messages] == ["", "add them", "", "done"]
    await finished(dialog.send("thanks"))
    assert [message.reasoning for message in mock.requests[-1].messages] == ["", "", "", "", ""]


@pytest.mark.promise("dialog-067")
async def test_a_model_that_does_not_reason_tells_no_thoughts() -> None:
    dialog = center_of(MockProvider().queue_text("Hello.")).new_dialog()
    heard = heard_of(dialog)
    await finished(dialog.send("hi"))
    assert [kind for kind, *_ in heard] == ["appended", "began", "delta", "appended", "ended", "finished"]


@pytest.mark.promise("dialog-075")
async def test_words_are_told_while_the_answer_still_comes() -> None:
    gate = Gate()
    mock = MockProvider().queue_events(TextDelta("Hel"), gate, TextDelta("lo"))
    dialog = center_of(mock).new_dialog()
    heard = heard_of(dialog)
    handle = dialog.send("hi")
    await soon(gate.reached.wait())
    assert (heard[-1], dialog.streaming_content, dialog.is_streaming) == (("delta", "Hel"), "Hel", True)
    gate.opened.set()
    await finished(handle)
    assert (heard[-1], dialog.is_streaming) == (("finished", "Hello"), False)
