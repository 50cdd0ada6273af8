"""Answers without a model: quotes with their numbers, in the language of the question."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.cancel import Cancelled, CancelScope
from dialoom.llm import (
    Capability,
    ChatOptions,
    Model,
    OfflineProvider,
    Origin,
    ResponseCompleted,
    SourcePart,
    TextDelta,
    assistant,
    chat,
    system,
    user,
)
from dialoom.llm.offline.asking import subject_of, tells_time
from dialoom.llm.offline.kin import Kin, kin_of
from dialoom.llm.offline.units import MAX_UNITS, Unit, cut
from dialoom.llm.offline.words import is_chinese, terms, weight

REFUNDS = """# Refunds

You may return an unused product within 30 days of delivery.
A used product is taken back with a fee of 12% of the price. We refund
to the card you paid with.
"""
SHIPPING = """zone: 1
destination: Belgium
price: 14.50

zone: 4
destination: Norway
price: 118.00"""
FAQ = "My bicycle has a thru axle. Does the coupling fit?\nYes, with the M12 adapter [7]."
CHINESE_FAQ = "坐垫可以机洗吗？\n可以拆下后用30度水温轻柔机洗。\nlang: zh"
LOG = """2026-03-12 06:41 ERROR sorter: belt 2 stopped, motor overheated
2026-03-12 06:43 INFO sorter: nobody hurt"""
TABLE = """Discounts for schools:

