"""Cards in the page: every type shown, and those that take answers filled, refused, submitted and kept."""

import json
import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from dialoom.conversation import CardEntry, dump_yaml, load_yaml, prompt
from tests.page.stage import REFUND, Stage, ask, card, conversation_id, text

pytestmark = pytest.mark.slow


def opened(page: Page, stage: Stage, *cards: CardEntry) -> str:
    known = stage.conversation(*cards)
    page.goto(f"{stage.url}/c/{known}")
    expect(page.locator(".card")).to_have_count(len(cards))
    return known


def newest(stage: Stage, known: str) -> dict[str, object]:
    entry = stage.entries(known)[-1]
    assert isinstance(entry, CardEntry)
    payload = load_yaml(entry.payload)
    assert isinstance(payload, dict)
    return payload


def note(stage: Stage, known: str) -> str:
    """Return what a model reads of the conversation's cards."""
    return prompt(stage.entries(known))[-1].text


def refund_form() -> CardEntry:
    form = REFUND.card(card_id="f")
    return CardEntry(type="Form", payload=dump_yaml({"id": "f", **form.stored()}))


def test_a_form_is_checked_on_the_page_submitted_once_and_kept(page: Page, stage: Stage) -> None:
    known = opened(page, stage, refund_form())
    page.click("text=Submit")
    expect(page.locator(".field.text .problem")).to_have_text("needed")
    page.fill("[data-field=order]", "12a")
    page.fill("[data-field=amount]", "500")
    page.click("text=Submit")
    expect(page.locator(".field.text .problem")).to_have_text("must match ^[0-9]+$")
    expect(page.locator(".field.number .problem")).to_have_text("at most 100")
    expect(page.locator("[data-field=note]")).to_have_count(0)
    page.check("[data-field=gift]")
    page.fill("[data-field=note]", "with care")
    page.fill("[data-field=order]", "12")
    page.fill("[data-field=amount]", "12.5")
    page.fill("[data-field=code]", "s3cret-code")
    page.select_option("[data-field=why]", "late")
    page.click("text=Submit")
    expect(page.locator(".badge.submitted")).to_be_visible()
    page.reload()
    expect(page.locator(".answers")).to_contain_text("12.5")
    payload = newest(stage, known)
    assert payload["submittedValues"] == {
        "order": "12",
        "amount": 12.5,
        "why": "late",
        "gift": True,
        "note": "with care",
    }
    assert "s3cret-code" not in str(stage.entries(known))
    assert "\n" not in note(stage, known)
    assert "amount=12.5" in note(stage, known)


def test_a_form_that_was_sent_lists_the_fields_that_were_asked_and_no_others(
    page: Page, stage: Stage
) -> None:
    opened(page, stage, refund_form())
    page.fill("[data-field=order]", "12")
    page.fill("[data-field=amount]", "12.5")
    page.click("text=Submit")
    expect(page.locator(".answers dt")).to_have_text(["Order", "Amount", "Why", "Gift"])
    expect(page.locator(".answers dd")).to_have_text(["12", "12.5", "–", "–"])


def test_a_card_that_changes_is_no_new_message(page: Page, stage: Stage) -> None:
    opened(page, stage, refund_form(), *(card("Plot", id=f"p{at}", title=f"Map {at}") for at in range(12)))
    page.evaluate("document.querySelector('.transcript').scrollTop = 0")
    page.fill("[data-field=order]", "1")
    page.fill("[data-field=amount]", "2")
    page.click("text=Submit")
    expect(page.locator(".badge.submitted")).to_be_visible()
    expect(page.locator(".new-pill")).to_have_count(0)


def test_half_filled_forms_keep_their_own_words(page: Page, stage: Stage) -> None:
    known = opened(page, stage, refund_form())
    other = stage.conversation(refund_form(), title="Other")
    page.fill("[data-field=order]", "77")
    page.goto(f"{stage.url}/c/{other}")
    expect(page.locator("[data-field=order]")).to_have_value("")
    page.goto(f"{stage.url}/c/{known}")
    expect(page.locator("[data-field=order]")).to_have_value("77")
    page.reload()
    expect(page.locator("[data-field=order]")).to_have_value("77")


