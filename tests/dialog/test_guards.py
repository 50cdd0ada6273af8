"""Guards in a dialog: what people said is judged before a model reads it, and the log keeps their words."""

import pytest

from dialoom.agent import Allow, Block, Guards, Replace
from dialoom.dialog import Center, RunPolicy, TurnFailedError
from dialoom.llm import MockProvider
from tests.dialog.talk import finished, said, soon


def no_secrets(words: str) -> Allow | Block | Replace[str]:
    if "password" in words:
        return Block("no passwords, please")
    return Replace(words.replace("Ada", "[name]")) if "Ada" in words else Allow()


def guarded(mock: MockProvider, guards: Guards) -> Center:
    return Center(policy=RunPolicy(guards=guards)).add_provider(mock)


async def test_blocked_words_are_not_sent_and_block_no_others() -> None:
    mock = MockProvider().queue_text("Hello.")
    dialog = guarded(mock, Guards(input=(no_secrets,))).new_dialog()
    blocked = await soon(dialog.send("my password is 7"))
    assert isinstance(blocked.error, TurnFailedError)
    assert (blocked.error.reason, str(blocked.error)) == (
        "blocked",
        "blocked by no_secrets: no passwords, please",
    )
    assert mock.requests == []
    await finished(dialog.send("I am Ada."))
    assert [message.text for message in mock.requests[0].messages] == [
        "(these words were blocked)",
        "I am [name].",
    ]
    assert said(dialog) == [("user", "my password is 7"), ("user", "I am Ada."), ("assistant", "Hello.")]


async def test_a_blocked_answer_fails_the_run_and_is_not_kept() -> None:
    dialog = guarded(
        MockProvider().queue_text("the password is 7"), Guards(output=(no_secrets,))
    ).new_dialog()
    result = await soon(dialog.send("hi"))
    with pytest.raises(TurnFailedError, match="blocked by no_secrets: no passwords, please"):
        result.raise_for_error()
    assert said(dialog) == [("user", "hi")]
