"""Bytes become text: the encoding is found, never assumed, and what could not be read is said."""

import codecs
import re

import msgspec

from dialoom.base.text import REPLACEMENT
from dialoom.rag.errors import LoadError

# The longer marks first: the UTF-32 mark begins with the UTF-16 one.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CHINESE = "gb18030"
_CODE_PAGES = ("cp874", "koi8-r", "koi8-u", *(f"cp{page}" for page in range(1250, 1259)))
_LEGACY = (_CHINESE, "big5hkscs", "cp932", "euc-jp", "euc_jis_2004", "cp949", *_CODE_PAGES)
_SAMPLE = 65_536
_UNSURE = 0.1
_BAD_BYTES_PER_GOOD_CHARACTER = 0.1
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
# GB 2312 punctuation (row 1), full-width forms (row 3) and the 3,755 common characters (rows 16 to 55).
_COMMON_CHINESE = re.compile(rb"(?:[\xb0-\xd7\xa1\xa3][\xa1-\xfe])")


class Decoded(msgspec.Struct, frozen=True):
    """Text with line feeds as line ends, the codec that read it, and how many bytes it could not read."""

    text: str
    encoding: str
    bad_bytes: int = 0


def decode(data: bytes, *, source: str, declared: str | None = None) -> Decoded:
    """Read `data` as text: byte order mark, `declared`, UTF-8, nearly UTF-8, then the likeliest legacy codec.

    Raises `LoadError("binary_content")` when it does not look like text at all.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _replace_bad(data[len(mark) :], encoding)
    wide = _wide_without_mark(data[:_SAMPLE])
    if wide is not None:
        return _replace_bad(data, wide)
    _refuse_binary(data[:_SAMPLE], source)
    for encoding in (declared, "utf-8"):
        text = _strict(data, encoding) if encoding else None
        if text is not None and encoding:
            return Decoded(_unix_lines(text), encoding)
    nearly = _replace_bad(data, "utf-8")
    foreign = sum(character > "\x7f" for character in nearly.text) - nearly.text.count(REPLACEMENT)
    if nearly.bad_bytes <= _BAD_BYTES_PER_GOOD_CHARACTER * foreign:
        return nearly
    return _legacy(data)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _replace_bad(data: bytes, encoding: str) -> Decoded:
    text = data.decode(encoding, "replace")
    own = data.count(REPLACEMENT.encode(encoding)) if encoding.startswith("utf") else 0
    return Decoded(_unix_lines(text), encoding, max(text.count(REPLACEMENT) - own, 0))


def _unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _wide_without_mark(sample: bytes) -> str | None:
    """UTF-16 that does not say so: mostly Latin text has a NUL in every other byte."""
    pairs = len(sample) // 2
    if pairs < 2:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 0.4 * pairs and even == 0:
        return "utf-16-le"
    if even > 0.4 * pairs and odd == 0:
        return "utf-16-be"
    return None


def _refuse_binary(sample: bytes, source: str) -> None:
    if b"\x00" in sample or len(_CONTROL.findall(sample)) > 0.02 * len(sample):
        raise LoadError(
            "binary_content",
            f"{source} holds binary data, not text; give it the extension of its format",
            source=source,
        )


def _legacy(data: bytes) -> Decoded:
    from chardet import detect_all  # heavy, and most files are UTF-8

    guesses = detect_all(data[: 4 * _SAMPLE], include_encodings=_LEGACY, compat_names=False)
    likely = {guess["encoding"]: guess["confidence"] for guess in guesses if guess["encoding"]}
    order = sorted(likely, key=lambda name: -likely[name])
    if order and likely.get("cp1252", 0.0) >= 0.7 * likely[order[0]]:
        order.insert(0, "cp1252")  # a few accents fit many code pages; the western one is the common one
    if not order or _is_rather_chinese(data[:_SAMPLE], order[0], likely.get(order[0], 0.0)):
        order.insert(0, _CHINESE)
    for encoding in order:
        text = _strict(data, encoding)
        if text is not None:
            return Decoded(_unix_lines(text), encoding)
    return _replace_bad(data, order[0])


def _is_rather_chinese(sample: bytes, guess: str, confidence: float) -> bool:
    """Whether a guess gives way to GB 18030: one of the code pages, or one that little speaks for."""
    if guess in _CODE_PAGES:
        return _looks_chinese(sample, least=4)
    return confidence < _UNSURE and _looks_chinese(sample, least=2)


def _looks_chinese(sample: bytes, *, least: int) -> bool:
    """Whether runs of high bytes, `least` or more, come in pairs and nearly all are common characters."""
    runs = _HIGH_RUN.findall(sample)
    high = b"".join(run for run in runs if len(run) % 2 == 0)
    every = sum(map(len, runs))
    return every >= least and 2 * len(_COMMON_CHINESE.findall(high)) >= 0.9 * every
