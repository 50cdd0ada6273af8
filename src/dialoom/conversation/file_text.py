"""The text of a conversation's file as other programs may have encoded it."""

import codecs

from dialoom.base.errors import UsageError


def decode_text(raw: bytes) -> str:
    """Return the text of UTF-8, or of UTF-16 that says so: another encoding is never certain, only named.

    Raises `UsageError` that says where it is no text, and what to save it as.
    """
    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if marked else "utf-8"
    try:
        text = raw.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        guess = "" if marked or not _decodes(raw, "gb18030") else " but perhaps gb18030"
        raise UsageError(f"it is not {encoding} at byte {error.start}{guess}; save it as utf-8") from error
    if "\0" in text[:2] and text.strip("\0"):  # nothing but zeros is what a power cut leaves
        raise UsageError("it is not utf-8 but perhaps utf-16 without its mark; save it as utf-8")
    return text


def _decodes(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
