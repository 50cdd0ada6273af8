"""The `dialoom` command. It wires stores, models and graphs together; no other package chooses for you."""

from dialoom.cli.app import main as main
