"""Our side as a tool server: tools of a registry, documents as resources, prompts, questions on the way.

`Served` says what is offered; `serve_stdio` offers it on standard streams and `http_endpoint` as an ASGI
app. Both speak both eras of the protocol. The official package is loaded when one of them is called.
"""

from dialoom.mcp.server.graph_tool import GraphTool as GraphTool
from dialoom.mcp.server.news import ListChanged as ListChanged
from dialoom.mcp.server.news import News as News
from dialoom.mcp.server.news import ResourceChanged as ResourceChanged
from dialoom.mcp.server.run import HttpAccess as HttpAccess
from dialoom.mcp.server.run import http_endpoint as http_endpoint
from dialoom.mcp.server.run import serve_stdio as serve_stdio
from dialoom.mcp.server.served import Blank as Blank
from dialoom.mcp.server.served import Content as Content
from dialoom.mcp.server.served import Prompt as Prompt
from dialoom.mcp.server.served import PromptArgument as PromptArgument
from dialoom.mcp.server.served import Resource as Resource
from dialoom.mcp.server.served import ResourceBytes as ResourceBytes
from dialoom.mcp.server.served import Resources as Resources
from dialoom.mcp.server.served import ResourceTemplate as ResourceTemplate
from dialoom.mcp.server.served import ResourceText as ResourceText
from dialoom.mcp.server.served import Served as Served
