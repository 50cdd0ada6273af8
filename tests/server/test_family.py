"""The versions at a place stand in one order, whichever of them is looked at."""

from dialoom.conversation import Append, Conversation, Header, MemoryConversationStore, TextEntry
from dialoom.server.family import Alternatives, alternatives


async def test_what_was_said_first_comes_first_in_every_version_that_has_it() -> None:
    store = MemoryConversationStore()

    async def keep(name: str, created: float, *said: str, of: str | None = None) -> None:
        header = Header(id=name, created=created, updated=created, branch_from=of)
        await store.create(
            Conversation(header, [Append(TextEntry(role="user", content=each)) for each in said])
        )

    await keep("first", 1.0, "Hi", "A", "More", "X")
    await keep("second", 2.0, "Hi", "B", of="first")
    await keep("third", 3.0, "Hi", "A", "More", "Y", of="first")  # it has A, which is older than B
    assert await alternatives(store, "first") == [
        Alternatives(1, ["first", "second"]),
        Alternatives(3, ["first", "third"]),
    ]
    assert await alternatives(store, "second") == [Alternatives(1, ["first", "second"])]
    assert await alternatives(store, "third") == [
        Alternatives(1, ["third", "second"]),
        Alternatives(3, ["first", "third"]),
    ]
