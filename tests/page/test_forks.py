"""Going on from where a run stood: after a reload, while it runs, while it waits, and after a yes."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from dialoom.llm import ToolCall
from tests.page.stage import Stage, ask, conversation_id, text

pytestmark = pytest.mark.slow

WHOLE = ".entry.assistant:not(.live) .text"


def points(page: Page) -> Locator:
    """Return the checkpoints, newest first, in the panel."""
    if page.locator("#tab-run").count() == 0:
        page.click("button[aria-label=Details]")
    page.click("#tab-run")
    expect(page.locator(".checkpoints li").first).to_be_visible()
    return page.locator(".checkpoints li")


def go_on_from(page: Page, point: Locator) -> str:
    """Press the button of a checkpoint; return the conversation that it leads to."""
    before = page.url
    point.locator("text=Go on from here").click()
    expect(page).not_to_have_url(before)
    expect(page.locator(".entry, .card").first).to_be_visible()
    return conversation_id(page)


def waiting(page: Page, stage: Stage) -> None:
    stage.provider.queue_tool_call("call-1", "refund", {"order": "7", "amount": 9})
    ask(page, "Refund order 7")
    expect(page.locator(".card[data-type=Approval]")).to_be_visible()


def test_after_a_reload_the_end_leads_on_and_the_beginning_asks_again(page: Page, stage: Stage) -> None:
    stage.says("first")
    ask(page, "Hi")
    expect(page.locator(WHOLE)).to_have_text("first")
    page.reload()
    expect(page.locator(WHOLE)).to_have_text("first")
    own = page.url
    assert go_on_from(page, points(page).first) not in own
    expect(page.locator(WHOLE)).to_have_text("first")
    stage.says("second")
    ask(page, "And?")
    expect(page.locator(WHOLE).last).to_have_text("second")
    page.goto(own)
    expect(page.locator(".entry")).to_have_count(2)  # what goes on elsewhere changes nothing here
    go_on_from(page, points(page).last)
    stage.says("other")
    page.click(".unfinished >> text=Go on")
    expect(page.locator(WHOLE)).to_have_text("other")


def test_while_an_answer_comes_the_buttons_wait_and_then_have_another_made_from_its_beginning(
    page: Page, stage: Stage
) -> None:
    gate = stage.gate()
    stage.says("half ", gate, "and whole")
    ask(page, "Hi")
    stage.reach(gate)
    expect(page.locator(".live .text")).to_have_text("half")
    own = page.url
    button = points(page).last.locator("text=Go on from here")
    expect(button).to_be_disabled()
    expect(button).to_have_attribute("title", re.compile("answer"))
    stage.open(gate)
    expect(page.locator(WHOLE)).to_have_text("half and whole")
    go_on_from(page, points(page).last)
    stage.says("another")
    page.click(".unfinished >> text=Go on")
    expect(page.locator(WHOLE)).to_have_text("another")
    page.goto(own)
    expect(page.locator(WHOLE)).to_have_text("half and whole")


def test_where_a_call_waits_the_fork_asks_anew_and_each_is_decided_for_itself(
    page: Page, stage: Stage
) -> None:
    waiting(page, stage)
    own = page.url
    page.reload()
    go_on_from(page, points(page).first)
    stage.provider.queue_text("Refunded here.")
    if page.locator(".unfinished").count():
        page.click(".unfinished >> text=Go on")
    card = page.locator(".card[data-type=Approval]")
    expect(card.locator("text=Approve")).to_be_visible()
    card.locator("text=Approve").click()
    expect(page.locator(WHOLE).last).to_have_text("Refunded here.")
    page.goto(own)
    expect(page.locator(".card[data-type=Approval] >> text=Decline")).to_be_visible()
    stage.provider.queue_text("Then not.")
    page.click(".card[data-type=Approval] >> text=Decline")
    expect(page.locator(WHOLE).last).to_have_text("Then not.")


@pytest.mark.parametrize(("press", "told"), [("Approve", "done"), ("Decline", "declined")])
def test_every_step_of_a_call_that_was_decided_leads_on(
    page: Page, stage: Stage, press: str, told: str
) -> None:
    waiting(page, stage)
    stage.says("Done.")
    page.click(f"text={press}")
    expect(page.locator(WHOLE).last).to_have_text("Done.")
    own = page.url
    page.reload()
    states: list[str] = []
    for at in range(points(page).count()):
        page.goto(own)
        go_on_from(page, points(page).nth(at))
        page.reload()
        lead_on(page, stage, press)
        expect(page.locator(WHOLE).last).to_have_text("Done.")
        states.append(page.locator(".tool-call .tool-state").inner_text())
        points(page)
        expect(page.locator(".panel .steps li", has_text="refund")).to_have_text(f"refund {states[-1]}")
    in_doubt = {"failed"} if press == "Approve" else set[str]()  # begun already: not done a second time
    assert (set(states), len(states) >= 6) == ({told} | in_doubt, True)


def test_a_call_that_no_run_knows_any_more_is_made_anew(page: Page, stage: Stage) -> None:
    call = ToolCall(id="call-1", name="refund", arguments={"order": "7", "amount": 9})
    kept = stage.conversation(
        text("user", "Refund order 7"), text("assistant", "I look.", tool_calls=(call,))
    )  # as a branch in the middle of a run, or an import, has it
    page.goto(f"{stage.url}/c/{kept}")
    stage.says("Which order?")
    page.click(".unfinished >> text=Go on")
    expect(page.locator(WHOLE)).to_have_text("Which order?")


def lead_on(page: Page, stage: Stage, press: str) -> None:
    """Press what the page offers until there is an answer."""
    go_on, decide = page.locator(".unfinished button"), page.locator(f".card button:text-is('{press}')")
    offered = page.locator(WHOLE).or_(go_on).or_(decide)
    expect(offered.first).to_be_visible()
    if page.locator(WHOLE).count():
        return
    if not page.locator(".tool-call").count():
        stage.provider.queue_tool_call("call-1", "refund", {"order": "7", "amount": 9})
    stage.says("Done.")
    while not page.locator(WHOLE).count():
        hand = go_on if go_on.count() else decide
        hand.click()
        expect(hand).to_have_count(0)
        expect(offered.first).to_be_visible()


def test_after_a_yes_the_end_leads_on_with_what_was_done(page: Page, stage: Stage) -> None:
    waiting(page, stage)
    stage.says("Done.")
    page.click("text=Approve")
    expect(page.locator(WHOLE).last).to_have_text("Done.")
    go_on_from(page, points(page).first)
    expect(page.locator(WHOLE).last).to_have_text("Done.")
    expect(page.locator(".badge.approved")).to_be_visible()
    stage.says("Anything else?")
    ask(page, "Thanks")
    expect(page.locator(WHOLE).last).to_have_text("Anything else?")
    asked = stage.provider.requests[-1].messages
    assert "refunded 9" in next(part.content for message in asked for part in message.tool_results)
