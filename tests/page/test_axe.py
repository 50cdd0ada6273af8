"""axe finds nothing serious in any view: in both languages, both colours, wide and narrow.

The four pages between them have every pair of a language, a colour and a width.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dialoom.conversation import CardEntry, Entry
from dialoom.dialog import Skill
from dialoom.llm import OfflineProvider, ReasoningDelta, ResponseStarted, TextDelta, ToolCall
from dialoom.rag import LoadOptions, RagConfig
from dialoom.server.knowledge import KnowledgeBases
from tests.page.stage import Stage, ask, card, staged, text

pytestmark = pytest.mark.slow

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
DETAILS = "button[aria-label=Details], button[aria-label=详情]"
LIST = "button[aria-label=Conversations], button[aria-label=对话列表]"
WIDE, NARROW = (1280, 860), (390, 800)
PAGES = [
    pytest.param("en-US", "light", WIDE, id="english light wide"),
    pytest.param("zh-CN", "dark", WIDE, id="chinese dark wide"),
    pytest.param("zh-CN", "light", NARROW, id="chinese light narrow"),
    pytest.param("en-US", "dark", NARROW, id="english dark narrow"),
]
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8cfc0f01f0005000001fe0a2db40000000049454e44ae426082"
)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    bases = KnowledgeBases(
        tmp_path / "kb", OfflineProvider(), config=RagConfig(), load=LoadOptions(), mounted={}
    )
    skills = [Skill(name="brief", description="Short answers", instructions="Say it in one sentence.")]
    with staged(tmp_path / "data", skills=skills, more={"knowledge": bases}, approval_seconds=600) as running:
        yield running


class Looks:
    """One page, and what axe found in each of its views."""

    def __init__(self, page: Page, *, narrow: bool) -> None:
        self.page = page
        self.narrow = narrow
        self.seen: list[str] = []
        self.found: dict[str, object] = {}

    def at(self, view: str, ready: str, *, within: str = "html") -> None:
        """Look at what is on the page once `ready` is; where little is new, at the part that is."""
        expect(self.page.locator(ready).first).to_be_visible()
        expect(self.page.locator("[aria-busy=true]:not(.live)")).to_have_count(0)
        self.page.evaluate(  # what fades in has the colours it will have
            "() => Promise.allSettled(document.getAnimations()"
            ".filter((each) => each.effect.getTiming().iterations === 1).map((each) => each.finished))"
        )
        if self.page.evaluate("typeof axe") == "undefined":
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        violations = self.page.evaluate(
            "async (part) => (await axe.run(part, {resultTypes: ['violations']})).violations", within
        )
        self.seen.append(view)
        if serious := [
            (each["id"], [node["html"][:160] for node in each["nodes"]][:3])
            for each in violations
            if each["impact"] in {"serious", "critical"}
        ]:
            self.found[view] = serious

    def list_open(self) -> None:
        """Have the list in sight; on a narrow page it is laid over the rest."""
        if self.narrow and not self.page.locator(".rail").is_visible():
            self.page.click(LIST)


def everything(picture: str) -> list[Entry]:
    """Return a conversation in which every kind of thing stands."""
    call = ToolCall(id="c", name="refund", arguments={"order": "1"}, raw='{"order": "1"}')
    passages = [
        {"index": at, "id": f"{at}.md", "title": f"{at}.md", "text": f"Words of {at}."} for at in (1, 2)
    ]
    kinds = (
        "text",
        "textarea",
        "number",
        "integer",
        "bool",
        "select",
        "multiselect",
        "date",
        "file",
        "secret",
    )
    fields = [
        {"id": kind, "type": kind, "label": kind, "help": "why", "required": True, "options": ["x", "y"]}
        for kind in kinds
    ]
    step = {"id": "a", "status": "running", "progress": 0.5}
    return [
        text("user", "q", meta={"sources": passages}),
        text(
            "assistant",
            "# A\n\n**bold** [1] word, *thin*, ~~gone~~, [link](http://a.example), \\(a^2\\)\n\n"
            "```python\nx = 'a'  # y\n```\n\n| a |\n|---|\n| b |\n\n> said\n\n1. one\n- two\n\n![p](http://a.example/p.png)",
            reasoning="thought",
            tool_calls=(call,),
        ),
        text("tool", '{"done": true}', tool_call_id="c", tool_name="refund"),
        text("assistant", "cut short", status="cancelled"),
        card("Form", id="f", title="Form", fields=fields, inline=True),
        card(
            "Form",
            id="f2",
            title="Form",
            fields=fields[:1],
            submittedValues={"text": "x"},
            status="submitted",
        ),
        card(
            "ParameterSet",
            id="p",
            title="P",
            items=[{"name": "power", "valueText": "2", "default": "3", "unit": "m"}],
        ),
        card("Table", id="t", title="T", columnNames=["a", "b"], rows=[[1, "x"], [2, "y"]]),
        card("Approval", id="ap", title="May it?", toolName="refund", arguments={"a": 1}),
        card("Approval", id="no", title="May it?", toolName="refund", status="declined", comment="no"),
        card(
            "WorkflowStatus",
            id="w",
            title="W",
            steps=[step, {"id": "b", "status": "failed", "message": "bad"}],
        ),
        card(
            "KnowledgeBase",
            id="k",
            kbId="k",
            title="K",
            sources=[{"id": "a", "status": "failed", "error": "bad"}],
        ),
        card("ColumnMatch", id="m", title="M", requiredColumns=["x"], previewColumns=["y"]),
        card(
            "XyzLoadCard",
            id="x",
            title="X",
            fileName="a.xyz",
            columns=[{"index": 0, "name": "E"}],
            warnings=["odd"],
        ),
        card(
            "GriddingParamCard",
            id="g",
            title="G",
            extent={"xMin": 0, "xMax": 9, "yMin": 0, "yMax": 9},
            cell={"dx": 1, "dy": 1},
        ),
        card("Sources", id="s", title="S", sources=passages, cited=[1]),
        card("Plot", id="pl", title="Plot", caption="a map", imageId=picture),
        card("Error", id="e", title="E", message="bad", hint="wait", retryable=True),
        CardEntry(type="Strange", payload="id: odd\ncolour: green\n"),
        CardEntry(type="Form", payload="fields: ["),
    ]


@pytest.mark.parametrize(("locale", "theme", "size"), PAGES)
def test_axe_finds_nothing_serious_in_any_view(
    browser: Browser, stage: Stage, locale: str, theme: str, size: tuple[int, int]
) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed (npm); run make test")
    context = browser.new_context(
        bypass_csp=True,
        color_scheme="dark" if theme == "dark" else "light",
        locale=locale,
        viewport={"width": size[0], "height": size[1]},
    )
    context.set_default_timeout(15_000)
    page = context.new_page()
    looks = Looks(page, narrow=size == NARROW)
    page.goto(stage.url)
    looks.at("signed out", ".signed-out")
    page.goto(stage.login_url())
    page.wait_for_selector(".composer")
    around(looks)
    conversation(looks, stage)
    beside(looks)
    over(looks)
    answering(looks, stage)
    context.close()
    assert looks.found == {}
    assert len(looks.seen) >= 26, looks.seen


def around(looks: Looks) -> None:
    page = looks.page
    looks.at("nothing said yet", ".welcome")
    page.fill(".composer textarea", "/")
    looks.at("commands", ".commands")
    page.fill(".composer textarea", "/nope")
    page.keyboard.press("Enter")
    looks.at("a notice", ".notice")
    page.click(".notice")
    page.set_input_files(
        ".composer input[type=file]", {"name": "a.md", "mimeType": "text/markdown", "buffer": b"seven"}
    )
    looks.at("a file to send", ".composer .attached button")
    page.click(".composer .attached button")
    page.fill(".composer textarea", "")


def conversation(looks: Looks, stage: Stage) -> None:
    page = looks.page
    made = page.request.post(
        f"{stage.url}/api/v1/files",
        data=PICTURE,
        headers={"Content-Type": "image/png", "Origin": stage.url, "X-Filename": "p.png"},
    )
    entries = everything(made.json()["id"])
    page.goto(f"{stage.url}/c/{stage.conversation(*entries, title='Everything')}")
    expect(page.locator(".card")).to_have_count(16)
    page.evaluate("document.querySelectorAll('.transcript details').forEach((each) => { each.open = true })")
    looks.at("every card", ".card[data-type=GriddingParamCard] input")
    page.locator(".card[data-type=Form] button[type=submit]").first.click()
    looks.at("a form that is filled wrongly", ".field .problem", within=".card[data-type=Form]")
    page.click(".enlarges")
    looks.at("a picture", "dialog.large img", within="dialog")
    page.keyboard.press("Escape")
    page.hover(".cite")
    looks.at("a passage beside its number", ".cite-tip", within=".cite-tip")
    page.hover(".entry.user")
    page.click(".edit-message")
    looks.at("a message that is edited", ".editing textarea", within=".editing")
    page.keyboard.press("Escape")
    looks.list_open()
    looks.at("the list", ".row.chosen")
    page.hover(".row.chosen")
    page.click(".row.chosen .menu .icon-button")
    looks.at("the menu of a conversation", "[role=menu]", within=".rail")
    page.keyboard.press("Escape")
    page.fill("#search", "no such words")
    looks.at("nothing found", ".rail-list .empty", within=".rail")
    page.fill("#search", "")
    expect(page.locator(".row.chosen")).to_be_visible()
    if looks.narrow:
        page.keyboard.press("Escape")


def beside(looks: Looks) -> None:
    page = looks.page
    page.click(DETAILS)
    for tab in ("sources", "run", "graph", "data", "yaml"):
        page.click(f"#tab-{tab}")
        ready = {
            "data": ".panel .grid-row",
            "yaml": ".panel .yaml",
            "sources": ".panel .sources, .panel .empty",
        }
        looks.at(f"beside: {tab}", ready.get(tab, ".panel-body > *"), within=".panel")
    page.click(".tabs > .icon-button")


def over(looks: Looks) -> None:
    page = looks.page
    for at, name in enumerate(("knowledge", "servers", "models", "graphs")):
        looks.list_open()
        page.click(f".places button >> nth={at}")
        looks.at(f"over: {name}", "dialog h2", within="dialog")
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
    for name, button in (("keys", "nth=-2"), ("settings", "nth=-1")):
        looks.list_open()
        page.click(f".rail-bottom button >> {button}")
        looks.at(f"over: {name}", "dialog h2", within="dialog")
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)


def answering(looks: Looks, stage: Stage) -> None:
    page, gate, last = looks.page, stage.gate(), stage.gate()
    if looks.narrow and page.locator(".rail").is_visible():
        page.keyboard.press("Escape")
    stage.provider.queue_events(ResponseStarted(), ReasoningDelta("hm"), gate, TextDelta("half"), last)
    page.goto(stage.url)
    ask(page, "Tell")
    stage.reach(gate)
    looks.at("a thought that comes", ".live .reasoning")
    stage.open(gate)
    stage.reach(last)
    looks.at("an answer that comes", ".live .text")
    stage.open(last)
    expect(page.locator(".live")).to_have_count(0)
    stage.provider.queue_tool_call("call-1", "refund", {"order": "7", "amount": 90})
    ask(page, "Refund order 7")
    looks.at("a call that waits", ".until")
    page.click(DETAILS)
    page.click("#tab-run")
    page.click(".checkpoints li:nth-child(2) button >> nth=0")
    looks.at("what a step changed", ".changes")
    page.click(".tabs > .icon-button")
    stage.provider.queue_error(RuntimeError("the model broke"))
    ask(page, "And now?")
    looks.at("an answer that failed", ".failure")
