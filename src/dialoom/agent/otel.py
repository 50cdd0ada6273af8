"""Agents as OpenTelemetry spans, by the names of the GenAI conventions."""

from threading import Lock
from typing import Any, Final

from dialoom.agent.events import AgentFinished, RoundStarted, ToolFinished, ToolStarted
from dialoom.base.errors import MissingExtraError
from dialoom.base.events import Event
from dialoom.base.text import one_line
from dialoom.graph.events import Chunk, RunFinished
from dialoom.llm.events import ResponseCompleted
from dialoom.llm.response import ChatResponse

MAX_RUNS: Final = 10_000
MAX_NAME: Final = 80

Path = tuple[str, ...]


class AgentOtelObserver:
    """Makes a span for every turn and, below it, for each request to the model and each call of a tool.

    They are `invoke_agent NAME`, `chat` and `execute_tool NAME`; an agent that is asked as a tool lies below
    the one that asks. Add it to a `ReActAgent`, or to a graph with agents in it. What people, models and
    tools wrote is in none of the spans. `tracer` is one of OpenTelemetry's; without it the global provider is
    asked. Raises MissingExtraError when the package is not installed.
    """

    def __init__(self, tracer: Any = None) -> None:
        from importlib import import_module  # only a program with spans pays for it

        try:
            self._api: Any = import_module("opentelemetry.trace")
        except ImportError as error:
            raise MissingExtraError("opentelemetry-api", "otel") from error
        self._tracer = self._api.get_tracer("dialoom") if tracer is None else tracer
        self._lock = Lock()
        self._runs: dict[str, _OpenTurns] = {}

    def on_event(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, RunFinished) and not event.ns:
                if (turns := self._runs.pop(event.run_id, None)) is not None:
                    turns.close(event.stop_reason)
            elif isinstance(event, Chunk):
                turns = self._runs.get(event.run_id)
                if turns is None and isinstance(event.value, RoundStarted) and len(self._runs) < MAX_RUNS:
                    turns = self._runs[event.run_id] = _OpenTurns(self._api, self._tracer)
                if turns is not None:
                    turns.hear(event)


class _OpenTurns:
    """The spans of one run that have not ended, by the path of the agent they belong to."""

    def __init__(self, api: Any, tracer: Any) -> None:
        self._api = api
        self._tracer = tracer
        self._turns: dict[Path, Any] = {}
        self._chats: dict[Path, Any] = {}
        self._calls: dict[tuple[Path, str], Any] = {}

    def hear(self, event: Chunk) -> None:
        ns = event.ns
        match event.value:
            case RoundStarted(agent=name, round=number):
                if ns not in self._turns:
                    self._turns[ns] = self._begun(f"invoke_agent {name}", "invoke_agent", ns[:-1])
                    self._turns[ns].set_attribute("gen_ai.agent.name", name)
                    self._turns[ns].set_attribute("gen_ai.conversation.id", event.thread_id)
                self._chats[ns] = self._begun("chat", "chat", ns)
                self._chats[ns].set_attribute("dialoom.round", number)
            case ResponseCompleted(response=response) if ns in self._chats:
                _describe(self._chats[ns], response)
                self._chats.pop(ns).end()
            case ToolStarted(call=call):
                name = one_line(call.name, MAX_NAME)  # of a model's own making
                span = self._begun(f"execute_tool {name}", "execute_tool", ns)
                span.set_attribute("gen_ai.tool.name", name)
                span.set_attribute("gen_ai.tool.call.id", one_line(call.id, MAX_NAME))
                if (older := self._calls.pop((ns, call.id), None)) is not None:
                    older.end()  # an id that is used twice
                self._calls[ns, call.id] = span
            case ToolFinished() as finished if (ns, finished.call_id) in self._calls:
                span = self._calls.pop((ns, finished.call_id))
                if finished.is_error:
                    self._fail(span, "tool_error")
                span.end()
            case AgentFinished() if ns in self._turns:
                self._turns.pop(ns).end()
            case _:
                pass

    def close(self, stop_reason: str) -> None:
        """End what is open when the run is over: it was stopped, it waits, or it failed."""
        for chat in self._chats.values():
            if stop_reason in {"halted", "error"}:  # it broke off, and nobody stopped it
                self._fail(chat, "provider_error")
        for span in (*self._calls.values(), *self._chats.values(), *reversed(self._turns.values())):
            span.set_attribute("dialoom.stop_reason", stop_reason)
            span.end()

    def _begun(self, name: str, operation: str, around: Path) -> Any:
        """Begin a span below that of the agent at `around`, or the nearest one above it that is open."""
        while around and around not in self._turns:
            around = around[:-1]
        parent = self._turns.get(around)
        context = None if parent is None else self._api.set_span_in_context(parent)
        return self._tracer.start_span(name, context=context, attributes={"gen_ai.operation.name": operation})

    def _fail(self, span: Any, kind: str) -> None:
        span.set_status(self._api.StatusCode.ERROR)
        span.set_attribute("error.type", kind)


def _describe(span: Any, response: ChatResponse) -> None:
    usage, origin = response.usage, response.message.origin
    told: dict[str, object] = {
        "gen_ai.provider.name": origin.provider if origin else None,
        "gen_ai.response.model": response.model or None,
        "gen_ai.response.id": response.response_id,
        "gen_ai.response.finish_reasons": (response.finish_reason,),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    for name, value in told.items():
        if value is not None:
            span.set_attribute(name, value)
