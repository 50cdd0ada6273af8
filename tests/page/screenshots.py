"""The pictures of the workbench in the docs, taken of a real page: `python -m tests.page.screenshots`."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from dialoom.conversation import CardEntry, dump_yaml
from tests.page.conftest import ARGUMENTS
from tests.page.stage import REFUND, Stage, ask, card, staged, text

IMAGES = Path(__file__).parents[2] / "docs/images"
QUESTION = "How long do refunds take, and where do I ask for one?"
ANSWER = """Refunds take **five working days** after the parcel is back [1].

| Country | Days to send it back |
|---|---|
| Germany | 14 |
| China | 7 |

```python
refund(order="1042", amount=12.5)
```
"""
SOURCES = [{"index": 1, "id": "refund.md", "title": "refund-policy.md", "text": "Five working days."}]


def _english(stage: Stage) -> str:
    form = REFUND.card({"order": "1042"}, card_id="f")
    return stage.conversation(
        text("user", QUESTION, meta={"sources": SOURCES}),
        text("assistant", ANSWER),
        CardEntry(type="Form", payload=dump_yaml({"id": "f", **form.stored()})),
        title="Refunds",
    )


def _chinese(stage: Stage) -> str:
    rows = [[117.2 + at / 50, 31.8 + at / 70, round(-20 + at * 0.7, 2)] for at in range(40)]
    mapping = {
        "requiredColumns": [{"name": "x", "label": "经度"}, {"name": "y", "label": "纬度"}, "z"],
        "previewColumns": [
            {"name": "经度", "samples": [117.2]},
            {"name": "纬度", "samples": [31.8]},
            {"name": "z", "samples": [-20]},
        ],
    }
    return stage.conversation(
        text("user", "把这份测深数据网格化"),
        text("assistant", "**数据已读取，**请确认列的对应关系："),
        card("Table", id="t", title="测深数据", columnNames=["经度", "纬度", "z"], rows=rows),
        card("ColumnMatch", id="m", title="列匹配", **mapping),
        title="测深数据网格化",
    )


def _opened(browser: Browser, stage: Stage, known: str, **looks: object) -> Page:
    page = browser.new_context(**looks).new_page()  # pyright: ignore[reportArgumentType] - its own keywords
    page.goto(stage.login_url())
    page.goto(f"{stage.url}/c/{known}")
    expect(page.locator(".card [aria-busy]")).to_have_count(0)
    expect(page.locator(".entry").first).to_be_visible()
    page.evaluate("document.querySelector('.transcript').scrollTop = 0")
    page.wait_for_timeout(700)  # fonts and colours come when the page has time
    return page


def _take(browser: Browser, stage: Stage) -> None:
    desk = {"width": 1280, "height": 860}
    page = _opened(browser, stage, _english(stage), viewport=desk, locale="en-US")
    page.screenshot(path=IMAGES / "workbench.png")
    page.set_viewport_size({"width": 1440, "height": 860})
    stage.provider.queue_tool_call("c1", "refund", {"order": "1042", "amount": 12.5})
    ask(page, "Then refund order 1042")
    expect(page.locator("[data-type=Approval]")).to_be_visible()
    page.click("button[aria-label=Details]")
    expect(page.locator(".checkpoints li").first).to_be_visible()
    page.screenshot(path=IMAGES / "workbench-approval.png")
    dark = _opened(browser, stage, _english(stage), viewport=desk, locale="en-US", color_scheme="dark")
    dark.screenshot(path=IMAGES / "workbench-dark.png")
    phone = {"width": 390, "height": 844}
    small = _opened(browser, stage, _chinese(stage), viewport=phone, locale="zh-CN", has_touch=True)
    small.screenshot(path=IMAGES / "workbench-phone.png")
    chinese = _opened(browser, stage, _chinese(stage), viewport=desk, locale="zh-CN")
    chinese.screenshot(path=IMAGES / "workbench-chinese.png")


def main() -> None:
    chromium = shutil.which("chromium")
    assert chromium is not None, "there is no Chromium; install it to take the pictures"
    with tempfile.TemporaryDirectory() as folder, staged(Path(folder)) as stage, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        _take(browser, stage)
        browser.close()


if __name__ == "__main__":
    main()
