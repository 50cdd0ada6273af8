"""The page without scripts: what a browser without the built page can do with it."""

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from dialoom.conversation.cards import FormDefinition, FormRegistry
from dialoom.llm import MockProvider
from dialoom.llm.mock import Gate
from dialoom.server import ServerSettings, Workbench
from dialoom.tools import Tool
from tests.server.conftest import TOKEN, URL

Begin = Callable[..., str]
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": URL}


@pytest.fixture
def forms() -> FormRegistry:
    fields = [
        {"id": "cell", "label": "Cell <size>", "type": "number", "required": True, "min": 1},
        {"id": "folds", "label": "Folds", "type": "integer", "default": 5},
        {"id": "clamp", "label": "Clamp", "type": "bool", "currentValue": True},
        {"id": "method", "label": "Method", "type": "select", "options": [{"value": "idw", "label": "IDW"}]},
        {"id": "out", "label": "Out", "type": "multiselect", "options": [{"value": "asc"}, {"value": "png"}]},
        {"id": "note", "label": "Note", "type": "textarea"},
        {"id": "key", "label": "Key", "type": "secret"},
    ]
    return FormRegistry(FormDefinition.model_validate({"formId": "grid", "title": "Grid", "fields": fields}))


@pytest.fixture
def browser(stranger: TestClient) -> TestClient:
    stranger.post("/login", json={"token": TOKEN})
    return stranger


def test_one_lists_begins_and_finds_conversations(browser: TestClient, begin: Begin) -> None:
    begin(title="<b>Wells</b>")
    page = browser.get("/plain")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "&lt;b&gt;Wells&lt;/b&gt;" in page.text
    assert "<script" not in page.text
    assert browser.get("/plain.css").headers["content-type"].startswith("text/css")
    made = browser.post("/plain", headers=FORM)
    assert made.status_code == 303
    assert "Untitled" in browser.get(made.headers["location"]).text
    assert "Wells" not in browser.get("/plain", params={"q": "nothing"}).text
    for at in range(50):
        begin(title=f"T{at}")
    older = browser.get("/plain").text.split("cursor=")[1].split('"')[0]
    assert browser.get(f"/plain?cursor={older}").text.count("<li>") == 2
    assert browser.get("/plain?cursor=x").status_code == 422


def test_one_sends_and_reads_the_answer(browser: TestClient, begin: Begin, provider: MockProvider) -> None:
    provider.queue_text("Use <i>25 m</i>.")
    path = f"/plain/{begin()}"
    sent = browser.post(f"{path}/messages", content="text=Which+cells%3F%0D%0AHelp", headers=FORM)
    assert (sent.status_code, sent.headers["location"]) == (303, path)
    while 'http-equiv="refresh"' in (page := browser.get(path).text):
        pass
    assert "Which cells?\nHelp" in page
    assert "Use &lt;i&gt;25 m&lt;/i&gt;." in page
    refused = browser.post(f"{path}/messages", content="text=+", headers=FORM)
    assert refused.status_code == 422
    assert "there is nothing to send" in refused.text


def test_one_stops_an_answer(browser: TestClient, begin: Begin, provider: MockProvider) -> None:
    provider.queue_events(Gate())
    path = f"/plain/{begin()}"
    browser.post(f"{path}/messages", content="text=Go", headers=FORM)
    page = browser.get(path).text
    assert ('http-equiv="refresh"' in page, "Answering" in page, "<textarea" in page) == (True, True, False)
    busy = browser.post(f"{path}/messages", content="text=More", headers=FORM)
    assert (busy.status_code, "under way" in busy.text) == (409, True)
    assert browser.post(f"{path}/cancel", headers=FORM).status_code == 303
    while "Answering" in browser.get(path).text:
        pass
    assert browser.post(f"{path}/cancel", headers=FORM).status_code == 303


def test_one_fills_a_form(browser: TestClient, client: TestClient, begin: Begin) -> None:
    conversation = begin()
    card = client.get("/api/v1/forms").json()["items"][0]["card"]
    client.post(
        f"/api/v1/conversations/{conversation}/cards", json={"type": "Form", "payload": {**card, "id": "f/1"}}
    )
    path = f"/plain/{conversation}"
    page = browser.get(path).text
    assert f'action="{path}/cards/f%2F1/submit"' in page
    assert "Cell &lt;size&gt;" in page
    assert '<input type="password" name="field.key"' in page
    assert '<input type="checkbox" name="field.clamp" checked>' in page


