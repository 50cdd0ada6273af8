"""How a write meets what a channel holds."""

from collections.abc import Callable
from typing import Any

import msgspec

from dialoom.graph.ops import OpKind

Combine = Callable[[Any, Any], Any]


class Reducer(msgspec.Struct, frozen=True):
    """A rule with a name. `kind` is what a write is committed as; `combine` is a custom rule's function."""

    name: str
    kind: OpKind
    combine: Combine | None = None


class Reducers:
    """The rules a channel can have; give one to `GraphBuilder.add_channel`.

    - `overwrite`: the last write counts, in the order in which nodes were added.
    - `append`: a write is a list of items that go to the end.
    - `merge`: a write is a mapping whose keys are laid over what is there.
    """

    overwrite = Reducer("overwrite", "set")
    append = Reducer("append", "extend")
    merge = Reducer("merge", "update")

    @staticmethod
    def custom(combine: Combine, *, name: str = "") -> Reducer:
        """Return a rule that stores `combine(old, written)`, or a first write without a default as it is.

        `combine` must be pure: it runs when a superstep commits and never again on replay.
        """
        return Reducer(name or getattr(combine, "__name__", "custom"), "set", combine)
