"""Chat completions: the wire of OpenAI and of most local servers."""

from dialoom.llm.openai.provider import OpenAIProvider as OpenAIProvider
