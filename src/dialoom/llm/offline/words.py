"""What a text is about: weighed words, and pairs of characters where a script has no blanks."""

import re
from collections.abc import Iterator

_RUN = re.compile(r"[^\W_]+")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_FULL_WEIGHT = 1.0
FILLER_WEIGHT = 0.05
_HALF_FUNCTION_WEIGHT = 0.4
_LEAST_STEM = 3

_TWO_SYLLABLES_AND_L = re.compile("[^aeiouy]*[aeiouy]+[^aeiouy]+[aeiouy]+l")
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("ly", ""))
_STOP_WORDS = frozenset(
    _RUN.findall(
        """a about after all also am an and any are as at back be because been before being but by can could
        did do does doing for from get give had has have he her here him his how i if in into is it its just
        like long many may me might more most much must my no not of often on one or other our out please
        say shall she should so some such take tell than that the their them then there these they this
        something anything someone somebody anyone anybody thing things
        those to too up us use very want was we were what when where which who whom whose why will with
        would you your go happen know make need
        s t m re ve ll d don doesn didn isn aren wasn weren won wouldn couldn shouldn"""
    )
)
_IRREGULAR: dict[str, str] = dict(
    re.findall(
        r"(\w+):(\w+)",
        """bought:buy brought:bring broken:break broke:break built:build chosen:choose chose:choose
        drawn:draw driven:drive drove:drive fed:feed found:find gone:go grown:grow grew:grow held:hold
        kept:keep knew:know known:know laid:lay led:lead left:leave lent:lend lost:lose made:make meant:mean
        met:meet paid:pay ran:run ridden:ride rode:ride said:say sent:send shown:show sold:sell spent:spend
        spoken:speak spoke:speak stolen:steal stood:stand taken:take took:take taught:teach thought:think
        thrown:throw told:tell understood:understand went:go won:win worn:wear wore:wear written:write
        wrote:write""",
    )
)
_FUNCTION_CHARS = frozenset(
    "的了吗呢吧啊呀嘛是在有和与及或也都就还要会能可以我你您他她它们这那个些不没被把给对从到为上下去来后前时候什么怎样多少几哪谁何如请问想知道告诉关于得着过让跟最很太才再又吧应该"
)


def is_chinese(text: str) -> bool:
    """Whether a text is mostly written in Chinese characters, to answer it in kind."""
    written = sum(len(run) for run in _IDEOGRAPH.findall(text))
    letters = sum(char.isalpha() for char in text)
    return written * 4 >= letters > 0


def terms(text: str) -> Iterator[str]:
    """Give the terms of `text`: words without their endings, and overlapping pairs of ideographs."""
    for run in _RUN.findall(text.casefold()):
        at = 0
        for written in _IDEOGRAPH.finditer(run):
            yield from _word(run[at : written.start()])
            yield from _pairs(written[0])
            at = written.end()
        yield from _word(run[at:])


def weight(term: str) -> float:
    """Return how much a term of a question says, from 0 to 1; question words and fillers say little."""
    if _IDEOGRAPH.match(term):
        fillers = sum(char in _FUNCTION_CHARS for char in term)
        if fillers == len(term):
            return FILLER_WEIGHT
        return _HALF_FUNCTION_WEIGHT if fillers else _FULL_WEIGHT
    return FILLER_WEIGHT if term in _STOP_TERMS else _FULL_WEIGHT


def is_pair(term: str) -> bool:
    """Whether a term is a pair of ideographs, which may also be the seam of two words, or a single one."""
    return len(term) <= 2 and _IDEOGRAPH.match(term) is not None


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]


def _word(word: str) -> Iterator[str]:
    if word:
        yield without_ending(_IRREGULAR.get(word, word))


def without_ending(word: str) -> str:
    """Cut the commonest English endings of a lower-case word: `refunds`, `refunded` and `refund` meet.

    So do `cancelled` and `cancel`, but not `filled` and `file`.
    """
    if len(word) <= _LEAST_STEM or not word.isascii() or not word.isalpha():
        return word
    if not word.endswith(("ss", "us", "is")):
        for ending, keep in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
                word = word.removesuffix(ending) + keep
                break
    is_doubled = len(word) > _LEAST_STEM and word[-1] == word[-2]
    if is_doubled and (word[-1] not in "ls" or _TWO_SYLLABLES_AND_L.match(word)):
        word = word[:-1]
    return word.removesuffix("e") if len(word) > _LEAST_STEM else word


_STOP_TERMS = frozenset(without_ending(word) for word in _STOP_WORDS) | _STOP_WORDS
