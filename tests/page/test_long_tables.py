"""A table of a million rows in the page: every row is reached, few are in the document, few are asked for."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.page.stage import Stage, card, staged

pytestmark = pytest.mark.slow

ROWS = 1_000_000
NODES = 60


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture(scope="module")
def page(browser: Browser, stage: Stage) -> Iterator[Page]:
    """A page that shows a data set of a million rows, which takes some seconds to take in."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US")
    context.set_default_timeout(60_000)
    opened = context.new_page()
    opened.goto(stage.login_url())
    lines = "n,name\n" + "".join(f"{at},row {at}\n" for at in range(ROWS))
    file = stage.post(opened, "/files", lines, "text/csv", {"X-Filename": "million.csv"})
    made = stage.post(opened, "/datasets", json.dumps({"fileId": file["id"]}), "application/json")
    table = card("Table", id="t", title="Million", datasetId=made["id"], totalRowCount=ROWS)
    opened.goto(f"{stage.url}/c/{stage.conversation(table)}")
    expect(opened.locator(".grid-body .grid-row").first).to_contain_text("row 0")
    yield opened
    context.close()


def rows_in_sight(page: Page) -> list[int]:
    """Return the numbers of the rows one sees, once they are filled; few are in the document."""
    page.wait_for_function("() => !document.querySelector('.grid-body').textContent.includes('…')")
    seen = page.evaluate(
        """() => { const box = document.querySelector('.grid').getBoundingClientRect();
        const head = document.querySelector('.grid-head').getBoundingClientRect().bottom;
        return [...document.querySelectorAll('.grid-body .grid-row')].filter((row) => {
          const at = row.getBoundingClientRect(); return at.bottom > head + 1 && at.top < box.bottom - 1;
        }).map((row) => Number(row.children[1].textContent)) }"""
    )
    assert page.locator(".grid-body .grid-row").count() <= NODES
    return seen


def scroll(page: Page, part: float) -> list[int]:
    page.evaluate(
        "(part) => { const box = document.querySelector('.grid');"
        " box.scrollTop = part * (box.scrollHeight - box.clientHeight) }",
        part,
    )
    page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    return rows_in_sight(page)


def test_the_first_the_last_and_those_between_are_reached(page: Page) -> None:
    assert scroll(page, 0)[0] == 0
    assert scroll(page, 1)[-1] == ROWS - 1
    for part in (0.5, 0.123456, 0.9, 0.25):
        seen = scroll(page, part)
        assert seen == list(range(seen[0], seen[0] + len(seen)))
        assert abs(seen[0] / ROWS - part) < 0.001
    assert scroll(page, 0)[0] == 0


def test_the_wheel_leaves_no_row_out(page: Page) -> None:
    before = scroll(page, 0.5)
    page.hover(".grid-body")
    passed = set(before)
    for _ in range(12):
        page.mouse.wheel(0, 120)
        page.wait_for_function(
            "(last) => { const row = document.querySelector('.grid-body > :last-child');"
            " return Number(row.children[1].textContent) > last }",
            arg=max(passed),
        )
        page.evaluate(
            "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
        )
        passed |= set(rows_in_sight(page))
    assert sorted(passed) == list(range(before[0], max(passed) + 1))


def test_who_drags_the_bar_through_all_of_it_asks_for_one_page_at_a_time(page: Page) -> None:
    under_way, most = 0, 0

    def begun(request: Request) -> None:
        nonlocal under_way, most
        under_way += "/rows" in request.url
        most = max(most, under_way)

    def ended(request: Request) -> None:
        nonlocal under_way
        under_way -= "/rows" in request.url

    page.on("request", begun)
    page.on("requestfinished", ended)
    page.evaluate(
        """async () => { const box = document.querySelector('.grid');
        const whole = box.scrollHeight - box.clientHeight;
        for (let at = 0; at <= 200; at += 1) { box.scrollTop = at / 200 * whole;
        await new Promise(requestAnimationFrame) } }"""
    )
    assert rows_in_sight(page)[-1] == ROWS - 1
    page.remove_listener("request", begun)
    page.remove_listener("requestfinished", ended)
    assert most == 1
    assert page.evaluate("performance.memory?.usedJSHeapSize ?? 0") < 150_000_000


def test_it_is_sorted_and_filtered_as_a_whole(page: Page) -> None:
    page.click(".grid-head button >> text=n >> nth=0")
    page.click(".grid-head button >> text=n >> nth=0")
    expect(page.locator(".grid-body .grid-row").first).to_contain_text(f"row {ROWS - 1}")
    assert rows_in_sight(page)[0] == ROWS - 1
    assert scroll(page, 1)[-1] == 0
    page.fill(".table-tools input", "row 99999")
    expect(page.locator(".table-tools .help")).to_contain_text("11 of")
    assert scroll(page, 0)[0] == 999_999
