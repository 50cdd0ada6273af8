"""A workbench on loopback whose model says what a test tells it to, in a thread of its own."""

import asyncio
import concurrent.futures
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from playwright.sync_api import Page, expect

from dialoom.base.ids import new_id
from dialoom.conversation import (
    Append,
    CardEntry,
    Conversation,
    Entry,
    Header,
    MemoryConversationStore,
    TextEntry,
    dump_yaml,
)
from dialoom.conversation.cards import FormDefinition, FormRegistry
from dialoom.dialog import Center, Skill, Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import MockProvider, ResponseStarted, StreamEvent, TextDelta
from dialoom.llm.mock import Gate
from dialoom.server import Parts, ServerSettings, Workbench
from dialoom.server.serving import listen
from dialoom.tools import tool

T = TypeVar("T")

BOUND = 60.0
TOKEN = "a token that the page tests know"
REFUND = FormDefinition.model_validate(
    {
        "formId": "refund",
        "title": "Refund",
        "fields": [
            {"id": "order", "label": "Order", "required": True, "pattern": "^[0-9]+$"},
            {"id": "amount", "label": "Amount", "type": "number", "required": True, "min": 1, "max": 100},
            {"id": "why", "label": "Why", "type": "select", "options": ["broken", "late"]},
            {"id": "gift", "label": "Gift", "type": "bool"},
            {"id": "note", "label": "Note", "type": "textarea", "visibleIf": {"gift": True}},
            {"id": "code", "label": "Code", "type": "secret"},
        ],
    }
)


@tool(requires_approval=True)
def refund(order: str, amount: float) -> str:
    """Pay an order back."""
    return f"refunded {amount} of order {order}"


class Stage:
    """The server as a test sees it: where it is, what its model was asked, and hands on its event loop."""

    def __init__(self, workbench: Workbench, provider: MockProvider, parts: Parts) -> None:
        self.workbench = workbench
        self.provider = provider
        self.url = workbench.settings.url
        self.parts = parts
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Callable[[], Any]) -> Any:
        """Call `work` on the server's event loop, and await what it returns when that can be awaited."""

        async def call() -> Any:
            result = work()
            return await result if asyncio.iscoroutine(result) else result

        return self._submit(call()).result(BOUND)

    def gate(self) -> Gate:
        return self.run(Gate)

    def reach(self, gate: Gate) -> None:
        """Wait until the answer stands at `gate`."""
        self.run(lambda: asyncio.wait_for(gate.reached.wait(), BOUND))

    def open(self, gate: Gate) -> None:
        self.run(gate.opened.set)

    def says(self, *pieces: str | Gate) -> None:
        """Have the model answer with these pieces, standing at gates."""
        steps: list[StreamEvent | Gate | BaseException] = [ResponseStarted()]
        steps += [TextDelta(piece) if isinstance(piece, str) else piece for piece in pieces]
        self.provider.queue_events(*steps)

    def conversation(self, *entries: Entry, title: str = "Prepared", at: str = "") -> str:
        """Keep a conversation that holds `entries` since `at`, or now, and return its id."""
        now = datetime.fromisoformat(at).timestamp() if at else time.time()
        header = Header(id=new_id(), title=title, created=now, updated=now)
        kept = Conversation(header, [Append(entry) for entry in entries])
        self.run(lambda: self.parts.store.create(kept))
        return kept.header.id

    def entries(self, conversation_id: str) -> tuple[Entry, ...]:
        return self.run(lambda: self.parts.store.load(conversation_id)).entries

    def post(
        self, page: Page, path: str, body: str, kind: str, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """Call the API as the page would, and return what it made."""
        answer = page.request.post(
            f"{self.url}/api/v1{path}",
            data=body.encode(),
            headers={"Content-Type": kind, "Origin": self.url, **(headers or {})},
        )
        assert answer.status == 201, answer.text()
        return answer.json()

    def login_url(self) -> str:
        return self.run(lambda: self.workbench.login_url)

    def began(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def _submit(self, work: Any) -> "concurrent.futures.Future[Any]":
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop)


def text(role: str, content: str, **fields: Any) -> TextEntry:
    return TextEntry(role=role, content=content, **fields)


def card(kind: str, **fields: object) -> CardEntry:
    return CardEntry(type=kind, payload=dump_yaml(fields))


@contextmanager
def staged(
    data: Path,
    *,
    tools: Sequence[Any] = (refund,),
    skills: Sequence[Skill] = (),
    more: Mapping[str, Any] | None = None,
    before: Stage | None = None,
    **choices: Any,
) -> Generator[Stage]:
    """Serve until the block ends; `more` are further fields of the parts.

    With `before`, it is the next start of a server that ended: same address, same stores.
    """
    provider, forms = MockProvider(), FormRegistry(REFUND)

    def center(stores: Stores) -> Center:
        made = Center(stores, forms=forms).add_provider(provider)
        for each in tools:
            made.add_tool(each)
        for skill in skills:
            made.add_skill(skill)
        return made

    parts = Parts(
        store=before.parts.store if before else MemoryConversationStore(),
        checkpoints=before.parts.checkpoints if before else MemoryCheckpointStore(),
        center=center,
        forms=forms,
        **(more or {}),
    )
    wanted = before.workbench.settings.port if before else 0
    listening = listen(ServerSettings(token=TOKEN, data=data, port=wanted))
    port = listening.getsockname()[1]
    hosts = tuple(f"{name}:{port}" for name in choices.pop("names", ()))
    settings = ServerSettings(token=TOKEN, data=data, port=port, allowed_hosts=hosts, **choices)
    workbench = Workbench(settings, parts)
    stage = Stage(workbench, provider, parts)
    config = uvicorn.Config(workbench.app, log_level="warning", access_log=False, lifespan="on", ws="none")
    server, ready = uvicorn.Server(config), threading.Event()

    async def serve() -> None:
        stage.began(asyncio.get_running_loop())
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn tells nobody
            await asyncio.sleep(0.01)
        ready.set()
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(BOUND)
    try:
        yield stage
    finally:
        stage.run(workbench.hub.close)
        server.should_exit = True
        thread.join(BOUND)
        assert not thread.is_alive()


def ask(page: Page, words: str) -> None:
    """Write `words` and send them with Enter."""
    page.fill(".composer textarea", words)
    page.keyboard.press("Enter")


def conversation_id(page: Page) -> str:
    """Return the id of the conversation that is open."""
    expect(page).to_have_url(re.compile("/c/"))
    return page.url.rpartition("/")[2]
