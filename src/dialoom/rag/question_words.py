"""What a question is about, without the words every question has."""

import re

_ENGLISH = re.compile(
    r"\b(?:a|an|the|is|are|was|were|be|been|do|does|did|how|what|when|where|which|who|whom|whose|why|can|could|"
    r"will|would|should|may|might|must|has|have|had|of|to|in|on|at|by|for|from|with|and|or|it|its|this|that|"
    r"these|those|i|we|you|my|our|your|there|much|many|long)\b",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    "什么|多长时间|多少|多久|哪些|哪个|哪一|哪|如何|怎么|怎样|为什么|是否|请问|谁|几|吗|呢|的|是|在|了|有|和|与"
)


def about(question: str) -> str:
    """The question without English and Chinese function and question words; all of it if nothing is left."""
    left = _CHINESE.sub(" ", _ENGLISH.sub(" ", question))
    return left if left.strip(" ?？.。!！,，") else question
