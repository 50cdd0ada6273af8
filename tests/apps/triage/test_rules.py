"""Without a model, words tell category and priority, and the nearest case what to answer."""

import asyncio
from pathlib import Path

import pytest

from dialoom.apps.triage import DEFAULT_RULES, Case, CaseIndex, Rules, Ticket, read_cases
from dialoom.apps.triage.rules import by_rules
from dialoom.apps.triage.verdict import Verdict
from dialoom.rag import HashEmbedder
from tests.apps.triage.sample import CASES

ALL = [Case(**row) for row in CASES]
EXAMPLE = Path("examples/tickets/cases.jsonl")


def judged(
    text: str, cases: list[Case] = ALL, rules: Rules = DEFAULT_RULES, names: list[str] | None = None
) -> Verdict:
    names = names or sorted({case.category for case in cases})
    return by_rules(Ticket(id="1", text=text), cases, names, rules)


def shop(text: str) -> Verdict:
    """Judge by all cases of the example, which are laid out as the search would."""
    index = CaseIndex(read_cases(EXAMPLE).rows, HashEmbedder(), warn=print)

    async def found() -> list[Case]:
        (job,) = await index.jobs([Ticket(id="1", text=text)])
        return [each.case for each in await index.search(job, 3)]

    return judged(text, asyncio.run(found()), names=sorted({each.category for each in index.cases.values()}))


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
    english = judged("The card was charged", [ALL[1], ALL[2], ALL[0]])
    assert (english.reply, english.citations) == (
        "Thank you for your message. The second payment is paid back.",
        ["A"],
    )
    chinese = judged("退款多久", [ALL[1], ALL[0], ALL[2]])
    assert (chinese.reply, chinese.citations) == ("您好，感谢您的来信。三个工作日内原路退回。", ["C"])


@pytest.mark.parametrize(
    ("text", "resolution"),
    [("车轴弯了", "A new axle is sent."), ("The axle is bent", "我们补发一根新的车轴。")],
)
def test_a_resolution_in_another_language_is_not_quoted_however_near_its_case(
    text: str, resolution: str
) -> None:
    foreign = Case(id="F", category="damage", title="", text=text, resolution=resolution)
    assert judged(text, [foreign]).citations == []
    assert resolution not in judged(text, [foreign]).reply
    own = Case(id="O", category="product", title="", text=f"{text}?", resolution=text)
    assert judged(text, [foreign, own]).citations == ["O"]


def test_an_answer_of_rules_is_no_longer_than_one_of_a_model() -> None:
    endless = Case(id="L", category="x", title="", text="A bent axle", resolution="b" * 20_000)
    assert len(judged("A bent axle", [endless]).reply) == 10_000


FITTING = [
    ("My Heron 40 arrived with a bent axle. I cannot use it at all and need it tomorrow!", "C-1"),
    ("The trailer came with its axle bent, what now? We are leaving on holiday on Friday.", "C-1"),
    ("The axle is bent", "C-1"),
    ("You charged my card twice for order 1042, please pay one of them back.", "C-2"),
    ("double charge on my card", "C-2"),
    ("My name is 王伟 and my card was charged two times", "C-2"),
    ("Where is my parcel? The tracking number has said 'in transit' for nine days.", "C-3"),
    ("Parcel has been stuck for ten days", "C-3"),
    ("Can I hitch the Wren 20 to a mountain bike with a thru axle?", "C-4"),
    ("Does it fit a thru axle?", "C-4"),
    ("退货验货没问题之后，退款几天能到账？已经等了十天。", "C-5"),
    ("退款三天了还没到账，急！", "C-5"),
    ("退款多久到账", "C-5"),
    ("我的退款什么时候能到？", "C-5"),
    ("I forgot my password and the link to reset it does not arrive.", "C-6"),
    ("I can't reset my password, no mail", "C-6"),
    ("Please change the delivery address of my order", "C-7"),
    ("I moved house; can the order go to another address?", "C-7"),
]
STRANGE = [
    *("a", "test", "hello", "👍", "what time is it", "thank you!", "asdf qwer"),
    *("Hi, do you sell gift cards?", "What are your opening hours?", "I want to become a dealer"),
    *("How heavy is the Heron 40?", "Is the trailer waterproof?", "My order is missing a screw"),
    *("I love my trailer", "The mail carrier was rude", "Where is the user manual?"),
    *("The wheel squeaks when it rains", "Is the trailer of the order arriving?"),
    *("你好", "谢谢", "你们几点开门？", "有没有红色的？", "拖车多重？", "怎么安装轮子？", "发票抬头写错了"),
    *(
        "车轴弯了，骑行时差点摔倒受伤",
        "我要投诉你们的客服态度",
        "密码忘了，收不到邮件",
        "请帮我改一下收货地址",
    ),
]


@pytest.mark.parametrize(("text", "case"), FITTING)
def test_a_case_that_fits_is_answered_from_in_its_language(text: str, case: str) -> None:
    verdict = shop(text)
    assert verdict.citations == [case]
    assert verdict.reply.startswith(
        "您好，感谢您的来信。" if case == "C-5" else "Thank you for your message. "
    )


@pytest.mark.parametrize("text", STRANGE)
def test_where_no_case_of_the_language_fits_the_reply_promises_nothing(text: str) -> None:
    verdict = shop(text)
    assert (verdict.reply, verdict.citations) in [
        ("您好，感谢您的来信，我们已经收到。", []),
        ("Thank you for your message, we have received it.", []),
    ]
    assert verdict.reply.isascii() == all(not "\u3400" <= letter <= "\u9fff" for letter in text)


@pytest.mark.parametrize(
    ("text", "priority"),
    [
        *(
            (text, "high")
            for text in ("车轴弯了，骑行时差点摔倒受伤", "退款三天了还没到账，急！", "电池冒烟了")
        ),
        *(
            (text, "high")
            for text in (
                "很危险",
                "充电时起火",
                "请尽快处理",
                "刹车失灵",
                "我的账号被盗",
                "骑车摔了",
                "我要报警",
            )
        ),
        *((text, "high") for text in ("My son was injured.", "This is dangerous", "The battery caught fire")),
        *(
            (text, "high")
            for text in ("I had an accident", "It smokes when charging", "Help, it's an emergency")
        ),
        *(
            (text, "high")
            for text in ("Reply ASAP", "We are stranded", "My bike was stolen", "I call my lawyer")
        ),
        *(
            (text, "low")
            for text in ("不急，想问一下颜色", "这个不紧急", "不着急", "This is not urgent", "No rush")
        ),
        *(
            (text, "normal")
            for text in ("I accidentally ordered two", "你好", "The paint is scratched", "换个颜色")
        ),
        *(
            (text, "high")
            for text in ("不着急换颜色，但是车着火了", "No hurry about the bell, but I was hurt")
        ),
    ],
)
def test_danger_and_haste_are_heard_in_both_languages(text: str, priority: str) -> None:
    assert judged(text).priority == priority


def test_rules_may_be_ones_own() -> None:
    rules = Rules(categories={"damage": ["loud"]}, urgent=["flood"], unhurried=[])
    verdict = judged("A loud FLOOD", rules=rules)
    assert (verdict.category, verdict.priority) == ("damage", "high")
