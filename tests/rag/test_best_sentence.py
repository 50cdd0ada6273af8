"""The sentence of each source that a reader should look at first."""

from dialoom.rag.best_sentence import mark_best_sentences
from dialoom.rag.context import ContextSource


def best(question: str, *texts: str) -> list[str | None]:
    sources = [
        ContextSource(index=number, id=str(number), doc_id="d", title="t", text=text, score=1.0)
        for number, text in enumerate(texts, 1)
    ]
    marked = mark_best_sentences(question, sources)
    spans = [source.best for source in marked]
    return [
        None if span is None else text[span.start : span.end] for text, span in zip(texts, spans, strict=True)
    ]


def test_the_sentence_that_says_most_about_the_question_is_marked() -> None:
    assert best(
        "How long do refunds take?",
        "# Refunds\n\nWe are glad to help. A refund takes three days.\nKeep the receipt.",
        "Shipping takes a week.",
        "Nothing here.",
        "",
    ) == ["A refund takes three days.", "Shipping takes a week.", None, None]


def test_chinese_sentences_are_marked_too() -> None:
    assert best("退款要几天？", "您好。收到退货后，退款需要三个工作日。请保留发票。") == [
        "收到退货后，退款需要三个工作日。"
    ]
