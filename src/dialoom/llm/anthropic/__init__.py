"""The Messages wire: of Anthropic, and of the local servers that speak it too."""

from dialoom.llm.anthropic.provider import AnthropicProvider as AnthropicProvider
