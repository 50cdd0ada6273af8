"""Paths of this machine as callers see them: where its folders lie is nobody's business who only asks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from posixpath import commonpath
from typing import Final, cast

_FOLDERS: Final = re.compile(r"(?<![\w:/.~-])/(?:[^/\s'\"]+/)+(?=[^/\s])")
"""The folders before a name: not those of an address, and none where a path ends with them."""
_PLACES: Final = frozenset({"id", "doc_id", "source"})
_WORDS: Final = frozenset({"message", "error"})


def without_folders(text: str) -> str:
    """Return words in which each absolute path is only the name that it ends with."""
    return _FOLDERS.sub("", text)


class OwnPaths:
    """Tells documents by their place below `roots`, absolute folders; those elsewhere by their name."""

    def __init__(self, *roots: str) -> None:
        self._roots = tuple(f"{root.rstrip('/')}/" for root in roots if root.strip("/"))

    def told(self, value: object, key: str = "") -> object:
        """Return an answer of the service, in which ids, sources and failures name no folders.

        What documents and models say is left as it is.
        """
        if isinstance(value, str):
            return self._told_text(value, key)
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, object]", value)
            return {name: self.told(each, name) for name, each in fields.items()}
        if isinstance(value, list | tuple):
            return [self.told(each, key) for each in cast("Sequence[object]", value)]
        return value

    def _told_text(self, text: str, key: str) -> str:
        if key not in _PLACES and key not in _WORDS:
            return text
        for root in self._roots:
            text = text.replace(root, "")
        if key in _PLACES:
            return text.rpartition("/")[2] if text.startswith("/") else text
        return without_folders(text)


def common_folder(documents: Iterable[str]) -> str:
    """Return the folder that holds all of these documents which are files, "" for none."""
    folders = [each.rpartition("/")[0] for each in documents if each.startswith("/")]
    return commonpath(folders) if folders and all(folders) else ""
