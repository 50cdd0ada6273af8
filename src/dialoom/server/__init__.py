"""The workbench's server: conversations, cards, files and knowledge over HTTP, with one stream of events."""

from dialoom.server.settings import RateLimit as RateLimit
from dialoom.server.settings import ServerSettings as ServerSettings
from dialoom.server.workbench import Parts as Parts
from dialoom.server.workbench import Workbench as Workbench
from dialoom.server.workbench import WorkbenchStore as WorkbenchStore
