"""Answers recorded once and played back: tests and demonstrations without a model."""

from dialoom.llm.cassette.provider import CassetteProvider as CassetteProvider
