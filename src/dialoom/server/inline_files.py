"""Files that callers of the faces under `/v1/` put into a message: their bytes, never an address to fetch."""

from base64 import b64decode
from collections.abc import Sequence

from dialoom.base.errors import UsageError
from dialoom.llm import FilePart


def inline_file(media_type: str, data: str) -> FilePart:
    """Return a file from its bytes in base64. Raises `UsageError`."""
    try:
        content = b64decode(data, validate=True)
    except ValueError as error:
        raise UsageError("a file in a message is not in base64; encode its bytes so") from error
    return FilePart(data=content, media_type=media_type)


def told_of(files: Sequence[FilePart]) -> str:
    """Return what files are in words: a tool's answer says that to models that cannot see."""
    return "\n".join(each.told for each in files)


def file_of_url(url: str) -> FilePart:
    """Return the file that a data URL holds. Raises `UsageError`, for any other address too."""
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        raise UsageError(
            "nothing is fetched for a caller; put the file itself there, as data:TYPE;base64,..."
        )
    return inline_file(head.removeprefix("data:").removesuffix(";base64"), data)
