"""What a provider that asks another one passes on as it is."""

from dialoom.llm.capabilities import Model
from dialoom.llm.profile import WireProfile, profile_of
from dialoom.llm.provider import Provider


class AroundProvider:
    """All of `provider` but its answers, which a subclass streams. It owns `provider`: `aclose` closes it."""

    def __init__(self, provider: Provider) -> None:
        self.id = provider.id
        self._provider = provider

    @property
    def profile(self) -> WireProfile | None:
        """How the server of the provider asked speaks."""
        return profile_of(self._provider)

    async def models(self) -> tuple[Model, ...]:
        """Return the models of the provider asked. Raises `ProviderError`."""
        return await self._provider.models()

    async def aclose(self) -> None:
        """Close the provider asked."""
        await self._provider.aclose()
