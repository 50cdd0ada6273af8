"""A conversation as YAML and JSON: the layout of seed 003, with nothing lost on the way."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.conversation import (
    CardEntry,
    Conversation,
    Header,
    TextEntry,
    dump_yaml,
    prompt,
    screen,
)
from dialoom.testing import ManualClock
from tests.conversation.codecs import check_codecs, everything
from tests.conversation.strategies import conversations

# two letters x at the end: no device name of Windows has them
CONVERSATIONS = conversations(st.from_regex(r"[A-Za-z0-9_-]{1,20}xx", fullmatch=True))

SEED_FILE = """\
sessionId: 3f2b
title: 网格化
createdAt: 2026-11-30T12:00:00.0000000+08:00
updatedAt: 2026-11-30T12:05:00
workflowMode: Guided
entries:
- kind: Text
  role: User
  content: 25
- kind: Text
  role: assistant
  content: yes
- kind: Special
  type: Table
  payload: |
    type: Table
    title: 结果
    columnNames: [a, b]
    rows:
    - [1, x]
- kind: Text
  role: user
  content:
"""


def said(text: str, role: str = "user") -> TextEntry:
    return TextEntry(role=role, content=text)


@pytest.mark.promise("storage-007", "storage-012")
@settings(max_examples=60, deadline=None)
@given(CONVERSATIONS)
def test_a_conversation_survives_yaml_and_json_and_other_readers(conversation: Conversation) -> None:
    check_codecs(conversation)


@pytest.mark.promise("storage-002", "storage-006", "storage-008", "cards-011")
def test_the_file_is_yaml_with_the_fields_of_the_seed_and_readable_cards() -> None:
    header = Header(id="3f2b", title="网格化", created=0, updated=1.5, workflow_mode="Guided")
    conversation = Conversation(header, clock=ManualClock(1.5))
    conversation.append(said("画图"))
    conversation.append(CardEntry(type="Table", payload="type: Table\ntitle: 结果\n"))
    assert conversation.to_yaml() == (
        'sessionId: "3f2b"\n'
        "title: 网格化\n"
        'createdAt: "1970-01-01T00:00:00.000Z"\n'
        'updatedAt: "1970-01-01T00:00:01.500Z"\n'
        "workflowMode: Guided\n"
        "entries:\n"
        "- kind: Text\n"
        "  role: user\n"
        "  content: 画图\n"
        "- kind: Special\n"
        "  type: Table\n"
        "  payload: |\n"
        "    type: Table\n"
        "    title: 结果\n"
    )


@pytest.mark.promise("storage-009", "storage-010")
def test_a_file_of_the_seeds_product_opens_as_a_live_conversation() -> None:
    conversation = Conversation.from_yaml(SEED_FILE, clock=ManualClock(2e9))
    assert conversation.header == Header(
        id="3f2b",
        title="网格化",
        created=1_796_011_200.0,
        updated=1_796_040_300.0,
        workflow_mode="Guided",
    )
    table = "type: Table\ntitle: 结果\ncolumnNames: [a, b]\nrows:\n- [1, x]\n"
    assert conversation.entries == (
        said("25"),
        said("yes", "assistant"),
        CardEntry(type="Table", payload=table),
        said(""),
    )
    assert conversation.append(said("go on")) == 4
    assert conversation.header.updated == 2e9


@pytest.mark.promise("storage-014")
def test_after_switching_and_loading_again_cards_and_order_are_right() -> None:
    first, second = Conversation(), Conversation()
    for at in range(3):
        first.append(said(f"first {at}"))
        first.append(CardEntry(type="Table", payload=f"type: Table\nid: t{at}\n"))
        second.append(said(f"second {at}"))
    files = {each.id: each.to_yaml() for each in (first, second)}
    for each in (second, first, second):
        loaded = Conversation.from_yaml(files[each.id])
        assert loaded.entries == each.entries
        assert screen(loaded.entries) == screen(each.entries)
        assert prompt(loaded.entries) == prompt(each.entries)


def test_a_file_with_fields_missing_gets_what_it_needs() -> None:
    conversation = Conversation.from_yaml("entries:\n", clock=ManualClock(7.0))
    assert conversation.header == Header(id=conversation.id, created=7, updated=7)
    assert conversation.entries == ()
    created = Conversation.from_yaml('createdAt: "2026-11-30T12:00:00Z"')
    assert created.header.updated == created.header.created == 1_796_040_000.0


def test_texts_without_quotes_stay_the_texts_they_are() -> None:
    header = Conversation.from_yaml("sessionId: 0123\ntitle: 1.50\nworkflowMode: 1\n").header
    assert (header.id, header.title, header.workflow_mode) == ("0123", "1.50", 1)
    entries = "entries: [{kind: Text, role: user, content: 1.50}, {kind: Text, role: user, content: x}]"
    assert Conversation.from_yaml(entries).entries == (said("1.50"), said("x"))
    empty = "title: ~\ncreatedAt: null\nsettings:\nentries:\nremoved:\nsessionId: 5\n"
    assert Conversation.from_yaml(empty, clock=ManualClock(3.0)).header == Header(
        id="5", created=3, updated=3
    )
    assert Conversation.from_yaml("title: yes\nsessionId: true\n").header.id == "true"


def test_unknown_fields_never_stand_in_for_known_ones() -> None:
    header = Header(id="a", title="t", created=0, updated=0, meta={"title": "x", "entries": [1], "other": 1})
    loaded = Conversation.from_yaml(Conversation(header).to_yaml())
    assert (loaded.header.title, loaded.entries, loaded.header.meta) == ("t", (), {"other": 1})


def test_fields_we_do_not_know_come_back() -> None:
    written = Conversation.from_yaml("sessionId: a\npinned: true\nentries: []\n").to_yaml()
    assert Conversation.from_yaml(written).header.meta == {"pinned": True}


def test_what_was_removed_is_in_the_file_once() -> None:
    conversation = Conversation(Header(id="a", created=0, updated=0), clock=ManualClock(0))
    for text in "abc":
        conversation.append(said(text), key=f"k{text}")
    conversation.truncate_to(1)
    conversation.append(said("d"))
    assert conversation.to_dict()["entries"] == [
        {"kind": "Text", "role": "user", "content": "a", "key": "ka"},
        {"kind": "Text", "role": "user", "content": "d"},
    ]
    assert conversation.to_dict()["removed"] == [
        {
            "keep": 1,
            "entries": [
                {"kind": "Text", "role": "user", "content": "b", "key": "kb"},
                {"kind": "Text", "role": "user", "content": "c", "key": "kc"},
            ],
        }
    ]
    for loaded in (
        Conversation.from_dict(conversation.to_dict()),
        Conversation.from_json(conversation.to_json()),
        Conversation.from_yaml(conversation.to_yaml()),
    ):
        assert everything(loaded) == everything(conversation)
        assert loaded.append(said("c"), key="kc") is None


def test_a_file_shortened_by_hand_still_opens_with_what_it_shows() -> None:
    document = {"sessionId": "a", "entries": [], "removed": [{"keep": 7, "entries": None}, {"keep": 0}]}
    assert Conversation.from_yaml(dump_yaml(document)).entries == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the document is not a mapping; write fields as `name: value`"),
        ("a: [", "not readable as yaml: line 2: "),
        ("sessionId: ../x", "'../x' cannot name a conversation; "),
        ("sessionId: [a]", "sessionId is not text; quote it"),
        ("createdAt: soon", "'soon' is no time; write it like 2026-11-30T12:00:00Z"),
        ("workflowMode: [a]", "workflowMode is not a word, a number or true or false; quote it"),
        ("settings: 5", "settings is not a mapping; write fields as `name: value`"),
        ("settings: false", "settings is not a mapping; "),
        ("entries: false", "entries is not a list; "),
        ("entries: 5", "entries is not a list; write one item per line, each behind a dash"),
        ("entries: [5]", "entries[0] is not a mapping; write fields as `name: value`"),
        ("entries: [{kind: Text, role: user}]", "entries[0]: not an entry of a conversation: "),
        ("entries: [5, {kind: Text, role: user, content: 5}]", "entries[0] is not a mapping; "),
        ("entries: [{kind: Text, role: user, content: x, key: 5}]", "entries[0].key is not text; quote it"),
        ("removed: 5", "removed is not a list; "),
        ("removed: [5]", "removed[0] is not a mapping; "),
        ("removed: [{keep: -1}]", "removed[0].keep is not a count; write a whole number of 0 or more"),
        ("removed: [{keep: true}]", "removed[0].keep is not a count; "),
        ("removed: [{keep: 0, entries: [{}]}]", "removed[0].entries[0]: not an entry of a conversation: "),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Conversation.from_yaml(text)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize("cut", range(1, len(SEED_FILE), 7))
def test_a_torn_file_is_read_or_refused_in_one_line(cut: int) -> None:
    refusal = ""
    try:
        Conversation.from_yaml(SEED_FILE[:cut])
    except UsageError as error:
        refusal = str(error)
    assert "\n" not in refusal
