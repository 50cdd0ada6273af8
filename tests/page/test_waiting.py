"""What waits for a person, what gives it up, and what a person is told of it."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from dialoom.llm import ErrorKind, ProviderError
from tests.page.stage import Stage, ask, staged


def asked(page: Page, stage: Stage) -> None:
    """Have a refund wait for a person's yes."""
    stage.provider.queue_tool_call("call-1", "refund", {"order": "7", "amount": 90})
    ask(page, "Refund order 7")
    expect(page.locator(".card[data-type=Approval]")).to_be_visible()


def answered_late(context: BrowserContext, url: str, language: str = "en") -> tuple[Page, Route]:
    """Say yes in another tab; return it, and the answer that is held back on its way."""
    late = context.new_page()
    late.add_init_script(f"localStorage.setItem('dialoom.language', '{language}')")
    late.goto(url)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    late.route("**/actions/decide", hold)
    with late.expect_request("**/actions/decide"):
        late.click(".card[data-type=Approval] button.primary")
    return late, held[0]


def test_another_question_gives_a_waiting_call_up_which_is_said_before_and_after(
    page: Page, stage: Stage
) -> None:
    asked(page, stage)
    expect(page.locator(".composer .asking")).to_have_text(
        "A message sent now gives up what waits for your answer above."
    )
    expect(page.locator(".tool-state")).to_have_text("waiting")
    stage.says("Something else.")
    ask(page, "What else?")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("Something else.")
    for _ in ("as it is said", "after a reload"):
        expect(page.locator(".tool-state")).to_have_text("given up")
        expect(page.locator(".card .badge")).to_have_text("given up")
        expect(page.locator(".composer .asking")).to_have_count(0)
        page.reload()


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "Nobody waits for this answer any more: it was given up, or its time was over."),
        ("zh", "此问题已放弃或已过期，不再等待作答。"),
    ],
)
def test_an_answer_to_what_was_given_up_meanwhile_is_told_that_nobody_waits_for_it(
    page: Page, context: BrowserContext, stage: Stage, language: str, told: str
) -> None:
    asked(page, stage)
    late, held = answered_late(context, page.url, language)
    stage.says("Something else.")
    ask(page, "What else?")
    expect(late.locator(".badge.givenUp")).to_be_visible()
    held.continue_()
    expect(late.locator(".notice.error")).to_have_text(told)


def test_when_two_minutes_are_left_the_time_of_day_becomes_seconds(
    context: BrowserContext, tmp_path: Path
) -> None:
    with staged(tmp_path / "data", approval_seconds=600) as stage:
        page = context.new_page()
        page.clock.install()
        page.goto(stage.login_url())
        asked(page, stage)
        until = page.locator(".card .until")
        expect(until).to_have_text(re.compile(r"^Answer until "))
        page.clock.fast_forward(500_000)
        expect(until).to_have_text(re.compile(r"^Answer within \d\d s; then it expires\.$"))
        expect(page.locator(".card >> text=Approve")).to_be_enabled()


@pytest.mark.slow
def test_what_nobody_answers_counts_its_last_seconds_down_and_then_says_what_became_of_it(
    context: BrowserContext, tmp_path: Path
) -> None:
    with staged(tmp_path / "data", approval_seconds=7) as stage:
        page = context.new_page()
        page.goto(stage.login_url())
        asked(page, stage)
        expect(page.locator(".card .until")).to_have_text(
            re.compile(r"^Answer within [0-7] s; then it expires\.$")
        )
        stage.says("Something else.")
        for _ in ("as it comes", "after a reload"):
            expect(page.locator(".card .badge")).to_have_text("expired")
            expect(page.locator(".tool-state")).to_have_text("expired")
            expect(page.locator(".card .help")).to_have_text(
                "Nobody answered in time: this was not done, and the run has ended. Send a message to go on."
            )
            expect(page.locator(".composer .asking, .unfinished, .waiting")).to_have_count(0)
            page.reload()
        ask(page, "What else?")
        expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("Something else.")
        expect(page.locator(".card .badge")).to_have_text("expired")


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("auth", "The model’s server refused the key: HTTP 401: no such key"),
        ("overloaded", "The model did not answer: HTTP 401: no such key"),
    ],
)
def test_why_no_answer_comes_is_told_in_words_of_its_own(
    page: Page, stage: Stage, why: ErrorKind, told: str
) -> None:
    stage.provider.queue_error(ProviderError(why, "HTTP 401: no such key"))
    ask(page, "Hi")
    expect(page.locator(".failure p")).to_have_text(told)


def test_the_second_of_two_answers_to_an_approval_is_told_that_it_came_too_late(
    page: Page, context: BrowserContext, stage: Stage
) -> None:
    asked(page, stage)
    late, held = answered_late(context, page.url)
    stage.says("It is done.")
    page.click("text=Approve")
    expect(late.locator(".badge.approved")).to_be_visible()
    held.continue_()
    expect(late.locator(".notice.error")).to_have_text("This was answered already, perhaps in another tab.")


def test_an_unknown_command_is_told_and_stays_written_while_a_path_is_sent(page: Page, stage: Stage) -> None:
    ask(page, "/nope now")
    told = page.locator(".notice.error")
    expect(told).to_contain_text("There is no command “/nope”; there are: /form, /xyz, /kb")
    expect(page.locator(".composer textarea")).to_have_value("/nope now")
    told.click()
    expect(told).to_have_count(0)
    ask(page, "/nope")
    expect(told).to_be_visible()
    ask(page, "/nope")
    expect(page.locator(".composer textarea")).to_have_value("/nope")
    expect(told).to_have_count(1)  # pressed twice, told once
    stage.says("It names hosts.")
    ask(page, "/etc/hosts is what?")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("It names hosts.")
    expect(told).to_have_count(0)  # what went well ends what is told of before
    expect(page.locator(".rail .row")).to_have_count(1)


def test_an_edited_message_is_sent_with_enter_as_a_new_one_is(page: Page, stage: Stage) -> None:
    stage.says("first")
    ask(page, "Hi")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("first")
    stage.says("second")
    page.hover(".entry.user")
    page.click(".edit-message")
    expect(page.locator(".editing .help")).to_have_text("Enter sends, Shift+Enter makes a new line.")
    page.fill(".editing textarea", "Hi")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("there")
    page.keyboard.press("Enter")
    expect(page.locator(".entry.user .bubble")).to_have_text("Hi\nthere")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("second")
