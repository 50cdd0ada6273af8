"""Tickets of a help desk are judged from Python, by words of one's own and from earlier cases.

Run it: `python examples/triage.py`. It asks no model; the command `dialoom triage` can.
"""

import asyncio
import sys
from pathlib import Path

from dialoom.apps.triage import MAX_STEPS, CaseIndex, Desk, Paths, Rules, read_cases, triage_graph
from dialoom.graph import RunOptions
from dialoom.rag import HashEmbedder

HERE = Path(__file__).parent / "tickets"
RULES = Rules(
    categories={
        "billing": ["charge", "refund", "退款"],
        "damage": ["bent", "broken", "坏"],
        "delivery": ["parcel", "快递"],
        "account": ["password", "密码"],
    },
    urgent=["tomorrow", "twice", "等了"],
    unhurried=["can i"],
)


def warn(line: str) -> None:
    print(line, file=sys.stderr)


async def main() -> None:
    cases = CaseIndex(read_cases(HERE / "cases.jsonl").rows, HashEmbedder(), warn=warn)
    desk = Desk(cases, None, top_k=2, rules=RULES)
    paths = Paths(HERE / "tickets.jsonl", Path("triage.json"))
    graph = triage_graph(desk, paths, concurrency=4, warn=warn)
    result = (await graph.run(None, RunOptions(max_steps=MAX_STEPS))).raise_for_error()
    for judged in result.state["results"]:
        print(f"{judged.id}: {judged.category}, {judged.priority}, as in {', '.join(judged.citations)}")


if __name__ == "__main__":
    asyncio.run(main())
