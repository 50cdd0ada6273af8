"""A page that is loaded anew at random moments of an answer, or cut off, shows all of it, once."""

import random

import pytest
from playwright.sync_api import Page, expect

from dialoom.conversation import TextEntry
from tests.page.stage import Stage, ask, conversation_id

pytestmark = pytest.mark.slow

PIECES = 60
BITS = ("word{} ", "中文{}，", "é{}̈ ", "👩‍👩‍👧{} ", "**bold{}** ", "x{}\n\n", "`c{}` ", "—{}…")


def script(choose: random.Random) -> list[str]:
    """Return the pieces of an answer, cut anywhere, also within a character that takes two."""
    return [choose.choice(BITS).format(at) for at in range(PIECES)]


def shown(page: Page) -> str:
    """Return the characters of the answer that is on the page, whole or on its way, without any space."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".entry.assistant .text")].map((each) => each.textContent)
        .join("|").replace(/\\s+/g, "")"""
    )


def plain(said: str) -> str:
    """Return what a reader sees of `said`, without any space."""
    return "".join(said.replace("**", "").replace("`", "").split())


def catches_up(page: Page, said: str) -> None:
    page.wait_for_function(
        """(said) => [...document.querySelectorAll(".entry.assistant .text")].map((each) => each.textContent)
        .join("|").replace(/\\s+/g, "") === said""",
        arg=plain(said),
    )


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_is_whole_after_reloads_at_random_moments(page: Page, stage: Stage, seed: int) -> None:
    choose = random.Random(seed)
    pieces = script(choose)
    gates = [stage.gate() for _ in pieces]
    stage.says(*(step for pair in zip(pieces, gates, strict=True) for step in pair))
    ask(page, "Tell")
    said = 1

    def more(most: int) -> None:
        nonlocal said
        for _ in range(choose.randint(0, most)):
            if said < PIECES:
                stage.reach(gates[said - 1])
                stage.open(gates[said - 1])
                said += 1
        stage.reach(gates[said - 1])

    stage.reach(gates[0])
    expect(page.locator(".entry.user")).to_be_visible()
    while said < PIECES:
        more(9)
        page.wait_for_load_state("domcontentloaded")  # Chromium reloads no page that is not there yet
        page.reload(wait_until="commit")  # and while the page comes, more is said
        more(5)
        if choose.random() < 0.5:
            catches_up(page, "".join(pieces[:said]))
    stage.open(gates[-1])
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_count(1)
    expect(page.locator(".live")).to_have_count(0)
    catches_up(page, "".join(pieces))
    expect(page.locator(".entry")).to_have_count(2)
    kept = [each.content for each in stage.entries(conversation_id(page)) if isinstance(each, TextEntry)]
    assert kept == ["Tell", "".join(pieces)]  # byte by byte
    page.reload()
    catches_up(page, "".join(pieces))


def test_what_came_while_the_connection_was_cut_is_there_when_it_is_back(page: Page, stage: Stage) -> None:
    first, second = stage.gate(), stage.gate()
    stage.says("one ", first, "two ", second, "three")
    ask(page, "Count")
    stage.reach(first)
    catches_up(page, "one")
    page.context.set_offline(True)
    stage.open(first)
    stage.reach(second)
    page.context.set_offline(False)
    stage.open(second)
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("one two three")
    expect(page.locator(".entry")).to_have_count(2)


def test_the_answers_words_on_the_page_are_those_of_its_store(page: Page, stage: Stage) -> None:
    said = "".join(script(random.Random(9)))
    stage.says(said)
    ask(page, "Tell")
    catches_up(page, said)
    assert shown(page) == plain(said)
