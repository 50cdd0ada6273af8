"""Cards and their actions, uploaded files, and tables of any length, over HTTP."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from dialoom.base.errors import UsageError
from dialoom.llm import MockProvider, OfflineProvider, chat
from dialoom.server import Parts, ServerSettings, Workbench
from dialoom.server.dataset_store import DatasetColumn, DatasetStore, Order
from dialoom.server.delimited import csv_pieces, find_layout, harmless, table_rows
from tests.server.conftest import TOKEN, URL

ROOT = "/api/v1/conversations"
Begin = Callable[..., str]


def code_of(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.fixture
def form(client: TestClient, begin: Begin) -> str:
    """The path of a form card's actions."""
    card = client.get("/api/v1/forms").json()["items"][0]["card"]
    conversation = begin()
    client.post(f"{ROOT}/{conversation}/cards", json={"type": "Form", "payload": {**card, "id": "f1"}})
    return f"{ROOT}/{conversation}/cards/f1/actions"


def test_every_card_type_tells_its_schema_and_its_actions(client: TestClient) -> None:
    types = {each["type"]: each for each in client.get("/api/v1/card-types").json()["items"]}
    assert {"Form", "ParameterSet", "Table", "ColumnMatch", "WorkflowStatus", "KnowledgeBase"} <= set(types)
    assert types["Form"]["actions"]["submit"]["required"] == ["values"]
    assert types["Table"]["schema"]["properties"]["columnNames"]["type"] == "array"


def test_a_form_is_submitted_once_and_its_secret_is_kept_nowhere(client: TestClient, form: str) -> None:
    first, key = {"If-Match": '"0"', "Idempotency-Key": "k1"}, "sk-secret"
    wrong = client.post(f"{form}/submit", json={"values": {"cell": 0.5, "other": 1}}, headers=first)
    assert code_of(wrong) == (422, "invalid_input")
    assert [each["path"] for each in wrong.json()["params"]["violations"]] == ["/other", "/cell"]
    done = client.post(f"{form}/submit", json={"values": {"cell": 25, "key": key}}, headers=first)
    assert (done.status_code, done.json()["rev"]) == (200, 1)
    assert done.json()["card"]["submittedValues"] == {"cell": 25}
    again = client.post(f"{form}/submit", json={"values": {"cell": 25, "key": key}}, headers=first)
    assert again.json() == done.json()
    other = client.post(f"{form}/submit", json={"values": {"cell": 30}}, headers={"If-Match": "1"})
    assert code_of(other) == (409, "card_decided")
    assert other.json()["params"] == {"status": "submitted", "card": done.json()["card"], "rev": 1}
    conversation = form.split("/")[4]
    assert key not in client.get(f"{ROOT}/{conversation}/export").text


def test_an_action_needs_the_cards_revision_and_a_card_that_takes_it(client: TestClient, form: str) -> None:
    values = {"values": {"cell": 25}}
    assert code_of(client.post(f"{form}/submit", json=values)) == (428, "if_match_needed")
    for wrong in ("x", '"-1"', "9" * 20):
        assert code_of(client.post(f"{form}/submit", json=values, headers={"If-Match": wrong})) == (
            422, "invalid_input",
        )  # fmt: skip
    stale = client.post(f"{form}/submit", json=values, headers={"If-Match": '"7"'})
    assert (code_of(stale), stale.json()["params"]["rev"]) == ((409, "card_changed"), 0)
    bad_key = {"If-Match": "0", "Idempotency-Key": "a b"}
    assert code_of(client.post(f"{form}/submit", json=values, headers=bad_key)) == (422, "invalid_input")
    assert code_of(client.post(f"{form}/explode", json={}, headers={"If-Match": "0"})) == (422, "usage")
    missing = form.replace("/f1/", "/f2/")
    assert code_of(client.post(f"{missing}/submit", json=values, headers={"If-Match": "0"})) == (
        404,
        "not_found",
    )


