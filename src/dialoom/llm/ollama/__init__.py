"""Ollama's own wire, for what its chat completions cannot do: a context window of the caller's size."""

from dialoom.llm.ollama.provider import OllamaProvider as OllamaProvider
