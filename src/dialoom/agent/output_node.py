"""The node that asks for the answer as a value, when the words of the model held none."""

from dialoom.agent.ending import halt
from dialoom.agent.events import AgentFinished
from dialoom.agent.guards import Blocked
from dialoom.agent.names import OUTPUT
from dialoom.agent.prompt import PromptView
from dialoom.agent.spec import AgentSpec
from dialoom.agent.tally import refuse_beyond, spent_on
from dialoom.graph.context import NodeContext
from dialoom.graph.names import END
from dialoom.graph.result import NodeResult
from dialoom.llm.errors import ProviderError
from dialoom.llm.structured.chat import chat_structured
from dialoom.llm.usage_limits import UsageLimitError


class OutputNode:
    """Asks once more, for nothing but the value, and has it repaired as often as the settings say."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec

    async def __call__(self, ctx: NodeContext) -> NodeResult:
        spec, wanted = self._spec.member(ctx.state["agent"]), self._spec.output
        assert wanted is not None, "nothing leads here without one"
        try:
            refuse_beyond(spec, ctx.state["spent"])
            result = await chat_structured(
                spec.provider,
                PromptView().of(spec, ctx.state, ctx.run_id),
                wanted.wanted,
                options=spec.settings.options,
                max_repair_rounds=spec.settings.repairs,
            )
        except UsageLimitError as error:
            return halt("usage_limit", str(error), goto=OUTPUT)
        except ProviderError as error:
            return halt("error", str(error), goto=OUTPUT)
        writes = {"spent": spent_on(spec, result.usage, "", requests=result.rounds)}
        passed = await self._spec.settings.guards.check_output(result.raw)
        if isinstance(passed, Blocked):
            return NodeResult.ok({**writes, "outcome": "blocked", "error": str(passed)}, goto=END)
        text = wanted.found(passed.value) if result.ok else None
        if text is None:
            first = next((f"{each.path}: {each.message}" for each in result.violations), "no such value")
            return halt("error", f"the answer is not the value asked for: {first}", writes, goto=OUTPUT)
        await spec.tell(ctx, AgentFinished(answer=ctx.state["turn"][-1].text))
        return NodeResult.ok({**writes, "output": text, "outcome": "finished", "error": ""}, goto=END)
