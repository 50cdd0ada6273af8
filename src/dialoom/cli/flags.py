"""Options that more than one command takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter, Token, validators

from dialoom.base.errors import UsageError

DEFAULT_INDEX = Path(".dialoom/knowledge.sqlite")

_KNOWLEDGE = Group("Knowledge", sort_key=1)
_MODEL = Group("Model", sort_key=2)
_SERVICE = Group("Service", sort_key=3)


def _named_path(_kind: object, tokens: Sequence[Token]) -> Path:
    """Refuse an empty name, which would stand for the current folder: a variable was not set."""
    if not tokens[0].value.strip():
        raise UsageError(f"{tokens[0].keyword or 'the path'} is empty; name a file or folder")
    return Path(tokens[0].value)


NamedPath = Annotated[Path, Parameter(converter=_named_path)]
SettingsPath = Annotated[
    NamedPath | None, Parameter(help="The settings file, dialoom.toml unless this names another.")
]


@Parameter(name="*", group=_KNOWLEDGE)
@dataclass(frozen=True, kw_only=True)
class KnowledgeFlags:
    """Which documents to answer from."""

    docs: NamedPath | None = None
    """Bring this folder (or file) into the index first, and answer from it alone."""
    index: NamedPath = DEFAULT_INDEX
    """The index file; made when it is not there."""
    top_k: Annotated[int, Parameter(validator=validators.Number(gte=1, lte=100))] = 8
    """How many passages to look up."""


@Parameter(name="*", group=_MODEL)
@dataclass(frozen=True, kw_only=True)
class ModelFlags:
    """Which model answers; without any of these the config file, the environment and this machine decide."""

    model: str | None = None
    """As provider:name, like ollama:llama3.2; of openai, anthropic, ollama, lmstudio, llamacpp, offline."""
    base_url: str | None = None
    """The address of any server that speaks chat completions, like http://127.0.0.1:8080/v1."""
    max_tokens: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None
    """Stop an answer at this length; without it the server decides."""
    timeout: Annotated[float | None, Parameter(validator=validators.Number(gt=0))] = None
    """Give an answer up after so many seconds; without it a silent server is waited for 5 minutes."""
    config: SettingsPath = None
    offline: bool = False
    """Ask no model, as if there were none."""
    no_probe: bool = False
    """Do not look for a model server on this machine."""
    require_model: bool = False
    """End with exit code 3 instead of going offline when no model is found."""
    explain_model: bool = False
    """Print every place that was looked at for a model, and what came of it."""


@Parameter(name="*", group=_SERVICE)
@dataclass(frozen=True, kw_only=True)
class ServiceFlags:
    """Who may use a service, and for how long."""

    auth_token: str | None = None
    """Each request has to carry it as "auth"; better set DIALOOM_RAG_TOKEN, which no process list shows."""
    read_only: bool = False
    """Refuse everything that would change the index; DIALOOM_RAG_READ_ONLY=1 does the same."""
    timeout_ms: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None
    """Give a question up after so many milliseconds."""

    @property
    def timeout(self) -> float | None:
        """Seconds, None for no bound."""
        return None if self.timeout_ms is None else self.timeout_ms / 1000


NO_KNOWLEDGE_FLAGS = KnowledgeFlags()
NO_MODEL_FLAGS = ModelFlags()
NO_SERVICE_FLAGS = ServiceFlags()
