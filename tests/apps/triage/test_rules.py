"""Without a model, words tell category and priority, and the nearest case what to answer."""

import pytest

from dialoom.apps.triage import DEFAULT_RULES, Case, Rules, Ticket
from dialoom.apps.triage.rules import by_rules
from dialoom.apps.triage.verdict import Verdict
from tests.apps.triage.sample import CASES

ALL = [Case(**row) for row in CASES]
NAMES = ["billing", "damage"]


def judged(text: str, cases: list[Case] = ALL, rules: Rules = DEFAULT_RULES) -> Verdict:
    names = sorted({case.category for case in cases})
    return by_rules(Ticket(id="1", text=text), cases, names, rules)


@pytest.mark.promise("triage-029")
@pytest.mark.parametrize(
    ("text", "category", "priority"),
    [
        ("I was charged and I cannot pay.", "billing", "high"),
        ("The AXLE IS BENT, just wondering why.", "damage", "low"),
        ("It is broken, no hurry, but I need it tomorrow.", "damage", "high"),
        ("退款等了十天", "billing", "high"),
        ("车轴坏了，不急", "damage", "low"),
        ("A refund for a crack that is a crack in an invoice", "billing", "normal"),
    ],
)
def test_words_tell_category_and_priority(text: str, category: str, priority: str) -> None:
    verdict = judged(text)
    assert (verdict.category, verdict.priority) == (category, priority)


def test_a_word_counts_from_its_beginning() -> None:
    assert judged("We recharged it.", ALL[1:]).category == "damage"


def test_without_a_word_the_nearest_case_tells_the_category() -> None:
    assert judged("Hello?", [ALL[1], ALL[0]]).category == "damage"


def test_a_category_that_no_case_has_is_never_given() -> None:
    assert judged("Where is my parcel?").category == "billing"


def test_the_answer_is_that_of_the_nearest_case_of_the_category_in_the_language_of_the_ticket() -> None:
    english = judged("The card", [ALL[1], ALL[2], ALL[0]])
    assert (english.reply, english.citations) == (
        "Thank you for your message. The second payment is paid back.",
        ["A"],
    )
    chinese = judged("退款", [ALL[1], ALL[0], ALL[2]])
    assert (chinese.reply, chinese.citations) == ("您好，感谢您的来信。三个工作日内原路退回。", ["C"])


def test_an_answer_of_rules_is_no_longer_than_one_of_a_model() -> None:
    endless = Case(id="L", category="x", title="", text="a", resolution="b" * 20_000)
    assert len(judged("a", [endless]).reply) == 10_000


def test_rules_may_be_ones_own() -> None:
    rules = Rules(categories={"damage": ["loud"]}, urgent=["flood"], unhurried=[])
    verdict = judged("A loud FLOOD", rules=rules)
    assert (verdict.category, verdict.priority) == ("damage", "high")
