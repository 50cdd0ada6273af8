"""What the offline mode says in words of its own, in the language it was asked in."""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from dialoom.llm.messages import SourcePart
from dialoom.llm.offline.quote import Quote
from dialoom.llm.offline.topics import topics

MOST_SUGGESTED = 3
_FULL_STOPS = tuple(".!?;:,。！？；：，…")


class Phrases(msgspec.Struct, frozen=True, kw_only=True):
    """One language's wording."""

    lead: str
    gap: str
    break_: str
    torn: str
    nothing: str
    no_subject: str
    no_model: str


ENGLISH = Phrases(
    lead="According to your documents:",
    gap=" ",
    break_="; ",
    torn=" (an item of a list whose title is not in this passage: open the source to see what it lists)",
    nothing="Your documents hold nothing on this question.",
    no_subject="Without a model I quote your documents and sum nothing up. Ask about what they say, such as:",
    no_model=(
        "No model is configured, and no passage of a document was found for this question, so there is "
        "nothing to answer from. Three ways to get a model:\n"
        "  ollama pull llama3.2 && dialoom chat --model ollama:llama3.2\n"
        "  export DIALOOM_BASE_URL=http://127.0.0.1:8080/v1   # any server that speaks chat completions\n"
        "  export OPENAI_API_KEY=...                          # a key of platform.openai.com\n"
        'Questions about your own files are answered without any model: dialoom ask --docs FOLDER "..."'
    ),
)
CHINESE = Phrases(
    lead="根据文档：",
    gap="",
    break_="；",
    torn="（这是列表中的一项，列表的标题不在这段原文里，请打开来源查看列的是什么）",
    nothing="文档中没有与这个问题有关的内容。",
    no_subject="没有模型时，我只引用文档原文，不做总结。请就文档的内容提问，例如：",
    no_model=(
        "还没有配置模型，也没有找到与问题有关的文档内容，所以无法回答。配置模型有三种办法：\n"
        "  ollama pull llama3.2 && dialoom chat --model ollama:llama3.2\n"
        "  export DIALOOM_BASE_URL=http://127.0.0.1:8080/v1   # 任何支持 chat completions 的服务\n"
        "  export OPENAI_API_KEY=...                          # platform.openai.com 的密钥\n"
        '询问自己的文件不需要模型：dialoom ask --docs 文件夹 "……"'
    ),
)


def say(quotes: Sequence[Quote], phrases: Phrases) -> Iterator[str]:
    """Give the answer in pieces of about a sentence; together they are its text."""
    if not quotes:
        yield phrases.nothing
        return
    yield phrases.lead
    for quote in quotes:
        yield "\n- " if len(quotes) > 1 else phrases.gap
        for before, sentence in zip(("", *quote.sentences), quote.sentences, strict=False):
            yield _gap(before, phrases) + sentence
        yield f" [{quote.index}]{phrases.torn if quote.is_torn else ''}"


def suggest(sources: Sequence[SourcePart], phrases: Phrases) -> Iterator[str]:
    """Say what can be asked about, in pieces: titles and questions of some sources that hold a text."""
    found = topics(sources, chinese=phrases is CHINESE)
    if not found:
        yield phrases.nothing
        return
    yield phrases.no_subject
    for text, index in islice(found.items(), MOST_SUGGESTED):
        yield f"\n- {text} [{index}]"


def _gap(before: str, phrases: Phrases) -> str:
    """Return what goes between two sentences: rows and list items have no full stop of their own."""
    if not before:
        return ""
    return phrases.gap if before.endswith(_FULL_STOPS) else phrases.break_
