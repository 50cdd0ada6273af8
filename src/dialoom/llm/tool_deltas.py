"""Tool calls put together from fragments, whatever a server does to their ids and indexes."""

import re
from collections.abc import Callable, Collection, Iterator

import msgspec

from dialoom.llm.events import ToolCallDelta, ToolCallReady, ToolCallStarted
from dialoom.llm.json_values import fields_of
from dialoom.llm.messages import CallProblem, ToolCall

_MARKS = re.compile(r'\\[\s\S]|["{}\[\]\\]')
_SHORT = 16
"""So short a text is read whenever it is asked about: `null` has no brackets."""
_ENDS_EARLY = "Input data was truncated"
CallEvent = ToolCallStarted | ToolCallDelta | ToolCallReady


class CallFragment(msgspec.Struct, frozen=True, kw_only=True):
    """What one delta says of one call. Empty strings and None mean that it does not say."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""


class _Brackets:
    """Tells when a JSON object or text that comes in pieces is closed, looking at each piece once."""

    def __init__(self) -> None:
        self.closed = False
        self._depth = 0
        self._in_text = False
        self._held = ""

    def feed(self, piece: str) -> None:
        piece = self._held + piece
        self._held = ""
        for mark in _MARKS.finditer(piece):
            match mark[0]:
                case '"':
                    self._in_text = not self._in_text
                case "{" | "[" if not self._in_text:
                    self._depth += 1
                case "}" | "]" if not self._in_text:
                    self._depth -= 1
                case "\\":  # what it escapes comes with the next piece
                    self._held = "\\"
                case _:
                    continue
            self.closed = not self._in_text and self._depth <= 0 and not self._held


class _Call:
    """A call under way. `place` counts the calls of the answer from 0."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.wire_id = ""
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.size = 0
        self.unsent = ""
        self.started = False
        self._brackets = _Brackets()
        self._spoilt = False
        self._whole: bool | None = None

    @property
    def raw(self) -> str:
        return "".join(self.pieces)

    def append(self, arguments: str) -> None:
        self.pieces.append(arguments)
        self.size += len(arguments)
        self.unsent += arguments
        if not arguments.isspace():
            self._spoilt = self._spoilt or self._brackets.closed  # nothing can follow what is closed
            self._whole = None
        self._brackets.feed(arguments)

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are all there can be. Read at most once, however often it is asked."""
        if self._whole is None:
            closed = self._brackets.closed and not self._spoilt
            readable = closed or self.size <= _SHORT
            self._whole = readable and bool(self.raw.strip()) and _can_be_run(self.raw)
        return self._whole


class ToolCallAssembler:
    """Sorts fragments into calls.

    Which call a fragment belongs to, in this order: the one with its index, unless the fragment opens a new
    one; without an index, the last one. A fragment opens a new call when it names an id that differs from
    the call's own and either a name comes with it or the call is already whole; or when it has a name but
    no id, and the call has both a name and whole arguments. The first id and name that are not empty
    count; whole arguments that are said once more do not. An id that is missing, or that the conversation
    already knows, is replaced.
    """

    def __init__(self, new_id: Callable[[], str], taken: Collection[str] = ()) -> None:
        self._new_id = new_id
        self._taken = set(taken)
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, fragments: list[CallFragment]) -> Iterator[CallEvent]:
        """Take in the fragments of one delta; give what they start and add."""
        touched: set[int] = set()
        for fragment in fragments:
            if not (fragment.id or fragment.name or fragment.arguments):
                continue
            call = self._call_for(fragment, touched)
            touched.add(call.place)
            call.wire_id = call.wire_id or fragment.id
            call.name = call.name or fragment.name
            if fragment.arguments and not _says_all_again(fragment, call):
                call.append(fragment.arguments)
            yield from self._news(call)

    def finish(self, *, cut: bool) -> Iterator[CallEvent]:
        """Give the rest: every call is now whole, or truncated when the answer was `cut` within it."""
        for call in self._calls:
            call.name = call.name or "unnamed"
            yield from self._news(call)
            yield ToolCallReady(index=call.place, call=self._whole(call, cut=cut))

    def _call_for(self, fragment: CallFragment, touched: set[int]) -> _Call:
        known = self._calls[-1] if self._calls else None
        if fragment.index is not None:
            known = self._by_index.get(fragment.index)
        if known is None or _opens_another(fragment, known, together=known.place in touched):
            known = _Call(len(self._calls))
            self._calls.append(known)
        if fragment.index is not None:
            self._by_index[fragment.index] = known
        return known

    def _news(self, call: _Call) -> Iterator[CallEvent]:
        if not call.name:
            return
        if not call.started:
            call.started = True
            call.id = self._unique(call.wire_id)
            yield ToolCallStarted(index=call.place, id=call.id, name=call.name)
        if call.unsent:
            yield ToolCallDelta(index=call.place, arguments=call.unsent)
            call.unsent = ""

    def _unique(self, wire_id: str) -> str:
        chosen = wire_id if wire_id and wire_id not in self._taken else f"call_{self._new_id()}"
        self._taken.add(chosen)
        return chosen

    def _whole(self, call: _Call, *, cut: bool) -> ToolCall:
        arguments, problem = parse_arguments(call.raw, cut=cut and call is self._calls[-1])
        provider_id = call.wire_id if call.wire_id and call.wire_id != call.id else None
        return ToolCall(
            id=call.id,
            name=call.name,
            arguments=arguments,
            raw=call.raw,
            problem=problem,
            provider_id=provider_id,
        )


def parse_arguments(raw: str, *, cut: bool) -> tuple[dict[str, object] | None, CallProblem | None]:
    """Return the arguments in `raw`, or None and why they must not be run. Blank text means no arguments.

    Text that ends in the middle was truncated, also when the server does not say that it was `cut`.
    """
    if not raw.strip():
        return ({}, None) if not cut else (None, "truncated")
    try:
        value: object = msgspec.json.decode(raw)
        if isinstance(value, str):  # some servers encode the object twice
            value = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        # the decoder says the same of half an escaped character
        ends_early = str(error) == _ENDS_EARLY and "\\ud" not in raw.lower()
        return None, "truncated" if cut or ends_early else "invalid_json"
    if value is None:
        return {}, None
    arguments = fields_of(value)
    return (arguments, None) if arguments or value == {} else (None, "not_object")


def _opens_another(fragment: CallFragment, known: _Call, *, together: bool) -> bool:
    if fragment.id:
        differs = bool(known.wire_id) and fragment.id != known.wire_id
        return differs and (bool(fragment.name) or known.is_whole)
    if not fragment.name or not known.name:
        return False
    return (together and fragment.index is None) or known.is_whole


def _says_all_again(fragment: CallFragment, call: _Call) -> bool:
    """Whether a server sends a whole call again behind its pieces, as some do with the last of them."""
    named = bool(fragment.id and fragment.name) and (fragment.id, fragment.name) == (call.wire_id, call.name)
    return named and len(fragment.arguments) == call.size and fragment.arguments == call.raw and call.is_whole


def _can_be_run(raw: str) -> bool:
    return parse_arguments(raw, cut=True)[1] is None
