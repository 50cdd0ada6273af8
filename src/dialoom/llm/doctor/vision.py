"""Does a model see? A picture that is one colour above and another below is shown, and both are asked for."""

from base64 import b64decode

from dialoom.base.text import one_line
from dialoom.llm.doctor.probing import Probing
from dialoom.llm.doctor.report import Finding
from dialoom.llm.errors import ErrorKind, ProviderError
from dialoom.llm.files import FilePart
from dialoom.llm.messages import user

_PICTURE = FilePart(
    data=b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAIAAAACAAQMAAAD58POIAAAABlBMVEX/3AB4AKCBkhpbAAAAH0lEQVR42mNgGAWjYBSMAjLBfzQwKjAq"
        "MCowKkCkAAAHiPwu0GoCLQAAAABJRU5ErkJggg=="
    ),
    media_type="image/png",
    name="colours.png",
)
"""128 pixels square: some models take nothing smaller than 28."""
_QUESTION = (
    "Which colour is the upper half of this picture, and which is the lower half? Answer in two words."
)
_ABOVE = ("yellow", "gold")
_BELOW = ("purple", "violet", "magenta")
_REFUSALS: tuple[ErrorKind, ...] = ("bad_request", "server_error")
_BLIND: dict[str, object] = {"tool_files": ()}
"""What a profile says of a model that reads in words what its tools show."""


async def probe_vision(probing: Probing) -> Finding:
    """Find out whether pictures are seen: refused, taken and not looked at, or described as they are."""
    name = "pictures"
    try:
        answer = await probing.ask(user(_QUESTION, files=(_PICTURE,)))
    except ProviderError as error:
        refused = error.kind in _REFUSALS
        return Finding(
            probe=name,
            verdict="no" if refused else "unknown",
            detail=one_line(str(error), 120),
            changes=_BLIND if refused else {},
        )
    said = answer.text.lower()
    seen = [any(word in said for word in words) for words in (_ABOVE, _BELOW)]
    if all(seen):
        return Finding(probe=name, verdict="yes", detail="a picture is described as it is")
    if any(seen):
        return Finding(probe=name, verdict="partly", detail="one of the two colours of a picture is named")
    detail = "taken, and not described as it is; what tools show is told in words"
    return Finding(probe=name, verdict="no", detail=detail, changes=_BLIND)
