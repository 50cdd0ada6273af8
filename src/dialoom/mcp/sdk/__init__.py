"""What stands on the official MCP SDK.

Importing any of it costs most of a second, so that is done when the first server is connected: nothing
outside imports it, or the SDK, at its top.
"""
