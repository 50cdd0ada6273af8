"""The center: owns the dialogs, what all of them share, and where they are stored."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

import msgspec

from dialoom.agent.given import expect_part
from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.conversation import MemoryConversationStore, Page
from dialoom.conversation.cards import BUILTIN_CARDS, CardRegistry, FormRegistry
from dialoom.dialog.asking import recover
from dialoom.dialog.dialog import Dialog
from dialoom.dialog.errors import DialogNotFoundError
from dialoom.dialog.journal import Stores, new_journal, open_journal
from dialoom.dialog.json_file import read_json, write_json
from dialoom.dialog.kit import EMPTY_KIT, Kit
from dialoom.dialog.kit_codec import kit_from_dict, kit_to_dict
from dialoom.dialog.kit_owner import KitOwner
from dialoom.dialog.policy import RunBase, RunPolicy
from dialoom.dialog.providers import ProviderRegistry
from dialoom.dialog.settings import DialogSettings, check_capability, check_fields
from dialoom.dialog.tool_servers import ToolServers
from dialoom.dialog.tool_source import ToolSource
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import Capability, Model, Provider

FORMAT = 1


class Center(KitOwner):
    """Owns dialogs: makes, opens, lists and removes them, and lends them providers, kit, forms and stores.

    An ordinary object; a program may have several. It belongs to one event loop. Without `stores` everything
    is kept in memory. Leave it with `async with`, or `aclose`: what is due is stored then.

    - `tool_source` connects the tool servers of the kit; without one runs go on without their tools.
    - `forms` are those that questions name; `cards` the card types known here.
    - `policy` are the bounds of every run, `deps` what tools find as `ctx.deps`.
    """

    def __init__(
        self,
        stores: Stores | None = None,
        *,
        tool_source: ToolSource | None = None,
        forms: FormRegistry | None = None,
        cards: CardRegistry | None = None,
        policy: RunPolicy | None = None,
        deps: Any = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.forms = forms or FormRegistry()
        self.cards = cards or CardRegistry(*BUILTIN_CARDS)
        self._kit = EMPTY_KIT
        self._providers = ProviderRegistry()
        self._servers = ToolServers(tool_source)
        self._dialogs: dict[str, Dialog] = {}
        self._clock = clock
        self._base = RunBase(
            stores=stores or Stores(MemoryConversationStore(clock=clock), MemoryCheckpointStore(clock=clock)),
            cards=self.cards,
            forms=self.forms,
            policy=policy or RunPolicy(),
            clock=clock,
            deps=deps,
            kit=self.own_kit,
            choose=self._providers.choose,
            serve=self._servers.serve,
        )

    async def __aenter__(self) -> Self:
        await self._servers.start(self._kit.mcps.values())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every open dialog and end the connections of tool servers; stores and providers stay open.

        Raises `StoreError`, when all is closed, for a dialog that could not be stored.
        """
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self._servers.aclose)
            for dialog in reversed(self.dialogs):
                closing.push_async_callback(dialog.aclose)
            self._dialogs.clear()

    def add_provider(
        self,
        provider: Provider,
        *,
        default: bool = False,
        enabled: bool = True,
        models: Sequence[Model] | None = None,
    ) -> Self:
        """Add a provider, in place of one with its id.

        `models` says what it offers; None asks it when a dialog first needs to know. Raises `UsageError` for
        what is no provider, such as the name of one.
        """
        model = 'a provider, such as OpenAIProvider("http://127.0.0.1:11434/v1")'
        expect_part(provider, "stream", what="a provider of the center", give=model)
        self._providers.add(provider, enabled=enabled, models=models)
        return self.set_default_provider(provider.id) if default else self

    def remove_provider(self, provider_id: str) -> Self:
        """Forget a provider; it is not closed. Without one of this id nothing changes."""
        self._providers.remove(provider_id)
        return self

    def get_provider(self, provider_id: str) -> Provider | None:
        return self._providers.get(provider_id)

    @property
    def provider_ids(self) -> tuple[str, ...]:
        return self._providers.ids()

    @property
    def default_provider(self) -> Provider | None:
        """Who answers where a dialog names no provider: the chosen default, else the first switched on."""
        return self._providers.default()

    def set_default_provider(self, provider_id: str) -> Self:
        """Choose the default; it may be added later. "" leaves it to the order of adding."""
        self._providers.default_id = provider_id
        return self

    def enable_provider(self, provider_id: str, *, enabled: bool = True) -> Self:
        """Switch a provider on or off. Raises `NoUsableModelError` for one that is not here."""
        self._providers.enable(provider_id, enabled=enabled)
        return self

    def limit_approvals(self, seconds: float) -> Self:
        """Have approvals of dialogs that are opened from now on wait so long and no longer."""
        policy = msgspec.structs.replace(self._base.policy, approval_seconds=seconds)
        self._base = msgspec.structs.replace(self._base, policy=policy)
        return self

    def own_kit(self) -> Kit:
        return self._kit

    def set_kit(self, kit: Kit) -> Self:
        self._kit = kit
        return self

    def new_dialog(self, *, capability_requirement: Capability = Capability.TEXT) -> Dialog:
        """Return a new, empty dialog; it is stored with its first message."""
        settings = DialogSettings(requirement=check_capability(capability_requirement))
        journal = new_journal(self._base.stores, settings, self._clock)
        dialog = self._dialogs[journal.id] = Dialog(self, self._base, journal)
        return dialog

    def dialog(self, dialog_id: str) -> Dialog:
        """Return an open dialog. Raises `DialogNotFoundError`; `open` also reads from the store."""
        dialog = self._dialogs.get(dialog_id)
        if dialog is None:
            raise DialogNotFoundError(
                f"no dialog {one_line(dialog_id, 80)!r} is open here; await open() for it"
            )
        return dialog

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """The dialogs that are open, in the order they were made or opened."""
        return tuple(self._dialogs.values())

    async def open(self, dialog_id: str) -> Dialog:
        """Return a dialog, read from the store unless it is open here.

        What a run that died had not said yet is delivered first; `is_unfinished` tells whether there is
        something to go on with. Tools of its own have to be added again. Raises `ConversationNotFoundError`.
        """
        known = self._dialogs.get(dialog_id)
        if known is not None and not known.is_closed:
            return known
        journal = await open_journal(self._base.stores, dialog_id)
        standing = await recover(self._base, journal)
        known = self._dialogs.get(dialog_id)
        if known is not None and not known.is_closed:
            return known  # somebody else opened it meanwhile
        dialog = self._dialogs[dialog_id] = Dialog(self, self._base, journal, standing=standing)
        return dialog

    async def list_dialogs(self, *, query: str = "", cursor: str | None = None, limit: int = 50) -> Page:
        """Return headers of stored dialogs, newest change first, as the store's `page` does."""
        return await self._base.stores.conversations.page(query=query, cursor=cursor, limit=limit)

    async def release_dialog(self, dialog_id: str) -> None:
        """Close a dialog and forget it here; it stays in the store. Raises `DialogNotFoundError`."""
        await self.dialog(dialog_id).aclose()
        self._dialogs.pop(dialog_id, None)

    async def remove_dialog(self, dialog_id: str) -> None:
        """Stop a dialog and forget it for good, what was said included.

        Raises `ConversationNotFoundError` when there is none.
        """
        dialog = self._dialogs.get(dialog_id) or await self.open(dialog_id)
        self._dialogs.pop(dialog_id, None)
        await dialog.remove()

    def rename(self, dialog_id: str, new: str) -> None:
        if new in self._dialogs:
            raise UsageError(f"dialog {new} is open here already; close or remove it first")
        self._dialogs[new] = self._dialogs.pop(dialog_id)

    def to_dict(self) -> dict[str, object]:
        """Return the settings as JSON values: providers that are chosen or off by id, and the kit.

        Tools, forms, stores and the providers themselves are code, and not in it.
        """
        return {
            "format": FORMAT,
            "defaultProvider": self._providers.default_id,
            "disabledProviders": list(self._providers.disabled_ids()),
            **kit_to_dict(self._kit),
        }

    def from_dict(self, fields: Mapping[str, object]) -> None:
        """Take the settings that `to_dict` wrote; the tools here stay. Raises `UsageError`, changing nothing.

        A provider it names that is not here is passed over.
        """
        check_fields(fields, "what a center is set to")
        if fields.get("format", FORMAT) != FORMAT:
            raise UsageError(f"these settings are of format {fields.get('format')}; {FORMAT} is known here")
        try:
            choices = msgspec.convert(dict(fields), _Choices)
        except msgspec.ValidationError as error:
            raise UsageError(
                f"these are not settings of a center: {one_line(str(error))}; mend them"
            ) from error
        kit = kit_from_dict(fields)
        self._kit = msgspec.structs.replace(kit, tools=self._kit.tools)
        self._providers.default_id = choices.default_provider
        for provider_id in self._providers.ids():
            self._providers.enable(provider_id, enabled=provider_id not in choices.disabled_providers)

    def save_settings(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` to a JSON file, whole or not, and leave what else is in it. Raises `StoreError`."""
        write_json(path, {**read_json(path), **self.to_dict()})

    def load_settings(self, path: str | os.PathLike[str]) -> None:
        """Take the settings of a JSON file; one that is not there changes nothing. Raises `StoreError`."""
        if fields := read_json(path):
            self.from_dict(fields)


class _Choices(msgspec.Struct, frozen=True, rename="camel"):
    """The part of the settings that is about providers."""

    default_provider: str = ""
    disabled_providers: tuple[str, ...] = ()