def test_a_card_that_is_none_is_refused_and_one_that_came_broken_is_shown_as_a_placeholder(
    client: TestClient, begin: Begin
) -> None:
    conversation = begin()
    wrong = client.post(f"{ROOT}/{conversation}/cards", json={"type": "Nothing", "payload": {}})
    assert code_of(wrong) == (422, "usage")
    huge = {"title": "x" * 300_000}
    assert code_of(client.post(f"{ROOT}/{conversation}/cards", json={"type": "Table", "payload": huge})) == (
        422, "usage",
    )  # fmt: skip
    text = "sessionId: broken\nentries:\n- {kind: Special, type: Table, payload: 'id: t1\n\n  rows: many'}\n"
    client.post(f"{ROOT}/import", content=text.encode(), headers={"Content-Type": "application/yaml"})
    shown = client.get(f"{ROOT}/broken/entries").json()["entries"][0]
    assert (shown["card"], shown["locked"], shown["cardId"]) == (None, True, "t1")
    assert "rows" in shown["problem"]
    acted = client.post(f"{ROOT}/broken/cards/t1/actions/sort", json={}, headers={"If-Match": "0"})
    assert code_of(acted) == (422, "usage")


def upload(client: TestClient, content: bytes, name: str = "wells.csv", mime: str = "text/csv"):
    return client.post("/api/v1/files", content=content, headers={"Content-Type": mime, "X-Filename": name})


def test_a_file_is_known_by_what_it_holds_and_comes_back_as_a_download(
    client: TestClient, tmp_path: Path
) -> None:
    content = b"<script>alert(1)</script>"
    first = upload(client, content, "%E4%BA%95%2F..%2F%00x.html", "text/html")
    digest = hashlib.sha256(content).hexdigest()
    assert first.json() == {"id": digest, "name": "井/../ x.html", "size": len(content), "mime": "text/html"}
    back = client.get(f"/api/v1/files/{digest}")
    assert back.content == content
    assert back.headers["content-type"] == "application/octet-stream"
    assert back.headers["content-disposition"].startswith("attachment;")
    assert back.headers["x-content-type-options"] == "nosniff"
    again = upload(client, content, "", "text/html").json()
    assert (again["id"], again["name"]) == (digest, "file")
    kept = [path for path in (tmp_path / "data/files").rglob("*") if path.is_file()]
    assert sorted(path.name for path in kept) == [digest, f"{digest}.json"]


def test_a_file_that_is_removed_leaves_room_for_others(parts: Parts, tmp_path: Path) -> None:
    settings = ServerSettings(token=TOKEN, data=tmp_path, max_files=10)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(Workbench(settings, parts).app, base_url=URL, headers=headers) as client:
        path = f"/api/v1/files/{upload(client, b'12345678', 'x').json()['id']}"
        assert code_of(upload(client, b"87654321", "x")) == (507, "no_space")
        assert client.delete(path).status_code == 204
        assert [code_of(client.get(path)), code_of(client.delete(path))] == [(404, "not_found")] * 2
        assert upload(client, b"87654321", "x").status_code == 201
        odd = tmp_path / "files/00" / ("0" * 64)
        odd.mkdir(parents=True)
        odd.with_suffix(".json").write_text("{}")
        assert code_of(client.delete(f"/api/v1/files/{odd.name}")) == (503, "store")
    assert [each.name for each in (tmp_path / "files").rglob("*.json")] == [
        f"{hashlib.sha256(b'87654321').hexdigest()}.json"
    ]


