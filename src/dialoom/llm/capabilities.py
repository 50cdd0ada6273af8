"""What a model can do, so that a choice can be made by need and not by name."""

from enum import Flag, auto

import msgspec


class Capability(Flag):
    """Things a model may be able to do; combine them with `|`."""

    TEXT = auto()
    IMAGE_IN = auto()
    AUDIO_IN = auto()
    FILE_IN = auto()
    IMAGE_OUT = auto()
    TOOLS = auto()
    PARALLEL_TOOLS = auto()
    STRUCTURED_OUTPUT = auto()
    REASONING = auto()
    STREAMING = auto()
    PROMPT_CACHE = auto()
    EMBEDDING = auto()


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A named model of one provider. Token limits are None when nobody said."""

    id: str
    provider: str
    capabilities: Capability = Capability.TEXT
    context_window: int | None = None
    max_output: int | None = None

    def offers(self, needed: Capability) -> bool:
        """Whether the model has every capability in `needed`."""
        return needed in self.capabilities
