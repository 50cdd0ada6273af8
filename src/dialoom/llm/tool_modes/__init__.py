"""Tools for servers and models that cannot call them by themselves."""

from dialoom.llm.tool_modes.provider import ToolMode as ToolMode
from dialoom.llm.tool_modes.provider import ToolModeProvider as ToolModeProvider
