"""What to do when a server of chat completions does not answer."""

from collections.abc import Mapping

from dialoom.llm.errors import ErrorKind
from dialoom.llm.wire.endpoint import ADVICE

CHAT_ADVICE: Mapping[ErrorKind, str] = {
    **ADVICE,
    "invalid_response": "check that the base url is one of a chat completions server",
}
NOT_FOUND = "check the model's name, and whether the base url should end in /v1"
