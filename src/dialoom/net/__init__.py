"""HTTP behind one protocol, and the wire grammars that need no I/O."""

from dialoom.net.address import is_loopback as is_loopback
from dialoom.net.address import safe_url as safe_url
from dialoom.net.address import split_url as split_url
from dialoom.net.direct import DirectTransport as DirectTransport
from dialoom.net.httpx2_transport import Httpx2Transport as Httpx2Transport
from dialoom.net.sse import EventTooLargeError as EventTooLargeError
from dialoom.net.sse import SseEvent as SseEvent
from dialoom.net.sse import SseParser as SseParser
from dialoom.net.transport import HttpRequest as HttpRequest
from dialoom.net.transport import HttpResponse as HttpResponse
from dialoom.net.transport import HttpTimeouts as HttpTimeouts
from dialoom.net.transport import HttpTransport as HttpTransport
from dialoom.net.transport import TransportError as TransportError
from dialoom.net.transport import read_head as read_head
