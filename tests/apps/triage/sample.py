"""The tickets, cases and servers that the tests of the triage share."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dialoom.testing.wire import WireReply, WireRequest

TICKETS = [
    {"id": "1", "text": "My card was charged twice."},
    {"id": "2", "text": "The axle is bent."},
    {"id": "3", "text": "退款几天能到账？"},
]
CASES = [
    {
        "id": "A",
        "category": "billing",
        "title": "Charged twice",
        "text": "The card was charged twice.",
        "resolution": "The second payment is paid back.",
    },
    {
        "id": "B",
        "category": "damage",
        "title": "Bent axle",
        "text": "The axle of the trailer is bent.",
        "resolution": "A new axle is sent.",
    },
    {
        "id": "C",
        "category": "billing",
        "title": "退款到账时间",
        "text": "退款多久能到账？",
        "resolution": "三个工作日内原路退回。",
    },
]
VERDICT: Mapping[str, object] = {
    "category": "damage",
    "priority": "low",
    "reply": "We look into it.",
    "citations": ["B"],
}
Reply = Callable[[WireRequest], WireReply]


def lines(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def lay_out(folder: Path) -> Path:
    """Put both files where the command looks for them."""
    (folder / "tickets.jsonl").write_text(lines(TICKETS), encoding="utf-8")
    (folder / "cases.jsonl").write_text(lines(CASES), encoding="utf-8")
    return folder


def answered(verdict: Mapping[str, object] | str = VERDICT, **changes: object) -> WireReply:
    """What a server of chat completions answers: a verdict, or any text, and what it cost."""
    text = verdict if isinstance(verdict, str) else json.dumps({**verdict, **changes}, ensure_ascii=False)
    chunks: list[dict[str, object]] = [
        {"choices": [{"index": 0, "delta": {"content": text}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}},
    ]
    body = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    return WireReply(headers={"content-type": "text/event-stream"}, body=(body, b"data: [DONE]\n\n"))


def ticket_of(request: WireRequest) -> dict[str, str]:
    """Return the ticket that a request asks about."""
    words: str = asked_of(request)[-1]["content"]
    ticket: dict[str, str] = json.loads(words.partition("Ticket:\n")[2].partition("\n")[0])
    return ticket


def cases_of(request: WireRequest) -> list[dict[str, str]]:
    """Return the cases that a request shows."""
    words: str = asked_of(request)[-1]["content"]
    return [
        json.loads(line) for line in words.partition("Earlier cases:\n")[2].splitlines() if line[:1] == "{"
    ]


def asked_of(request: WireRequest) -> list[dict[str, Any]]:
    """Return the messages of a request."""
    messages: Any = request.json()["messages"]
    return messages


def settle(url: str, **settings: object) -> None:
    """Write the settings that name the server at `url`; it is asked once unless they say otherwise."""
    told = {"provider": "openai", "model": "m", "base_url": f"{url}/v1", "retries": 0} | settings
    Path("llm.json").write_text(json.dumps(told), encoding="utf-8")


def written(name: str = "triage.json") -> Any:
    return json.loads(Path(name).read_text(encoding="utf-8"))
