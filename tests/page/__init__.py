"""The page of the workbench: its own unit tests, and a real browser on a real server."""
