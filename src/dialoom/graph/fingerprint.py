"""A short text that is the same for graphs of the same shape."""

import msgspec

from dialoom.graph.table import Exits, Table


def fingerprint_of(table: Table) -> str:
    """Return 16 hexadecimal digits over nodes, all that leads from them, channels and reducers; not code."""
    import hashlib  # 4 MB of memory that a graph without checkpoints need not have

    shape = (
        [(channel.name, channel.reducer.name) for channel in table.channels.values()],
        [(name, _ways_out(exits)) for name, exits in table.exits.items()],
        [
            (node.name, node.on_error, node.each)
            for node in table.nodes.values()
            if node.on_error or node.each
        ],
        [(join.target, join.sources, join.wait) for join in table.joins.values()],
    )
    return hashlib.blake2b(msgspec.json.encode(shape), digest_size=8).hexdigest()


def _ways_out(exits: Exits) -> object:
    return [exits.static, [(sorted(route.ways.items()), route.default) for route in exits.routes]]
