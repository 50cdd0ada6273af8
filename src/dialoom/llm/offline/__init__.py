"""Answers without any model, quoted from the passages they are asked about."""

from dialoom.llm.offline.provider import OfflineProvider as OfflineProvider
