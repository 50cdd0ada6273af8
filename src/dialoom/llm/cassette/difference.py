"""Where two JSON values differ, told without repeating what was said."""

from dialoom.base.text import one_line
from dialoom.llm.json_values import fields_of, items_of


def difference(recorded: object, asked: object, path: str = "") -> str | None:
    """Return the first place where `asked` differs from what was `recorded`, None when it does not."""
    if recorded.__class__ is not asked.__class__:
        return f"{path} was {_shown(recorded)} and is {_shown(asked)}"
    fields, others = fields_of(recorded), fields_of(asked)
    if fields or others:
        return _field_difference(fields, others, path)
    items, other_items = items_of(recorded), items_of(asked)
    if items or other_items:
        return _item_difference(items, other_items, path)
    if recorded == asked:
        return None
    if isinstance(recorded, str) and isinstance(asked, str):
        # words of a conversation are not shown
        return f"{path} differs from character {_first_difference(recorded, asked)} on"
    return f"{path} was {_shown(recorded)} and is {_shown(asked)}"


def _field_difference(recorded: dict[str, object], asked: dict[str, object], path: str) -> str | None:
    for name in (*recorded, *(name for name in asked if name not in recorded)):
        place = f"{path}.{name}" if path else name
        if name not in asked:
            return f"{place} was recorded and is not asked for"
        if name not in recorded:
            return f"{place} is asked for and was not recorded"
        found = difference(recorded[name], asked[name], place)
        if found:
            return found
    return None


def _item_difference(recorded: list[object], asked: list[object], path: str) -> str | None:
    for at, (before, now) in enumerate(zip(recorded, asked, strict=False)):
        found = difference(before, now, f"{path}[{at}]")
        if found:
            return found
    if len(recorded) == len(asked):
        return None
    return f"{path} had {len(recorded)} items and has {len(asked)}"


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _shown(value: object) -> str:
    kinds: tuple[tuple[type, str], ...] = ((str, "text"), (dict, "an object"), (list, "a list"))
    kind = next((name for kind, name in kinds if value.__class__ is kind), None)
    return kind or one_line(repr(value), 40)
