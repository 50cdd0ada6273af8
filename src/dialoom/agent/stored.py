"""The agent's values in checkpoints: give `AGENT_TYPES` to the store that keeps them."""

from typing import Final

import msgspec

from dialoom.agent.call import CallEnd
from dialoom.agent.compaction import Summary
from dialoom.agent.pending import Approval, Approve, Deny, Edit, Question
from dialoom.graph.codec_types import TypeCodec
from dialoom.llm.messages import Message
from dialoom.llm.usage_limits import Spent
from dialoom.tools.observe import without_surrogates


def _codec(name: str, kind: type[msgspec.Struct]) -> TypeCodec:
    """Return how values of one class are stored: as their JSON text, which is the fastest to write."""
    decoder = msgspec.json.Decoder(kind)
    return TypeCodec(f"dialoom.{name}", kind, _json, decoder.decode)


def _json(value: msgspec.Struct) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        # half a character came in with a prompt or a call; no file can hold it
        return msgspec.json.encode(without_surrogates(msgspec.to_builtins(value))).decode()


AGENT_TYPES: Final[tuple[TypeCodec, ...]] = (
    _codec("message", Message),
    _codec("spent", Spent),
    _codec("call_end", CallEnd),
    _codec("summary", Summary),
    _codec("approval", Approval),
    _codec("question", Question),
    _codec("approve", Approve),
    _codec("deny", Deny),
    _codec("edit", Edit),
)
"""For `SqliteCheckpointStore(path, types=AGENT_TYPES)`, and for every other store on disk."""
