"""What attached files say: read as any document is, and given to the model as numbered passages."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from dialoom.rag import LoadError, LoadOptions
from dialoom.rag.loaders.load import load_bytes
from dialoom.server.files import FileStore, StoredFile, safe_name

MAX_CHARS: Final = 40_000
"""Characters of all attached files of one message together; what is beyond is left out, and that is said."""
_OPTIONS: Final = LoadOptions()

ReadAttached: TypeAlias = Callable[[Sequence[object]], Awaitable[list[dict[str, object]]]]
"""Returns the passages of attachments, as they are noted in a log; each with `id`, `title` and `text`."""


def attached_reader(files: FileStore) -> ReadAttached:
    """Return what reads attachments that are kept in `files`."""

    async def read(attachments: Sequence[object]) -> list[dict[str, object]]:
        return await asyncio.to_thread(_passages, files, attachments) if attachments else []

    return read


def _passages(files: FileStore, attachments: Sequence[object]) -> list[dict[str, object]]:
    left, found = MAX_CHARS, list[dict[str, object]]()
    for each in attachments:
        file = msgspec.convert(each, StoredFile)
        text, remark = _read(files, file)
        if len(text) > left:
            text, remark = text[:left], "the rest is left out"
        left -= len(text)
        # a remark stands with the name: the text is what the file says, and may be quoted
        title = f"{file.name} ({remark})" if remark else file.name
        found.append({"id": f"file:{file.id}", "title": title, "text": text})
    return found


def _read(files: FileStore, file: StoredFile) -> tuple[str, str]:
    """Return the text of a file, and a remark when there is none to read; it names no path of ours."""
    try:
        loaded = load_bytes(files.path(file.id).read_bytes(), safe_name(file.name), options=_OPTIONS)
    except LoadError as error:
        reason = str(error).replace(error.source, "it").partition(";")[0]
        return "", f"cannot be read as text: {reason}"
    except OSError:
        return "", "the file is gone"
    return "\n\n".join(document.text for document in loaded.documents), ""
