"""A card: something structured that people see in a conversation; a model reads one short note of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import ClassVar, Literal, Self, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from dialoom.base.text import one_line

Language: TypeAlias = Literal["en", "zh"]
Cell: TypeAlias = str | int | float | bool | None
"""One value of a table: kept as it is, a text never becomes a number."""

MAX_NOTE = 200
_CJK = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_DONE: Mapping[str, str] = {
    "submitted": "已提交",
    "applied": "已应用",
    "confirmed": "已确认",
    "loaded": "已加载",
    "approved": "已批准",
    "declined": "已拒绝",
    "expired": "已过期",
    "cancelled": "已取消",
    "failed": "失败",
}
"""What became of a card: its status, and the word for it in Chinese."""


class CardPart(BaseModel):
    """A value inside a card: frozen, camelCase outside, unknown fields kept."""

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        coerce_numbers_to_str=True,
    )

    def changed(self, **fields: object) -> Self:
        """Return a copy with `fields` replaced, checked like any other; raises `ValidationError`."""
        known = type(self).model_fields
        renamed = {(known[name].alias if name in known else None) or name: fields[name] for name in fields}
        return self.model_validate({**self.stored(), **renamed})

    def stored(self) -> dict[str, object]:
        """Return the fields that were set, named as in a payload."""
        return self.model_dump(by_alias=True, exclude_unset=True, warnings=False)


class Card(CardPart):
    """What every card has. Subclass it, say what `type` it is, and register the class.

    Another entry with the same `id` is the card's new state. `lang` chooses the words of the note; unset, the
    title decides. `status` says what became of the card.
    """

    type: ClassVar[str]
    """The type's name in payloads and entries."""
    names: ClassVar[Mapping[Language, str]] = {}
    """What this type is called, for notes."""

    id: str | None = Field(default=None, max_length=200)
    title: str = ""
    status: str | None = None
    lang: Language | None = None
    rev: int | None = None
    created_by: str | None = None
    error: str | None = None
    error_code: str | None = None
    """`error` is a sentence in English; this is its word for programs, such as `run_in_progress`."""

    @property
    def language(self) -> Language:
        return self.lang or ("zh" if _CJK.search(self.title) else "en")

    @property
    def is_done(self) -> bool:
        """Whether its status says that nothing more is to be answered."""
        return (self.status or "").lower() in _DONE

    @property
    def is_closed(self) -> bool:
        """Whether it takes no action any more; a card that can be done anew says otherwise."""
        return self.is_done

    @property
    def locked(self) -> bool:
        """Whether the card can only be looked at."""
        return False

    def details(self) -> str:
        """Return what a model should know beyond the title, on one line; subclasses say it."""
        return ""

    def note(self, lang: Language) -> str:
        """Return the one short line a model reads in place of this card."""
        name = self.names.get(lang, self.type)
        title, details = one_line(self.title, 60), one_line(self.details(), MAX_NOTE)
        done = _DONE.get((self.status or "").lower())
        if done is not None:
            head = f"{name}“{title}”{done}" if lang == "zh" else f'{name} "{title}" {self.status}'
            return _noted(lang, head, details)
        head = f"已展示{name}" if lang == "zh" else f"shown {name}"
        if title and details:
            return _noted(lang, head, f"{title}（{details}）" if lang == "zh" else f"{title} ({details})")
        return _noted(lang, head, title or details)


def _noted(lang: Language, head: str, tail: str) -> str:
    colon = "：" if lang == "zh" else ": "
    return bracketed(f"{head}{colon}{tail}" if tail else head)


def bracketed(text: str) -> str:
    """Return `text` as a note: one line in brackets, at most 200 characters."""
    return f"[{one_line(text, MAX_NOTE - 2)}]"


def pairs(items: Iterable[tuple[str, object]]) -> str:
    """Return names and values for a note, like `cell=25, method=idw`; what cannot fit is not looked at."""
    return ", ".join(f"{one_line(name, 40)}={_word(value)}" for name, value in islice(items, 20))


def listed(names: Iterable[str]) -> str:
    """Return names for a note, like `x, y, z`."""
    return ", ".join(one_line(name, 40) for name in islice(names, 20))


def _word(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            items = cast("Sequence[object]", value)
            return "/".join(one_line(str(item), 40) for item in items[:10])
        case _:
            return one_line(str(value), 80)
