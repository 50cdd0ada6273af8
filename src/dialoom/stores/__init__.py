"""Stores on disk: twins of the protocols that the layers below define. Each loads with its first use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialoom.stores.conversation_folder import UnreadableFileError as UnreadableFileError
    from dialoom.stores.sqlite_conversations import SqliteConversationStore as SqliteConversationStore
    from dialoom.stores.sqlite_index import SqliteVectorStore as SqliteVectorStore
    from dialoom.stores.yaml_conversations import YamlConversationStore as YamlConversationStore

# One store must not cost what another needs: the index wants numpy, a conversation does not.
_HOMES = {
    "SqliteConversationStore": "dialoom.stores.sqlite_conversations",
    "SqliteVectorStore": "dialoom.stores.sqlite_index",
    "UnreadableFileError": "dialoom.stores.conversation_folder",
    "YamlConversationStore": "dialoom.stores.yaml_conversations",
}

__all__ = ["SqliteConversationStore", "SqliteVectorStore", "UnreadableFileError", "YamlConversationStore"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"dialoom.stores has no name {name!r}")
    return getattr(import_module(home), name)