| amount | price |
|---|---|
| 5 to 19 | 95% |
| 20 to 49 | 90% |"""
ROWS = "amount: 5 to 19; price: 95%; amount: 20 to 49; price: 90%"
CARD = "工牌遗失请当天报失，补办收取工本费30元。上班时间为早上九点。"
LAMP = "车灯拆开包装后，仍可在七天内退货，但要扣除百分之五的折旧费。\n退货请寄太仓仓库。"


def sources(*texts: str) -> tuple[SourcePart, ...]:
    return tuple(
        SourcePart(index=number, id=f"d#{number}", title=f"doc{number}.md", text=text)
        for number, text in enumerate(texts, 1)
    )


async def answer(question: str, *texts: str) -> str:
    return (
        await chat(OfflineProvider(), [system("Be brief."), user(question, sources=sources(*texts))])
    ).text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What fee do you keep for a used product?",
         "According to your documents: A used product is taken back with a fee of 12% of the price. [1]"),
        ("How much is shipping to Norway?",
         "According to your documents: zone: 4; destination: Norway; price: 118.00 [2]"),
        ("Will the coupling work with a thru axle?",
         "According to your documents: My bicycle has a thru axle. Yes, with the M12 adapter (7). [3]"),
        ("Why did the sorter belt stop?",
         "According to your documents: 2026-03-12 06:41 ERROR sorter: belt 2 stopped, motor overheated [4]"),
        ("What do schools pay for what amount?",
         f"According to your documents: Discounts for schools: {ROWS} [5]"),
    ],
)  # fmt: skip
async def test_the_sentence_that_answers_is_quoted_with_its_number(question: str, said: str) -> None:
    assert await answer(question, REFUNDS, SHIPPING, FAQ, LOG, TABLE) == said


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("工牌弄丢了，补办一张要交多少钱？", "根据文档：工牌遗失请当天报失，补办收取工本费30元。 [1]"),
        (
            "车灯拆开包装了，还能退吗？",
            "根据文档：车灯拆开包装后，仍可在七天内退货，但要扣除百分之五的折旧费。 [2]",
        ),
    ],
)
async def test_a_chinese_question_is_answered_in_chinese(question: str, said: str) -> None:
    assert await answer(question, CARD, LAMP) == said


async def test_passages_that_answer_equally_well_are_quoted_each_once() -> None:
    said = await answer(
        "When is lunch?", "Lunch is at noon.", "Lunch is at noon.", "Lunch is at one.", "Rain."
    )
    assert said == "According to your documents:\n- Lunch is at noon. [1]\n- Lunch is at one. [3]"


async def test_a_neighbour_that_says_more_on_the_matter_is_quoted_too() -> None:
    said = await answer(
        "What happens to returned lamps?",
        "Returned lamps are checked in Ghent. Returned lamps are then repaired. The sky is blue.",
    )
    quoted = "Returned lamps are checked in Ghent. Returned lamps are then repaired."
    assert said == f"According to your documents: {quoted} [1]"


async def test_a_very_short_answer_brings_its_next_sentence() -> None:
    said = await answer("Is parking free?", "Parking: free. Staff only on weekdays.")
    assert said == "According to your documents: Parking: free. Staff only on weekdays. [1]"


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("We hold a click & collect order for 9 days.", "We hold a click & collect order for 9 days."),
        ("We hold parcels for 9 days.", "Every shop does it free of charge."),
    ],
)
async def test_a_title_alone_is_never_a_whole_answer(sentence: str, said: str) -> None:
    title = "Click & collect: picking up your order"
    page = f"{title}\n\nEvery shop does it free of charge.\n\n{sentence}"
    source = SourcePart(index=1, id="p#0", title=f"p.html, {title}", text=page)
    asked = user("What happens if I don't pick up my order?", sources=[source])
    assert (await chat(OfflineProvider(), [asked])).text == f"According to your documents: {said} [1]"


async def test_titles_with_nothing_under_them_are_no_answer() -> None:
    titles = "# Picking up your order\n\n## How to pick up an order"
    assert await answer("How is an order picked up?", titles) == (
        "Your documents hold nothing on this question."
    )


async def test_json_lines_and_very_long_sentences_are_quoted_readably() -> None:
    line = '{"question": "opening hours", "answer": "nine to five"}\n{"broken": opening}'
    assert "question: opening hours; answer: nine to five" in await answer(
        "What are the opening hours?", line
    )
    endless = await answer("What do walnuts do?", "walnuts " * 400)
    assert len(endless) < 600
    assert endless.endswith("… [1]")


async def test_what_the_documents_do_not_say_is_not_made_up() -> None:
    assert (
        await answer("Who won the chess final?", REFUNDS) == "Your documents hold nothing on this question."
    )
    assert await answer("谁赢得了象棋决赛？", REFUNDS, CARD) == "文档中没有与这个问题有关的内容。"
    assert await answer("", REFUNDS) == "Your documents hold nothing on this question."
    assert await answer("What?", "") == "Your documents hold nothing on this question."


@pytest.mark.parametrize(
    "question",
    [
        "Summarise the newest document",
        "What can you help me with?",
        "What are my documents about?",
        "List all my documents.",
        "Hello",
    ],
)
async def test_a_question_on_the_documents_as_a_whole_is_told_what_can_be_asked_about(question: str) -> None:
    assert await answer(question, LOG, REFUNDS, " ", CARD, FAQ, CHINESE_FAQ) == (
        "Without a model I quote your documents and sum nothing up. Ask about what they say, such as:"
        "\n- Refunds [2]\n- Does the coupling fit? [5]"
    )
    assert (await answer(question, LOG, CHINESE_FAQ)).endswith("such as:\n- 坐垫可以机洗吗？ [2]")
    assert (await answer(question, LOG, " ", CARD)).endswith("such as:\n- doc1.md [1]\n- doc3.md [3]")
    assert await answer(question, " ") == "Your documents hold nothing on this question."


@pytest.mark.parametrize("question", ["总结最新的文档", "我的文档里有什么？", "你能帮我做什么？"])
async def test_the_same_is_told_in_chinese(question: str) -> None:
    said = await answer(question, REFUNDS, CHINESE_FAQ, LAMP, CHINESE_FAQ)
    assert (
        said == "没有模型时，我只引用文档原文，不做总结。请就文档的内容提问，例如：\n- 坐垫可以机洗吗？ [2]"
    )


@pytest.mark.parametrize(
    "question",
    [
        "What do my documents say about used products?",
        "Summarise used products",
        "According to my files, what about used products?",
        "Used products?",
    ],
)
async def test_the_words_around_a_subject_do_not_count_against_it(question: str) -> None:
    assert await answer(question, SHIPPING, REFUNDS) == (
        "According to your documents: A used product is taken back with a fee of 12% of the price. [2]"
    )


async def test_a_time_is_quoted_when_one_is_asked_for_even_where_only_the_title_names_the_matter() -> None:
    kept = "# Getting your money\n\nWe look at the parcel first. It is paid within 5 business days."
    beside = "# Money matters\n\nMoney is a worry. Staff may buy a lamp each year."
    quoted = "According to your documents: It is paid within 5 business days. [2]"
    assert await answer("When do I get my money?", beside, kept) == quoted


def test_the_words_around_a_subject_are_found_in_one_pass_however_often_they_are_said() -> None:
    assert subject_of("我的" * 50_000 + "在您的" * 50_000).framed is False
    assert subject_of("what do my " * 20_000).framed is False
    assert tells_time("a" * 100_000 + "一" * 100_000) is False


async def test_a_title_alone_adds_nothing_to_a_sentence_that_answers() -> None:
    told = "A refund is paid to your card."
    titled = "# Refund policy for countries of Europe\n\nValid from 1 January for all orders of the web shop."
    assert await answer("What do my documents say about refunds?", told, titled) == (
        f"According to your documents: {told} [1]"
    )


async def test_an_address_is_not_what_a_sentence_is_about() -> None:
    told = "A refund takes three days."
    assert await answer(
        "How long do refunds take?", "Write to refunds@shop.example within 10 days.", told
    ) == (f"According to your documents: {told} [2]")


async def test_what_is_asked_of_a_thing_must_be_told_and_a_measure_need_not_be_named() -> None:
    shipped = "We ship to France and Belgium for EUR 7."
    assert await answer("What is the capital of France?", shipped) == (
        "Your documents hold nothing on this question."
    )
    covered = "The warranty covers 3 years."
    assert await answer("What is the total length of the warranty?", covered, REFUNDS, LOG) == (
        f"According to your documents: {covered} [1]"
    )
    assert await answer("What is the meaning of life?", "Unused means that it has not touched the road.") == (
        "Your documents hold nothing on this question."
    )
    assert await answer("What is the price of postage?", "The price of shipping is EUR 7.") == (
        "According to your documents: The price of shipping is EUR 7. [1]"
    )
    assert await answer("法国的首都是哪里？", "法国的快递要五天。") == "文档中没有与这个问题有关的内容。"
    assert (
        await answer("补办的费用是什么？", CARD) == "根据文档：工牌遗失请当天报失，补办收取工本费30元。 [1]"
    )


async def test_without_documents_it_says_how_to_get_a_model() -> None:
    english = (await chat(OfflineProvider(), [user("Hello there")])).text
    assert english.startswith(
        "No model is configured, and no passage of a document was found for this question"
    )
    assert [
        f"  {tool}" in english for tool in ("ollama pull", "export DIALOOM_BASE_URL", "export OPENAI_API_KEY")
    ]
    assert (await chat(OfflineProvider(), [user("你好")])).text.startswith("还没有配置模型，也没有找到")
    assert (await chat(OfflineProvider(), [])).text == english


async def test_only_the_last_question_counts() -> None:
    talk = [user("How much is shipping to Norway?", sources=sources(SHIPPING)), assistant("x"), user("And?")]
    assert (await chat(OfflineProvider(), talk)).text.startswith("No model is configured")


async def test_the_answer_streams_in_pieces_of_a_sentence_and_adds_up() -> None:
    question = user("When is lunch?", sources=sources("Lunch is at noon.", "Lunch is at one."))
    async with OfflineProvider().stream([question]) as stream:
        events = [event async for event in stream]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert pieces == [
        "According to your documents:",
        *("\n- ", "Lunch is at noon.", " [1]"),
        *("\n- ", "Lunch is at one.", " [2]"),
    ]
    response = stream.response
    assert events[-1] == ResponseCompleted(response)
    assert (response.text, response.model, response.finish_reason) == ("".join(pieces), "offline", "stop")
    assert response.message.origin == Origin("offline", "offline")


async def test_it_can_be_cancelled_and_is_a_provider_like_any_other() -> None:
    scope = CancelScope()
    provider = OfflineProvider()
    with pytest.raises(Cancelled):
        async with provider.stream([user("Hi")], ChatOptions(cancel=scope)) as stream:
            async for _ in stream:
                scope.cancel()
    able = Capability.TEXT | Capability.STREAMING
    assert await provider.models() == (Model(id="offline", provider="offline", capabilities=able),)
    await provider.aclose()


words = st.text(
    st.sampled_from("ab Aé.?!:;,中文的。？！\n|#-{}[]1:") | st.characters(exclude_categories=["Cs"]),
    max_size=60,
)


@given(words, st.lists(words, min_size=1, max_size=4))
async def test_any_text_gives_the_same_answer_twice_and_cites_only_what_was_given(
    question: str, texts: list[str]
) -> None:
    said = await answer(question, *texts)
    assert said == await answer(question, *texts)
    cited = [int(number) for number in re.findall(r"\[(\d+)\]", said) if number.isascii()]
    assert set(cited) <= set(range(1, len(texts) + 1))
    assert len(cited) == len(set(cited))


@given(words)
def test_cutting_keeps_every_unit_on_one_line(text: str) -> None:
    for unit in cut(text):
        assert unit.text == unit.text.strip() or unit.text.endswith("…")
        assert "\n" not in unit.text


def test_a_passage_is_cut_into_titles_sentences_items_and_rows() -> None:
    passage = (
        '# Tyres\n\nCheck them cold! "Always." A wrapped line that goes on for rather long\n'
        "and ends here. Really?\n  Heron 40: 2.0 bar\n- first item\n2. second item\nA | B | C\n"
        "他说：“可以。”然后走了。\n\n***\nIn short\nWe ship."
    )
    assert cut(passage) == [
        Unit("Tyres", "heading"),
        Unit("Check them cold!", "sentence", "Tyres"),
        Unit('"Always."', "sentence", "Tyres"),
        Unit("A wrapped line that goes on for rather long and ends here.", "sentence", "Tyres"),
        Unit("Really?", "sentence", "Tyres"),
        Unit("Heron 40: 2.0 bar", "sentence", "Tyres", is_listed=True, lead="Really?"),
        Unit("first item", "sentence", "Tyres", is_listed=True, lead="Really?"),
        Unit("second item", "sentence", "Tyres", is_listed=True, lead="Really?"),
        Unit("A; B; C", "row", "Tyres", is_listed=True, lead="Really?"),
        Unit("他说：“可以。”", "sentence", "Tyres"),
        Unit("然后走了。", "sentence", "Tyres"),
        Unit("In short", "heading"),
        Unit("We ship.", "sentence", "In short"),
    ]


def test_an_endless_passage_is_cut_only_so_far() -> None:
    assert len(cut("One more. " * (MAX_UNITS + 10))) == MAX_UNITS


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How do I send something back?", "A return needs a number on the parcel."),
        ("What do I do when I'm sick?", "If you are ill, call your team lead."),
        ("Is the guarantee free?", "The warranty is free."),
        ("退货邮费谁出？", "退回的运费由买家承担。"),
    ],
)
async def test_a_sentence_may_answer_in_other_words_than_it_was_asked(question: str, said: str) -> None:
    assert said in await answer(question, "The sky is blue. 天是蓝的。", said)


def test_the_words_of_a_question_are_not_other_words_for_each_other() -> None:
    assert kin_of("When is it open, at what opening hours?") == [
        Kin(("open",), frozenset({"clos"})),
        Kin(("open", "hour"), frozenset({"clos"})),
        Kin(("hour",), frozenset({"clos"})),
    ]
    assert kin_of("Back it goes, to be sent") == []


async def test_a_title_at_the_end_of_a_passage_is_no_answer() -> None:
    assert await answer("Who may sell the lamps?", "Rain falls.\n\n# Selling lamps") == (
        "Your documents hold nothing on this question."
    )


async def test_what_stands_under_a_numbered_title_belongs_to_it() -> None:
    sheet = (
        "7. Winter\nStore the trailer standing. Wash it with soap.\n8. Rain\nDry it at once, then store it."
    )
    assert cut("1. first\n2. second") == [
        Unit("first", "sentence", is_listed=True),
        Unit("second", "sentence", is_listed=True),
    ]
    assert cut(sheet)[1] == Unit("Store the trailer standing.", "sentence", "Winter")
    assert "standing" in await answer("How do I store it in winter?", sheet)


async def test_a_sentence_under_a_title_of_its_own_matter_comes_first() -> None:
    beside = "If nobody comes, the order is cancelled."
    told = "## Cancelling an order\n\nAn order is cancelled free of charge until its label is printed."
    said = await answer("Can I cancel my order?", beside, told)
    assert said.index("free of charge") < said.find("nobody") % len(said)


def test_words_meet_whatever_their_ending_and_fillers_weigh_little() -> None:
    assert set(terms("Refunded refunds, REFUND! 3.5kg")) == {"refund", "3", "5kg"}
    assert set(terms("shipping ships policies glasses address status boxes")) == {
        "ship", "policy", "glass", "address", "status", "box",
    }  # fmt: skip
    assert set(terms("cancel cancelled cancelling travelled travel fill filled file filed sell install")) == {
        "cancel", "travel", "fill", "fil", "sell", "instal",
    }  # fmt: skip
    assert list(terms("退货A1要")) == ["退货", "a1", "要"]
    assert [weight(term) for term in ("refund", "what", "退货", "的货", "什么")] == [
        1.0,
        0.05,
        1.0,
        0.4,
        0.05,
    ]
    assert [is_chinese(text) for text in ("怎么退 Heron", "refund 退", "123", "")] == [
        True,
        False,
        False,
        False,
    ]


async def test_a_sentence_that_meets_one_word_only_does_not_lead_the_answer() -> None:
    kept = "Used trailers are taken back within the same period, but we keep a fee of 12% on a return."
    beside = "Bank transfers are kept open for 8 days."
    assert await answer("What fee is kept on return?", kept, beside) == (
        f"According to your documents: {kept} [1]"
    )


async def test_the_names_of_columns_lead_to_every_row() -> None:
    rows = "| amount ordered | discount |\n|---|---|\n| 5 to 19 | 5% |\n| 20 to 49 | 10% |\n| 50 | 12% |"
    assert await answer("Which discount for which amount ordered?", rows) == (
        "According to your documents: amount ordered: 5 to 19; discount: 5%; "
        "amount ordered: 20 to 49; discount: 10%; amount ordered: 50; discount: 12% [1]"
    )


@pytest.mark.parametrize(
    ("question", "note", "answered"),
    [
        ("Where is the spare key?", "Spare key under the pot", "Spare key under the pot [1]"),
        ("Who has the van?", "Call the dentist\n\nBob has the van", "Bob has the van [1]"),
        ("备用钥匙在哪里？", "备用钥匙在蓝色花盆下面", "备用钥匙在蓝色花盆下面 [1]"),
    ],
)
async def test_notes_of_one_line_without_a_full_stop_are_answers(
    question: str, note: str, answered: str
) -> None:
    assert (await answer(question, note)).endswith(answered)
