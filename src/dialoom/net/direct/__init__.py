"""HTTP over sockets of our own: asyncio reads, httptools parses, nothing stands between."""

from dialoom.net.direct.transport import DirectTransport as DirectTransport
