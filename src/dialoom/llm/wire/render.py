"""What a message says, as the plain text that a wire has room for."""

import re

from dialoom.base.text import one_line, replace_surrogates
from dialoom.llm.messages import Message, SourcePart, TextPart

_READ = (SourcePart, TextPart)
_SOURCE_TAG = re.compile(r"<(\s*/?\s*source\b)", re.IGNORECASE)


def render_text(message: Message) -> str:
    """Return the words and numbered sources of a message as one text."""
    pieces = [
        render_source(part) if isinstance(part, SourcePart) else part.text
        for part in message.parts
        if isinstance(part, _READ)
    ]
    return replace_surrogates("".join(pieces))


def render_said(message: Message) -> str:
    """Return the same, and of a message that has no words those of its refusal."""
    return render_text(message) or replace_surrogates(message.refusal)


def render_source(source: SourcePart) -> str:
    """Return a passage between tags that its own text can neither close nor open anew."""
    title = one_line(source.title).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    body = _SOURCE_TAG.sub(r"&lt;\1", source.text)
    return f'<source id="{source.index}" title="{title}">\n{body}\n</source>\n'
