"""dialoom: build and run AI conversations. Names load on first use, so importing it costs almost nothing."""

TYPE_CHECKING = False  # checkers know the name; importing typing would cost more than all the rest

if TYPE_CHECKING:
    from dialoom.agent import ReActAgent as ReActAgent
    from dialoom.base.errors import DialoomError as DialoomError
    from dialoom.dialog import Center as Center
    from dialoom.graph import END as END
    from dialoom.graph import START as START
    from dialoom.graph import Graph as Graph
    from dialoom.graph import GraphBuilder as GraphBuilder
    from dialoom.graph import MemoryCheckpointStore as MemoryCheckpointStore
    from dialoom.graph import NodeContext as NodeContext
    from dialoom.graph import NodeResult as NodeResult
    from dialoom.graph import Reducers as Reducers
    from dialoom.graph import RunControl as RunControl
    from dialoom.graph import RunOptions as RunOptions
    from dialoom.graph import RunResult as RunResult
    from dialoom.llm import ChatOptions as ChatOptions
    from dialoom.llm import Message as Message
    from dialoom.llm import MockProvider as MockProvider
    from dialoom.llm import OfflineProvider as OfflineProvider
    from dialoom.llm import OpenAIProvider as OpenAIProvider
    from dialoom.llm import ProviderError as ProviderError
    from dialoom.llm import chat as chat
    from dialoom.llm import system as system
    from dialoom.llm import user as user
    from dialoom.rag import HashEmbedder as HashEmbedder
    from dialoom.rag import InMemoryVectorStore as InMemoryVectorStore
    from dialoom.rag import SlidingWindowChunker as SlidingWindowChunker
    from dialoom.rag import build_rag_query_graph as build_rag_query_graph
    from dialoom.rag import ingest_documents as ingest_documents
    from dialoom.rag import load_document as load_document
    from dialoom.stores import SqliteVectorStore as SqliteVectorStore
    from dialoom.tools import tool as tool

_HOMES = {
    "dialoom.agent": ("ReActAgent",),
    "dialoom.base.errors": ("DialoomError",),
    "dialoom.dialog": ("Center",),
    "dialoom.graph": (
        "END",
        "START",
        "Graph",
        "GraphBuilder",
        "MemoryCheckpointStore",
        "NodeContext",
        "NodeResult",
        "Reducers",
        "RunControl",
        "RunOptions",
        "RunResult",
    ),
    "dialoom.llm": (
        "ChatOptions",
        "Message",
        "MockProvider",
        "OfflineProvider",
        "OpenAIProvider",
        "ProviderError",
        "chat",
        "system",
        "user",
    ),
    "dialoom.rag": (
        "HashEmbedder",
        "InMemoryVectorStore",
        "SlidingWindowChunker",
        "build_rag_query_graph",
        "ingest_documents",
        "load_document",
    ),
    "dialoom.stores": ("SqliteVectorStore",),
    "dialoom.tools": ("tool",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = list(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll] - one list of names, not two
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"dialoom has no name {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
