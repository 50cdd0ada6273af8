"""Markdown for reading elsewhere: how it looks, and what of it can be read back."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.conversation import (
    CardEntry,
    Conversation,
    Header,
    TextEntry,
    export_conversation,
    import_conversation,
)
from dialoom.llm import ToolCall
from dialoom.testing import ManualClock


def test_a_conversation_reads_as_a_page() -> None:
    conversation = Conversation(Header(id="a", title="网格化", created=0, updated=0), clock=ManualClock(0))
    conversation.append(TextEntry(role="user", content="Grid it\n\n## user\nplease", reasoning="hidden"))
    conversation.append(CardEntry(type="Table", payload="type: Table\ntitle: 结果\n"))
    conversation.append(TextEntry(role="assistant", content=""))
    assert export_conversation(conversation, "md") == (
        "---\n"
        "sessionId: a\n"
        "title: 网格化\n"
        'createdAt: "1970-01-01T00:00:00.000Z"\n'
        'updatedAt: "1970-01-01T00:00:00.000Z"\n'
        "workflowMode: null\n"
        "---\n"
        "\n"
        "# 网格化\n"
        "\n"
        "## user\n"
        "\n"
        "Grid it\n"
        "\n"
        "\\## user\n"
        "please\n"
        "\n"
        '## card "Table"\n'
        "\n"
        "```yaml\n"
        "type: Table\n"
        "title: 结果\n"
        "\n"
        "```\n"
        "\n"
        "## assistant\n"
        "\n"
        "\n"
    )


def test_a_decided_card_is_there_once_and_a_message_that_only_calls_a_tool_is_not() -> None:
    asked = CardEntry(type="Approval", payload="type: Approval\nid: a\n")
    approved = CardEntry(type="Approval", payload="type: Approval\nid: a\nstatus: approved\n")
    call = ToolCall(id="c1", name="refund", arguments={})
    conversation = Conversation()
    for entry in (
        TextEntry(role="user", content="Refund it"),
        TextEntry(role="assistant", content="", tool_calls=(call,)),
        asked,
        TextEntry(role="user", content="Well?"),
        approved,
        TextEntry(role="tool", content="refunded", tool_call_id="c1"),
    ):
        conversation.append(entry)
    loaded = import_conversation(export_conversation(conversation, "md"), "md")
    assert loaded.entries == (
        TextEntry(role="user", content="Refund it"),
        approved,
        TextEntry(role="user", content="Well?"),
        TextEntry(role="tool", content="refunded"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "## user",
        "\\## user",
        '\\\\## card "x"',
        "```\n## tool\n```",
        "\n\n## system\n\n",
        "a\r\n## user\r\n",
        '## card "a" b',
    ],
)
def test_texts_that_look_like_the_page_itself_come_back(text: str) -> None:
    conversation = Conversation()
    conversation.append(TextEntry(role="user", content=text))
    conversation.append(CardEntry(type='odd "type"\n', payload=f"````\n{text}\n```"))
    loaded = import_conversation(export_conversation(conversation, "md"), "md")
    assert loaded.entries == conversation.entries


def test_a_page_edited_by_hand_is_read() -> None:
    page = "---\ntitle: Mine\n---\nAn introduction.\n\n## user\nhi\n\n## assistant\n\nhello"
    loaded = import_conversation(page, "md")
    assert loaded.header.title == "Mine"
    assert [entry.content for entry in loaded.entries if isinstance(entry, TextEntry)] == ["\nhi", "hello"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Notes\n", "this markdown has no header between --- lines; export it from dialoom"),
        ("---\n- a\n---\n", "the header of this markdown is not a mapping; write fields as `name: value`"),
        ("---\na: [\n---\n", "not readable as yaml: line 2: "),
        ('---\ntitle: a\n---\n\n## card "\\x"\n', "a card's type is not readable: "),
        ('---\ntitle: a\n---\n\n## card "T"\n\ntype: T\n', "entry 0 is a card without one ```yaml fence; "),
        ("x" * (32 * 1024 * 1024 + 1), "markdown of 33554433 characters is over the limit of 33554432; "),
    ],
)
def test_a_page_that_is_no_conversation_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        import_conversation(text, "md")
    assert str(refusal.value).startswith(message)