def test_the_second_of_two_tabs_is_told_that_a_form_was_answered(
    page: Page, context: BrowserContext, stage: Stage
) -> None:
    known = opened(page, stage, refund_form())
    slow = context.new_page()
    slow.goto(f"{stage.url}/c/{known}")
    for tab in (page, slow):
        tab.fill("[data-field=order]", "1")
        tab.fill("[data-field=amount]", "2")
    slow.route("**/api/v1/events*", lambda route: route.abort())
    page.click("text=Submit")
    expect(page.locator(".badge.submitted")).to_be_visible()
    answers = slow.evaluate(
        """async ([id, rev]) => { const answer = await fetch(
        `/api/v1/conversations/${id}/cards/f/actions/submit`, {method: "POST", headers:
        {"Content-Type": "application/json", "If-Match": `"${rev}"`, "Idempotency-Key": "another"},
        body: JSON.stringify({values: {order: "1", amount: 2}})});
        return [answer.status, await answer.json()] }""",
        [known, 0],
    )
    assert answers[0] == 409
    assert answers[1]["code"] in {"card_decided", "card_changed"}
    assert len(stage.entries(known)) == 2


def test_parameters_are_edited_in_place_compared_with_their_defaults_and_applied(
    page: Page, stage: Stage
) -> None:
    items = [
        {"name": "power", "valueText": "2", "default": "2", "min": 0, "max": 10},
        {"name": "kernel", "valueText": "rbf", "default": "rbf", "options": ["rbf", "linear"]},
    ]
    known = opened(page, stage, card("ParameterSet", id="p", title="Run", items=items))
    page.fill("input[aria-label=power]", "11")
    expect(page.locator(".parameters .problem")).to_have_text("at most 10")
    page.fill("input[aria-label=power]", "3")
    page.check("text=only those that differ")
    expect(page.locator(".parameters tbody tr")).to_have_count(1)
    page.click("text=Apply")
    expect(page.locator(".badge.applied")).to_be_visible()
    assert "power=3" in note(stage, known)
    page.click("text=Reset")
    expect(page.locator("input[aria-label=power]")).to_have_value("2")


