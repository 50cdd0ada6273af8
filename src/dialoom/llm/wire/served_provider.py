"""What providers in front of a server share, whichever wire they speak."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import msgspec

from dialoom.base.clock import Clock
from dialoom.llm.closing import ClosedOnExit
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.profile import WireProfile
from dialoom.llm.provider import ResponseStream
from dialoom.llm.wire.endpoint import Endpoint
from dialoom.llm.wire.server import Question, Server
from dialoom.llm.wire.tool_files import show_files
from dialoom.net.transport import HttpTransport


class ServedProvider(ClosedOnExit, ABC):
    """Holds the connections to one server. A `transport` passed in stays the caller's to close."""

    def __init__(
        self, endpoint: Endpoint, transport: HttpTransport | None, *, profile: WireProfile, clock: Clock
    ) -> None:
        self.id = endpoint.provider_id
        self._profile = profile
        self._server = Server(endpoint, transport, quota_codes=profile.quota_codes, clock=clock)

    @property
    def profile(self) -> WireProfile:
        """How this server departs from the common wire."""
        return self._profile

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._server!r})"

    async def aclose(self) -> None:
        """Close the connections, unless they are another's."""
        await self._server.aclose()

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], options: ChatOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ResponseStream]:
        """Ask for one answer; the request goes out when the first event is asked for.

        A server that refuses what tools show is asked again without it, and from then on at once.
        """
        profile = self._profile
        question = self._question(messages, options, profile)
        if show_files(messages, profile.tool_files):
            without = self._question(messages, options, msgspec.structs.replace(profile, tool_files=()))
            question = msgspec.structs.replace(question, without_files=without.body)
        async with self._server.stream(question, messages, options) as stream:
            yield stream

    @abstractmethod
    def _question(self, messages: Sequence[Message], options: ChatOptions, profile: WireProfile) -> Question:
        """Return the request and its reader. Raises `UsageError` for what is no JSON."""
