"""Tool servers over MCP: reached, watched, their tools made ours; and dialoom as such a server."""

from dialoom.mcp.client import MCPClient as MCPClient
from dialoom.mcp.client import ServerFacts as ServerFacts
from dialoom.mcp.config import MCPServerConfig as MCPServerConfig
from dialoom.mcp.config_fields import BearerAuth as BearerAuth
from dialoom.mcp.config_fields import McpTimeouts as McpTimeouts
from dialoom.mcp.config_fields import OAuth as OAuth
from dialoom.mcp.config_fields import Transport as Transport
from dialoom.mcp.errors import McpError as McpError
from dialoom.mcp.errors import McpErrorKind as McpErrorKind
from dialoom.mcp.errors import McpFacts as McpFacts
from dialoom.mcp.expand import Variables as Variables
from dialoom.mcp.host import MCPHost as MCPHost
from dialoom.mcp.host import ServerStatus as ServerStatus
from dialoom.mcp.inputs import MCPAnswers as MCPAnswers
from dialoom.mcp.memory import MemoryTransport as MemoryTransport
from dialoom.mcp.options import MCPOptions as MCPOptions
from dialoom.mcp.sampling import Sampling as Sampling
from dialoom.mcp.sampling import SamplingRequest as SamplingRequest
from dialoom.mcp.session import Skipped as Skipped
from dialoom.mcp.stdio import StdioTransport as StdioTransport
from dialoom.mcp.tokens import FileTokenStore as FileTokenStore
from dialoom.mcp.tokens import Login as Login
from dialoom.mcp.tokens import MemoryTokenStore as MemoryTokenStore
from dialoom.mcp.tokens import TokenStore as TokenStore
from dialoom.mcp.transport import LineTransport as LineTransport
from dialoom.mcp.transport import Oversize as Oversize
