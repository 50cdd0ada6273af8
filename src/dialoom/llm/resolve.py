"""Which model answers: decided from what flags, a config, the environment and local servers say. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from dialoom.base.errors import UsageError
from dialoom.llm.places import (
    ANTHROPIC_MODEL,
    ANTHROPIC_URL,
    OPENAI_MODEL,
    OPENAI_URL,
    ModelName,
    parse_model,
    place_of,
)
from dialoom.net.address import is_loopback, safe_url, split_url

_FIRST_MODELS = {("openai", OPENAI_URL): OPENAI_MODEL, ("anthropic", ANTHROPIC_URL): ANTHROPIC_MODEL}
_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}

Verdict = Literal["chosen", "passed over", "not set"]


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What one source says about the model: flags, or a config file."""

    model: str | None = None
    base_url: str | None = None
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"ModelSettings(model={self.model!r}, base_url={self.base_url!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("model", self.model), ("base_url", self.base_url)]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a choice depends on; the edge of the program collects it."""

    flags: ModelSettings = ModelSettings()
    config: ModelSettings = ModelSettings()
    env: Mapping[str, str] = {}
    offline: bool = False
    """Answer without a model, whatever else is set."""
    probe: bool = True
    """Look for a server on this machine when nothing else names one."""

    def __repr__(self) -> str:
        # the environment is full of keys
        return f"ModelRequest(flags={self.flags!r}, config={self.config!r}, offline={self.offline})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [("flags", self.flags), ("config", self.config), ("offline", self.offline)]


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What was found at one address of this machine: its chat models, or why there are none."""

    provider: str
    base_url: str
    models: tuple[str, ...] = ()
    why: str = ""


class Step(msgspec.Struct, frozen=True):
    """One place that was looked at, and what came of it."""

    source: str
    verdict: Verdict
    why: str


class ModelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The model that answers, and how it was found. Key and token are in no `repr`.

    `model` is None when the server has still to be asked what it serves. `wants_probe` says that only
    the servers of this machine are left to look at.
    """

    provider: str
    base_url: str | None = None
    model: str | None = None
    api_key: str | None = None
    auth_token: str | None = None
    """What is sent as a bearer token where a key is sent in another way."""
    mode: Literal["model", "offline"] = "model"
    steps: tuple[Step, ...] = ()
    wants_probe: bool = False

    @property
    def label(self) -> str:
        """The choice as people write it, like `ollama:llama3.2`."""
        return f"{self.provider}:{self.model}" if self.model else self.provider

    def __repr__(self) -> str:
        return f"ModelChoice({self.label!r}, base_url={self.base_url!r}, mode={self.mode!r})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [
            ("label", self.label),
            ("base_url", self.base_url),
            ("mode", self.mode),
            ("steps", self.steps),
        ]


def resolve_model(request: ModelRequest, probes: Sequence[Probe] | None = None) -> ModelChoice:
    """Return the model that answers.

    Looks, in this order, at: the flags; the config; `DIALOOM_MODEL`, `DIALOOM_BASE_URL` and
    `DIALOOM_API_KEY`; `OPENAI_BASE_URL`; the Anthropic keys; `OPENAI_API_KEY`; `OLLAMA_HOST`; the local
    servers in `probes`; and ends with the offline mode. A model named without a server keeps its name
    for the first server that is found. Raises `UsageError` on an unknown provider or a broken address.
    """
    if request.offline:
        return ModelChoice(
            provider="offline", mode="offline", steps=(Step("--offline", "chosen", "asked for"),)
        )
    search = _Search(request)
    search.look_at_settings()
    search.look_at_vendors()
    search.look_at_probes(probes)
    return search.result()


