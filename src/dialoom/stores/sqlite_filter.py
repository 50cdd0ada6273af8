"""A filter as data becomes a condition of SQL over the table of chunks."""

from collections.abc import Sequence

import msgspec

from dialoom.rag.filters import (
    ACL,
    And,
    Condition,
    Contains,
    Eq,
    Gt,
    In,
    Lt,
    Ne,
    Not,
    Or,
    VisibleTo,
)

Sql = tuple[str, list[object]]
"""A condition with a `?` for each of the arguments."""

# the plus takes a column's affinity away, by which page 1 would equal the text "1"
_OWN = {"id": "+chunks.id", "doc_id": "+chunks.doc_id", "page": "+chunks.page"}
_NUMBERS = ("integer", "real", "true", "false")


def sql_of(condition: Condition) -> Sql:
    """The condition on a row of `chunks`. User text is only ever an argument, never part of the SQL."""
    match condition:
        case And(of=inner):
            return _joined(inner, "AND", otherwise="1")
        case Or(of=inner):
            return _joined(inner, "OR", otherwise="0")
        case Not(of=inner):
            return _negated(sql_of(inner))
        case _:
            return _single(condition)


def _single(condition: Eq | Ne | In | Gt | Lt | Contains | VisibleTo) -> Sql:
    match condition:
        case Eq():
            sql = _one_of(condition.field, [condition.value])
        case Ne():
            sql = _negated(_one_of(condition.field, [condition.value]))
        case In():
            sql = _one_of(condition.field, condition.values)
        case Gt():
            sql = _compared(condition.field, ">", condition.value)
        case Lt():
            sql = _compared(condition.field, "<", condition.value)
        case Contains():
            sql = _contains(condition.field, condition.value)
        case VisibleTo():
            sql = _visible_to(condition.names)
    return sql


def _value(field: str) -> Sql:
    """What the field holds, NULL when it is not there."""
    own = _OWN.get(field)
    return (own, []) if own else ("json_extract(chunks.metadata, ?)", [_path(field)])


def _kind(field: str) -> Sql:
    """`text`, `integer`, `real`, `true`, `false`, `array` or NULL."""
    own = _OWN.get(field)
    return (f"typeof({own})", []) if own else ("json_type(chunks.metadata, ?)", [_path(field)])


def _path(field: str) -> str:
    return f'$."{field}"'  # a field's name holds no quotation mark and no backslash


def _one_of(field: str, values: Sequence[object]) -> Sql:
    (value, value_arguments), (kind, kind_arguments) = _value(field), _kind(field)
    tests = " OR ".join([f"{value} IS ?"] * len(values)) or "0"
    arguments = [argument for each in values for argument in (*value_arguments, each)]
    # an array comes out as its JSON, which a text could be equal to
    return f"({kind} IS NOT 'array' AND ({tests}))", [*kind_arguments, *arguments]


def _compared(field: str, sign: str, limit: str | float) -> Sql:
    (value, value_arguments), (kind, kind_arguments) = _value(field), _kind(field)
    kinds = ("text",) if isinstance(limit, str) else _NUMBERS
    wanted = ", ".join(f"'{each}'" for each in kinds)
    return f"(coalesce({kind}, '') IN ({wanted}) AND {value} {sign} ?)", [
        *kind_arguments,
        *value_arguments,
        limit,
    ]


def _contains(field: str, part: str) -> Sql:
    (value, value_arguments), (kind, kind_arguments) = _value(field), _kind(field)
    if field in _OWN:
        return f"({kind} IS 'text' AND instr({value}, ?) > 0)", [part]
    listed = "EXISTS (SELECT 1 FROM json_each(chunks.metadata, ?) AS item WHERE item.value IS ?)"
    return (
        f"CASE {kind} WHEN 'array' THEN {listed} WHEN 'text' THEN instr({value}, ?) > 0 ELSE 0 END",
        [*kind_arguments, _path(field), part, *value_arguments, part],
    )


def _visible_to(names: Sequence[str]) -> Sql:
    path = _path(ACL)
    listed = (
        "EXISTS (SELECT 1 FROM json_each(chunks.metadata, ?) AS item "
        "WHERE item.value IN (SELECT value FROM json_each(?)))"
    )
    kind = "coalesce(json_type(chunks.metadata, ?), 'null')"
    return (
        f"CASE {kind} WHEN 'null' THEN 1 WHEN 'array' THEN {listed} ELSE 0 END",
        [path, path, msgspec.json.encode(names).decode()],
    )


def _joined(inner: Sequence[Condition], word: str, *, otherwise: str) -> Sql:
    parts = [sql_of(condition) for condition in inner]
    text = f" {word} ".join(text for text, _ in parts)
    return f"({text or otherwise})", [argument for _, arguments in parts for argument in arguments]


def _negated(part: Sql) -> Sql:
    return f"(NOT {part[0]})", part[1]
