"""What providers in front of a server share, whichever wire they speak."""

from dialoom.base.clock import Clock
from dialoom.llm.closing import ClosedOnExit
from dialoom.llm.profile import WireProfile
from dialoom.llm.wire.endpoint import Endpoint
from dialoom.llm.wire.server import Server
from dialoom.net.transport import HttpTransport


class ServedProvider(ClosedOnExit):
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
