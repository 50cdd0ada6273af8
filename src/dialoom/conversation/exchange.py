"""A conversation as a file people keep: out as Markdown, JSON or YAML, and in again."""

from typing import Literal, TypeAlias, assert_never

import msgspec

from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.ids import new_id
from dialoom.conversation.conversation import Conversation
from dialoom.conversation.views.markdown import from_markdown, to_markdown

ExportFormat: TypeAlias = Literal["md", "json", "yaml"]
"""`json` and `yaml` hold everything; `md` what was said and shown."""


def export_conversation(conversation: Conversation, kind: ExportFormat) -> str:
    """Return the text of a file; the same conversation always gives the same text."""
    match kind:
        case "md":
            return to_markdown(conversation.header, conversation.entries)
        case "json":
            return conversation.to_json()
        case "yaml":
            return conversation.to_yaml()
        case _:
            assert_never(kind)


def import_conversation(
    text: str, kind: ExportFormat, *, fresh_id: bool = False, clock: Clock = SYSTEM_CLOCK
) -> Conversation:
    """Read an export back. Raises `UsageError` with the place of what is wrong.

    With `fresh_id` it is a conversation of its own, for a store that has the exported one still.
    """
    match kind:
        case "md":
            conversation = Conversation.from_dict(from_markdown(text), clock=clock)
        case "json":
            conversation = Conversation.from_json(text, clock=clock)
        case "yaml":
            conversation = Conversation.from_yaml(text, clock=clock)
        case _:
            assert_never(kind)
    if not fresh_id:
        return conversation
    header = msgspec.structs.replace(conversation.header, id=new_id())
    return Conversation(header, conversation.records, clock=clock)
