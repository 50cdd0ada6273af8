"""What a model, a document or a stranger writes runs nothing and calls nobody, wherever the page shows it."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dialoom.conversation import CardEntry, Entry
from dialoom.dialog import Skill
from dialoom.llm import OfflineProvider, ProviderError, ReasoningDelta, ResponseStarted, TextDelta, ToolCall
from dialoom.rag import LoadOptions, RagConfig
from dialoom.server.knowledge import KnowledgeBases
from tests.page.hostile import CALLING, GOT_THROUGH, RUNNING
from tests.page.stage import Stage, ask, card, staged, text

pytestmark = pytest.mark.slow


class Elsewhere:
    """Another host, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(204)
                self.end_headers()

            do_POST = do_GET  # noqa: N815 - the name of a method there

            def log_message(self, *args: object) -> None:
                return

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def corpus(self) -> list[str]:
        return [*RUNNING, *(each.format(self.url) for each in CALLING)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A server whose skills speak as a stranger would, with knowledge bases."""
    bases = KnowledgeBases(
        tmp_path / "kb", OfflineProvider(), config=RagConfig(), load=LoadOptions(), mounted={}
    )
    skill = Skill(name="odd", description="".join(RUNNING)[:900], instructions=RUNNING[0])
    with staged(tmp_path / "data", skills=[skill], more={"knowledge": bases}) as running:
        yield running


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    host = Elsewhere()
    yield host
    host.close()


@pytest.fixture(autouse=True)
def _nothing_happens(page: Page, elsewhere: Elsewhere) -> Iterator[None]:
    """Whatever a test shows: no script ran, no dialog opened, nobody else was asked, nobody left the page."""
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    home = page.url.partition("/c/")[0]
    yield
    harmless(page)
    assert dialogs == []
    assert page.url.startswith(home)
    assert elsewhere.asked == []


def harmless(page: Page) -> None:
    """Unfold what is folded, point at what can be pointed at, and look through the whole document."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
    assert page.evaluate(GOT_THROUGH) == []
    assert page.evaluate("window.__xss") is None


def test_the_corpora_are_real() -> None:
    assert len(set(RUNNING)) == len(RUNNING) >= 80
    assert len(set(CALLING)) == len(CALLING) >= 40


def test_a_page_that_trusted_them_would_have_run_and_called(
    browser: Browser, stage: Stage, elsewhere: Elsewhere
) -> None:
    context = browser.new_context(bypass_csp=True)
    trusting = context.new_page()
    trusting.goto(stage.login_url())
    trusting.evaluate("(all) => { document.body.innerHTML = all }", "".join(elsewhere.corpus[:30]))
    expect(trusting.locator("body")).to_be_attached()
    trusting.wait_for_function("() => window.__xss === 1")
    assert trusting.evaluate(GOT_THROUGH) != []
    with trusting.expect_request(f"{elsewhere.url}/6"):
        trusting.evaluate("(all) => { document.body.innerHTML = all }", CALLING[4].format(elsewhere.url))
    context.close()
    elsewhere.asked.clear()


@pytest.mark.parametrize("part", range(3))
def test_in_what_is_said_each_by_itself(page: Page, stage: Stage, elsewhere: Elsewhere, part: int) -> None:
    said = elsewhere.corpus[part::3]
    entries = [text("assistant", each, reasoning=each) for each in said]
    page.goto(f"{stage.url}/c/{stage.conversation(*entries, text('user', said[0]))}")
    expect(page.locator(".entry")).to_have_count(len(said) + 1)
    expect(page.locator("[data-math]")).to_have_count(0)
    harmless(page)
    for link in page.locator(".text a").all():
        assert str(link.get_attribute("href")).startswith(("http://a.example", elsewhere.url)), link
        assert link.get_attribute("rel") == "noopener noreferrer nofollow"


def test_in_what_a_person_says_and_in_the_field_it_is_edited_in(
    page: Page, stage: Stage, elsewhere: Elsewhere
) -> None:
    said = "\n\n".join(elsewhere.corpus)
    stage.says("no")
    ask(page, said)
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("no")
    harmless(page)
    page.hover(".entry.user")
    page.click(".edit-message")
    assert page.input_value(".editing textarea").replace("\r", "") == said.replace("\r", "")


def test_while_an_answer_comes_and_a_thought_and_a_call_with_them(
    page: Page, stage: Stage, elsewhere: Elsewhere
) -> None:
    pieces = elsewhere.corpus
    gates = [stage.gate() for _ in range(4)]
    steps: list[object] = [ResponseStarted(), ReasoningDelta("\n\n".join(pieces)), gates[0]]
    for at, gate in enumerate(gates[1:]):
        steps += [*(TextDelta(piece + "\n\n") for piece in pieces[at::3]), gate]
    stage.provider.queue_events(*steps)  # pyright: ignore[reportArgumentType] - events and gates
    ask(page, "Say it")
    for gate in gates:
        stage.reach(gate)
        expect(page.locator(".live .text").first).not_to_be_empty()
        harmless(page)
        stage.open(gate)
    expect(page.locator(".entry.assistant:not(.live) .text").last).not_to_be_empty()


def test_in_a_tool_call_its_result_and_why_a_run_failed(
    page: Page, stage: Stage, elsewhere: Elsewhere
) -> None:
    everything = "\n\n".join(elsewhere.corpus)
    call = ToolCall(id="c", name="look_up", arguments={everything[:400]: everything}, raw="{}")
    odd = ToolCall(id="d", name="<img src=x onerror=window.__xss=1>", arguments=None, raw=everything)
    known = stage.conversation(
        text("user", "?"),
        text("assistant", "", tool_calls=(call, odd)),
        text("tool", everything, tool_call_id="c", tool_name="look_up"),
        text("tool", everything, tool_call_id="lost", tool_name=everything[:60], is_error=True),
        text("assistant", "so"),
    )
    page.goto(f"{stage.url}/c/{known}")
    expect(page.locator(".tool-call")).to_have_count(3)
    harmless(page)
    stage.provider.queue_error(ProviderError("invalid_request", everything[:4000], retryable=False))
    ask(page, "Go on")
    expect(page.locator(".failure")).to_be_visible()
    page.click("button[aria-label=Details]")
    page.click("#tab-run")
    expect(page.locator(".panel .checkpoints, .panel .empty").first).to_be_visible()


def cards(words: str, short: str) -> list[Entry]:
    """Return one card of each type with `words` in every place for text, `short` where little fits."""
    step = {"id": "a", "displayName": words, "message": words, "status": "failed"}
    source = {"id": words, "label": words, "status": "failed", "error": words}
    column = {"name": short, "label": words, "samples": [words], "synonyms": [short]}
    passage = {"index": 1, "id": words, "title": words, "text": words, "url": "javascript:window.__xss=1"}
    field = {"label": words, "help": words, "currentValue": words}
    kinds = ("text", "textarea", "select", "multiselect", "date", "file", "number", "bool", "secret")
    fields = [
        {"id": f"{kind}s", "type": kind, "options": [{"value": short, "label": words}], **field}
        for kind in kinds
    ]
    return [
        card("Form", id="f", title=words, fields=fields, submitLabel=words, inline=True),
        card("Form", id="g", title=words, fields=fields, submittedValues={"texts": words}, status=short),
        card(
            "ParameterSet",
            id="p",
            title=words,
            items=[
                {"name": short, "valueText": words, "default": words, "unit": words, "description": words}
            ],
        ),
        card("Table", id="t", title=words, columnNames=[short, words], rows=[[words, short]]),
        card("ColumnMatch", id="m", title=words, requiredColumns=[column], previewColumns=[column]),
        card("WorkflowStatus", id="w", title=words, runId=short, steps=[step]),
        card("KnowledgeBase", id="k", kbId="k", title=words, sources=[source]),
        card("XyzLoadCard", id="x", fileName=words, columns=[{"index": 0, **column}], warnings=[words]),
        card("GriddingParamCard", id="gr", title=words, result={"files": [short], "fileNames": [words]}),
        card("Approval", id="a", title=words, question=words, toolName=short, arguments={short: words}),
        card("Approval", id="b", title=words, status="declined", comment=words, toolName=short),
        card("Plot", id="pl", title=words, caption=words, altText=words, imageId="javascript:1"),
        card("Sources", id="s", title=words, query=words, sources=[passage], cited=[1]),
        card("Error", id="e", title=words, code=short, message=words, hint=words, retryable=True),
        card("Plot", id="er", error=words, errorCode=short),
        CardEntry(type="Strange", payload=words),
        CardEntry(type=short[:60], payload=f"id: z\n{'title'}: x"),
    ]


def test_in_every_field_of_every_card_and_beside_the_conversation(
    page: Page, stage: Stage, elsewhere: Elsewhere
) -> None:
    words, short = "\n\n".join(elsewhere.corpus), '"><img src=x onerror=window.__xss=1>'
    asked = text("user", "?", meta={"sources": [{"index": 1, "id": words, "title": words, "text": words}]})
    shown = cards(words, short)
    known = stage.conversation(*shown, asked, text("assistant", f"{words}\n\nso [1]"), title=words[:900])
    page.goto(f"{stage.url}/c/{known}")
    expect(page.locator(".card")).to_have_count(len(shown))
    expect(page.locator(".card [aria-busy]")).to_have_count(0)
    harmless(page)
    page.hover(".cite")
    expect(page.locator(".cite-tip")).to_be_visible()
    harmless(page)
    page.click(".cite")
    for tab in ("sources", "run", "graph", "data", "yaml"):
        page.click(f"#tab-{tab}")
        expect(page.locator(".panel [aria-busy]")).to_have_count(0)
        harmless(page)
    page.click(".card[data-type=Sources] summary")
    page.check(".card[data-type=ParameterSet] >> text=only those that differ")
    harmless(page)


def test_in_titles_and_names_of_files_bases_and_skills(
    page: Page, stage: Stage, elsewhere: Elsewhere
) -> None:
    for at in range(0, len(RUNNING), 4):
        stage.conversation(text("user", "x"), title="".join(elsewhere.corpus[at : at + 4])[:900])
    page.goto(stage.url)
    expect(page.locator(".row").nth(20)).to_be_attached()
    harmless(page)
    names = [each.replace("/", "_")[:80] for each in RUNNING[:6]]
    files = [{"name": name, "mimeType": "text/markdown", "buffer": name.encode()} for name in names]
    page.set_input_files(".composer input[type=file]", files)  # pyright: ignore[reportArgumentType] - as it wants them
    expect(page.locator(".composer .attached li:not([aria-busy])")).to_have_count(len(files))
    harmless(page)
    stage.says("read [1]")
    ask(page, "Read them")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("read 1")
    harmless(page)
    page.click(".row.chosen .menu .icon-button")
    page.click("text=Rename")
    page.fill(".renaming input", RUNNING[4])
    page.keyboard.press("Enter")
    expect(page.locator(".title h1")).to_have_text(RUNNING[4])
    page.fill("#search", RUNNING[4])
    expect(page.locator(".row").first).to_be_visible()
    ask(page, f"/{RUNNING[4]}")
    harmless(page)


def test_in_the_pages_that_are_laid_over_the_conversation(page: Page, stage: Stage) -> None:
    for name in RUNNING[:8]:
        stage.post(page, "/kb", json.dumps({"name": name}), "application/json")
    page.goto(f"{stage.url}/c/{stage.conversation(text('user', 'x'))}")
    for place in ("Knowledge", "Tool servers", "Models", "Graphs", "Settings"):
        page.click(f".rail button:has-text('{place}'), .rail button[aria-label='{place}']")
        expect(page.locator("dialog [aria-busy]")).to_have_count(0)
        if place == "Knowledge":
            expect(page.locator("dialog")).to_contain_text(RUNNING[0])
            names = [{"name": RUNNING[4].replace("/", "_"), "mimeType": "text/plain", "buffer": b"\0"}]
            page.locator("dialog input[type=file]").first.set_input_files(names)  # pyright: ignore[reportArgumentType] - as it wants them
            expect(page.locator("dialog .problem").first).to_be_visible()
        harmless(page)
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
    page.click(".title .chip")
    expect(page.locator("dialog")).to_contain_text("odd")
    harmless(page)
