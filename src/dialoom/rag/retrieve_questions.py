"""Nodes that say what is looked for: a follow-up made a whole question, a question in other words."""

import re
from collections.abc import Sequence

from dialoom.base.text import one_line
from dialoom.graph import NodeContext, NodeResult
from dialoom.llm import ChatOptions, Message, Provider, ProviderError, chat, system, user

CONDENSE_INSTRUCTIONS = (
    "You rewrite the last question of a conversation so that it can be understood by somebody who has not "
    "read the rest: names stand in the place of words like it or there. Answer with the rewritten question "
    "and nothing else, in the language of the question. When it stands by itself, repeat it as it is."
)
VARY_INSTRUCTIONS = (
    "You write search queries. Say what the question asks in {count} other ways, with other words that a "
    "document may use, in the language of the question. One per line, nothing else, no numbers."
)
_MOST_SHOWN = 12
_LONGEST_SHOWN = 500
_LONGEST_QUESTION = 400
_BULLET = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.):、])\s+")


class CondenseNode:
    """Rewrites a question that hangs on the conversation before it; leaves the first one as it is.

    Reads `query` and the channel `history`, writes `search_queries`. When the model cannot be asked, the
    question goes on as it was put: the answer will say what is wrong with the model.
    """

    def __init__(self, provider: Provider, options: ChatOptions, *, history: str = "rag_history") -> None:
        self._provider = provider
        self._options = options
        self._history = history

    async def __call__(self, ctx: NodeContext) -> NodeResult:
        question = str(ctx.state["query"]).strip()
        history: list[Message] = list(ctx.state[self._history])
        whole = question
        if question and history:
            told = await _ask(
                self._provider,
                self._options,
                [system(CONDENSE_INSTRUCTIONS), user(_dialog(history, question))],
            )
            whole = told[0] if told else question
        return NodeResult.ok({"search_queries": [whole]})


class VaryNode:
    """Adds up to `count` other wordings of the question to `search_queries`, as many as the model gives."""

    def __init__(self, provider: Provider, options: ChatOptions, *, count: int, condensed: bool) -> None:
        """`condensed`: whether a `CondenseNode` comes before; without one the query of this turn counts."""
        self._provider = provider
        self._options = options
        self._count = count
        self._condensed = condensed

    async def __call__(self, ctx: NodeContext) -> NodeResult:
        queries = [*ctx.state["search_queries"]] if self._condensed else [str(ctx.state["query"]).strip()]
        if not queries[0]:
            return NodeResult.ok({})
        rules = system(VARY_INSTRUCTIONS.format(count=self._count))
        told = await _ask(self._provider, self._options, [rules, user(queries[0])])
        return NodeResult.ok({"search_queries": [*dict.fromkeys([*queries, *told[: self._count]])]})


async def _ask(provider: Provider, options: ChatOptions, messages: Sequence[Message]) -> list[str]:
    """The lines of an answer as questions; none when the model fails."""
    try:
        text = (await chat(provider, messages, options)).text
    except ProviderError:
        return []
    lines = (one_line(_BULLET.sub("", line), _LONGEST_QUESTION) for line in text.split("\n"))
    return [line for line in lines if line]


def _dialog(history: Sequence[Message], question: str) -> str:
    told = [
        f"{message.role}: {one_line(message.text, _LONGEST_SHOWN)}"
        for message in history[-_MOST_SHOWN:]
        if message.role in ("user", "assistant") and message.text
    ]
    return "\n".join([*told, f"The last question: {question}"])
