"""What people do with cards that tell of runs: stop one, go on with one, try one again."""

from typing import Final, cast

from dialoom.base.errors import DialoomError, UsageError
from dialoom.base.ids import new_id
from dialoom.base.text import one_line
from dialoom.conversation.cards.card import Card
from dialoom.conversation.cards.workflow_status import WorkflowStatus, WorkflowStep
from dialoom.server.card_work import CardHandlers, CardWork


async def cancel(work: CardWork) -> Card:
    """Stop the job or the run that a `WorkflowStatus` card names; its open steps are skipped then."""
    card = cast("WorkflowStatus", work.card)
    if not card.run_id:
        raise UsageError("this card names no run; there is nothing to cancel")
    if not work.desk.stop(card.run_id):
        await work.desk.talks.cancel(card.run_id)
    steps = [_skipped(step).stored() for step in card.steps]
    return card.changed(steps=steps, status="cancelled")


async def retry(work: CardWork) -> Card:
    """Go on, or begin again, with the answer of the conversation; what it shows next is its own."""
    work.desk.start(_try_again(work), f"retry {new_id()}")
    return work.card.changed(error=None, error_code=None)


async def retry_error(work: CardWork) -> Card:
    """Try again what an `Error` card tells of; the card offers it no more."""
    return (await retry(work)).changed(retryable=False, status="retried")


async def retry_step(work: CardWork) -> Card:
    """Try a failed step of a run of this conversation again. Raises `ProblemError` for a run of no dialog."""
    card = cast("WorkflowStatus", work.card)
    work.desk.talks.runs.find(card.run_id or "")
    return await retry(work)


async def _try_again(work: CardWork) -> None:
    async with work.desk.turn(work.conversation_id):  # after the card's next state was shown
        try:
            await work.desk.talks.try_again(work.conversation_id)
        except DialoomError as error:
            told = work.card.changed(error=one_line(str(error), 300), error_code=error.code)
            await work.desk.show(work.conversation_id, told)


def _skipped(step: WorkflowStep) -> WorkflowStep:
    return step if step.status in {"done", "failed"} else step.changed(status="skipped", progress=None)


RUN_HANDLERS: Final[CardHandlers] = {
    ("WorkflowStatus", "cancel"): cancel,
    ("WorkflowStatus", "retry"): retry_step,
    ("Error", "retry"): retry_error,
}
"""The handlers of cards that tell of runs."""
