"""What stands between an agent, the people who use it and its tools: verdicts, and guards that go wrong."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.agent.guards import Allow, Block, Blocked, Guards, Passed, Replace
from dialoom.agent.guards_shipped import MAX_BLOTTED, MAX_SEARCHED, AllowTools, Forbid, MaxLength, Redact
from dialoom.base.cancel import Cancelled
from dialoom.base.errors import UsageError
from dialoom.llm import ToolCall

CALL = ToolCall(id="c1", name="pay", arguments={"amount": 5}, raw='{"amount": 5}')


def shout(text: str) -> Replace[str]:
    return Replace(text.upper())


async def no_rain(text: str) -> Allow | Block:
    await asyncio.sleep(0)
    return Block("no weather\ntoday") if "RAIN" in text else Allow()


async def test_guards_are_asked_in_turn_each_about_what_those_before_it_left() -> None:
    guards = Guards(input=(shout, no_rain), output=(no_rain, shout))
    assert await guards.check_input("sun") == Passed("SUN")
    assert await guards.check_input("rain") == Blocked("no_rain", "no weather today")
    assert str(await guards.check_input("rain")) == "blocked by no_rain: no weather today"
    assert await guards.check_output("rain") == Passed("RAIN")
    assert await Guards().check_input("rain") == Passed("rain")


async def test_a_guard_of_calls_may_give_them_other_arguments() -> None:
    def at_most_three(call: ToolCall) -> Replace[dict[str, object]]:
        return Replace({"amount": 3})

    def none_at_all(call: ToolCall) -> Block:
        return Block(f"no {call.name} of {call.raw}")

    cheap = ToolCall(id="c1", name="pay", arguments={"amount": 3}, raw='{"amount":3}')
    assert await Guards(before_tool=(at_most_three,)).check_call(CALL) == Passed(cheap)
    both = Guards(before_tool=(lambda _: Allow(), at_most_three, none_at_all))
    assert await both.check_call(CALL) == Blocked("none_at_all", 'no pay of {"amount":3}')
    cut = ToolCall(id="c1", name="pay", raw='{"amou', problem="truncated")
    assert await both.check_call(cut) == Passed(cut)


async def test_arguments_that_cannot_be_written_are_blocked() -> None:
    def odd(call: ToolCall) -> Replace[dict[str, object]]:
        return Replace({"amount": object()})

    assert await Guards(before_tool=(odd,)).check_call(CALL) == Blocked(
        "odd", "it gave arguments that cannot be written as JSON"
    )


async def test_a_guard_of_results_knows_the_call() -> None:
    def says_who(text: str, call: ToolCall) -> Replace[str]:
        return Replace(f"{call.name}: {text}")

    guards = Guards(after_tool=(says_who, Redact("paid"), MaxLength(20)))
    assert await guards.check_result("paid 5", CALL) == Passed("pay: [redacted] 5")
    assert await guards.check_result("x" * 20, CALL) == Blocked(
        "MaxLength", "the text has 25 characters; at most 20 are let through"
    )


def breaks(text: str) -> Allow:
    raise LookupError(f"no list for {text}\n")


async def breaks_later(text: str) -> Allow:
    await asyncio.sleep(0)
    raise TimeoutError("the list did not answer")


def says_yes(text: str) -> bool:
    return True


def says_a_number(text: str) -> Replace[int]:
    return Replace(5)


def promises(text: str) -> Awaitable[None]:
    return asyncio.sleep(0)


@pytest.mark.parametrize(
    ("guard", "reason"),
    [
        (breaks, "it failed: LookupError: no list for a"),
        (breaks_later, "it failed: TimeoutError: the list did not answer"),
        (says_yes, "it gave no verdict on a str; return Allow(), Replace(...) or Block(...)"),
        (says_a_number, "it gave no verdict on a str; return Allow(), Replace(...) or Block(...)"),
        (promises, "it gave no verdict on a str; return Allow(), Replace(...) or Block(...)"),
    ],
)
async def test_a_guard_that_goes_wrong_blocks_and_says_why(
    guard: Callable[[str], object], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    guards = Guards(input=(guard,))  # type: ignore[arg-type] - wrong on purpose
    assert await guards.check_input("a") == Blocked(guard.__name__, reason)
    assert "no list for a" not in caplog.text


async def test_a_guard_that_takes_too_long_blocks() -> None:
    async def sleeps(text: str) -> Allow:
        await asyncio.Event().wait()
        return Allow()

    guards = Guards(output=(sleeps,), seconds=0.01)
    assert await guards.check_output("a") == Blocked("sleeps", "it did not answer within 0.01 s")
    with pytest.raises(UsageError, match="guards have 0 seconds; give more than 0"):
        Guards(seconds=0)


async def test_stopping_a_run_is_no_failure_of_its_guard() -> None:
    def stops(text: str) -> Allow:
        raise Cancelled

    with pytest.raises(Cancelled):
        await Guards(input=(stops,)).check_input("a")


def test_only_listed_tools_are_let_through() -> None:
    assert AllowTools(["pay", "look"])(CALL) == Allow()
    assert AllowTools(["look", "ask"])(CALL) == Block(
        "the tool 'pay' is not allowed here; those allowed are: ask, look"
    )
    assert AllowTools([])(CALL) == Block("the tool 'pay' is not allowed here; those allowed are: none")


def test_a_text_with_a_denied_pattern_is_blocked() -> None:
    forbid = Forbid(r"(?i)\bpassword\b", r"\d{16}", reason="no secrets please")
    assert forbid("my PassWord is x") == Block("no secrets please")
    assert forbid("4111111111111111") == Block("no secrets please")
    assert forbid("passwords are long") == Allow()
    assert Forbid("x")("xx") == Block("the text holds what is not allowed here")


def test_guards_that_would_guard_nothing_or_everything_are_refused() -> None:
    with pytest.raises(UsageError, match="nothing is forbidden; give one pattern or more"):
        Forbid()
    with pytest.raises(UsageError, match=r"allowed by a list of names; write AllowTools\(\['pay'\]\)"):
        AllowTools("pay")


@pytest.mark.parametrize(
    ("pattern", "text", "left"),
    [
        (r"[\w.]+@[\w.]+", "(ada@x.org), or\n bob@y.de. bye", "([redacted]), or\n [redacted]. bye"),
        (r"(?:\d{4}[ -]?){4}", "card 4111 1111 1111 1111, ok", "card [redacted], ok"),
        (r"card \d+( \d+)*", "a card 12 34 56 is card 7", "a [redacted] is [redacted]"),
        (r"(?i)secret", "topSecret! plans", "[redacted]! plans"),
        (r"\$\d+", "costs $5, ok", "costs [redacted] ok"),
        ("天", "今天 好", "今[redacted] 好"),
        (r"1\d{10}", "我的电话是13800138000，请打给我。", "我的电话是[redacted]，请打给我。"),
        (r"[\w.]+@[\w.]+", "写给ada@x.org或（bob@y.de）吧", "写给[redacted]或（[redacted]）吧"),
        ("身份证号?[0-9X]+", "张三，身份证号11010119900101，好的", "张三，[redacted]，好的"),
    ],
)
def test_words_with_a_pattern_are_blotted_out(pattern: str, text: str, left: str) -> None:
    assert Redact(pattern)(text) == Replace(left)


def test_a_text_without_the_pattern_stays_as_it_is() -> None:
    assert Redact("secret")("nothing here") == Allow()
    assert Redact("a b", replacement="-")("x a b") == Replace("x -")
    assert Redact(r"a\s*$", replacement="-")("  a  ") == Replace("  -  ")


def test_what_is_too_long_or_too_much_is_blocked_rather_than_passed() -> None:
    too_long = Block(f"the text has more than {MAX_SEARCHED} characters, so it cannot be searched")
    assert Forbid("a")("b" * (MAX_SEARCHED + 1)) == too_long
    assert Redact("a")("b" * (MAX_SEARCHED + 1)) == too_long
    too_many = Block(f"the text holds more than {MAX_BLOTTED} things to blot out")
    assert Redact("a")("a " * (MAX_BLOTTED + 1)) == too_many


@pytest.mark.parametrize("pattern", [r"(?=a)", r"(a)\1", "("])
def test_a_pattern_that_linear_time_cannot_match_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be used; write it without lookaround and back references"):
        Forbid(pattern)


def test_a_pattern_that_nothing_matches_is_refused() -> None:
    with pytest.raises(
        UsageError, match="the pattern 'a\\*' is found in an empty text; let it need a letter"
    ):
        Redact("a*")
    with pytest.raises(UsageError, match="the most characters are 0; give 1 or more"):
        MaxLength(0)


def test_a_hostile_text_cannot_hold_up_a_pattern() -> None:
    # either would take for ever with a matcher that backtracks
    assert Forbid("^(a+)+$")("a" * 50_000 + "!") == Allow()
    assert Redact("(a+)+b c")("aaaa b " * 50_000) == Allow()


WORDS = st.lists(st.sampled_from(["ab", "a", "b", "ba,", "(ab)", "x"]), max_size=12)


@settings(max_examples=200, deadline=None)
@given(WORDS, st.sampled_from(["ab", "a b", "a( b)+", "x|ba", r"a\W+b"]))
def test_nothing_that_a_pattern_finds_is_left(words: list[str], pattern: str) -> None:
    text = " ".join(words)
    verdict = Redact(pattern, replacement="-")(text)
    if isinstance(verdict, Allow):
        assert re.search(pattern, text) is None
        return
    assert isinstance(verdict, Replace)
    assert re.search(pattern, text) is not None
    assert all(re.search(pattern, piece) is None for piece in verdict.value.split("-"))
