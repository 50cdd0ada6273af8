"""What people, models and machines put into a conversation, for hypothesis."""

from hypothesis import strategies as st

from dialoom.conversation import Append, CardEntry, Conversation, Entry, Header, Record, TextEntry, Truncate
from dialoom.llm.messages import ToolCall

AWKWARD = st.sampled_from(
    (
        "",
        " lead",
        "trail ",
        "\n",
        "a\r\nb",
        " x\n y\n",
        "yes",
        "no",
        "on",
        "null",
        "~",
        "1e3",
        "0o17",
        "017",
        "1_000",
        "2026-11-30",
        "12:30:45",
        ".inf",
        "=",
        "<<",
        "- a",
        "a: b",
        "# x",
        "你好，世界",
        "👩‍🔬",
        "\u2028",
        "\x85",
        "\ufeff",
        "\x00\x1b",
        "\ud800",
        "x" * 5000,
        "词" * 2000,
        "tab\tin\n\tline\n",
        "trailing \n spaces \n",
    )
)
TEXTS = (
    AWKWARD
    | st.text(max_size=60)
    | st.text(alphabet="ab \n\t:#-'\"|>你好é😀", max_size=40)
    | st.text(st.characters(codec=None), max_size=10)
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
CALLS = st.builds(
    ToolCall,
    id=st.sampled_from("abc"),
    name=TEXTS,
    raw=TEXTS,
    arguments=st.none() | st.dictionaries(TEXTS, SCALARS, max_size=3),
)
TEXT_ENTRIES = st.builds(
    TextEntry,
    role=st.sampled_from(("user", "assistant", "system")),
    content=TEXTS,
    reasoning=TEXTS,
    status=st.none() | st.sampled_from(("cancelled", "incomplete")),
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    meta=st.dictionaries(TEXTS, SCALARS, max_size=2),
)
RESULTS = st.builds(
    TextEntry, role=st.just("tool"), content=TEXTS, tool_call_id=st.none() | st.sampled_from("abc")
)
CARD_ENTRIES = st.builds(
    CardEntry,
    type=st.sampled_from(("Table", "Form", "Nobody")),
    payload=st.sampled_from(
        (
            "type: Table\nid: t1\ntitle: 结果\ncolumnNames: [a, b]\n",
            "type: Table\nid: t1\nrows: [[1, 2]]\n",
            "type: Form\nformId: f\ntitle: Grid\n",
            ": broken",
        )
    )
    | TEXTS,
)
ENTRIES: st.SearchStrategy[Entry] = TEXT_ENTRIES | RESULTS | CARD_ENTRIES
RECORDS: st.SearchStrategy[Record] = st.builds(
    Append, ENTRIES, st.none() | st.sampled_from(("k1", "k2", "k3"))
) | st.builds(Truncate, st.integers(0, 4))


def conversations(ids: st.SearchStrategy[str]) -> st.SearchStrategy[Conversation]:
    """Return whole conversations whose ids are of `ids`."""
    headers = st.builds(
        Header,
        id=ids,
        title=TEXTS,
        branch_from=st.none() | st.just("parent"),
        created=st.floats(0, 4e9),
        updated=st.floats(0, 4e9),
        workflow_mode=st.none() | st.booleans() | st.integers(0, 9) | TEXTS,
        settings=st.dictionaries(TEXTS, SCALARS, max_size=2),
        meta=st.dictionaries(st.sampled_from(("x", "其他")), SCALARS, max_size=2),
    )
    return st.builds(Conversation, headers, st.lists(RECORDS, max_size=8))
