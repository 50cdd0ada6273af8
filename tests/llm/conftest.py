"""Fixtures of the tests of models."""

from tests.local_model import local_model

__all__ = ["local_model"]
