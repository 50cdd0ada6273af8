"""The nodes of an agent's graph, by name."""

from typing import Final

MODEL: Final = "model"
TOOLS: Final = "tools"
OUTPUT: Final = "output"
