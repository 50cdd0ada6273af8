"""Tools: functions and classes a model may call, checked, bounded, and answered for in every case."""

from dialoom.tools.context import Journal as Journal
from dialoom.tools.context import Progress as Progress
from dialoom.tools.context import ToolContext as ToolContext
from dialoom.tools.context import ToolRun as ToolRun
from dialoom.tools.execute import execute_calls as execute_calls
from dialoom.tools.function import FunctionTool as FunctionTool
from dialoom.tools.function import tool as tool
from dialoom.tools.policy import Spill as Spill
from dialoom.tools.policy import ToolExecutionPolicy as ToolExecutionPolicy
from dialoom.tools.registry import ToolRegistry as ToolRegistry
from dialoom.tools.result import ToolResult as ToolResult
from dialoom.tools.tool import ArgumentsError as ArgumentsError
from dialoom.tools.tool import StoppableTool as StoppableTool
from dialoom.tools.tool import Tool as Tool
from dialoom.tools.tool import ToolOptions as ToolOptions
