"""Take the pictures of the workbench in the README and docs: real servers over examples/, a real browser.

What a clock says is set to one moment, so that the same page gives the same picture.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, StorageState, ViewportSize, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
BOUND = 60.0
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--num-raster-threads=1",  # rounded corners come out the same each time
    "--disable-partial-raster",
    "--disable-skia-runtime-opts",
]
DESK: ViewportSize = {"width": 1280, "height": 860}
WIDE: ViewportSize = {"width": 1440, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}
MODEL_TALK = r"""title: Fitting a decay curve
entries:
- kind: Text
  role: user
  content: How do I fit N(t) to these counts?
- kind: Text
  role: assistant
  reasoning: Exponential decay; the logarithm makes it a straight line.
  content: |
    The counts fall as \(N(t) = N_0 e^{-\lambda t}\), so their **logarithm** is a straight line:

    $$\ln N(t) = \ln N_0 - \lambda t$$

    | t | N | ln N |
    |---|---|---|
    | 0 | 1000 | 6.908 |
    | 5 | 607 | 6.409 |
    | 10 | 368 | 5.908 |

    ```python
    slope, intercept = np.polyfit(t, np.log(n), 1)
    print(f"half-life: {np.log(2) / -slope:.2f} s")  # 6.93
    ```

    **中文，**也可以：半衰期约为 **6.93 秒**。
"""
CHINESE_TALK = """title: 测深数据网格化
entries:
- kind: Text
  role: user
  content: 把这份测深数据网格化
- kind: Text
  role: assistant
  content: '**数据已读取，**请确认列的对应关系：'
- kind: Special
  type: Table
  payload: |
    id: t
    title: 测深数据
    columnNames: [经度, 纬度, 水深]
    rows: [[117.2, 31.8, -20], [117.22, 31.81, -19.3], [117.24, 31.83, -18.6], [117.26, 31.84, -17.9],
      [117.28, 31.86, -17.2], [117.3, 31.87, -16.5], [117.32, 31.89, -15.8], [117.34, 31.9, -15.1]]
- kind: Special
  type: ColumnMatch
  payload: |
    id: m
    title: 列匹配
    requiredColumns: [{name: x, label: 经度}, {name: y, label: 纬度}, {name: z, label: 高程}]
    previewColumns: [{name: 经度, samples: [117.2, 117.22]}, {name: 纬度, samples: [31.8, 31.81]},
      {name: 水深, samples: [-20, -19.3]}]
