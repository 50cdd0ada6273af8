"""Sorting without a model: words tell category and priority, the nearest case tells what to answer."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from dialoom.apps.triage.cases import EMBEDDED
from dialoom.apps.triage.rows import Case, Ticket
from dialoom.apps.triage.verdict import MAX_REPLY, Priority, Verdict
from dialoom.rag import HashEmbedder
from dialoom.rag.question_words import about

_CHINESE_TEXT: Final = re.compile("[\u3400-\u9fff]")
_WORD: Final = re.compile("[A-Za-z]+")
_THANKS: Final = {True: "您好，感谢您的来信。", False: "Thank you for your message. "}
_NO_CASE: Final = {
    True: "您好，感谢您的来信，我们已经收到。",
    False: "Thank you for your message, we have received it.",
}


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The beginnings of words, in small letters, that speak for a category or for a priority.

    The category of which most words are found is taken. A word of `urgent` goes before one of `unhurried`,
    unless it is part of that: "not urgent" is not.
    """

    categories: Mapping[str, Sequence[str]]
    urgent: Sequence[str]
    unhurried: Sequence[str]


DEFAULT_RULES: Final = Rules(
    categories={
        "billing": (
            *("charge", "refund", "invoice", "payment", "paid", "card"),
            *("退款", "付款", "扣款", "发票", "到账", "多扣"),
        ),
        "damage": (
            *("broken", "bent", "damage", "crack", "torn", "dented", "snapped"),
            *("坏", "破损", "裂", "弯", "变形", "断了", "起火", "着火", "冒烟"),
        ),
        "delivery": ("parcel", "tracking", "deliver", "shipping", "transit", "快递", "物流", "发货", "包裹"),
        "account": ("password", "log in", "login", "account", "sign in", "密码", "账号", "登录", "验证码"),
    },
    urgent=(
        *("cannot", "can't", "unable to", "unusable", "at all", "twice", "stranded"),
        *("urgent", "emergency", "asap", "as soon as possible", "immediately", "right away", "tomorrow"),
        *("injur", "hurt", "danger", "unsafe", "hospital", "bleed", "bled", "an accident", "crashed"),
        *("on fire", "caught fire", "catches fire", "smoke", "smoking", "burn", "explo", "electric shock"),
        *("lawyer", "legal action", "lawsuit", "police", "fraud", "stolen", "scam"),
        *("急", "马上", "立即", "立刻", "尽快", "赶紧", "明天", "来不及", "等了", "催"),
        *("无法", "不能用", "用不了", "没法用", "登不上", "失灵"),
        *("受伤", "摔", "砸伤", "烧伤", "烫伤", "流血", "骨折", "医院", "危险", "事故", "安全隐患"),
        *("起火", "着火", "冒烟", "烧焦", "爆炸", "漏电", "触电"),
        *("投诉", "律师", "起诉", "报警", "欺诈", "诈骗", "骗子", "盗刷", "被盗"),
    ),
    unhurried=(
        *("suggest", "just wonder", "would be nice", "no hurry", "no rush", "not urgent", "isn't urgent"),
        *("when you have time", "whenever you can"),
        *("建议", "不急", "不着急", "不是很急", "不太急", "不用急", "别急", "不紧急", "有空", "咨询"),
    ),
)
_FITS: Final = 0.25
"""How near a case has to be to a ticket before its resolution is promised: the cosine of `HashEmbedder`.

Measured: tickets that fit one of examples/tickets have 0.28 and more where no word tells the category, others
0.24 and less.
"""
_FITS_WITH_A_WORD: Final = 0.15
"""The same when a word of the ticket tells the category of the case, as long tickets are near to nothing."""
_LETTERS: Final = HashEmbedder()


def by_rules(ticket: Ticket, cases: Sequence[Case], categories: Sequence[str], rules: Rules) -> Verdict:
    """Return what words and the nearest cases say; `cases` is not empty, the nearest first.

    Without a word for one of the `categories` the nearest case gives its own. The reply is the resolution of
    a case in the ticket's language; when none fits it promises nothing, and nothing is cited.
    """
    words = ticket.text.lower()
    found = {name: _count(words, rules.categories.get(name, ())) for name in categories}
    best = max(found, key=lambda name: found[name])
    category = best if found[best] else cases[0].category
    is_chinese = _is_chinese(words)
    # a language is never left; of its cases those of the category go first
    spoken = [each for each in cases if _is_chinese(each.resolution) == is_chinese]
    spoken.sort(key=lambda each: each.category != category)
    floors = {category: _FITS_WITH_A_WORD if found[best] else _FITS}
    near = _near(ticket, spoken)
    case = next((each for each in spoken if near[each.id] >= floors.get(each.category, _FITS)), None)
    return Verdict(
        category=category,
        priority=_priority(words, rules),
        reply=_NO_CASE[is_chinese] if case is None else f"{_THANKS[is_chinese]}{case.resolution}"[:MAX_REPLY],
        citations=[] if case is None else [case.id],
    )


def _near(ticket: Ticket, cases: Sequence[Case]) -> dict[str, float]:
    """Return how near each case is by its letters, whoever found it: the floors were measured for these."""
    texts = [about(ticket.text), *(f"{case.title}\n{case.text}" for case in cases)]
    asked, *rows = _LETTERS.embed([text[:EMBEDDED] for text in texts])
    return {case.id: float(row @ asked) for case, row in zip(cases, rows, strict=True)}


def _priority(words: str, rules: Rules) -> Priority:
    calm = words
    for each in rules.unhurried:
        calm = calm.replace(each, " ")
    if _count(calm, rules.urgent):
        return "high"
    return "low" if _count(words, rules.unhurried) else "normal"


def _count(words: str, beginnings: Sequence[str]) -> int:
    """Return how many of `beginnings` stand in `words`; those of Chinese stand anywhere."""
    return sum(
        each in words if _CHINESE_TEXT.search(each) else re.search(rf"\b{re.escape(each)}", words) is not None
        for each in beginnings
    )


def _is_chinese(text: str) -> bool:
    """Whether most of `text` is: a name or an article number in it does not count as much as a sentence."""
    letters = len(_CHINESE_TEXT.findall(text))
    return letters > 0 and letters >= len(_WORD.findall(text))
