"""A server of the tests: in memory, with a clock that stands still, called as a machine with the token."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from dialoom.conversation import MemoryConversationStore
from dialoom.conversation.cards import FormDefinition, FormRegistry
from dialoom.dialog import Center, Stores
from dialoom.graph import MemoryCheckpointStore
from dialoom.llm import MockProvider
from dialoom.server import Parts, ServerSettings, Workbench
from dialoom.testing.clock import ManualClock
from dialoom.tools import Tool

TOKEN = "a token that the tests know"
URL = "http://127.0.0.1:8321"
GRID_FORM = FormDefinition.model_validate(
    {
        "formId": "grid",
        "title": "Grid parameters",
        "fields": [
            {"id": "cell", "label": "Cell size", "type": "number", "required": True, "min": 1},
            {"id": "key", "label": "Key", "type": "secret"},
        ],
    }
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(token=TOKEN, data=tmp_path / "data")


@pytest.fixture
def provider() -> MockProvider:
    return MockProvider()


@pytest.fixture
def forms() -> FormRegistry:
    return FormRegistry(GRID_FORM)


@pytest.fixture
def tools() -> list[Tool]:
    """The tools the dialogs of a test have; add to them before the client is asked for."""
    return []


@pytest.fixture
def parts(provider: MockProvider, forms: FormRegistry, tools: list[Tool], clock: ManualClock) -> Parts:
    def center(stores: Stores) -> Center:
        made = Center(stores, forms=forms, clock=clock).add_provider(provider)
        for tool in tools:
            made.add_tool(tool)
        return made

    return Parts(
        store=MemoryConversationStore(clock=clock),
        checkpoints=MemoryCheckpointStore(clock=clock),
        center=center,
        forms=forms,
    )


@pytest.fixture
def workbench(settings: ServerSettings, parts: Parts, clock: ManualClock) -> Workbench:
    return Workbench(settings, parts, clock=clock)


@pytest.fixture
def client(workbench: Workbench) -> Iterator[TestClient]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(workbench.app, base_url=URL, headers=headers, follow_redirects=False) as opened:
        yield opened


@pytest.fixture
def stranger(workbench: Workbench, client: TestClient) -> TestClient:
    """A caller without token or cookie, of a server that runs already."""
    opened = TestClient(workbench.app, base_url=URL, follow_redirects=False)
    opened.portal = client.portal  # the same event loop, or what one call begins would end with it
    return opened


@pytest.fixture
def begin(client: TestClient) -> Callable[..., str]:
    """Begin a conversation and return its id."""

    def begin(**fields: object) -> str:
        answer = client.post("/api/v1/conversations", json=fields)
        assert answer.status_code == 201
        return answer.json()["id"]

    return begin
