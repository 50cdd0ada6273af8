"""Tool servers over MCP: reached, watched, their tools made ours; and dialoom as such a server."""
