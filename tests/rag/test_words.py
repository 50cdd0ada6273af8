"""What texts and questions are found by."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.rag import words
from dialoom.rag.words import MOST_ASKED, question_tokens, tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Refunds, refunded & refund", ["refund", "refund", "refund"]),
        ("policies stopped quickly", ["policy", "stop", "quick"]),
        ("glass bus is 2.8 bar", ["glass", "bus", "is", "2", "8", "bar"]),
        ("Straße CAFÉ Ελλάδα", ["strass", "caf", "ελλαδα"]),
        ("ＪＳＯＮ snake_case", ["json", "snak", "cas"]),
        ("退款", ["退", "款", "退款"]),
        ("后50条", ["后", "50", "条"]),
        ("हिन्दी", ["हिन्दी"]),
        ("ไทย", ["ไ", "ท", "ย", "ไท", "ทย"]),
        ("\ud83d … _", []),
    ],
)
def test_texts_are_cut_into_words_and_pairs(text: str, found: list[str]) -> None:
    assert tokens(text) == found


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How long do refunds take?", ["refund", "tak"]),
        ("The lamp and the LAMPS", ["lamp"]),
        ("What is it?", ["what", "is", "it"]),
        ("退款需要多少天？", ["退款", "款需", "需要", "天"]),
        ("税", ["税"]),
        ("什么？", ["什么"]),
        ("…", []),
    ],
)
def test_questions_are_asked_without_their_function_words(question: str, asked: list[str]) -> None:
    assert question_tokens(question) == asked


def test_easy_texts_are_cut_as_all_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    easy = [mark for mark in map(chr, range(0x3000)) if words._EASY.fullmatch(mark)]
    assert len(easy) > 3_000
    texts = [f"é{mark}b {mark}" for mark in easy]
    quickly = [tokens(text) for text in texts]
    monkeypatch.setattr(words, "_EASY", re.compile("(?!)"))
    assert [text for text, found in zip(texts, quickly, strict=True) if tokens(text) != found] == []


@given(st.text(max_size=60))
def test_no_text_gives_a_token_that_could_be_syntax(text: str) -> None:
    found = [*tokens(text), *question_tokens(text)]
    assert all(token and not set(token) & set('"()*^:- ') for token in found)
    assert [token for each in tokens(text) for token in each.split()] == tokens(text)


def test_an_endless_question_is_asked_in_part() -> None:
    assert question_tokens(" ".join(map(str, range(9_999)))) == [str(number) for number in range(MOST_ASKED)]
    assert tokens("ab" * 9_999) == ["ab" * 32]


def test_what_is_not_seen_parts_no_word() -> None:
    assert tokens("re\u200bfund sev\u00aden \ufeffda\u2060ys") == tokens("refund seven days")
    assert tokens("退\u200b款") == tokens("退款")
    assert question_tokens("re\u00adfund?") == ["refund"]
