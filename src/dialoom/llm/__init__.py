"""Talking to models: messages, streams, providers, errors by cause."""
