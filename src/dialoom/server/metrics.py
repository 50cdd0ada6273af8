"""Numbers about the server, in the text format Prometheus reads."""

from collections.abc import Callable, Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dialoom.base.clock import SYSTEM_CLOCK, Clock

_BUCKETS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
_OTHER = "other"


class Metrics:
    """Counts calls by route and status, and how long they took to begin to answer.

    Routes are those of the table, never paths: a stranger's paths must not become rows.
    """

    def __init__(self, gauges: Mapping[str, Callable[[], float]], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._gauges = dict(gauges)
        self._clock = clock
        self._started = clock.now()
        self._calls: dict[tuple[str, str, int], int] = {}
        self._within = [0] * len(_BUCKETS)
        self._seconds = 0.0

    def counted(self, app: ASGIApp) -> ASGIApp:
        """Return `app` with its calls counted."""

        async def count(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            began = self._clock.monotonic()

            async def send_counted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._count(scope, message["status"], self._clock.monotonic() - began)
                await send(message)

            await app(scope, receive, send_counted)

        return count

    async def show(self, _request: Request) -> Response:
        lines = ["# TYPE dialoom_calls_total counter"]
        lines += [
            f'dialoom_calls_total{{method="{method}",route="{route}",status="{status}"}} {count}'
            for (method, route, status), count in sorted(self._calls.items())
        ]
        lines.append("# TYPE dialoom_answer_seconds histogram")
        lines += [
            f'dialoom_answer_seconds_bucket{{le="{bound:g}"}} {count}'
            for bound, count in zip(_BUCKETS, self._within, strict=True)
        ]
        total = sum(self._calls.values())
        lines.append(f'dialoom_answer_seconds_bucket{{le="+Inf"}} {total}')
        lines += [f"dialoom_answer_seconds_sum {self._seconds:.6f}", f"dialoom_answer_seconds_count {total}"]
        for name, read in {**self._gauges, "started_seconds": lambda: self._started}.items():
            lines += [f"# TYPE dialoom_{name} gauge", f"dialoom_{name} {read():.12g}"]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", _OTHER)
        key = (scope["method"], route, status)
        self._calls[key] = self._calls.get(key, 0) + 1
        self._seconds += seconds
        for at, bound in enumerate(_BUCKETS):
            self._within[at] += seconds <= bound
