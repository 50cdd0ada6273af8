"""The events of a step that a model wrote as JSON: its final words while they grow, or a tool call."""

from collections.abc import Callable, Iterator

import msgspec

from dialoom.llm.events import StreamEvent, TextDelta, ToolCallDelta, ToolCallReady, ToolCallStarted
from dialoom.llm.json_schema import JsonSchema
from dialoom.llm.json_values import fields_of, text_of
from dialoom.llm.messages import ToolCall
from dialoom.llm.options import ChatOptions
from dialoom.llm.structured.find import find_json
from dialoom.llm.structured.partial import PartialJson
from dialoom.llm.tool_modes.schema import ARGUMENTS, FINAL, TOOL, shape_schema

MAX_SHOWN = 20_000
"""Characters of a step up to which its final words are shown while they grow; the rest comes at once."""


class StepReader:
    """Takes in the text of one step and gives its events."""

    def __init__(self, options: ChatOptions, new_id: Callable[[], str]) -> None:
        self.called = False
        self._options = options
        self._shape = JsonSchema(shape_schema(options.tools))
        self._new_id = new_id
        self._view = PartialJson()
        self._text: list[str] = []
        self._size = 0
        self._said = ""

    def feed(self, text: str) -> Iterator[StreamEvent]:
        """Give what `text` adds to the final words."""
        self._text.append(text)
        self._size += len(text)
        self._view.feed(text)
        if self._size <= MAX_SHOWN and self._options.response_schema is None:
            final = text_of(fields_of(self._view.value).get(FINAL))
            if final.startswith(self._said):
                yield from self._say(final)

    def finish(self, *, cut: bool) -> Iterator[StreamEvent]:
        """Give the rest of a step that is whole, or was `cut` at its token limit.

        Text that is no step at all is the model's answer in its own words.
        """
        text = "".join(self._text)
        found = find_json(text, self._shape)
        step = fields_of(found.value) if found is not None else {}
        names = {tool.name for tool in self._options.tools}
        if step.get(TOOL) in names and isinstance(step.get(ARGUMENTS), dict):
            yield from self._call(text_of(step[TOOL]), fields_of(step[ARGUMENTS]))
        elif FINAL in step:
            final = step[FINAL]
            words = final if isinstance(final, str) else msgspec.json.encode(final).decode()
            yield from self._say(words if words.startswith(self._said) else self._said)
        elif cut and text_of(fields_of(self._view.value).get(TOOL)) in names:
            yield from self._cut_call(text)
        elif not self._said:
            yield from self._say(text)

    def _say(self, final: str) -> Iterator[StreamEvent]:
        if len(final) > len(self._said):
            yield TextDelta(final[len(self._said) :])
            self._said = final

    def _call(self, name: str, arguments: dict[str, object]) -> Iterator[StreamEvent]:
        raw = msgspec.json.encode(arguments).decode()
        yield from self._made(ToolCall(id=self._new_call_id(), name=name, arguments=arguments, raw=raw))

    def _cut_call(self, text: str) -> Iterator[StreamEvent]:
        name = text_of(fields_of(self._view.value).get(TOOL))
        raw = text.partition(f'"{ARGUMENTS}"')[2].lstrip(": \n\t")
        yield from self._made(ToolCall(id=self._new_call_id(), name=name, raw=raw, problem="truncated"))

    def _made(self, call: ToolCall) -> Iterator[StreamEvent]:
        self.called = True
        yield ToolCallStarted(index=0, id=call.id, name=call.name)
        yield ToolCallDelta(index=0, arguments=call.raw)
        yield ToolCallReady(index=0, call=call)

    def _new_call_id(self) -> str:
        return f"call_{self._new_id()}"
