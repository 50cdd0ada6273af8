"""A model under examination: asked calmly, briefly, and counted."""

import msgspec

from dialoom.base.clock import Clock
from dialoom.llm.errors import ErrorKind
from dialoom.llm.messages import Message
from dialoom.llm.options import ChatOptions, Timeouts
from dialoom.llm.provider import Provider, chat
from dialoom.llm.response import ChatResponse
from dialoom.llm.retry import ONCE
from dialoom.llm.usage import Usage

UNREACHABLE: tuple[ErrorKind, ...] = ("connection", "auth", "quota")


class DoctorLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How far an examination goes. Past `seconds` the remaining probes are left out."""

    seconds: float = 240.0
    probe_seconds: float = 60.0
    """For one request."""
    answer_tokens: int = 64
    """For one answer."""
    prompt_tokens: int = 6_000
    """The longest prompt that is tried, to see whether the server reads all of it."""


class Probing:
    """The provider under examination, with what its answers have used so far."""

    def __init__(self, provider: Provider, model: str | None, limits: DoctorLimits, clock: Clock) -> None:
        self.provider = provider
        self.model = model
        self.limits = limits
        self.usage = Usage()
        self._clock = clock
        self._began = clock.monotonic()

    @property
    def seconds(self) -> float:
        """How long the examination has taken."""
        return self._clock.monotonic() - self._began

    async def ask(self, *messages: Message, **changes: object) -> ChatResponse:
        """Ask once, with `changes` to the options of an examination. Raises `ProviderError`."""
        left = max(0.1, self.limits.seconds - self.seconds)
        total = min(self.limits.probe_seconds, left)
        options = ChatOptions(
            model=self.model,
            temperature=0.0,
            seed=7,
            max_tokens=self.limits.answer_tokens,
            timeouts=Timeouts(first_event=total, idle=total, total=total),
            retry=ONCE,
        )
        answer = await chat(self.provider, messages, msgspec.structs.replace(options, **changes))
        self.usage = self.usage.plus(answer.usage)
        return answer
