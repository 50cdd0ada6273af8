"""The two places every graph has: where a run comes in and where a path ends."""

from typing import Final

START: Final = "__start__"
END: Final = "__end__"
