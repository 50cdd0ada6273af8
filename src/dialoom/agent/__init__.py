"""Agents: a model, its tools, and a loop of two nodes on the engine that carries them.

`ReActAgent` is the whole as one object. What it stands on can be used without it:

- `agent_graph(AgentSpec(...), store)` is the loop as a graph with the nodes `model` and `tools`; its inputs
  are made by `begin(messages, seen=...)`. What comes before the messages of the turn is `AgentSpec.context`:
  messages, or a function of the state, so that a conversation kept elsewhere is never stored in checkpoints.
- Its state says where the turn stands: `turn`, the messages said in it, and a few counters; `agent_graph`
  describes them. `result_of(run, spec)` reads an `AgentResult` from the end of a run, `history_of(state)` the
  messages to go on with.
- Listeners of the graph find the `StreamEvent`s of `dialoom.llm` and the `AgentStep`s of this package as
  `value` of the engine's `Chunk` events, numbered and in order.
- A paused run waits with `Approval` or `Question` payloads; `pending_of(interrupt)` reads them. The answers
  are `Approve()`, `Deny(reason)`, `Edit(arguments)`, or whatever a question asked for.
- Stores on disk need `types=AGENT_TYPES`.

Refused: two runs on one thread at once (the engine's `on_conflict`), calls of tools nobody registered, cut or
misfitting arguments (the model reads why), a second run of a call that may have taken effect already.
"""

from dialoom.agent.compaction import Compacted as Compacted
from dialoom.agent.compaction import Compaction as Compaction
from dialoom.agent.compaction import Summary as Summary
from dialoom.agent.compaction import compact as compact
from dialoom.agent.compaction import summarised as summarised
from dialoom.agent.events import AgentEvent as AgentEvent
from dialoom.agent.events import AgentFinished as AgentFinished
from dialoom.agent.events import AgentStep as AgentStep
from dialoom.agent.events import ApprovalRequested as ApprovalRequested
from dialoom.agent.events import RoundStarted as RoundStarted
from dialoom.agent.events import ToolFinished as ToolFinished
from dialoom.agent.events import ToolProgress as ToolProgress
from dialoom.agent.events import ToolStarted as ToolStarted
from dialoom.agent.graph import agent_graph as agent_graph
from dialoom.agent.graph import begin as begin
from dialoom.agent.guards import Allow as Allow
from dialoom.agent.guards import Block as Block
from dialoom.agent.guards import Blocked as Blocked
from dialoom.agent.guards import Guards as Guards
from dialoom.agent.guards import Replace as Replace
from dialoom.agent.guards_shipped import AllowTools as AllowTools
from dialoom.agent.guards_shipped import Forbid as Forbid
from dialoom.agent.guards_shipped import MaxLength as MaxLength
from dialoom.agent.guards_shipped import Redact as Redact
from dialoom.agent.history import history_of as history_of
from dialoom.agent.history import steps_of as steps_of
from dialoom.agent.history_limits import HistoryLimits as HistoryLimits
from dialoom.agent.history_limits import trim as trim
from dialoom.agent.limits import AgentLimits as AgentLimits
from dialoom.agent.node import AgentNode as AgentNode
from dialoom.agent.observer import AgentObserver as AgentObserver
from dialoom.agent.otel import AgentOtelObserver as AgentOtelObserver
from dialoom.agent.output import WantedOutput as WantedOutput
from dialoom.agent.pending import Approval as Approval
from dialoom.agent.pending import Approve as Approve
from dialoom.agent.pending import Decision as Decision
from dialoom.agent.pending import Deny as Deny
from dialoom.agent.pending import Edit as Edit
from dialoom.agent.pending import Pending as Pending
from dialoom.agent.pending import Question as Question
from dialoom.agent.react import ReActAgent as ReActAgent
from dialoom.agent.result import AgentResult as AgentResult
from dialoom.agent.result import AgentStopReason as AgentStopReason
from dialoom.agent.result import pending_of as pending_of
from dialoom.agent.result import result_of as result_of
from dialoom.agent.spec import AgentSettings as AgentSettings
from dialoom.agent.spec import AgentSpec as AgentSpec
from dialoom.agent.spec import Context as Context
from dialoom.agent.stored import AGENT_TYPES as AGENT_TYPES
from dialoom.agent.stream import AgentStream as AgentStream
