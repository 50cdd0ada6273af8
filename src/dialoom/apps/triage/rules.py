"""Sorting without a model: words tell category and priority, the nearest case tells what to answer."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from dialoom.apps.triage.rows import Case, Ticket
from dialoom.apps.triage.verdict import MAX_REPLY, Priority, Verdict

_CHINESE_TEXT: Final = re.compile("[\u3400-\u9fff]")
_THANKS: Final = {True: "您好，感谢您的来信。", False: "Thank you for your message. "}


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The beginnings of words, in small letters, that speak for a category or for a priority.

    The category of which most words are found is taken. A word of `urgent` goes before one of `unhurried`.
    """

    categories: Mapping[str, Sequence[str]]
    urgent: Sequence[str]
    unhurried: Sequence[str]


DEFAULT_RULES: Final = Rules(
    categories={
        "billing": ("charge", "refund", "invoice", "payment", "paid", "card", "退款", "付款", "扣款", "发票"),
        "damage": ("broken", "bent", "damage", "crack", "torn", "坏", "破损", "裂", "弯"),
        "delivery": ("parcel", "tracking", "deliver", "shipping", "transit", "快递", "物流", "发货", "包裹"),
        "account": ("password", "log in", "login", "account", "sign in", "密码", "账号", "登录"),
    },
    urgent=(
        *("cannot", "can't", "urgent", "asap", "immediately", "tomorrow", "at all", "twice", "lawyer"),
        *("紧急", "马上", "立即", "无法", "不能用", "等了", "投诉"),
    ),
    unhurried=("suggest", "just wonder", "would be nice", "no hurry", "建议", "不急", "咨询"),
)


def by_rules(ticket: Ticket, cases: Sequence[Case], categories: Sequence[str], rules: Rules) -> Verdict:
    """Return what words and the nearest cases say; `cases` is not empty, the nearest first.

    Without a word for one of the `categories` the nearest case gives its own.
    """
    words = ticket.text.lower()
    found = {name: _count(words, rules.categories.get(name, ())) for name in categories}
    best = max(found, key=lambda name: found[name])
    category = best if found[best] else cases[0].category
    is_chinese = _is_chinese(words)
    # the nearest of those that fit: a category counts for more than a language
    case = min(
        cases, key=lambda each: (each.category != category, _is_chinese(each.resolution) != is_chinese)
    )
    return Verdict(
        category=category,
        priority=_priority(words, rules),
        reply=f"{_THANKS[is_chinese]}{case.resolution}"[:MAX_REPLY],
        citations=[case.id],
    )


def _priority(words: str, rules: Rules) -> Priority:
    if _count(words, rules.urgent):
        return "high"
    return "low" if _count(words, rules.unhurried) else "normal"


def _count(words: str, beginnings: Sequence[str]) -> int:
    """Return how many of `beginnings` stand in `words`; those of Chinese stand anywhere."""
    return sum(
        each in words if _is_chinese(each) else re.search(rf"\b{re.escape(each)}", words) is not None
        for each in beginnings
    )


def _is_chinese(text: str) -> bool:
    return _CHINESE_TEXT.search(text) is not None
