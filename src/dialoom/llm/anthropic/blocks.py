"""The blocks of an answer under way, and the exact text of those that go back to their provider."""

import msgspec

from dialoom.base.text import replace_surrogates
from dialoom.llm.anthropic.wire import WireDelta, read_block
from dialoom.llm.json_values import fields_of, text_of


class Block:
    """One content block, opened by its start event and grown by deltas."""

    def __init__(self, raw: msgspec.Raw) -> None:
        self._raw = raw
        self._input: list[str] = []
        self._followed = True
        self.fields = read_block(raw)
        self.kind = text_of(self.fields.get("type"))
        self.signature = text_of(self.fields.get("signature"))
        given = fields_of(self.fields.get("input"))
        self.given_input = msgspec.json.encode(given).decode() if given else ""
        """Arguments that came with the start, an empty object there says nothing; unused when more come."""

    @property
    def is_call(self) -> bool:
        """Whether it is a call for us to run; servers run calls of other kinds themselves."""
        return self.kind == "tool_use"

    def grow(self, delta: WireDelta) -> None:
        """Take in what `exact_text` needs of a delta."""
        if text_of(delta.signature):
            self.signature += text_of(delta.signature)
        elif isinstance(delta.partial_json, str):
            self._input.append(replace_surrogates(delta.partial_json))
        else:
            self._followed = False

    def exact_text(self) -> str | None:
        """Return the block as JSON to send back, None when it grew in a way that is not known."""
        if not self.kind or not self._followed:
            return None
        grown = msgspec.Raw("".join(self._input).strip().encode())
        if not grown:
            return bytes(self._raw).decode()
        if not read_block(grown):
            return None
        return msgspec.json.encode({**self.fields, "input": grown}).decode()
