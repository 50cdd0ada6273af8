"""The list of models as servers write it."""

import re

import msgspec

from dialoom.base.text import one_line
from dialoom.llm.capabilities import Capability, Model
from dialoom.llm.json_values import count_of, fields_of, items_of, text_of

MAX_MODELS = 10_000

_NO_CHAT = re.compile(
    r"embed|rerank|whisper|tts|speech|transcri|moderation|dall-e|image|\bbge\b|\be5\b|minilm|\bgte\b",
    re.IGNORECASE,
)
_CHAT = Capability.TEXT | Capability.TOOLS | Capability.STREAMING


def read_models(listing: bytes, provider: str) -> tuple[Model, ...] | None:
    """Return the models in the body of `/models`, None when it is no such list."""
    try:
        value: object = msgspec.json.decode(listing)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    fields = fields_of(value)
    items = items_of(value) or items_of(fields.get("data")) or items_of(fields.get("models"))
    if not items and "data" not in fields and "models" not in fields:
        return None
    found = (_model(fields_of(item), provider) for item in items[:MAX_MODELS])
    return tuple(model for model in found if model.id)


def chats(model_id: str) -> bool:
    """Whether a model can chat, as far as its name says."""
    return _NO_CHAT.search(model_id) is None


def _model(fields: dict[str, object], provider: str) -> Model:
    name = one_line(text_of(fields.get("id")) or text_of(fields.get("name")) or text_of(fields.get("model")))
    meta = fields_of(fields.get("meta"))
    windows = (
        fields.get("max_model_len"),
        fields.get("max_context_length"),
        fields.get("context_length"),
        meta.get("n_ctx_train"),
    )
    return Model(
        id=name,
        provider=provider,
        capabilities=_CHAT if chats(name) else Capability.EMBEDDING,
        context_window=next((size for size in map(count_of, windows) if size), None),
    )
