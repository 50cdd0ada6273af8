"""What a settings file says: which model, who makes vectors, and how both are asked. Values only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm import (
    ChatOptions,
    EmbeddingOptions,
    ModelChoice,
    ModelSettings,
    RetryPolicy,
    Timeouts,
    WireProfile,
)
from dialoom.llm.places import OPENAI_URL, PROVIDERS, parse_model, place_of

SERVER: Final = "openai"
"""The provider of vectors that is a server; every other runs in this process."""
_OPENAI_HEADERS: Final = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
_Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
_Milliseconds = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]


class _KeyedTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server that may want a key: the key itself, or better the *name* of the variable that holds it."""

    base_url: str | None = None
    api_key: str | None = None
    api_key_env: str | None = None

    def key(self, env: Mapping[str, str]) -> str | None:
        """Return the key. Raises `UsageError` when it is to come from a variable that is not set."""
        name = self.api_key_env
        if name and not env.get(name):
            raise UsageError(f"the settings take a key from {name}, which is not set; set it")
        return env[name] if name else self.api_key

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._shown())})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return self._shown()

    def _shown(self) -> list[tuple[str, object]]:
        names = (name for name in self.__struct_fields__ if name != "api_key")
        return [(name, getattr(self, name)) for name in names if getattr(self, name) is not None]


class ModelTable(_KeyedTable, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[model]`: who answers, and what is asked of every answer."""

    provider: str | None = None
    """One of those that are known by name; it may also stand before the name, as in `openai:qwen3`."""
    name: str | None = None
    profile: Path | None = None
    """What the doctor wrote down of the server."""
    anthropic_version: str | None = None
    """The version of its wire that an Anthropic server is asked for."""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    json_mode: bool = False
    reasoning: Literal["off", "low", "medium", "high"] | None = None
    num_ctx: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The context window in tokens that Ollama is asked for: its own is small, and it cuts silently."""

    def __post_init__(self) -> None:
        if self.provider is None:
            return
        if self.provider not in PROVIDERS:
            raise ValueError(f"there is no provider {self.provider[:40]!r}, only {', '.join(PROVIDERS)}")
        named = parse_model(self.name or "", has_place=True).provider
        if named not in {None, self.provider}:
            raise ValueError(f"provider {self.provider!r} does not go with the name {self.name!r}")

    @property
    def label(self) -> str | None:
        """The model as a person names it, like `ollama:llama3.2`."""
        if self.provider is None or (self.name or "").startswith(f"{self.provider}:"):
            return self.name
        return f"{self.provider}:{self.name}" if self.name else self.provider


class EmbeddingTable(_KeyedTable, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[embedding]`: the model that makes vectors, at a server with `/embeddings` or in this process."""

    provider: Literal["openai", "fastembed", "sentence-transformers", "model2vec", "sentence-encoder"] = (
        "openai"
    )
    """`openai` is any server with `/embeddings`, the others are packages that run a model here."""
    model: str | None = None
    cache: Path | None = None
    """A file that keeps the vectors of texts that were embedded before."""


class RequestTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[requests]`: how long either server is waited for, and how often it is asked again."""

    connect_timeout_ms: _Milliseconds | None = None
    total_timeout_ms: _Milliseconds | None = None
    retries: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    """How often a question is asked again: 0 is never."""
    retry_backoff_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] | None = None
    """What is waited before the second request; later waits are longer."""

    def timeouts(self, seconds: float | None) -> Timeouts:
        """Return how long an answer is waited for, at each step; `seconds`, when given, is the whole."""
        usual = Timeouts()
        total = seconds or _seconds(self.total_timeout_ms, usual.total)
        return Timeouts(
            connect=min(_seconds(self.connect_timeout_ms, usual.connect), total),
            first_event=min(usual.first_event, total),
            idle=min(usual.idle, total),
            total=total,
        )

    @property
    def retry(self) -> RetryPolicy:
        usual = RetryPolicy()
        first = _seconds(self.retry_backoff_ms, usual.first_wait)
        return RetryPolicy(
            attempts=usual.attempts if self.retries is None else self.retries + 1,
            first_wait=first,
            longest_wait=max(first, usual.longest_wait),
        )


class ServeTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[serve]`: the bounds of `dialoom serve`; flags go before it."""

    approval_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """How long an approval waits for a person before it expires; without it for ever."""
    max_connections: _Count | None = None
    max_streams: _Count | None = None


class EmbeddingServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where vectors come from. The key is in no `repr`."""

    base_url: str
    model: str
    key: str | None
    options: EmbeddingOptions

    def __repr__(self) -> str:
        return f"EmbeddingServer({self.model!r} at {self.base_url!r})"


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole settings file."""

    model: ModelTable = ModelTable()
    embedding: EmbeddingTable = EmbeddingTable()
    requests: RequestTable = RequestTable()
    serve: ServeTable = ServeTable()

    def __post_init__(self) -> None:
        table = self.embedding
        if table.model is None and (table.base_url or table.api_key or table.api_key_env):
            raise ValueError("[embedding] names a server and not the model there")

    def model_settings(self, env: Mapping[str, str], *, with_key: bool = True) -> ModelSettings:
        """Return who answers, with the key. Raises `UsageError` for a variable that is not set."""
        table = self.model
        key = table.key(env) if with_key else None
        return ModelSettings(model=table.label, base_url=table.base_url, api_key=key)

    def is_passed_over(self, flags: ModelSettings) -> bool:
        """Tell whether `flags` name another server than the file, which is to get no key of it."""
        named = parse_model(flags.model or "", has_place=bool(flags.base_url)).provider
        if named is None and not flags.base_url:
            return False
        return bool(self.model.base_url) or named == "offline" or named not in {None, self._vendor or named}

    def chat_options(
        self, model: str | None, *, max_tokens: int | None = None, timeout: float | None = None
    ) -> ChatOptions:
        """Return how `model` is asked; `max_tokens` and `timeout` (seconds) go before what the file says."""
        return ChatOptions(
            model=model,
            temperature=self.model.temperature,
            max_tokens=max_tokens or self.model.max_tokens,
            json_mode=self.model.json_mode,
            reasoning=self.model.reasoning,
            timeouts=self.requests.timeouts(timeout),
            retry=self.requests.retry,
        )

    def headers(self, choice: ModelChoice, env: Mapping[str, str]) -> dict[str, str]:
        """Return what goes out with every request to the chosen server, and to no other."""
        version = self.model.anthropic_version
        if choice.provider == "anthropic":
            return {"anthropic-version": version} if version else {}
        if choice.base_url != OPENAI_URL:
            return {}
        told = {name: env.get(variable, "").strip() for name, variable in _OPENAI_HEADERS.items()}
        return {name: value for name, value in told.items() if value}

    @property
    def lacks_embeddings(self) -> bool:
        """Whether a model for vectors is named, and its server would be Anthropic, which makes none."""
        return (
            self.embedding.model is not None and not self.embedding.base_url and self._vendor == "anthropic"
        )

    def embedding_server(self, env: Mapping[str, str]) -> EmbeddingServer | None:
        """Return who makes vectors, None for nobody: its own server, else the one that answers.

        Raises `UsageError` when neither table names a server, or a key is not set.
        """
        table = self.embedding
        if table.model is None or self.lacks_embeddings:
            return None
        base_url, key = table.base_url, table.key(env)
        if not base_url:
            base_url, other_key = self._answering(env)
            key = key or other_key
        waits = self.requests.timeouts(None)
        usual = EmbeddingOptions()
        options = EmbeddingOptions(
            connect=waits.connect, request=min(usual.request, waits.total), retry=self.requests.retry
        )
        return EmbeddingServer(base_url=base_url, model=table.model, key=key, options=options)

    @property
    def _vendor(self) -> str | None:
        return parse_model(self.model.label or "", has_place=True).provider

    def _answering(self, env: Mapping[str, str]) -> tuple[str, str | None]:
        """Return address and key of the server that the file has answer."""
        own_key = self.model.key(env)
        if self.model.base_url:
            return self.model.base_url, own_key
        if self._vendor in {None, "offline"}:
            raise UsageError(
                "the settings name a model for vectors and no server; add base_url to [embedding]"
            )
        base_url, vendor_key = place_of(self._vendor or "", env)
        return base_url, own_key or vendor_key

    def wire_profile(self) -> WireProfile | None:
        """Return what the doctor wrote down of the server; None when the file names nothing."""
        path = self.model.profile
        if path is None:
            return None
        try:
            return msgspec.json.decode(path.read_bytes(), type=WireProfile)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            told = one_line(str(error))
            raise UsageError(f"{path} is not a profile: {told}; run dialoom doctor again") from error
        except (OSError, ValueError) as error:  # a name with a NUL byte is a ValueError
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(
                f"cannot read the profile {path}: {reason}; run dialoom doctor --profile"
            ) from error


def _seconds(milliseconds: int | None, usual: float) -> float:
    return usual if milliseconds is None else milliseconds / 1000
