"""Ask a model for a value: by the server's schema, by a tool, or in words; check it; have it repaired."""

from collections.abc import Mapping, Sequence
from typing import Generic, Literal, TypeVar, overload

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.errors import ProviderError
from dialoom.llm.json_schema import Violation
from dialoom.llm.messages import Message
from dialoom.llm.options import DEFAULT_OPTIONS, ChatOptions
from dialoom.llm.profile import profile_of
from dialoom.llm.provider import Provider, chat
from dialoom.llm.response import ChatResponse
from dialoom.llm.structured.ask import AskedIn, Asking, asked_in, repair_of
from dialoom.llm.structured.find import find_json
from dialoom.llm.structured.result import StructuredMode, StructuredResult
from dialoom.llm.structured.target import Checked, Target, target_of_schema, target_of_type
from dialoom.llm.usage import Usage

T = TypeVar("T")

MAX_REPAIR_ROUNDS = 10


@overload
async def chat_structured(
    provider: Provider,
    messages: Sequence[Message],
    wanted: type[T],
    *,
    options: ChatOptions = ...,
    mode: StructuredMode | Literal["auto"] = ...,
    max_repair_rounds: int = ...,
) -> StructuredResult[T]: ...


@overload
async def chat_structured(
    provider: Provider,
    messages: Sequence[Message],
    wanted: Mapping[str, object],
    *,
    options: ChatOptions = ...,
    mode: StructuredMode | Literal["auto"] = ...,
    max_repair_rounds: int = ...,
) -> StructuredResult[object]: ...


async def chat_structured(
    provider: Provider,
    messages: Sequence[Message],
    wanted: type[object] | Mapping[str, object],
    *,
    options: ChatOptions = DEFAULT_OPTIONS,
    mode: StructuredMode | Literal["auto"] = "auto",
    max_repair_rounds: int = 1,
) -> StructuredResult[object]:
    """Return an answer that matches a JSON Schema or a type, checked here whatever the server promises.

    `auto` asks as the provider's profile says, and in words where a server refuses that; a provider without
    a profile is given the schema both ways. An answer that does not match goes back with its violations, at
    most `max_repair_rounds` times. A scope that is cancelled makes no further request.

    Raises `UsageError` for a schema or type that cannot be used, `ProviderError` as the provider does, and
    `Cancelled`.
    """
    if not 0 <= max_repair_rounds <= MAX_REPAIR_ROUNDS:
        raise UsageError(f"max_repair_rounds is {max_repair_rounds}; use 0 to {MAX_REPAIR_ROUNDS}")
    target: Target[object]
    target = target_of_schema(wanted) if isinstance(wanted, Mapping) else target_of_type(wanted)
    asking = Asking(schema=target.closed_schema, messages=tuple(messages), options=options)
    return await _Rounds(provider, target).run(asking, _modes(provider, mode), max_repair_rounds)


class _Rounds(Generic[T]):
    """The requests of one call, counted."""

    def __init__(self, provider: Provider, target: Target[T]) -> None:
        self._provider = provider
        self._target = target
        self._asked = 0
        self._usage = Usage()

    async def run(
        self, asking: Asking, modes: tuple[AskedIn, ...], max_repair_rounds: int
    ) -> StructuredResult[T]:
        mode, response = await self._first(asking, modes)
        repairs = 0
        while True:
            raw = _raw_of(response)
            checked = self._check(response, raw)
            hopeless = repairs == max_repair_rounds or response.finish_reason == "content_filter"
            if hopeless or not checked.violations:
                return self._result(checked, raw, mode)
            repairs += 1
            asking = repair_of(asking, mode, response, checked.violations)
            response = await self._ask(asked_in(asking, mode))

    async def _first(self, asking: Asking, modes: tuple[AskedIn, ...]) -> tuple[AskedIn, ChatResponse]:
        """Ask in the first mode that the server does not refuse."""
        for mode in modes[:-1]:
            try:
                return mode, await self._ask(asked_in(asking, mode))
            except ProviderError as error:
                if error.kind != "bad_request" and error.status != 501:
                    raise
        return modes[-1], await self._ask(asked_in(asking, modes[-1]))

    async def _ask(self, asking: Asking) -> ChatResponse:
        if asking.options.cancel is not None:
            asking.options.cancel.raise_if_cancelled()
        self._asked += 1
        response = await chat(self._provider, asking.messages, asking.options)
        self._usage = self._usage.plus(response.usage)
        return response

    def _check(self, response: ChatResponse, raw: str) -> Checked[T]:
        if response.message.refusal or response.finish_reason == "content_filter":
            return Checked(violations=(Violation("$", "the model refused to answer"),))
        found = find_json(raw, self._target.check)
        if found is None and response.finish_reason == "length":
            return Checked(violations=(Violation("$", "the answer was cut off at its token limit"),))
        if found is None:
            return Checked(violations=(Violation("$", "the answer holds no JSON"),))
        return self._target.examine(found.value)

    def _result(self, checked: Checked[T], raw: str, mode: AskedIn) -> StructuredResult[T]:
        return StructuredResult(
            ok=not checked.violations,
            value=checked.value,
            violations=checked.violations,
            raw=raw,
            rounds=self._asked,
            mode="prompt" if mode == "both" else mode,
            usage=self._usage,
        )


def _modes(provider: Provider, mode: StructuredMode | Literal["auto"]) -> tuple[AskedIn, ...]:
    if mode != "auto":
        return (mode,)
    profile = profile_of(provider)
    if profile is None:
        return ("both", "prompt")
    return ("prompt",) if profile.structured_mode == "prompt" else (profile.structured_mode, "prompt")


def _raw_of(response: ChatResponse) -> str:
    call = next(iter(response.tool_calls), None)
    if call is None:
        return response.text
    return call.raw or msgspec.json.encode(call.arguments or {}).decode()
