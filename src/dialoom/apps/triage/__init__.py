"""Tickets of a help desk: sorted, rated and answered from earlier cases, by a model or by rules."""

from dialoom.apps.triage.cases import CaseIndex as CaseIndex
from dialoom.apps.triage.desk import Asked as Asked
from dialoom.apps.triage.desk import Desk as Desk
from dialoom.apps.triage.pipeline import MAX_STEPS as MAX_STEPS
from dialoom.apps.triage.pipeline import STORED_TYPES as STORED_TYPES
from dialoom.apps.triage.pipeline import Paths as Paths
from dialoom.apps.triage.pipeline import triage_graph as triage_graph
from dialoom.apps.triage.rows import Case as Case
from dialoom.apps.triage.rows import Rows as Rows
from dialoom.apps.triage.rows import Ticket as Ticket
from dialoom.apps.triage.rows import read_cases as read_cases
from dialoom.apps.triage.rows import read_tickets as read_tickets
from dialoom.apps.triage.rules import DEFAULT_RULES as DEFAULT_RULES
from dialoom.apps.triage.rules import Rules as Rules
from dialoom.apps.triage.verdict import Hit as Hit
from dialoom.apps.triage.verdict import Judged as Judged
