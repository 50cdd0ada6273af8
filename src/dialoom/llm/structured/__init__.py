"""Answers that are values: asked for by schema or type, checked here, repaired by the model."""

from dialoom.llm.structured.chat import chat_structured as chat_structured
from dialoom.llm.structured.find import find_json as find_json
from dialoom.llm.structured.partial import PartialJson as PartialJson
from dialoom.llm.structured.result import StructuredMode as StructuredMode
from dialoom.llm.structured.result import StructuredResult as StructuredResult