@pytest.mark.parametrize(
    ("head", "media"),
    [(b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff\xe0", "image/jpeg"), (b"GIF89a", "image/gif"),
     (b"RIFF\x00\x00\x00\x00WEBP", "image/webp"), (b"<svg xmlns=", "application/octet-stream")],
)  # fmt: skip
def test_pictures_are_told_by_their_bytes(client: TestClient, head: bytes, media: str) -> None:
    file = upload(client, head + b"rest", "x", "image/svg+xml").json()
    assert client.get(f"/api/v1/files/{file['id']}").headers["content-type"] == media


@pytest.mark.parametrize("name", ["0" * 64, "0" * 63, "../data/token", "x", "G" * 64])
def test_what_is_no_file_is_not_found(client: TestClient, name: str) -> None:
    assert client.get(f"/api/v1/files/{name}").status_code in {400, 404}


@pytest.mark.parametrize("mime", ["", "multipart/form-data", "text", "text/html\u00e9", "a/" + "b" * 100])
def test_an_upload_says_what_it_is(client: TestClient, mime: str) -> None:
    headers = {"Content-Type": mime.encode("latin-1"), "X-Filename": "x"}
    assert code_of(client.post("/api/v1/files", content=b"x", headers=headers)) == (415, "content_type")


def test_an_upload_that_is_too_large_leaves_nothing(parts: Parts, tmp_path: Path) -> None:
    settings = ServerSettings(token=TOKEN, data=tmp_path, max_file=1000, max_files=1500)
    (tmp_path / "files/incoming").mkdir(parents=True)
    (tmp_path / "files/incoming/left-by-a-killed-process").write_bytes(b"x")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(Workbench(settings, parts).app, base_url=URL, headers=headers) as client:
        assert code_of(upload(client, b"x" * 1001)) == (413, "too_large")
        assert upload(client, b"a" * 900).status_code == 201
        assert code_of(upload(client, b"b" * 700)) == (507, "no_space")
        assert upload(client, b"c" * 500).status_code == 201
    assert list((tmp_path / "files/incoming").iterdir()) == []
    with TestClient(Workbench(settings, parts).app, base_url=URL, headers=headers) as client:
        assert code_of(upload(client, b"d" * 700)) == (
            507,
            "no_space",
        )  # what is there is counted at the start


def test_a_message_carries_the_files_that_were_sent_with_it(
    client: TestClient, begin: Begin, provider
) -> None:
    provider.queue_text("I see.")
    file = upload(client, b"1 2 3\n", "wells.xyz", "text/plain").json()
    conversation = begin()
    sent = client.post(f"{ROOT}/{conversation}/messages", json={"text": "Look.", "attachments": [file["id"]]})
    assert sent.status_code == 202
    entry = client.get(f"{ROOT}/{conversation}/entries").json()["entries"][0]
    assert entry["attachments"] == [file]
    assert entry["content"] == "Look.\n[file: wells.xyz]"


def test_two_files_that_hold_the_same_keep_the_names_they_were_sent_under(
    client: TestClient, begin: Begin, provider: MockProvider
) -> None:
    provider.queue_text("I see.")
    first, last = (upload(client, b"1 2 3\n", name, "text/plain").json() for name in ("a.xyz", "b.xyz"))
    assert first["id"] == last["id"]
    conversation = begin()
    named = [{"id": first["id"], "name": "a.xyz"}, {"id": last["id"], "name": "b.xyz"}]
    asked = {"text": "Look.", "attachments": [*named, named[0]]}
    assert client.post(f"{ROOT}/{conversation}/messages", json=asked).status_code == 202
    entry = client.get(f"{ROOT}/{conversation}/entries").json()["entries"][0]
    assert entry["attachments"] == [first, last]
    named = client.get(f"/api/v1/files/{first['id']}", params={"name": "a.xyz"}).headers
    assert 'filename="a.xyz"' in named["content-disposition"]
    assert entry["content"] == "Look.\n[file: a.xyz]\n[file: b.xyz]"
    assert client.get(f"{ROOT}/{conversation}").json()["title"] == "Look."


def test_a_model_reads_what_attached_files_say_and_is_told_of_those_it_cannot(
    client: TestClient, begin: Begin, provider: MockProvider
) -> None:
    provider.queue_text("Read [1].")
    files = [
        upload(client, "退货：七天之内。".encode("gb18030"), "returns.txt", "text/plain").json(),
        upload(client, b"\x89PNG\r\n\x1a\n" + bytes(40), "picture.png", "image/png").json(),
        upload(client, b"x" * 60_000, "long.txt", "text/plain").json(),
    ]
    asked = {"text": "What do they say?", "attachments": [each["id"] for each in files]}
    conversation = begin()
    assert client.post(f"{ROOT}/{conversation}/messages", json=asked).status_code == 202
    sources = provider.requests[0].messages[-1].sources
    assert [(each.index, each.title, each.text[:20]) for each in sources] == [
        (1, "returns.txt", "退货：七天之内。"),
        (2, "picture.png (cannot be read as text: it has no loader for '.png')", ""),
        (3, "long.txt (the rest is left out)", "x" * 20),
    ]
    assert len(sources[2].text) < 41_000


async def test_what_is_said_of_a_file_that_cannot_be_read_is_no_answer_without_a_model(
    client: TestClient, begin: Begin, provider: MockProvider
) -> None:
    provider.queue_text("Seen.")
    files = [
        upload(client, b"The secret word is xylophone.", "note.txt", "text/plain").json(),
        upload(client, b"\x89PNG\r\n", "secret word.png", "image/png").json(),
    ]
    asked = {"text": "What is the secret word?", "attachments": [each["id"] for each in files]}
    assert client.post(f"{ROOT}/{begin()}/messages", json=asked).status_code == 202
    answer = await chat(OfflineProvider(), provider.requests[0].messages)
    assert answer.text == "According to your documents: The secret word is xylophone. [1]"


TABLE = 'name;depth;note\nA1;10.5;=1+1\nB2;-3;x\n\nC3;;"two\nlines"\nD4;100;\n'


def test_an_uploaded_table_is_paged_sorted_filtered_and_exported(client: TestClient) -> None:
    file = upload(client, TABLE.encode("gb18030"), "%E4%BA%95.csv").json()
    made = client.post("/api/v1/datasets", json={"fileId": file["id"]}).json()
    assert (made["total"], [each["dtype"] for each in made["columns"]]) == (4, ["text", "number", "text"])
    path = f"/api/v1/datasets/{made['id']}"
    assert client.get(path).json() == made

    def names(**query: object) -> list[str]:
        return [row[0] for row in client.get(f"{path}/rows", params=query).json()["rows"]]

    assert names() == ["A1", "B2", "C3", "D4"]
    assert names(desc=True, limit=2) == ["D4", "C3"]
    assert names(sort="depth") == ["B2", "A1", "D4", "C3"]  # numbers by their size, empty cells last
    assert names(sort="depth", desc=True, offset=1) == ["A1", "B2", "C3"]
    found = client.get(f"{path}/rows", params={"filter": "LINES"}).json()
    assert (found["total"], found["rows"]) == (1, [["C3", None, "two\nlines"]])
    assert names(filter="%") == []
    assert code_of(client.get(f"{path}/rows", params={"sort": "n"})) == (422, "invalid_input")
    assert code_of(client.get(f"{path}/rows", params={"limit": 0})) == (422, "invalid_input")
    exported = client.get(f"{path}/export.csv", params={"bom": 1})
    assert exported.headers["content-type"].startswith("text/csv")
    assert exported.content.decode() == (
        '\ufeffname,depth,note\r\nA1,10.5,\'=1+1\r\nB2,-3,x\r\nC3,,"two\nlines"\r\nD4,100,\r\n'
    )
    assert not client.get(f"{path}/export.csv").content.startswith(b"\xef\xbb\xbf")
    assert client.delete(path).status_code == 204
    assert code_of(client.get(path)) == (404, "not_found")


def test_a_table_that_a_spreadsheet_wrote_as_unicode_text_is_read(client: TestClient) -> None:
    for encoding in ("utf-16", "utf-16-be"):
        mark = b"" if encoding == "utf-16" else b"\xfe\xff"
        file = upload(client, mark + "井\t深\nA\t1.5\n".encode(encoding), f"{encoding}.txt").json()
        made = client.post("/api/v1/datasets", json={"fileId": file["id"]}).json()
        assert made["columns"] == [{"name": "井", "dtype": "text"}, {"name": "深", "dtype": "number"}]
        assert client.get(f"/api/v1/datasets/{made['id']}/rows").json()["rows"] == [["A", "1.5"]]


def test_a_card_whose_id_has_a_slash_can_be_acted_on(client: TestClient, begin: Begin) -> None:
    path = f"/api/v1/conversations/{begin()}/cards"
    client.post(path, json={"type": "Approval", "payload": {"id": "r1/2/井", "title": "Start?"}})
    answer = client.post(
        f"{path}/r1%2F2%2F井/actions/decide", json={"approved": True}, headers={"If-Match": "0"}
    )
    assert (answer.status_code, answer.json()["card"]["status"]) == (200, "approved")


@pytest.mark.parametrize("name", ["../x", "/a", "a/", "..", "%2e", "a\\b"])
def test_a_card_whose_id_no_address_can_hold_is_refused(client: TestClient, begin: Begin, name: str) -> None:
    card = {"type": "Approval", "payload": {"id": name, "title": "Start?"}}
    answer = client.post(f"/api/v1/conversations/{begin()}/cards", json=card)
    assert (answer.status_code, "cannot stand in an address" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"a,b\n1,2,3\n", b"," * 600 + b"\n", b'a\n"' + b"x" * 200_000]
)
def test_what_is_no_table_is_told(client: TestClient, content: bytes) -> None:
    file = upload(client, content or b" ").json()
    assert code_of(client.post("/api/v1/datasets", json={"fileId": file["id"]})) == (422, "usage")


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_that_a_spreadsheet_would_run_is_quoted(cell: str) -> None:
    assert harmless(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-3", "+1.5e-9", "a=b", "", None, -4, 1.5])
def test_other_cells_stay_as_they_are(cell: object) -> None:
    assert harmless(cell) == cell  # pyright: ignore[reportArgumentType] - each of them is a cell


def test_columns_get_names_of_their_own_and_latin_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"a\ta\t\tna\xefve\x81\n1\t2\t3\t4\n")
    layout = find_layout(path)
    assert (layout.encoding, layout.delimiter) == ("latin-1", "\t")
    assert [each.name for each in layout.columns] == ["a", "a (2)", "column 3", "na\u00efve"]
    assert list(table_rows(path, layout)) == [["1", "2", "3", "4"]]