class _Search:
    """Goes through the sources; the first that has a server ends it, the others are not looked at."""

    def __init__(self, request: ModelRequest) -> None:
        self._env = {name: value.strip() for name, value in request.env.items()}
        own = ModelSettings(
            model=self._env.get("DIALOOM_MODEL"),
            base_url=self._env.get("DIALOOM_BASE_URL"),
            api_key=self._env.get("DIALOOM_API_KEY"),
        )
        self._layers = (
            ("--model, --base-url", request.flags),
            ("config file", request.config),
            ("DIALOOM_MODEL, DIALOOM_BASE_URL", own),
        )
        self._may_probe = request.probe and self._env.get("DIALOOM_NO_PROBE", "").lower() in {
            "",
            "0",
            "false",
        }
        self._name: str | None = None
        self._steps: list[Step] = []
        self._found: ModelChoice | None = None
        self._wants_probe = False

    def look_at_settings(self) -> None:
        for number, (source, layer) in enumerate(self._layers):
            if self._found is not None:
                return
            if not layer.model and not layer.base_url:
                self._pass(source, "not set", "names neither a model nor a server")
                continue
            self._look_at_layer(number, source, layer)

    def look_at_vendors(self) -> None:
        for look in (self._openai_base_url, self._anthropic, self._openai_key, self._ollama_host):
            if self._found is None:
                look()

    def look_at_probes(self, probes: Sequence[Probe] | None) -> None:
        if self._found is not None:
            return
        if not self._may_probe:
            self._pass("local servers", "passed over", "looking for them is turned off")
            return
        self._wants_probe = probes is None
        for probe in probes or ():
            source = f"{probe.provider} at {probe.base_url}"
            model = self._name if self._name in probe.models else next(iter(probe.models), None)
            if model is None:
                self._pass(source, "passed over", probe.why or "serves no chat model")
            elif self._name and model != self._name:
                self._pass(source, "passed over", f"does not serve {self._name}")
            else:
                self._choose(source, probe.provider, probe.base_url, model=model, why=f"serves {model}")
                return

    def result(self) -> ModelChoice:
        if self._found is not None:
            return msgspec.structs.replace(self._found, steps=tuple(self._steps))
        if self._name and not self._wants_probe:
            raise UsageError(
                f"no server was found for model {self._name[:80]!r}; "
                "write it as provider:name, like ollama:llama3.2, or add --base-url"
            )
        self._pass("offline", "chosen", "no model was found; answers quote the documents")
        steps = tuple(self._steps)
        return ModelChoice(provider="offline", mode="offline", steps=steps, wants_probe=self._wants_probe)

    def _look_at_layer(self, number: int, source: str, layer: ModelSettings) -> None:
        named = ModelName(None, None)
        if layer.model:
            named = parse_model(layer.model, has_place=bool(layer.base_url))
        name = self._name or named.name
        if named.provider == "offline" and not layer.base_url:
            self._found = ModelChoice(provider="offline", mode="offline")
            self._pass(source, "chosen", "asked for")
        elif layer.base_url:
            _check(layer.base_url, source)
            name = name or self._name_below(number)
            key = layer.api_key or self._own_key(number)
            why = f"names {safe_url(layer.base_url)}"
            self._choose(source, named.provider or "openai", layer.base_url, model=name, why=why, key=key)
        elif named.provider:
            base_url, vendor_key = place_of(named.provider, self._env)
            _check(base_url, source)
            key = layer.api_key or self._own_key(number) or vendor_key
            token = self._anthropic_token(named.provider, key)
            needed = _KEYS.get(named.provider)
            if needed and key is None and token is None and not _is_local(base_url):
                what = f"{source} names {named.provider}, but {needed} is not set"
                raise UsageError(f"{what}; set it, or name another server")
            why = f"names {named.provider}"
            self._choose(source, named.provider, base_url, model=name, why=why, key=key, token=token)
        else:
            self._name = name
            self._pass(source, "passed over", f"names {name} but no server; looking on for one")

    def _name_below(self, number: int) -> str | None:
        """Return the model that a lower source names without a server of its own."""
        for _, layer in self._layers[number + 1 :]:
            if layer.model and not layer.base_url:
                return parse_model(layer.model, has_place=True).name
        return None

    def _own_key(self, number: int) -> str | None:
        """Return the key of a lower source, unless that source has a server of its own to use it with."""
        below = self._layers[number + 1 :]
        return next((layer.api_key for _, layer in below if layer.api_key and not layer.base_url), None)

    def _openai_base_url(self) -> None:
        source, base_url = "OPENAI_BASE_URL", self._env.get("OPENAI_BASE_URL")
        key = self._env.get("OPENAI_API_KEY") or None
        if not base_url:
            self._pass(source, "not set", "names no server")
            return
        _check(base_url, source)
        if key is None and not _is_local(base_url):
            self._pass(source, "passed over", "is another machine's and OPENAI_API_KEY is not set")
            return
        why = f"names {safe_url(base_url)}"
        self._choose(source, "openai", base_url, model=self._name, why=why, key=key)

    def _anthropic(self) -> None:
        source = "ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN"
        base_url, key = place_of("anthropic", self._env)
        token = self._anthropic_token("anthropic", key)
        if key is None and token is None:
            self._pass(source, "not set", "hold no key")
            return
        _check(base_url, "ANTHROPIC_BASE_URL")
        if self._name and base_url == ANTHROPIC_URL and "claude" not in self._name.lower():
            self._pass(source, "passed over", f"does not serve {self._name}; its models are named claude")
            return
        why = "holds a key" if self._name else f"holds a key; {ANTHROPIC_MODEL} unless --model names another"
        if self._env.get("OPENAI_API_KEY") and not self._name:
            why += "; OPENAI_API_KEY is set too, --model openai takes it"
        self._choose(source, "anthropic", base_url, model=self._name, why=why, key=key, token=token)

    def _anthropic_token(self, provider: str, key: str | None) -> str | None:
        """Return the bearer token, which counts where there is no key."""
        return (
            (self._env.get("ANTHROPIC_AUTH_TOKEN") or None) if provider == "anthropic" and not key else None
        )

    def _openai_key(self) -> None:
        key = self._env.get("OPENAI_API_KEY")
        if not key:
            self._pass("OPENAI_API_KEY", "not set", "holds no key")
            return
        model = self._name or OPENAI_MODEL
        why = "holds a key" if self._name else f"holds a key; {model} unless --model names another"
        self._choose("OPENAI_API_KEY", "openai", OPENAI_URL, model=model, why=why, key=key)

    def _ollama_host(self) -> None:
        host = self._env.get("OLLAMA_HOST")
        if not host:
            self._pass("OLLAMA_HOST", "not set", "names no server")
            return
        base_url, key = place_of("ollama", self._env)
        _check(base_url, "OLLAMA_HOST")
        why = f"names {safe_url(base_url)}"
        self._choose("OLLAMA_HOST", "ollama", base_url, model=self._name, why=why, key=key)

    def _choose(
        self,
        source: str,
        provider: str,
        base_url: str,
        *,
        model: str | None,
        why: str,
        key: str | None = None,
        token: str | None = None,
    ) -> None:
        self._found = ModelChoice(
            provider=provider,
            base_url=base_url.rstrip("/"),
            model=model or _FIRST_MODELS.get((provider, base_url)),
            api_key=key or None,
            auth_token=token,
        )
        self._pass(source, "chosen", why)

    def _pass(self, source: str, verdict: Verdict, why: str) -> None:
        self._steps.append(Step(source, verdict, why))


def _check(base_url: str, source: str) -> None:
    try:
        split_url(base_url)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from error


def _is_local(base_url: str) -> bool:
    return is_loopback(split_url(base_url).hostname or "")
