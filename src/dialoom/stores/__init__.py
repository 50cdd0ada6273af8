"""Stores on disk: twins of the protocols that the layers below define. Each loads with its first use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialoom.graph.codec import UnreadableError as UnreadableError
    from dialoom.graph.codec_types import Opaque as Opaque
    from dialoom.graph.codec_types import TypeCodec as TypeCodec
    from dialoom.stores.conversation_folder import UnreadableFileError as UnreadableFileError
    from dialoom.stores.jsonl_checkpoints import JsonlCheckpointStore as JsonlCheckpointStore
    from dialoom.stores.sealing import AesGcmSealer as AesGcmSealer
    from dialoom.stores.sealing import Sealer as Sealer
    from dialoom.stores.sqlite_checkpoints import SqliteCheckpointStore as SqliteCheckpointStore
    from dialoom.stores.sqlite_conversations import SqliteConversationStore as SqliteConversationStore
    from dialoom.stores.sqlite_index import SqliteVectorStore as SqliteVectorStore
    from dialoom.stores.sqlite_vector_cache import SqliteVectorCache as SqliteVectorCache
    from dialoom.stores.write_behind import WriteBehindStore as WriteBehindStore
    from dialoom.stores.yaml_conversations import YamlConversationStore as YamlConversationStore

# One store must not cost what another needs: the index wants numpy, a conversation does not.
_HOMES = {
    "AesGcmSealer": "dialoom.stores.sealing",
    "JsonlCheckpointStore": "dialoom.stores.jsonl_checkpoints",
    "Opaque": "dialoom.graph.codec_types",
    "Sealer": "dialoom.stores.sealing",
    "SqliteCheckpointStore": "dialoom.stores.sqlite_checkpoints",
    "SqliteConversationStore": "dialoom.stores.sqlite_conversations",
    "SqliteVectorCache": "dialoom.stores.sqlite_vector_cache",
    "SqliteVectorStore": "dialoom.stores.sqlite_index",
    "TypeCodec": "dialoom.graph.codec_types",
    "UnreadableError": "dialoom.graph.codec",
    "UnreadableFileError": "dialoom.stores.conversation_folder",
    "WriteBehindStore": "dialoom.stores.write_behind",
    "YamlConversationStore": "dialoom.stores.yaml_conversations",
}

__all__ = [
    "AesGcmSealer",
    "JsonlCheckpointStore",
    "Opaque",
    "Sealer",
    "SqliteCheckpointStore",
    "SqliteConversationStore",
    "SqliteVectorCache",
    "SqliteVectorStore",
    "TypeCodec",
    "UnreadableError",
    "UnreadableFileError",
    "WriteBehindStore",
    "YamlConversationStore",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"dialoom.stores has no name {name!r}")
    return getattr(import_module(home), name)
