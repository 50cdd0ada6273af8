"""Whatever is in a conversation comes back from YAML and JSON, and other programs read the same YAML."""

import io

import ruamel.yaml
import ryaml

from dialoom.conversation import Conversation, Header, Record, load_yaml


def everything(conversation: Conversation) -> tuple[Header, tuple[Record, ...]]:
    return conversation.header, conversation.records


def check_codecs(conversation: Conversation) -> None:
    """Write `conversation` and read it back, here and with two libraries of others."""
    written = conversation.to_yaml()
    loaded = Conversation.from_yaml(written)
    assert everything(loaded) == everything(conversation)
    assert loaded.to_yaml() == written
    assert everything(Conversation.from_json(conversation.to_json())) == everything(conversation)
    expected = load_yaml(written)
    assert ryaml.loads(written) == expected
    assert ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(written)) == expected