def test_a_long_table_is_exported_in_pieces_of_a_bounded_size(tmp_path: Path) -> None:
    store = DatasetStore(tmp_path / "d.sqlite")
    columns = [DatasetColumn("n", "number"), DatasetColumn("half")]
    made = store.create("numbers", columns, ((at, at / 2) for at in range(25_000)))
    pieces = list(csv_pieces(["n", "half"], store.all_rows(made.id), bom=False, size=10_000))
    assert max(map(len, pieces)) < 10_100
    assert b"".join(pieces).decode().splitlines()[-1] == "24999,12499.5"
    assert store.page(made.id, Order(sort="n", desc=True), offset=0, limit=1).rows == [(24_999, 12_499.5)]
    store.close()


def test_a_table_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    store = DatasetStore(tmp_path / "d.sqlite")
    with pytest.raises(UsageError, match="row 2 has 2 cells, the table has 1 columns"):
        store.create("broken", [DatasetColumn("a")], [("1",), ("1", "2")])
    with pytest.raises(UsageError, match="1 to 500 columns, not 0"):
        store.create("none", [], [])
    kept = store.create("short", [DatasetColumn("a"), DatasetColumn("b")], [("\ud800",)])
    assert store.page(kept.id, Order(), offset=0, limit=9).rows == [("\ufffd", None)]
    store.close()
