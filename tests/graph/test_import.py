"""What importing the engine brings in."""

import subprocess
import sys


def test_a_sync_graph_runs_without_asyncio_ever_being_imported() -> None:
    code = """
import sys
from dialoom.graph import START, GraphBuilder, MemoryCheckpointStore
assert "concurrent.futures" not in sys.modules, "threads come with the first run"
builder = GraphBuilder("sync")
builder.add_channel("n", default=1)
builder.add_node("a", lambda ctx: {"n": ctx.state["n"] + 1})
builder.add_node("b", lambda ctx: {"n": ctx.state["n"] + 1})
builder.add_edge(START, "a")
builder.add_edge(START, "b")
assert builder.build(MemoryCheckpointStore()).run_sync().state == {"n": 2}
assert "asyncio" not in sys.modules, "no event loop is needed"
own = {*sys.stdlib_module_names, "typing_extensions"}  # the last is msgspec's, where it is installed
foreign = {name.partition(".")[0] for name in sys.modules} - own
print(sorted(name for name in foreign if not name.startswith("_")))
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}{code}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", "['dialoom', 'msgspec']\n")