def test_a_filled_form_is_checked_and_locked(browser: TestClient, client: TestClient, begin: Begin) -> None:
    conversation = begin()
    card = client.get("/api/v1/forms").json()["items"][0]["card"]
    client.post(
        f"/api/v1/conversations/{conversation}/cards", json={"type": "Form", "payload": {**card, "id": "f1"}}
    )
    path = f"/plain/{conversation}"
    submit = f"{path}/cards/f1/submit"
    wrong = browser.post(submit, content="rev=0&field.cell=wide&field.folds=", headers=FORM)
    assert (wrong.status_code, 'role="alert"' in wrong.text) == (422, True)
    for rev in ("", "x", "9" * 20):
        assert "load the page again" in browser.post(submit, content=f"rev={rev}", headers=FORM).text
    answers = (
        "rev=0&field.cell=25.5&field.folds=3&field.method=idw&field.out=asc&field.out=png"
        "&field.note=a%0D%0Ab&field.key=sk-secret"
    )
    assert browser.post(submit, content=answers, headers=FORM).status_code == 303
    shown = client.get(f"/api/v1/conversations/{conversation}/entries").json()["entries"][0]["card"]
    assert shown["submittedValues"] == {
        "cell": 25.5, "folds": 3, "clamp": False, "method": "idw", "out": ["asc", "png"], "note": "a\r\nb",
    }  # fmt: skip
    page = browser.get(path).text
    assert ("submitted" in page, "<form" in page.split("Grid")[1].split("</article>")[0]) == (True, False)
    late = browser.post(submit, content="rev=0&field.cell=9", headers=FORM)
    assert (late.status_code, "has changed" in late.text) == (409, True)


def test_one_approves_and_reads_tables_sources_and_what_cannot_be_shown(
    browser: TestClient, client: TestClient, begin: Begin, provider: MockProvider, tools: list[Tool]
) -> None:
    conversation = begin(title="Cards")
    cards = f"/api/v1/conversations/{conversation}/cards"
    approval = {"id": "a1", "title": "May I?", "question": "Erase <all>?", "arguments": {"name": "x"}}
    client.post(cards, json={"type": "Approval", "payload": approval})
    table = {"columnNames": ["a"], "rows": [["<td>"], [None]]}
    client.post(cards, json={"type": "Table", "payload": table})
    client.post(cards, json={"type": "WorkflowStatus", "payload": {"title": "Steps"}})
    page = browser.get(f"/plain/{conversation}").text
    assert ("Erase &lt;all&gt;?" in page, "<td>&lt;td&gt;</td>" in page, "WorkflowStatus" in page) == (
        True,
    ) * 3
    decided = browser.post(f"/plain/{conversation}/cards/a1/decide", content="rev=0&approved=", headers=FORM)
    assert decided.status_code == 303
    assert "declined" in browser.get(f"/plain/{conversation}").text
    entries = [
        "- {kind: Special, type: Table, payload: 'rows: many'}",
        "- {kind: Text, role: user, content: Why?, sources: [{index: 2, id: d, title: Doc, text: Quote}, 5]}",
        "- {kind: Text, role: assistant, content: 'So [2].', toolCalls: [{id: c, name: add, raw: '{}'}]}",
    ]
    text = "\n".join(["sessionId: odd", "entries:", *entries])
    client.post(
        "/api/v1/conversations/import", content=text.encode(), headers={"Content-Type": "application/yaml"}
    )
    page = browser.get("/plain/odd?before=99").text
    assert ('<li value="2">Doc' in page, "Calls add {}" in page, 'class="problem"' in page) == (True,) * 3


def test_what_is_not_here_or_not_allowed_is_a_page_too(
    browser: TestClient, settings: ServerSettings, workbench: Workbench
) -> None:
    assert (browser.get("/plain/nothing").status_code, browser.get("/plain/a b").status_code) == (404, 422)
    kind = browser.post("/plain/nothing/messages", json={"text": "x"}, headers={"Origin": URL})
    assert kind.status_code == 404
    outside = TestClient(workbench.app, base_url=URL, follow_redirects=False)
    assert outside.get("/plain").status_code == 401
    assert browser.post("/plain", headers={**FORM, "Origin": "https://evil.example"}).status_code == 403
    assert browser.post("/plain", headers={"Content-Type": FORM["Content-Type"]}).status_code == 403


def test_forms_out_of_all_bounds_are_refused(browser: TestClient, begin: Begin) -> None:
    path = f"/plain/{begin()}/messages"
    assert browser.post(path, content="&".join(["a=1"] * 2000), headers=FORM).status_code == 422
    assert browser.post(path, content=b"text=\xff", headers=FORM).status_code == 422
    assert browser.post(path, content="text=" + "x" * 2_000_000, headers=FORM).status_code == 413
    assert browser.post(path, json={}, headers={"Origin": URL}).status_code == 415