def test_a_long_table_keeps_few_rows_in_the_page_and_is_sorted_filtered_and_taken_out(
    page: Page, stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [[at, f"name {at}", "=1+1" if at == 0 else at / 4] for at in range(3000)]
    opened(page, stage, card("Table", id="t", title="Points", columnNames=["n", "name", "z"], rows=rows))
    assert page.locator(".grid-body .grid-row").count() <= 60
    page.click(".grid-head button >> text=n >> nth=0")
    page.click(".grid-head button >> text=n >> nth=0")
    expect(page.locator(".grid-body .grid-row").first).to_contain_text("name 2999")
    page.fill(".table-tools input", "name 17")
    expect(page.locator(".table-tools .help")).to_contain_text("111 of")
    page.fill(".table-tools input", "")
    with page.expect_download() as download:
        page.click("text=CSV")
    file = tmp_path_factory.mktemp("csv") / "table.csv"
    download.value.save_as(file)
    lines = file.read_text(encoding="utf-8-sig").splitlines()
    assert len(lines) == 3001
    assert "0,name 0,'=1+1" in lines


def test_a_table_of_twenty_thousand_rows_of_a_data_set_scrolls_with_few_rows_in_the_page(
    page: Page, stage: Stage
) -> None:
    lines = "\n".join(["n,name", *(f"{at},name {at}" for at in range(20_000))])
    made = stage.post(page, "/files", lines, "text/csv", {"X-Filename": "big.csv"})
    made = stage.post(page, "/datasets", json.dumps({"fileId": made["id"]}), "application/json")
    opened(
        page,
        stage,
        card(
            "Table",
            id="t",
            title="Big",
            columnNames=["n", "name"],
            datasetId=made["id"],
            totalRowCount=20000,
        ),
    )
    expect(page.locator(".grid-body .grid-row").first).to_contain_text("name 0")
    page.evaluate("document.querySelector('.grid').scrollTop = 15000 * 30")
    expect(page.locator(".grid-body")).to_contain_text("name 15000")
    assert page.locator(".grid-body .grid-row").count() <= 60


def test_columns_are_matched_by_name_corrected_and_confirmed(page: Page, stage: Stage) -> None:
    known = opened(
        page,
        stage,
        card(
            "ColumnMatch",
            id="m",
            title="Columns",
            requiredColumns=[{"name": "x", "synonyms": ["east"]}, {"name": "y", "dtype": "float"}],
            previewColumns=[{"name": "East", "samples": [1, 2]}, {"name": "North", "dtype": "text"}],
        ),
    )
    expect(page.locator("select[aria-label=x]")).to_have_value("East")
    expect(page.locator(".card button.primary")).to_be_disabled()
    page.select_option("select[aria-label=y]", "East")
    expect(page.locator(".card .problem").first).to_have_text("taken twice")
    page.select_option("select[aria-label=y]", "North")
    expect(page.locator(".card .parameters .help").last).to_have_text("this column holds text")
    page.click("text=Confirm")
    expect(page.locator(".badge.confirmed")).to_be_visible()
    assert "x=East, y=North" in note(stage, known)


def test_columns_are_matched_by_dragging_and_with_the_keys_alone(page: Page, stage: Stage) -> None:
    wanted = {"requiredColumns": ["depth", "age"], "previewColumns": ["tiefe", "alter"]}
    known = opened(page, stage, card("ColumnMatch", id="m", title="Columns", **wanted))
    page.drag_and_drop(".chip:has-text('tiefe')", "tr:has-text('depth')")
    expect(page.locator("select[aria-label=depth]")).to_have_value("tiefe")
    expect(page.locator(".card .chip")).to_have_text(["alter"])
    page.focus("select[aria-label=age]")
    page.keyboard.type("alt")
    expect(page.locator("select[aria-label=age]")).to_have_value("alter")
    page.keyboard.press("Tab")
    expect(page.locator(".card button.primary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".badge.confirmed")).to_be_visible()
    assert "depth=tiefe, age=alter" in note(stage, known)


def test_a_tool_waits_for_approval_and_runs_with_the_arguments_a_person_gave(
    page: Page, stage: Stage
) -> None:
    stage.provider.queue_tool_call("call-1", "refund", {"order": "7", "amount": 90})
    stage.says("It is done.")
    ask(page, "Refund order 7")
    expect(page.locator(".card[data-type=Approval]")).to_be_visible()
    page.click("text=Edit arguments")
    page.fill(".code-box", '{"order": "7", "amount": 9}')
    page.reload()
    expect(page.locator(".code-box")).to_have_value('{"order": "7", "amount": 9}')
    page.focus(".card button.primary")
    page.keyboard.press("Enter")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("It is done.")
    expect(page.locator(".badge.approved")).to_be_visible()
    expect(page.locator(".card")).to_be_focused()  # the button is gone; who works with keys goes on from here
    asked = stage.provider.requests[-1].messages
    assert "refunded 9" in next(part.content for message in asked for part in message.tool_results)
    page.click(".tool-call summary")
    expect(page.locator(".tool-call")).to_contain_text("refunded 9")


def test_a_declined_tool_is_not_run_and_the_model_reads_why(page: Page, stage: Stage) -> None:
    stage.provider.queue_tool_call("call-1", "refund", {"order": "7", "amount": 90})
    stage.says("Then not.")
    ask(page, "Refund order 7")
    page.fill("input[aria-label^=Reason]", "too much")
    page.click("text=Decline")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("Then not.")
    asked = stage.provider.requests[-1].messages
    assert "too much" in next(part.content for message in asked for part in message.tool_results)


def test_the_other_cards_show_what_they_hold(page: Page, stage: Stage) -> None:
    steps = [
        {"id": "a", "displayName": "Load", "status": "done"},
        {"id": "b", "displayName": "Grid", "status": "running", "progress": 0.4},
    ]
    opened(
        page,
        stage,
        card("WorkflowStatus", id="w", title="Gridding", steps=steps),
        card(
            "Sources",
            id="s",
            title="Where from",
            sources=[{"index": 1, "title": "a.md", "text": "words"}],
            cited=[1],
        ),
        card("Error", id="e", message="the model did not answer", hint="try later"),
        card("KnowledgeBase", id="k", title="Docs", totals={"docs": 14, "chunks": 200}),
        card("Plot", id="pl", title="Map", caption="depth in metres"),
        card(
            "XyzLoadCard",
            id="x",
            fileName="points.xyz",
            columns=[{"index": 0, "name": "E"}],
            warnings=["odd"],
        ),
        card(
            "GriddingParamCard",
            id="g",
            method="idw",
            extent={"xMin": 0, "xMax": 100, "yMin": 0, "yMax": 50},
            cell={"dx": 10, "dy": 10},
        ),
        card(
            "Approval",
            id="a",
            title="Pay back",
            toolName="refund",
            status="expired",
            expiresAt="2026-11-01T00:00:00Z",
        ),
    )
    shown = page.locator(".card")
    expect(shown.nth(0)).to_contain_text("Load")
    expect(shown.nth(0).locator("progress")).to_be_visible()
    expect(shown.nth(1)).to_contain_text("a.md")
    expect(shown.nth(2)).to_contain_text("the model did not answer")
    expect(shown.nth(3)).to_contain_text("Documents: 14, passages: 200")
    expect(shown.nth(4)).to_contain_text("depth in metres")
    expect(shown.nth(5)).to_contain_text("odd")
    expect(shown.nth(6)).to_contain_text("11 × 6 = 66 nodes")
    expect(shown.nth(7).locator(".badge.expired")).to_have_text("expired")
    expect(shown.nth(7).locator("button:not(.icon-button)")).to_have_count(0)


def test_a_card_that_cannot_be_read_shows_what_was_stored(page: Page, stage: Stage) -> None:
    opened(
        page,
        stage,
        CardEntry(type="Form", payload="fields: ["),
        CardEntry(type="Strange", payload="id: s\ncolour: green\n"),
    )
    expect(page.locator(".card .problem").first).to_contain_text("cannot be shown")
    page.click(".card >> nth=1 >> text=As stored")
    expect(page.locator(".card").nth(1)).to_contain_text("colour: green")


def test_a_slash_command_puts_a_form_into_the_conversation(page: Page, stage: Stage) -> None:
    page.fill(".composer textarea", "/fo")
    page.click(".commands button")
    page.keyboard.press("Enter")
    expect(page.locator(".card[data-type=Form]")).to_be_visible()
    expect(page).to_have_url(re.compile("/c/"))
    page.fill("[data-field=order]", "12")
    page.fill("[data-field=amount]", "3")
    page.click("text=Submit")
    expect(page.locator(".badge.submitted")).to_be_visible()
    assert len(stage.entries(conversation_id(page))) == 2


def test_words_around_cards_reach_the_model_as_one_line_each(page: Page, stage: Stage) -> None:
    known = opened(page, stage, refund_form())
    page.fill("[data-field=order]", "12")
    page.fill("[data-field=amount]", "3")
    page.click("text=Submit")
    expect(page.locator(".badge.submitted")).to_be_visible()
    stage.says("seen")
    ask(page, "Go on")
    expect(page.locator(".entry.assistant:not(.live) .text")).to_have_text("seen")
    sent = "\n".join(message.text for message in stage.provider.requests[-1].messages)
    assert "order=12" in sent
    assert "submittedValues" not in sent
    assert stage.entries(known)[-1] == text("assistant", "seen")