"""
POINTS = "East,North,Height\n" + "".join(
    f"{x},{y},{(x - 60) * (y - 40) / 40 + x / 4:.2f}\n" for x in range(0, 121, 5) for y in range(0, 81, 5)
)


@contextmanager
def served(*command: str) -> Generator[str]:
    """Run a server until the block ends; yield the link it prints."""
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        words = (word for line in server.stdout for word in line.split())
        try:
            yield next(word for word in words if word.startswith("http://"))
        finally:
            server.terminate()
            server.wait(BOUND)


class Sitting:
    """A browser that is signed in to one server; every page of it looks as the picture wants."""

    def __init__(self, browser: Browser, link: str) -> None:
        self.base = link.partition("/login")[0]
        self._browser = browser
        page = browser.new_page()
        page.goto(link)
        expect(page.locator(".composer")).to_be_visible()
        self._state: StorageState = {"cookies": page.context.storage_state().get("cookies", [])}

    def page(self, viewport: ViewportSize, *, language: str = "en-US", dark: bool = False) -> Page:
        page = self._browser.new_page(
            viewport=viewport,
            locale=language,
            color_scheme="dark" if dark else "light",
            has_touch=viewport == PHONE,
            reduced_motion="reduce",
            storage_state=self._state,
        )
        page.set_default_timeout(BOUND * 1000)
        page.goto(self.base)
        expect(page.locator(".composer")).to_be_visible()
        return page


def ask(page: Page, words: str) -> None:
    page.fill(".composer textarea", words)
    page.keyboard.press("Enter")


def answered(page: Page) -> None:
    expect(page.locator(".live")).to_have_count(0)
    expect(page.locator(".entry.assistant .text").last).to_be_visible(timeout=BOUND * 1000)


def opened(page: Page, yaml: str) -> None:
    """Open an exported conversation, as a person would."""
    page.set_input_files(
        ".welcome input[type=file]",
        {"name": "talk.yaml", "mimeType": "application/yaml", "buffer": yaml.encode()},
    )
    expect(page.locator(".entry").first).to_be_visible()


def shot(page: Page, name: str, *, top: bool = False) -> None:
    """Take a picture once everything is drawn."""
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    expect(page.locator("[data-math], pre code[data-language=python]")).to_have_count(0)
    if top:
        page.evaluate("document.querySelector('.transcript').scrollTop = 0")
    page.evaluate(
        """async () => { await document.fonts.ready;
        await Promise.all([...document.images].map((image) => image.decode().catch(() => 0)));
        for (const time of document.querySelectorAll('time')) time.textContent = '10:00';
        for (const took of document.querySelectorAll('.took')) took.textContent = '· 0.1 s';
        for (const term of document.querySelectorAll('dt'))
            if (term.textContent === 'Milliseconds') term.nextElementSibling.textContent = '120' }"""
    )
    page.screenshot(path=IMAGES / f"{name}.png", animations="disabled")
    print(f"docs/images/{name}.png", flush=True)


def help_desk(sitting: Sitting) -> None:
    """A cited answer with a form, and a tool call that waits, with what happened beside it."""
    page = sitting.page(WIDE)
    ask(page, "How many days does the shop hold a click and collect order?")
    answered(page)
    ask(page, "/form")
    page.fill("[data-field=order]", "1042")
    page.select_option("[data-field=reason]", "broken")
    page.click(".cite >> nth=0")
    expect(page.locator(".panel li.cited")).to_be_visible()
    page.hover(".composer")
    shot(page, "workbench", top=True)
    page.click("button[aria-label='New conversation']")
    page.set_viewport_size({"width": 1440, "height": 920})
    ask(page, "Please refund order 1042")
    expect(page.locator("[data-type=Approval]")).to_be_visible()
    page.click("#tab-run")
    page.click(".checkpoints li >> nth=1 >> button >> nth=0")
    expect(page.locator(".changes")).to_be_visible()
    shot(page, "workbench-approval")


def looks(sitting: Sitting) -> None:
    """The same page in dark colours, in Chinese, and on a phone."""
    dark = sitting.page(DESK, dark=True)
    opened(dark, MODEL_TALK)
    expect(dark.locator(".katex").first).to_be_visible()
    shot(dark, "workbench-dark", top=True)
    chinese = sitting.page({"width": 1280, "height": 1120}, language="zh-CN")
    opened(chinese, CHINESE_TALK)
    expect(chinese.locator("select").first).to_be_visible()
    chinese.locator("select").last.select_option("水深")
    shot(chinese, "workbench-chinese", top=True)
    phone = sitting.page(PHONE, language="zh-CN")
    ask(phone, "退货寄到仓库、验货没问题之后，退款几天能到账？")
    answered(phone)
    phone.click(".cite >> nth=0")
    expect(phone.locator(".panel li.cited")).to_be_visible()
    shot(phone, "workbench-phone", top=True)


def gridding(sitting: Sitting) -> None:
    """A file of points that became a map, card by card."""
    page = sitting.page({"width": 1280, "height": 1160})
    ask(page, "/xyz")
    points = page.locator("[data-type=XyzLoadCard]")
    points.locator("input[type=file]").set_input_files(
        {"name": "wells.csv", "mimeType": "text/csv", "buffer": POINTS.encode()}
    )
    points.locator("button.load").click()
    grid = page.locator("[data-type=GriddingParamCard]")
    grid.locator("button.primary").click()
    expect(page.locator("[data-type=Plot] img")).to_be_visible(timeout=BOUND * 1000)
    expect(grid.locator("img.map")).to_be_visible()
    grid.evaluate("card => card.scrollIntoView({ block: 'start' })")
    shot(page, "workbench-cards")


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print(
            "there is no Chromium to take pictures with; install it (apt-get install chromium)",
            file=sys.stderr,
        )
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        desk = ("python", "examples/help_desk.py", "--port", "0", "--data", f"{folder}/desk")
        with served(*desk) as link:
            sitting = Sitting(browser, link)
            help_desk(sitting)
            looks(sitting)
        places = ("--data", f"{folder}/served", "--index", f"{folder}/index.sqlite")
        with served("dialoom", "serve", "--port", "0", "--offline", "--docs", "examples/kb", *places) as link:
            gridding(Sitting(browser, link))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
