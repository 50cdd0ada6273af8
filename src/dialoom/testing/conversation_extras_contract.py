"""What every `DraftStore` and `AttachmentStore` must do, as tests: subclass a suite and open your store."""

import hashlib
from typing import Protocol

from dialoom.base.errors import UsageError
from dialoom.base.ids import new_id
from dialoom.conversation.attachments import (
    MAX_ATTACHMENT,
    Attachment,
    AttachmentNotFoundError,
    AttachmentStore,
)
from dialoom.conversation.drafts import MAX_DRAFT, MAX_DRAFTS, MAX_SLOT, DraftStore
from dialoom.conversation.store import ConversationNotFoundError, ListedConversationStore
from dialoom.testing.conversation_steps import created, refuses


class DraftKeeper(ListedConversationStore, DraftStore, Protocol):
    """A store of conversations that keeps drafts too."""


class AttachmentKeeper(ListedConversationStore, AttachmentStore, Protocol):
    """A store of conversations that keeps attachments too."""


class DraftStoreContract:
    """The suite for drafts."""

    async def test_drafts_are_kept_by_slot_and_replaced(self, store: DraftKeeper) -> None:
        conversation = await created(store)
        await store.save_draft(conversation.id, "half a quest")
        await store.save_draft(conversation.id, "cell: 25", slot="card-1")
        await store.save_draft(conversation.id, "half a question")
        assert await store.drafts(conversation.id) == {"": "half a question", "card-1": "cell: 25"}

    async def test_an_empty_draft_is_none(self, store: DraftKeeper) -> None:
        conversation = await created(store)
        await store.save_draft(conversation.id, "x")
        await store.save_draft(conversation.id, "")
        await store.save_draft(conversation.id, "", slot="never written")
        assert await store.drafts(conversation.id) == {}

    async def test_a_draft_changes_no_conversation(self, store: DraftKeeper) -> None:
        conversation = await created(store)
        await store.save_draft(conversation.id, "x \ud800")
        loaded = await store.load(conversation.id)
        assert (loaded.header, loaded.records) == (conversation.header, ())
        assert await store.drafts(conversation.id) == {"": "x \ufffd"}

    async def test_drafts_go_with_their_conversation(self, store: DraftKeeper) -> None:
        conversation = await created(store)
        await store.save_draft(conversation.id, "x")
        await store.delete(conversation.id)
        await refuses(ConversationNotFoundError, store.drafts(conversation.id))
        await store.create(conversation)
        assert await store.drafts(conversation.id) == {}

    async def test_drafts_without_bounds_or_conversation_are_refused(self, store: DraftKeeper) -> None:
        conversation = await created(store)
        await refuses(UsageError, store.save_draft(conversation.id, "x" * (MAX_DRAFT + 1)))
        await refuses(UsageError, store.save_draft(conversation.id, "x", slot="s" * (MAX_SLOT + 1)))
        await refuses(ConversationNotFoundError, store.save_draft(new_id(), "x"))
        for at in range(MAX_DRAFTS):
            await store.save_draft(conversation.id, "x", slot=str(at))
        await store.save_draft(conversation.id, "y", slot="7")
        await refuses(UsageError, store.save_draft(conversation.id, "x", slot="one more"))


class AttachmentStoreContract:
    """The suite for attachments."""

    async def test_an_attachment_is_its_bytes(self, store: AttachmentKeeper) -> None:
        conversation = await created(store)
        content = bytes(range(256)) * 100
        kept = await store.attach(conversation.id, content, name="../井\x00.xyz", mime="text/plain")
        digest = hashlib.sha256(content).hexdigest()
        assert kept == Attachment(hash=digest, name="../井 .xyz", mime="text/plain", size=25_600)
        assert await store.attachments(conversation.id) == (kept,)
        assert await store.read_attachment(conversation.id, digest) == content

    async def test_the_same_bytes_again_are_one_attachment_with_new_labels(
        self, store: AttachmentKeeper
    ) -> None:
        conversation = await created(store)
        await store.attach(conversation.id, b"", name="a", mime="text/plain")
        again = await store.attach(conversation.id, b"", name="b", mime="text/csv")
        assert await store.attachments(conversation.id) == (again,)

    async def test_bytes_stay_until_the_last_conversation_that_has_them_goes(
        self, store: AttachmentKeeper
    ) -> None:
        first, second = await created(store), await created(store)
        kept = await store.attach(first.id, b"shared", name="a", mime="text/plain")
        await store.attach(second.id, b"shared", name="b", mime="text/plain")
        await store.delete(first.id)
        assert await store.read_attachment(second.id, kept.hash) == b"shared"
        await refuses(ConversationNotFoundError, store.read_attachment(first.id, kept.hash))

    async def test_what_was_not_attached_here_is_not_found(self, store: AttachmentKeeper) -> None:
        first, second = await created(store), await created(store)
        kept = await store.attach(first.id, b"private", name="a", mime="text/plain")
        for content_hash in (kept.hash, "0" * 64, "../a", ""):
            await refuses(AttachmentNotFoundError, store.read_attachment(second.id, content_hash))

    async def test_files_without_bounds_or_conversation_are_refused(self, store: AttachmentKeeper) -> None:
        conversation = await created(store)
        huge = bytes(MAX_ATTACHMENT + 1)
        await refuses(UsageError, store.attach(conversation.id, huge, name="a", mime="a/b"))
        await refuses(ConversationNotFoundError, store.attach(new_id(), b"x", name="a", mime="a/b"))
        await refuses(ConversationNotFoundError, store.attachments(new_id()))
