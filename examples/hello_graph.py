"""The smallest graph: one node reads a channel and writes it.

Run it: `python examples/hello_graph.py hello`.
"""

import sys

from dialoom.graph import END, START, GraphBuilder, NodeContext


def upper(ctx: NodeContext) -> dict[str, str]:
    """Write the text in capitals."""
    return {"text": ctx.state["text"].upper()}


builder = GraphBuilder("hello")
builder.add_channel("text", type=str)
builder.add_node("upper", upper)
builder.add_edge(START, "upper")
builder.add_edge("upper", END)
graph = builder.build()

if __name__ == "__main__":
    result = graph.run_sync({"text": " ".join(sys.argv[1:]) or "hello"})
    print(result.state["text"], f"({result.stop_reason} after {result.steps} step)")
    print(graph.to_mermaid())
