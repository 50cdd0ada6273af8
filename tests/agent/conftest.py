"""Fixtures of the tests of agents."""

from tests.local_model import local_model

__all__ = ["local_model"]
