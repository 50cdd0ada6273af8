"""What comes with a quoted item or row, what counts as filler, and when the offline answer says nothing."""

import pytest

from dialoom.llm import OfflineProvider, SourcePart, chat, user
from dialoom.llm.offline.units import cut
from tests.llm.test_offline import answer

EXCLUDED = """# Terms

What is not covered:

- Rust on scratches.
- Damage from accidents.

## Parts

Part | Covered | Not covered
Tyres | faulty valve | punctures
Flags | loss | none
"""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Is rust covered?", "What is not covered: Rust on scratches."),
        ("Are tyres covered?", "Parts: Part: Tyres; Covered: faulty valve; Not covered: punctures"),
        ("What is not covered?", "What is not covered: Rust on scratches. Damage from accidents."),
    ],
)
async def test_an_item_or_a_row_comes_with_what_it_stands_under(question: str, said: str) -> None:
    assert await answer(question, EXCLUDED) == f"According to your documents: {said} [1]"


async def test_an_item_whose_list_begins_elsewhere_says_so_unless_the_source_is_named_after_it() -> None:
    torn = "4.3 Rust on all of the scratches.\n4.4 Water in a lamp."
    said = "According to your documents: 4.3 Rust on all of the scratches. [1]"
    assert await answer("Is rust on scratches covered?", torn) == (
        f"{said} (an item of a list whose title is not in this passage: open the source to see what it lists)"
    )
    for title, under in [("t.md, Exclusions", "Exclusions: "), ("t.pdf, page 1", "")]:
        source = SourcePart(index=1, id="t#0", title=title, text=torn)
        told = (
            await chat(OfflineProvider(), [user("Is rust on scratches covered?", sources=(source,))])
        ).text
        assert told.startswith(f"According to your documents: {under}4.3 Rust on all of the scratches. [1]")
        assert told.endswith("what it lists)") is not under


@pytest.mark.parametrize(
    "question",
    [
        "never mind, how long do refunds take?",
        "Hello there, how long do refunds take?",
        "Thanks a lot! Could you please tell me how long refunds take?",
        "Well, I would like to know how long refunds take.",
    ],
)
async def test_greetings_and_fillers_do_not_change_the_answer(question: str) -> None:
    minded = "Do you mind hellos? They are well liked, thanks to their tellers."
    assert await answer(question, minded, "A refund takes three days.") == (
        "According to your documents: A refund takes three days. [2]"
    )


@pytest.mark.parametrize("question", ["你好，请问退款要多久？", "不好意思，我想问一下退款要多久？谢谢！"])
async def test_neither_do_chinese_ones(question: str) -> None:
    asked = "有问题请问客服。请写明你好坏的意见，谢谢合作。"
    assert await answer(question, asked, "退款需要三天。") == "根据文档：退款需要三天。 [2]"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Do you sell helmets?", "We sell parts. Do you ride?"),
        ("How do I reset my password?", "Passwords are taught on day 3."),
        ("忘记密码怎么办？", "首次登录必须修改初始密码。工牌当场制作。"),
        ("可以让别人代收吗？", "体验店只代收，不现场拆修。"),
    ],
)
async def test_one_word_of_several_is_not_enough_for_an_answer(question: str, text: str) -> None:
    assert await answer(question, text, "Rain falls. 天是蓝的。") in {
        "Your documents hold nothing on this question.",
        "文档中没有与这个问题有关的内容。",
    }


async def test_a_sentence_without_the_number_asked_for_brings_the_list_below_it() -> None:
    sheet = "2. Tyres\nCheck the pressure cold.\n  Heron: 2.0 bar\n  Ferry: 3.5 bar\n3. Coupling\nTighten it."
    assert await answer("What tyre pressure is right?", sheet) == (
        "According to your documents: Check the pressure cold. Tyres: Heron: 2.0 bar; Ferry: 3.5 bar [1]"
    )


async def test_how_is_answered_with_what_to_do_rather_than_with_what_is_not_done() -> None:
    rules = (
        "## Returns\n\nReturns are not taken by shops. Unused goods are returned within a week. "
        'They stay whole. Open "My orders" to begin.'
    )
    assert await answer("How do I return goods?", rules) == (
        'According to your documents: Unused goods are returned within a week. Open "My orders" to begin. [1]'
    )


def test_a_paragraph_whose_first_line_is_set_in_is_no_list() -> None:
    text = "Tyres\n  Check them cold. Pump them up.\n  Heron: 2.0 bar\n\u3000\u3000轮胎要常检查"
    assert [unit.is_listed for unit in cut(text)] == [False, False, False, True, False]


async def test_a_clause_that_tells_what_to_do_answers_how() -> None:
    clauses = "6. Claims\n6.1 A claim needs a receipt.\n6.2 Send the claim with photos. We decide on it."
    assert await answer("How do I make a claim?", clauses) == (
        "According to your documents: Claims: 6.1 A claim needs a receipt. "
        "6.2 Send the claim with photos. [1]"
    )


async def test_a_quote_of_a_long_list_is_cut_between_its_items() -> None:
    items = "\n".join(f"- Item {number} is {'long ' * 20}." for number in range(8))
    said = await answer("What cannot be returned?", f"What cannot be returned:\n{items}")
    assert said.startswith("According to your documents: What cannot be returned: Item 0 is long")
    assert (said.count("Item "), said.endswith("long . [1]")) == (3, True)


@pytest.mark.parametrize(
    ("passage", "quoted"),
    [
        ("Open\n\nShop\tMonday\tSunday\nGhent\t10:00\tclosed", "Shop: Ghent; Monday: 10:00; Sunday: closed"),
        ("Ask\n\nQuestion | Whom\nBadge | Reception", "Badge: Reception"),
        ("Open\n\nGhent | 10:00 | 18:00\nUtrecht | 12:00 | 18:00", ""),
        ("Shop | Monday | Sunday\nGhent | 10:00 | closed", ""),
    ],
)
def test_a_row_has_the_names_of_its_columns_where_they_are_sure(passage: str, quoted: str) -> None:
    assert cut(passage)[-1].named == quoted


def test_the_lines_of_a_table_that_lost_its_columns_stay_apart_under_their_names() -> None:
    wide = "This paragraph is wrapped at its full width as those of a page are, word after word it\ngoes on."
    table = (
        "Part Covered Not covered\nTyres and inner tubes Faulty valve Punctures and wear\nFlag Loss Theft it"
    )
    units = cut(f"{wide}\n{table}\nA sentence ends it.")
    assert [(unit.text, unit.lead) for unit in units if unit.is_listed] == [
        ("Tyres and inner tubes Faulty valve Punctures and wear", "Part Covered Not covered"),
        ("Flag Loss Theft it", "Part Covered Not covered"),
    ]
