"""The value an agent's answer is to be: said to the model, found in its words, read back."""

from collections.abc import Mapping, Sequence

import msgspec

from dialoom.llm.messages import Message
from dialoom.llm.structured.ask import instructed
from dialoom.llm.structured.find import find_json
from dialoom.llm.structured.target import Target, target_of_schema, target_of_type


class WantedOutput:
    """A type, or a JSON Schema. Raises `UsageError` for one that no answer can be asked for as."""

    def __init__(self, wanted: type[object] | Mapping[str, object]) -> None:
        self.wanted = wanted
        self._target: Target[object] = (
            target_of_schema(wanted) if isinstance(wanted, Mapping) else target_of_type(wanted)
        )
        schema = msgspec.json.encode(self._target.closed_schema).decode()
        self._instruction = (
            "Give your final answer as one JSON value and nothing else."
            f" It must match this JSON Schema:\n{schema}"
        )

    @property
    def schema(self) -> Mapping[str, object]:
        """What a server that enforces schemas is given."""
        return self._target.closed_schema

    def instruct(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return a prompt that asks for the value."""
        return instructed(tuple(messages), self._instruction)

    def found(self, words: str) -> str | None:
        """Return the value in an answer as JSON text, None when none in it matches."""
        value = find_json(words, self._target.check)
        if value is None or self._target.examine(value.value).violations:
            return None
        return msgspec.json.encode(value.value).decode()

    def read(self, text: str) -> object:
        """Return the value that `found` gave as text; None for ""."""
        return self._target.examine(msgspec.json.decode(text)).value if text else None
