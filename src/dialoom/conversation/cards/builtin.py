"""The card types every dialoom knows: the eight of seed 003, and four more."""

from dialoom.conversation.cards.approval import Approval, Decide
from dialoom.conversation.cards.column_match import ColumnMatch, ConfirmMatch
from dialoom.conversation.cards.failure import ErrorCard, RetryRun
from dialoom.conversation.cards.form import Form, SubmitForm
from dialoom.conversation.cards.gridding import CancelGridding, GriddingParamCard, RunGridding
from dialoom.conversation.cards.knowledge_base import (
    AddSource,
    AskBase,
    AttachBase,
    DetachBase,
    KnowledgeBase,
    RemoveSource,
    RetrySource,
)
from dialoom.conversation.cards.parameter_set import ApplyParameters, ParameterSet, ResetParameters
from dialoom.conversation.cards.plot import Plot
from dialoom.conversation.cards.registry import CardRegistry, CardType
from dialoom.conversation.cards.sources import Sources
from dialoom.conversation.cards.table import Table
from dialoom.conversation.cards.workflow_status import CancelRun, RetryStep, WorkflowStatus
from dialoom.conversation.cards.xyz_load import ConfigureLoad, LoadPoints, XyzLoadCard

BUILTIN_CARDS: tuple[CardType, ...] = (
    CardType(model=Form, actions=(SubmitForm,), renderer="form"),
    CardType(model=ParameterSet, actions=(ApplyParameters, ResetParameters), renderer="parameters"),
    CardType(model=Table, renderer="table"),
    CardType(model=ColumnMatch, actions=(ConfirmMatch,), renderer="column-match"),
    CardType(model=WorkflowStatus, actions=(CancelRun, RetryStep), renderer="steps"),
    CardType(
        model=KnowledgeBase,
        actions=(AddSource, RetrySource, RemoveSource, AskBase, AttachBase, DetachBase),
        renderer="knowledge-base",
    ),
    CardType(model=XyzLoadCard, actions=(ConfigureLoad, LoadPoints), renderer="points"),
    CardType(model=GriddingParamCard, actions=(RunGridding, CancelGridding), renderer="gridding"),
    CardType(model=Approval, actions=(Decide,), renderer="approval"),
    CardType(model=Plot, renderer="plot"),
    CardType(model=Sources, renderer="sources"),
    CardType(model=ErrorCard, actions=(RetryRun,), renderer="error"),
)


def builtin_cards() -> CardRegistry:
    """Return a registry of your own that knows the built-in types."""
    return CardRegistry(*BUILTIN_CARDS)


DEFAULT_CARDS = builtin_cards()
"""The registry used where none is given; register your own types here, or in one from `builtin_cards`."""
