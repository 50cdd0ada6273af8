"""An `HttpResponse` over any body that comes in pieces."""

from collections.abc import AsyncIterator, Mapping

from dialoom.net.trouble import too_large


class PiecewiseResponse:
    """The head that has come, and the pieces that will. Whoever makes it bounds and times the pieces."""

    def __init__(
        self, status: int, headers: Mapping[str, str], pieces: AsyncIterator[bytes], *, url: str
    ) -> None:
        self.status = status
        self.headers = headers
        self._pieces = pieces
        self._url = url

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aread(self, limit: int) -> bytes:
        whole = bytearray()
        async for piece in self._pieces:
            whole += piece
            if len(whole) > limit:
                raise too_large(self._url, limit)
        return bytes(whole)
