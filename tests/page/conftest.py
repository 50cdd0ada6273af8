"""A real browser on a real server. Without Chromium or the built page these tests say so and are skipped."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.page.stage import Stage, staged

PATIENCE = 15_000  # milliseconds: the browser shares a small machine with the rest of the suite
expect.set_options(timeout=PATIENCE)
BUILT = Path(__file__).parents[2] / "src/dialoom/server/page/index.html"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP lan.test 127.0.0.1",
]


@pytest.fixture(
    scope="module"
)  # while it is open an event loop runs in this thread, which async tests cannot share
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium; install it to test the page")
    if not BUILT.exists():
        pytest.skip("the page is not built (npm); run make test")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "data") as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US")
    made.set_default_timeout(PATIENCE)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext, stage: Stage) -> Iterator[Page]:
    """A page that is signed in. What it throws, and what the server's policy refuses it, fails the test."""
    opened = context.new_page()
    troubles: list[str] = []
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("console", lambda said: troubles.append(said.text) if "Content Security" in said.text else None)
    opened.goto(stage.login_url())
    opened.wait_for_selector(".composer")
    yield opened
    assert troubles == []
