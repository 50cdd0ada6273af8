"""The graph of an agent: a round is a superstep of `model` and one of `tools`."""

from collections.abc import Sequence
from typing import Any

from dialoom.agent.compaction import NO_SUMMARY
from dialoom.agent.model_node import ModelNode
from dialoom.agent.names import MODEL, OUTPUT, TOOLS
from dialoom.agent.output_node import OutputNode
from dialoom.agent.spec import AgentSpec
from dialoom.agent.tally import ANEW, SPENDING
from dialoom.agent.tools_node import ToolsNode
from dialoom.base.clock import SYSTEM_CLOCK, Clock
from dialoom.base.events import Observer
from dialoom.graph.builder import GraphBuilder
from dialoom.graph.checkpoint import CheckpointStore
from dialoom.graph.graph import Graph
from dialoom.graph.names import END, START
from dialoom.graph.reducers import Reducers
from dialoom.llm.messages import Message
from dialoom.llm.usage_limits import Spent


def agent_graph(
    spec: AgentSpec,
    store: CheckpointStore | None = None,
    observers: Sequence[Observer] = (),
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> Graph:
    """Return the tool loop of `spec` as a graph, to be run with the inputs that `begin` makes.

    Its channels:
    - `turn`: the messages of this turn, as they were said: answers, and results as they came. What a run
      that paused or broke left open is closed by `history_of`, never here.
    - `broken`: pairs of a place in `turn` and `cancelled` or `incomplete`, for answers that broke off.
    - `cards`: what tools show to people, as `{"call_id", "card"}`.
    - `outcome`, `error`: how the turn ended, "" while it goes on; see `AgentResult.stop_reason`.
    - `rounds`, `calls`, `spent`: how far it went, and what that used.
    - `agent`: who answers, "" for `spec` itself; a handoff changes it for the rest of the turn.
    - `output`: the value that was asked for, as JSON text, "" before it is there.
    - `summary`: what compaction has told in short.
    - `seen`: whatever number the context needs; the graph never reads it.

    A store on disk needs `types=AGENT_TYPES`.
    """
    builder = GraphBuilder(spec.name)
    for name in ("turn", "broken", "cards"):
        builder.add_channel(name, Reducers.append)
    for name, default in _COUNTERS.items():
        builder.add_channel(name, default=default)
    builder.add_channel("spent", SPENDING, default=Spent())
    builder.add_channel("seen", default=0)
    builder.add_channel("summary", default=NO_SUMMARY)
    builder.add_node(MODEL, ModelNode(spec))
    builder.add_node(TOOLS, ToolsNode(spec), dynamic=True)
    if spec.output is not None:
        builder.add_node(OUTPUT, OutputNode(spec), dynamic=True)
        builder.add_edge(OUTPUT, END)
    builder.add_edge(START, MODEL)
    builder.add_edge(TOOLS, MODEL)
    builder.add_edge(MODEL, END)
    return builder.build(store, observers, clock=clock)


def begin(messages: Sequence[Message], *, seen: int = 0) -> dict[str, Any]:
    """Return the inputs of a new turn that begins with `messages`, behind those its thread has already."""
    return {"turn": [*messages], "seen": seen, "spent": ANEW, **_COUNTERS}


_COUNTERS = {"outcome": "", "error": "", "output": "", "agent": "", "rounds": 0, "calls": 0}
