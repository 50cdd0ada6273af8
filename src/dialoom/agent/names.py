"""The nodes and channels of an agent's graph, by name."""

from typing import Final

MODEL: Final = "model"
TOOLS: Final = "tools"
