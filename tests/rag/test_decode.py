"""Bytes become text whatever they were written with."""

import codecs
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.rag.errors import LoadError
from dialoom.rag.loaders.decode import Decoded, decode

CHINESE = "检查点如何支持恢复？退款需要三个工作日。每个超级步提交后都会写入检查点。"


def read(data: bytes) -> Decoded:
    return decode(data, source="/kb/a.txt")


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_is_believed_and_not_kept(mark: bytes, codec: str) -> None:
    assert read(mark + "退款 refund\r\n🇨🇳".encode(codec)) == Decoded("退款 refund\n🇨🇳", codec)


@pytest.mark.parametrize(
    ("text", "codec", "named"),
    [
        (CHINESE, "gbk", "gb18030"),
        ("退款需要", "gb18030", "gb18030"),
        ("你好", "gb18030", "gb18030"),
        ("# 点\n1 2 3\n", "gb18030", "gb18030"),
        ("退款需要三個工作天", "big5", "big5hkscs"),
        ("払い戻しには三営業日かかります。", "shift_jis", "cp932"),
        ("払い戻しは", "euc_jp", "euc_jis_2004"),
        ("환불 정책은 사흘", "euc-kr", "cp949"),
        ("We don’t refund “quoted” prices at the café.", "cp1252", "cp1252"),
        ("naïve café", "latin-1", "cp1252"),
        ("Привет мир, как дела", "koi8-r", "koi8-r"),
        ("Привет мир, как дела", "cp1251", "cp1251"),
    ],
)
def test_a_legacy_encoding_is_found(text: str, codec: str, named: str) -> None:
    assert read(text.encode(codec)) == Decoded(text, named)


def test_gb18030_is_preferred_where_a_western_guess_would_be_rubbish() -> None:
    text = "id,名称\n1,甲\n2,乙丙\n" + "x" * 300
    assert read(text.encode("gbk")) == Decoded(text, "gb18030")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_recognised(codec: str) -> None:
    assert read("plain old text\r\n".encode(codec)) == Decoded("plain old text\n", codec)


def test_a_few_bad_bytes_do_not_turn_a_utf_8_log_into_something_else() -> None:
    log = "".join(f"订单 {number} 已提交\n" for number in range(100)).encode()
    decoded = read(log.replace("50 已".encode(), b"50 \xff\xfe\x80\xb7", 1))
    assert (decoded.encoding, decoded.bad_bytes, decoded.text.count("订单")) == ("utf-8", 4, 100)


def test_replacement_characters_of_the_text_itself_are_not_counted_as_bad() -> None:
    assert read("退款 � 退款 退款 退款 退款 退款".encode() + b"\xff").bad_bytes == 1


def test_a_legacy_text_that_its_codec_cannot_read_whole_is_read_as_far_as_it_goes() -> None:
    decoded = read(b"\xff\xff\xff" * 40 + b"\x81")
    assert decoded.text


@pytest.mark.parametrize("data", [b"\x7fELF\x01\x00\x00", b"\x89PNG\r\n\x1a\n\x00", bytes(range(1, 32)) * 4])
def test_binary_data_is_refused(data: bytes) -> None:
    with pytest.raises(LoadError, match="binary data") as caught:
        read(data)
    assert (caught.value.code, caught.value.source) == ("binary_content", "/kb/a.txt")


def test_a_declared_codec_comes_before_the_guess_and_a_false_one_does_not() -> None:
    assert decode("é".encode("cp1252"), source="x", declared="cp1252") == Decoded("é", "cp1252")
    assert decode("退款".encode(), source="x", declared="ascii") == Decoded("退款", "utf-8")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_utf_8_is_read_as_it_is(text: str) -> None:
    if not text.startswith("\ufeff"):
        assert read(text.encode()).text == text


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(LoadError):
        assert isinstance(read(data).text, str)
