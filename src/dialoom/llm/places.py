"""Where models are served: the providers we know by name, and how their addresses are written."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from dialoom.base.errors import UsageError

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4o-mini"
"""Asked for when OpenAI is chosen and no model is named: its list of models has no useful first one."""
ANTHROPIC_URL = "https://api.anthropic.com"
ANTHROPIC_MODEL = "claude-haiku-4-5"
"""Asked for when Anthropic is chosen and no model is named: its list begins with the dearest."""
OLLAMA_PORT = 11434

PROVIDERS = ("openai", "anthropic", "ollama", "lmstudio", "llamacpp", "offline")


class ModelName(msgspec.Struct, frozen=True):
    """`provider:name` as people write it; either half may be left out."""

    provider: str | None
    name: str | None


def parse_model(text: str, *, has_place: bool) -> ModelName:
    """Read `provider:name`, `provider` or a plain model name.

    Names may hold colons themselves, so with an address at hand an unknown first half belongs to the name;
    without one it is an unknown provider and raises `UsageError`.
    """
    text = text.strip()
    first, colon, rest = text.partition(":")
    if first.lower() in PROVIDERS:
        return ModelName(first.lower(), rest.strip() or None)
    if colon and not has_place:
        known = ", ".join(PROVIDERS)
        raise UsageError(
            f"unknown provider {first[:40]!r} in model {text[:80]!r}; write provider:name with one of {known}"
        )
    return ModelName(None, text or None)


def place_of(provider: str, env: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the address and key of a provider named by a person, with what its own variables say."""
    match provider:
        case "ollama":
            return ollama_url(env.get("OLLAMA_HOST", "")), env.get("OLLAMA_API_KEY") or None
        case "lmstudio":
            return "http://127.0.0.1:1234/v1", env.get("LM_API_TOKEN") or None
        case "llamacpp":
            port = env.get("LLAMA_ARG_PORT", "")
            return f"http://127.0.0.1:{port if port.isdigit() else 8080}/v1", env.get("LLAMA_API_KEY") or None
        case "anthropic":
            return env.get("ANTHROPIC_BASE_URL") or ANTHROPIC_URL, env.get("ANTHROPIC_API_KEY") or None
        case _:
            return env.get("OPENAI_BASE_URL") or OPENAI_URL, env.get("OPENAI_API_KEY") or None


def ollama_url(host: str) -> str:
    """Return the address of Ollama's chat completions for a value of `OLLAMA_HOST`.

    That variable is first a server's: it may leave out scheme, host or port, and it may name every
    interface, which a client has to read as this machine. Raises `UsageError`.
    """
    host = host.strip().strip("\"'")
    scheme, mark, rest = host.partition("://")
    scheme, rest = (scheme, rest) if mark else ("http", host)
    default_port = {("http", True): 80, ("https", True): 443}.get((scheme, bool(mark)), OLLAMA_PORT)
    try:
        parts = urlsplit(f"//{rest}")
        port = parts.port or default_port
    except ValueError as error:
        raise UsageError(f"OLLAMA_HOST is {host[:80]!r}; write it like 127.0.0.1:11434") from error
    name = parts.hostname or "127.0.0.1"
    if name in {"0.0.0.0", "::"}:  # noqa: S104 - read, not bound
        name = "127.0.0.1"
    name = f"[{name}]" if ":" in name else name
    return f"{scheme}://{name}:{port}{parts.path.rstrip('/')}/v1"
