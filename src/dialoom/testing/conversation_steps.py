"""Steps that the contract suites of conversation stores share."""

from collections.abc import Awaitable

from dialoom.base.errors import DialoomError
from dialoom.base.ids import new_id
from dialoom.conversation.conversation import Conversation
from dialoom.conversation.header import Header
from dialoom.conversation.store import ListedConversationStore


async def created(
    store: ListedConversationStore, title: str = "", *, updated: float = 1_700_000_000.0
) -> Conversation:
    """Return an empty conversation that `store` keeps; `updated` is also when it was made."""
    conversation = Conversation(Header(id=new_id(), title=title, created=updated, updated=updated))
    await store.create(conversation)
    return conversation


async def refuses(expected: type[DialoomError], call: Awaitable[object]) -> None:
    """Assert that `call` raises `expected`, in one line."""
    refusal = None
    try:
        await call
    except expected as error:
        refusal = str(error)
    assert refusal is not None, f"the call was not refused with {expected.__name__}"
    assert "\n" not in refusal
