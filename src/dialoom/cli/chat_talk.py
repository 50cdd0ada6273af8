"""One conversation in the terminal: what is said is kept, and answered by the model or from documents."""

import sys
from collections.abc import Sequence

from dialoom.base.cancel import CancelScope
from dialoom.base.text import one_line, printable
from dialoom.cli.answer import MAX_HISTORY, Answer, FromDocuments
from dialoom.cli.ask import show
from dialoom.cli.exits import complain
from dialoom.cli.progress import say
from dialoom.conversation import CardEntry, Entry, TextEntry, prompt
from dialoom.conversation.cards import DEFAULT_CARDS
from dialoom.dialog import (
    Dialog,
    DialogEvent,
    DialogResult,
    MessageAppended,
    Noticed,
    RunHandle,
    StreamBegan,
    StreamDelta,
)
from dialoom.graph import RunControl


async def follow(dialog: Dialog, handle: RunHandle, scope: CancelScope) -> DialogResult:
    """Show a run while it goes on; cancelling `scope` stops it. Returns how it ended, which is said too."""
    forget = scope.add_callback(handle.cancel)
    shown = False
    try:
        async for event in handle:
            if shown and isinstance(event, StreamBegan):
                print()
            shown = isinstance(event, StreamDelta) or (shown and not isinstance(event, StreamBegan))
            _show(dialog, event)
    finally:
        forget()
    result = await handle
    print()
    if result.error is not None:
        complain(str(result.error))
    elif result.stop_reason == "cancelled":
        say("(stopped)")
    print(flush=True)
    return result


async def answer_from_documents(
    dialog: Dialog, documents: FromDocuments, question: str, scope: RunControl
) -> Answer:
    """Answer from an index, and keep question and answer in the conversation."""
    newest = range(max(0, dialog.message_count - MAX_HISTORY), dialog.message_count)
    history = prompt([dialog.message(index) for index in newest])
    await dialog.append_message("user", question).save()

    def take(piece: str) -> None:
        dialog.append_delta(piece)
        show(piece)

    dialog.begin_assistant_message()
    answer = await documents.answer(question, history, control=scope, show=take)
    if answer.stop_reason == "finished":
        dialog.end_assistant_message()
    elif dialog.streaming_content:
        status = "cancelled" if answer.stop_reason == "cancelled" else "incomplete"
        dialog.append_message(TextEntry(role="assistant", content=dialog.streaming_content, status=status))
    await dialog.save()
    return answer


def history_lines(entries: Sequence[Entry]) -> list[str]:
    """Return what was said, a line for each text, call and card, as people read it."""
    return [line for entry in entries for line in _lines(entry)]


def _lines(entry: Entry) -> list[str]:
    if isinstance(entry, CardEntry):
        card = DEFAULT_CARDS.decode_entry(entry)
        return [f"  {printable(card.note(card.language))}"]
    if entry.role == "tool":
        return [f"  ← {one_line(entry.content, 120)}"]
    calls = [f"  → {one_line(f'{call.name} {call.raw}', 120)}" for call in entry.tool_calls]
    who = {"user": "you", "assistant": "dialoom"}.get(entry.role)
    stopped = {"cancelled": " (stopped)", "incomplete": " (broken off)"}.get(entry.status or "", "")
    return [*([f"{who}: {printable(entry.content)}{stopped}"] if who and entry.content else []), *calls]


def _show(dialog: Dialog, event: DialogEvent) -> None:
    match event:
        case StreamDelta(text=text):
            show(text)
        case Noticed(code="retrying", message=message):
            say(f"(trying again: {one_line(message.partition('; ')[0])})")
        case Noticed(message=message):
            say(f"({one_line(message)})")
        case MessageAppended(index=index):
            entry = dialog.message(index)
            if isinstance(entry, TextEntry) and (entry.tool_calls or entry.role == "tool"):
                for line in _lines(entry)[-max(1, len(entry.tool_calls)) :]:
                    say(line)
            sys.stdout.flush()
        case _:
            pass
