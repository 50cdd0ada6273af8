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
    r"\b(?:who|what) are you\b|"
    r"\b(?:hello|hi|hey|good (?:morning|afternoon|evening|day)|dear (?:all|team|sirs?))\b(?: there\b)?|"
    r"\b(?:never mind|excuse me|sorry|oh|okay|ok|well(?=,)|anyway|by the way|thank you|thanks|cheers)\b"
    r"(?: (?:so|very) much\b| a lot\b| in advance\b)?|"
    r"\b(?:can|could|would|will) you (?:please |kindly )?(?:tell|say to|explain to|help) me\b|"
    r"\bi(?: would|'d|’d) (?:like|love) to (?:know|ask)\b|\bi (?:want|need) to (?:know|ask)\b|"
    r"\bi(?: am|'m|’m|) (?:just )?wonder(?:ing)?\b|\b(?:quick|one|a) (?:quick )?question\b|"
    r"\bplease tell me\b|"
    rf"{_WHOSE_ZH}(?:文档|文件|资料|知识库)(?:里面|里|中|上|内)|"
    rf"(?:总结|概括|归纳|概述)(?:一下)?{_WHOSE_ZH}(?:文档|文件|资料)?|"
    r"(?:是?(?:怎么|如何)|有没有)(?:说|写|讲|规定|提到?)的?|(?:说|写|讲|提到)了?些?什么|"
    r"[你您](?:能|可以|会)(?:帮[我你您]|为[我你您])?(?:们)?(?:做|干)些?什么|[你您]是谁|[你您]们?好|"
    r"(?:早上|上午|中午|下午|晚上)好|哈[喽啰罗]|嗨|不好意思|打扰(?:一下|了)|(?<![计结])算了|多谢|谢谢(?:[你您]们?)?|"
    r"(?:麻烦|劳驾)(?:[你您])?(?:问一?下|告诉我)?|我?(?:想|要)(?:问|知道|了解)(?:一下)?|请问(?:一下)?|问一下",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"\bhow (?:long|soon|much|many|often)\b|"
    "几[号天点岁]|(?:多少|什么|怎么|如何|为什么|为何)(?:钱|办|样|时候|时间)?|多久|多长时间|能不能|可不可以|可以|[吗呢吧]",
    re.IGNORECASE,
)
"""Words that ask; where a script has no blanks, they would make pairs with the words beside them."""
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
    r"how (?:many|much|old|often|far)|which (?:year|day|price)|"
    r"what (?:\w+ ){0,2}(?:fee|price|date|pressure|size|weight|speed|torque|distance|temperature)|\bcost|"
    r"多少|几|多大",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d|[零二三四五六七八九十百千万]")

_ASKS_A_WAY = re.compile(
    r"\bhow (?:do|can|could|should|would) (?:i|we|you|one)\b|\bhow to\b|(?:怎么|如何|怎样)(?!样|会|知道)",
    re.IGNORECASE,
)
_WAY = re.compile(
    r"(?:^(?:\d+(?:\.\d+)* )?|[;:,] |\b(?:please|then|to) )"
    r"(?:apply|ask|book|bring|call|check|choose|click|contact|enter|fill|go to|log|open|press|pull|push|put|"
    r"register|reply|select|send|show|sign|start|tell|use|visit|wash|write)\b|"
    "(?<![申邀])请(?![不勿求假])|→|点击|打开|填写|路径|步骤|扫描|联系|提交|登录",
    re.IGNORECASE,
)

_DENIAL = re.compile(r"\b(?:not|cannot|never|no)\b|n['’]t\b|不|没有|无法", re.IGNORECASE)


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
    return Subject(frozenset(terms(_ASKING.sub(" ", left))), _named(left), left != question)


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


def wants_way(question: str) -> bool:
    """Whether a question asks how something is done."""
    return _ASKS_A_WAY.search(question) is not None


def tells_way(text: str) -> bool:
    """Whether a text tells somebody what to do."""
    return _WAY.search(text) is not None


def denies(text: str) -> bool:
    """Whether a text says what is not, or cannot be."""
    return _DENIAL.search(text) is not None
