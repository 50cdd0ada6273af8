"""Files that tools return, kept as uploaded ones are, so that a page can show them with the call."""

import logging
from mimetypes import guess_extension

import msgspec

from dialoom.base.errors import DialoomError
from dialoom.dialog.keyed import KeepFile
from dialoom.llm import FilePart
from dialoom.server.files import FileStore

_log = logging.getLogger("dialoom.server")


def file_keeper(files: FileStore) -> KeepFile:
    """Return what keeps a file in `files`; one that finds no room there is left out, and the log says so."""

    async def keep(file: FilePart) -> dict[str, object] | None:
        name = file.name or f"{file.kind}{guess_extension(file.media_type) or ''}"
        try:
            kept = await files.keep(file.data, name=name, mime=file.media_type)
        except DialoomError as error:
            _log.warning("a file that a tool returned cannot be kept", extra={"code": error.code})
            return None
        return msgspec.to_builtins(kept)

    return keep
