"""What a question is after: its subject without the words around it, and the kind of answer it waits for."""

import re
from typing import NamedTuple

from dialoom.llm.offline.words import terms, weight

_DOCUMENTS = r"(?:documents?|docs|files?|texts?|sources?|knowledge base)"
_WHOSE = r"(?:(?:my|our|your|the|these|all|any|newest|latest|most recent|last) )"
_WHOSE_ZH = "(?:(?:我们?|你们?|您|这些|全部|所有|最新|最近)的?){0,4}"
_FRAMES = re.compile(
    rf"\bwhat (?:do|does|did|can) {_WHOSE}{{0,4}}{_DOCUMENTS} "
    r"(?:say|tell(?: (?:me|us))?|mention|hold|contain|know)\b|"
    rf"\bwhat (?:is|are|was|were) (?:in )?{_WHOSE}{{1,4}}{_DOCUMENTS}(?: about)?\b|"
    rf"\b(?:list|show) (?:me )?{_WHOSE}{{1,4}}{_DOCUMENTS}\b|"
    rf"\b(?:in|from|by|according to) {_WHOSE}{{1,4}}{_DOCUMENTS}\b|"
    rf"\b(?:summari[sz]e|sum up|outline|a summary of|an overview of)\b(?: {_WHOSE}{{0,4}}{_DOCUMENTS}\b)?|"
    r"\b(?:what|how) (?:can|could|do|does) (?:you|this|it) (?:help|do)\b"
    r"(?: (?:me|us)\b)?(?: (?:with|for)\b)?|"
    r"\b(?:who|what) are you\b|\b(?:hello|hi)\b|"
    rf"{_WHOSE_ZH}(?:文档|文件|资料|知识库)(?:里面|里|中|上|内)|"
    rf"(?:总结|概括|归纳|概述)(?:一下)?{_WHOSE_ZH}(?:文档|文件|资料)?|"
    r"(?:是?(?:怎么|如何)|有没有)(?:说|写|讲|规定|提到?)的?|(?:说|写|讲|提到)了?些?什么|"
    r"[你您](?:能|可以|会)(?:帮[我你您]|为[我你您])?(?:们)?(?:做|干)些?什么|[你您]是谁|[你您]好",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"\b(?:what|who) (?:is|are|was|were) the ((?:\w+ ){1,3}?)(?:of|in)\b([^,;.?!]*)|"
    r"的(\w{2,4}?)(?:是|在)[谁什哪]",
    re.IGNORECASE,
)
_GENERAL = frozenset(
    terms(
        """address amount condition cost date deadline duration length limit meaning name number period policy
        price process purpose reason requirement rule size status step time value way weight
        办法 次数 地址 电话 方法 方式 费用 规定 规则 价格 金额 流程 名称 内容 期限
        日期 时间 数量 条件 要求 原因 政策"""
    )
)
"""What any thing has: a document tells it without its name."""
_ASKS_A_TIME = re.compile(
    r"\bhow (?:long|soon|fast|quickly|late)\b|\bwhen\b|\bwhat time\b|"
    r"多久|多长时间|几个?(?:工作日|小时|分钟|天|日|周|月|年)|何时|什么时候|多少天",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|few|same)[ -]"
    r"(?:(?:working|business|calendar) )?(?:minute|hour|day|week|month|year)s?\b|\b\d\d:\d\d\b|"
    r"[\d零一二两三四五六七八九十半]\s?个?(?:工作日|小时|分钟|天|日|周|星期|月|年)|[当次]天|[当次]日",
    re.IGNORECASE,
)
_ASKS_A_NUMBER = re.compile(
    r"how (?:many|much|old|often|far)|which (?:year|day|price)|what (?:fee|price|date)|\bcost|多少|几|多大",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d|[零二三四五六七八九十百千万]")


class Subject(NamedTuple):
    """The terms asked about; `named` are those of "the capital" in "what is the capital of France".

    Sources without any of `named` do not answer. `framed` says that there were words around the subject.
    """

    terms: frozenset[str]
    named: frozenset[str]
    framed: bool

    @property
    def is_missing(self) -> bool:
        """Whether the question is about the documents, or about who answers, and about nothing in them."""
        return self.framed and all(weight(term) < 1 for term in self.terms)


def subject_of(question: str) -> Subject:
    """Return what `question` is about; "what do my documents say about" and the like are not it."""
    left = _FRAMES.sub(" ", question)
    return Subject(frozenset(terms(left)), _named(left), left != question)


def _named(question: str) -> frozenset[str]:
    """What must be told to answer; of "the length of the warranty" that is the warranty."""
    found = _NAMES.search(question)
    if found is None:
        return frozenset()
    name = frozenset(terms(found[1] or found[3]))
    if not name & _GENERAL:
        return name
    return frozenset(term for term in terms(found[2] or "") if weight(term) == 1)


def wants_time(question: str) -> bool:
    """Whether a question asks how long something takes, or when it is."""
    return _ASKS_A_TIME.search(question) is not None


def tells_time(text: str) -> bool:
    """Whether a text holds a length of time or a time of day."""
    return _TIME.search(text) is not None


def wants_number(question: str) -> bool:
    """Whether a question asks how many, how much or how long."""
    return wants_time(question) or _ASKS_A_NUMBER.search(question) is not None


def tells_number(text: str) -> bool:
    """Whether a text holds a number, in digits or in Chinese."""
    return _NUMBER.search(text) is not None
