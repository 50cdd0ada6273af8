"""The providers of a center, and which of them answers with which model."""

import asyncio
from collections.abc import Sequence

from dialoom.base.text import one_line
from dialoom.dialog.errors import NoUsableModelError
from dialoom.dialog.model_choice import pick_model
from dialoom.dialog.policy import Chosen
from dialoom.dialog.settings import DialogSettings
from dialoom.llm import Model, Provider, ProviderError


class ProviderRegistry:
    """Providers by id. The default is the one that was named, while it is on; else the first that is on."""

    def __init__(self) -> None:
        self.default_id = ""
        self._known: dict[str, _Known] = {}

    def add(self, provider: Provider, *, enabled: bool, models: Sequence[Model] | None) -> None:
        """Add a provider, in place of one with its id. `models` are its models; None asks it when needed."""
        self._known[provider.id] = _Known(provider, enabled, None if models is None else tuple(models))

    def remove(self, provider_id: str) -> None:
        self._known.pop(provider_id, None)

    def get(self, provider_id: str) -> Provider | None:
        known = self._known.get(provider_id)
        return None if known is None else known.provider

    def ids(self) -> tuple[str, ...]:
        return tuple(self._known)

    def disabled_ids(self) -> tuple[str, ...]:
        return tuple(name for name, known in self._known.items() if not known.enabled)

    def enable(self, provider_id: str, *, enabled: bool) -> None:
        """Switch a provider on or off. Raises `UsageError` for one that is not here."""
        self._find(provider_id).enabled = enabled

    def default(self) -> Provider | None:
        """Return the provider that answers where a dialog names none; None when every one is off."""
        named = self._known.get(self.default_id)
        usable = [known for known in (named, *self._known.values()) if known is not None and known.enabled]
        return usable[0].provider if usable else None

    async def choose(self, settings: DialogSettings) -> Chosen:
        """Return who answers a dialog. Raises `NoUsableModelError`, and `ProviderError` from its server."""
        known = self._of(settings.provider_id)
        preferred = settings.model_id
        try:
            models = await known.list_models(preferred)
        except ProviderError:
            if not preferred:
                raise
            return Chosen(known.provider, preferred)  # its server will say whether it can
        if preferred and not models:
            return Chosen(known.provider, preferred)
        model = pick_model(models, settings.requirement, preferred)
        notice = f"model {one_line(preferred, 80)!r} cannot be used here; {model.id} answers"
        return Chosen(known.provider, model.id, notice if preferred not in {"", model.id} else "")

    def _of(self, provider_id: str) -> "_Known":
        if provider_id:
            known = self._find(provider_id)
            if not known.enabled:
                raise NoUsableModelError(f"provider {provider_id!r} is switched off; choose another")
            return known
        provider = self.default()
        if provider is None:
            raise NoUsableModelError("there is no provider to ask; add one to the center with add_provider")
        return self._known[provider.id]

    def _find(self, provider_id: str) -> "_Known":
        known = self._known.get(provider_id)
        if known is None:
            ids = ", ".join(self._known) or "none"
            raise NoUsableModelError(
                f"there is no provider {one_line(provider_id, 80)!r} here; there are: {ids}"
            )
        return known


class _Known:
    """A provider, and its models as it listed them."""

    def __init__(self, provider: Provider, enabled: bool, models: tuple[Model, ...] | None) -> None:  # noqa: FBT001
        self.provider = provider
        self.enabled = enabled
        self._declared = models
        self._listed: tuple[Model, ...] | None = None
        self._listing = asyncio.Lock()

    async def list_models(self, preferred: str) -> tuple[Model, ...]:
        """Return the models, asked for once; again only when one is `preferred` that was not listed."""
        if self._declared is not None:
            return self._declared
        async with self._listing:
            listed = self._listed
            if listed is None or (preferred and all(model.id != preferred for model in listed)):
                listed = self._listed = await self.provider.models()
            return listed
