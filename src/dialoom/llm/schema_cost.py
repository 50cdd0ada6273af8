"""How much a schema can make its engine work: an upper bound, so that a check can be refused beforehand.

Alternatives that refer back to their schema double the work with every level of the value, and a chain of
`$ref` pairs does so without any: thirty lines of schema can ask for years.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast
from urllib.parse import unquote, urldefrag, urljoin

BOUNDLESS: Final = 10**12

Node: TypeAlias = dict[str, object]
Root: TypeAlias = Node | bool

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLES: Final = ("not", "if", "then", "else")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_MAPS: Final = ("dependentSchemas", "dependencies")
_INNER_SINGLES: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)


class SchemaCost:
    """Counts how often one place of a value can be looked at; `patterns` counts the regular expressions."""

    def __init__(self, root: Root, documents: Mapping[str, Root]) -> None:
        self._root = root
        self._resources: dict[str, object] = {"": root}
        self._anchors: dict[tuple[str, str], Node] = {}
        self._dynamic: dict[str, list[Node]] = {}
        self._bases: dict[int, str] = {}
        self._known: dict[int, int] = {}
        self.patterns = 0
        for uri, document in (*documents.items(), ("", root)):
            self._resources.setdefault(uri, document)
            self._index(document, uri)

    def looks(self, depth: int) -> int:
        """Return the most looks at one place of a value `depth` levels deep, or `BOUNDLESS`."""
        if depth not in self._known:
            try:
                self._known[depth] = self._count(self._root, depth, {})
            except RecursionError:
                self._known[depth] = BOUNDLESS
        return self._known[depth]

    def _index(self, document: object, base: str) -> None:
        waiting = [(document, base)]
        while waiting:
            value, base = waiting.pop()
            if isinstance(value, list):
                waiting += [(item, base) for item in cast("list[object]", value)]
            elif isinstance(value, dict):
                node = cast("Node", value)
                base = self._enter(node, base)
                waiting += [(item, base) for item in node.values()]

    def _enter(self, node: Node, base: str) -> str:
        own = node.get("$id", node.get("id"))
        if isinstance(own, str):
            base, _ = _locate(base, own)
            self._resources.setdefault(base, node)
        self._bases[id(node)] = base
        self.patterns += isinstance(node.get("pattern"), str) + len(_values(node.get("patternProperties")))
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = node.get(keyword)
            if isinstance(anchor, str):
                self._anchors[base, anchor] = node
        anchor = node.get("$dynamicAnchor")
        if isinstance(anchor, str):
            self._dynamic.setdefault(anchor, []).append(node)
        return base

    def _count(self, schema: object, depth: int, counted: dict[tuple[int, int], int]) -> int:
        if not isinstance(schema, dict):
            return 1
        node = cast("Node", schema)
        key = (id(node), depth)
        if key in counted:
            return counted[key]
        counted[key] = 1  # a circle that goes no deeper: the engine goes round once
        looks = 1
        for each in self._in_place(node):
            looks += self._count(each, depth, counted)
        if depth > 1:
            looks += self._count_inside(node, depth - 1, counted)
        if "unevaluatedProperties" in node or "unevaluatedItems" in node:
            looks *= 2  # what was evaluated is found by evaluating again
        counted[key] = min(looks, BOUNDLESS)
        return counted[key]

    def _count_inside(self, node: Node, depth: int, counted: dict[tuple[int, int], int]) -> int:
        """Count one item or property: only one of the named ones is at a place, all others may apply."""
        looks = 0
        for keyword in _INNER_SINGLES:
            if keyword in node:
                looks += self._count(node[keyword], depth, counted)
        for each in _values(node.get("patternProperties")):
            looks += self._count(each, depth, counted)
        for keyword in ("properties", "prefixItems", "items"):
            named = 0
            for each in _values(node.get(keyword)) if keyword != "items" else _items(node):
                named = max(named, self._count(each, depth, counted))
            looks += named
        return looks

    def _in_place(self, node: Node) -> Iterator[object]:
        for keyword in _LISTS:
            yield from _values(node.get(keyword))
        for keyword in _SINGLES:
            if keyword in node:
                yield node[keyword]
        for keyword in _MAPS:
            yield from _values(node.get(keyword))
        for keyword in _REFERENCES:
            reference = node.get(keyword)
            if isinstance(reference, str):
                yield from self._targets(node, reference)

    def _targets(self, node: Node, reference: str) -> list[object]:
        place, fragment = _locate(self._bases[id(node)], reference)
        if fragment in self._dynamic:
            return [*self._dynamic[fragment]]
        if (place, fragment) in self._anchors:
            return [self._anchors[place, fragment]]
        if place in self._resources:
            return [_follow(self._resources[place], fragment)]
        return []  # a meta-schema: the engine knows no other that we do not


def _locate(base: str, reference: str) -> tuple[str, str]:
    """Return the address of a document, and the place in it."""
    try:
        place, fragment = urldefrag(
            base + reference if reference.startswith("#") else urljoin(base, reference)
        )
    except ValueError:
        return base, ""  # no address; the engine refuses the schema for it
    return place, fragment


def _follow(document: object, pointer: str) -> object:
    value = document
    for part in unquote(pointer).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        value = cast("Node", value).get(key) if isinstance(value, dict) else _item(_values(value), key)
    return value


def _item(items: list[object], key: str) -> object:
    if len(key) > 6 or not key.isdecimal():
        return None
    return next(iter(items[int(key) : int(key) + 1]), None)


def _values(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("Node", value).values())
    return cast("list[object]", value) if isinstance(value, list) else []


def _items(node: Node) -> list[object]:
    items = node.get("items")
    return cast("list[object]", items) if isinstance(items, list) else [items]
