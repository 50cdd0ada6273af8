"""What a model, a document or a stranger writes runs nothing and calls nobody; everyone can use the page."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.page.stage import Stage, ask, staged, text

pytestmark = pytest.mark.slow


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """Another host, and what it was asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_a_picture_elsewhere_is_asked_for_by_nobody(
    context: BrowserContext, stage: Stage, elsewhere: tuple[str, list[str]]
) -> None:
    base, asked = elsewhere
    page = context.new_page()
    page.goto(stage.login_url())
    pictures = [
        f"![a]({base}/1?secret=words)",
        f"<img src='{base}/2'>",
        f"[![b]({base}/3)]({base}/4)",
        f"<style>@import url({base}/5)</style>",
        f"<link rel=stylesheet href={base}/6>",
        f"![c][r]\n\n[r]: {base}/7",
    ]
    stage.says("\n\n".join(pictures))
    ask(page, "Show me")
    expect(page.locator(".picture").first).to_be_visible()
    page.locator(".picture").first.click()
    expect(page.locator(f"a[href^='{base}/1']")).to_be_visible()
    page.evaluate(f"fetch('{base}/8').catch(() => 0)")
    page.evaluate(f"new Image().src = '{base}/9'")
    page.reload()
    expect(page.locator(".picture").first).to_be_visible()
    assert asked == []


def test_chinese_emphasis_is_bold_and_money_is_no_formula(page: Page, stage: Stage) -> None:
    stage.says("**中文，**后面；**“引号”**也是；**重点（说明）**内容\n\nFrom $7M to $40M, and \\(a^2\\).")
    ask(page, "说")
    expect(page.locator(".entry.assistant strong")).to_have_count(3)
    expect(page.locator(".katex")).to_have_count(1)
    expect(page.locator(".entry.assistant .text")).to_contain_text("From $7M to $40M")


def test_the_page_works_over_plain_http_from_another_machine(browser: Browser, tmp_path: Path) -> None:
    with staged(tmp_path / "data", names=("lan.test",)) as stage:
        context = browser.new_context(locale="zh-CN")
        page = context.new_page()
        known = stage.conversation(text("user", "copy me"))
        host = stage.url.replace("127.0.0.1", "lan.test")
        page.goto(stage.login_url().replace("127.0.0.1", "lan.test"))
        page.goto(f"{host}/c/{known}")
        assert page.evaluate("[isSecureContext, navigator.clipboard === undefined]") == [False, True]
        stage.says("可以")
        ask(page, "能用吗？")
        expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("可以")
        page.hover(".entry.user >> nth=0")
        page.click(".entry.user >> nth=0 >> button[aria-label=复制]")
        expect(page.locator(".notice")).to_contain_text("已复制")
        context.close()


def test_the_page_can_be_worked_without_a_mouse(page: Page, stage: Stage) -> None:
    stage.says("by keys")
    page.keyboard.type("hello")
    page.keyboard.press("Enter")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("by keys")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".editing textarea")).to_be_focused()
    page.keyboard.press("Control+k")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("Control+Shift+o")
    expect(page.locator(".welcome")).to_be_visible()
    page.locator(".brand").click()
    page.keyboard.press("?")
    expect(page.locator("dialog kbd").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_two_languages_and_a_phone(browser: Browser, stage: Stage) -> None:
    context: BrowserContext = browser.new_context(
        viewport={"width": 390, "height": 800}, locale="zh-CN", has_touch=True
    )
    page = context.new_page()
    page.goto(stage.login_url())
    expect(page.locator(".welcome h1")).to_have_text("想了解什么？")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("button[aria-label=对话列表]")
    page.click(".rail button[aria-label=设置]")
    page.select_option("dialog select >> nth=0", "en")
    expect(page.locator(".welcome h1")).to_have_text("What would you like to know?")
    page.click("dialog button[aria-label=Close]")
    expect(page.locator(".rail")).to_be_hidden()  # one is back where one talks
    page.click("button[aria-label=Conversations]")
    page.click(".rail >> text=中文")
    expect(page.locator(".welcome h1")).to_have_text("想了解什么？")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click(".rail button[aria-label=深色]")
    assert page.evaluate(ground) != light
    page.reload()
    page.click("button[aria-label=对话列表]")
    page.click(".rail button[aria-label=浅色]")
    assert page.evaluate(ground) == light
    page.keyboard.press("Escape")
    expect(page.locator(".rail")).to_be_hidden()
    context.close()
