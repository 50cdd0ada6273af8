"""How one server departs from the common wire. Flags, so that a quirk never becomes a subclass."""

from collections.abc import Mapping
from typing import Literal, Protocol, runtime_checkable

import msgspec


class WireProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Quirks of a server or model; the defaults fit most servers that speak chat completions."""

    api: Literal["chat", "responses"] = "chat"
    """Which of OpenAI's two wires is spoken: `/chat/completions`, or `/responses`."""
    structured_mode: Literal["native", "tool", "prompt"] = "native"
    """How an answer is held to a schema: by the server, as the arguments of a tool, or by asking for it."""
    tool_mode: Literal["native", "schema", "off"] = "native"
    """How tools are called: by the wire, as an answer held to a schema, or not at all."""
    streaming: bool = True
    """Ask for the answer in pieces."""
    usage_in_stream: bool = True
    """Ask for token counts at the end of a stream; a few old servers refuse the field."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer"] = "system"
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    """Where a delta may hold reasoning; the first that is not empty counts, the others repeat it."""
    replay_reasoning: Literal["never", "tool_calls", "always", "required"] = "never"
    """Whether earlier reasoning goes back to the model: never, in messages that call tools, or always;
    `required` sends the field with every answer, also where there was no reasoning."""
    default_max_tokens: int = 8192
    """Sent where a request names no limit and the wire must have one."""
    tool_files: tuple[str, ...] = ("image/png", "image/jpeg", "image/gif", "image/webp")
    """Media types of what tools return that the model is shown; of each other one it reads what it is. `()`
    is for a model that cannot see; that is also found out when its server refuses a picture."""
    think_tags: tuple[str, str] | None = None
    """Tags around reasoning inside the text, like `("<think>", "</think>")`; None leaves such text alone."""
    quota_codes: frozenset[str] = frozenset(("insufficient_quota", "billing_hard_limit_reached"))
    """Error codes that mean an empty account rather than too many requests."""


DEFAULT_PROFILE = WireProfile()
_WITH_PDF = (*DEFAULT_PROFILE.tool_files, "application/pdf")
OPENAI_PROFILE = WireProfile(max_tokens_field="max_completion_tokens", tool_files=_WITH_PDF)
# refuses with 400 a history whose answers lack the field, and every picture
DEEPSEEK_PROFILE = WireProfile(replay_reasoning="required", tool_files=())
ANTHROPIC_PROFILE = WireProfile(
    structured_mode="tool",
    tool_files=_WITH_PDF,
    quota_codes=frozenset((*DEFAULT_PROFILE.quota_codes, "billing_error")),
)


_KNOWN_HOSTS: Mapping[str, WireProfile] = {
    "api.openai.com": OPENAI_PROFILE,
    "api.deepseek.com": DEEPSEEK_PROFILE,
}


def profile_for(host: str) -> WireProfile:
    """Return the profile of a known host, else the common one."""
    return _KNOWN_HOSTS.get(host, DEFAULT_PROFILE)


@runtime_checkable
class Profiled(Protocol):
    """A provider that knows how its server speaks."""

    @property
    def profile(self) -> WireProfile | None: ...


def profile_of(provider: object) -> WireProfile | None:
    """Return what a provider says of its server, None when it says nothing."""
    return provider.profile if isinstance(provider, Profiled) else None
