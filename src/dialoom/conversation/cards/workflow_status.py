"""How far a piece of work is, step by step."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from dialoom.conversation.cards.actions import CardInput
from dialoom.conversation.cards.card import Card, CardPart, Language, listed


class WorkflowStep(CardPart):
    """One step; `progress` goes from 0 to 1, times are RFC 3339."""

    id: str
    display_name: str = ""
    order: int = 0
    status: Literal["pending", "running", "done", "failed", "skipped", "waiting"] = "pending"
    progress: float | None = Field(default=None, ge=0, le=1)
    started_at: str | None = None
    ended_at: str | None = None
    message: str = ""


class WorkflowStatus(Card):
    """The steps of a run, in their `order`."""

    type: ClassVar[str] = "WorkflowStatus"
    names: ClassVar[Mapping[Language, str]] = {"en": "workflow", "zh": "工作流"}

    run_id: str | None = None
    steps: tuple[WorkflowStep, ...] = ()

    def details(self) -> str:
        done = sum(step.status == "done" for step in self.steps)
        now = [
            f"{step.display_name or step.id}: {step.status}"
            for step in sorted(self.steps, key=lambda step: step.order)
            if step.status in {"running", "failed", "waiting"}
        ]
        return listed([f"{done}/{len(self.steps)}", *now])


class CancelRun(CardInput):
    """Stop the run this card shows."""

    name = "cancel"
    needs_work = True


class RetryStep(CardInput):
    """Run a failed step again."""

    name = "retry"
    needs_work = True

    step_id: str
