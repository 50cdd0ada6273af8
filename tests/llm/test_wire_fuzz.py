"""Whatever a server sends, an answer comes of it or one error: recorded bodies, spoilt by chance."""

import random

import msgspec
import pytest

from dialoom.llm import ChatOptions, ChatResponse, ProviderError, chat, user
from dialoom.llm.anthropic.request import message_body
from dialoom.llm.openai.request import chat_body
from dialoom.llm.profile import ANTHROPIC_PROFILE
from dialoom.llm.retry import ONCE
from dialoom.testing.wire import split_bytes
from dialoom.testing.wire_case import WireCase
from tests.llm.scripted_transport import ScriptedTransport
from tests.llm.test_wire_cases import CASES, KEY, provider_of

JUNK = (None, "", 0, -1, 1.5, True, [], {}, "x", [None], {"a": []}, 10**18, [[[]]], {"type": "text"})
SPOILT_PER_CASE = 12
SHORT = [case for case in CASES if sum(map(len, case.pieces)) < 10_000]


def spoil(value: object, chance: random.Random) -> object:
    """Return a JSON value with one place of it left out, said twice or of another kind."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        name = chance.choice(list(value))
        rest = {other: inner for other, inner in value.items() if other != name}
        return rest if chance.random() < 0.15 else {**rest, name: spoil(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        spoilt = chance.choice(([], [spoil(value[at], chance)], [value[at], value[at]]))
        return [*value[:at], *spoilt, *value[at + 1 :]]
    return chance.choice(JUNK)


def spoil_body(body: bytes, chance: random.Random) -> bytes:
    """Return a body with a line or two of it spoilt: its JSON, its place or its bytes."""
    lines = body.split(b"\n")
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(lines))
        field, brace, rest = lines[at].partition(b"{")
        match chance.choice(("json", "json", "json", "swap", "bytes")):
            case "json" if brace:
                try:
                    value = msgspec.json.decode(brace + rest)
                except msgspec.DecodeError:
                    continue
                lines[at] = field + msgspec.json.encode(spoil(value, chance))
            case "swap":
                other = chance.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case _:
                cut = chance.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:cut] + bytes([chance.randrange(256)]) + lines[at][cut + 1 :]
    return b"\n".join(lines)


@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.id)
async def test_a_spoilt_body_ends_in_an_answer_or_in_one_error(case: WireCase) -> None:
    chance = random.Random(case.id)
    for _ in range(SPOILT_PER_CASE):
        body = spoil_body(b"".join(case.pieces), chance)
        pieces = split_bytes(body, [chance.randrange(len(body) + 1)])
        provider = provider_of(case, transport=ScriptedTransport([case.reply(pieces, now=0)]))
        try:
            check_answer(await chat(provider, case.history(), ChatOptions(tools=case.tools, retry=ONCE)))
        except ProviderError as error:
            check_error(error)


def check_error(error: ProviderError) -> None:
    assert "\n" not in str(error)
    assert KEY not in f"{error} {error!r}"


def check_answer(answer: ChatResponse) -> None:
    """Check that an answer can be stored, run and sent back."""
    assert answer.message == type(answer.message).from_json(answer.message.to_json())
    calls = answer.tool_calls
    assert all(call.id and call.name for call in calls)
    assert len({call.id for call in calls}) == len(calls)
    assert all((call.arguments is None) == (call.problem is not None) for call in calls)
    history = [user("q"), answer.message, user("and now?")]
    assert chat_body(history, ChatOptions(), ANTHROPIC_PROFILE)
    assert message_body(history, ChatOptions(), profile=ANTHROPIC_PROFILE, provider="anthropic")
