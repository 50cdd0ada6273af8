"""Nodes that other processes run; they must be importable."""

import os
import subprocess
import sys
import time
from typing import Any

import msgspec

from dialoom.graph import NodeContext, NodeResult, Send, isolated


class Money(msgspec.Struct, frozen=True):
    """A class that both processes know."""

    cents: int


def shout(ctx: NodeContext) -> dict[str, Any]:
    print("this is no frame")
    ctx.emit({"heard": ctx.state["said"]})
    ctx.heartbeat()
    return {
        "said": [f"{ctx.node} {ctx.step} {ctx.attempt} {os.getpid() != os.getppid()} {ctx.stop_requested}"]
    }


@isolated
async def later(ctx: NodeContext) -> NodeResult:
    ctx.raise_if_stopped()
    await ctx.aemit("on its way")
    return NodeResult.ok({"said": [ctx.deps]}, goto="next", sends=[Send("next", "sent")])


def broken(_: NodeContext) -> None:
    raise ValueError("boom")


def refused(_: NodeContext) -> NodeResult:
    return NodeResult.fail("not today")


def dies(_: NodeContext) -> None:
    os._exit(7)


def curious(ctx: NodeContext) -> None:
    ctx.interrupt("sure?")


def odd(_: NodeContext) -> object:
    return {"said": [object()]}


def double(ctx: NodeContext) -> int:
    return 2 * ctx.input


def raise_price(ctx: NodeContext) -> dict[str, Any]:
    return {"price": Money(ctx.state["price"].cents + 1)}


def for_ever(ctx: NodeContext) -> None:
    """Never end, nor let the process it begins end, and say the ids of both."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    ctx.emit([os.getpid(), child.pid])
    while True:
        time.sleep(600)
