"""Conversations over HTTP: listed, changed, branched, exported and imported."""

import asyncio
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from dialoom.conversation import Conversation, Header
from dialoom.llm import MockProvider
from dialoom.server import Parts
from dialoom.testing.clock import ManualClock

ROOT = "/api/v1/conversations"
Begin = Callable[..., str]


def code_of(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_conversation_is_begun_listed_found_changed_and_deleted(
    client: TestClient, begin: Begin, clock: ManualClock
) -> None:
    wells = begin(title="Wells")
    asyncio.run(clock.advance(1))
    grid = begin(title="网格化", workflowMode="free")
    listed = client.get(ROOT, params={"limit": 1}).json()
    assert [each["id"] for each in listed["items"]] == [grid]
    assert [each["id"] for each in client.get(ROOT, params={"cursor": listed["cursor"]}).json()["items"]] == [
        wells
    ]
    assert [each["id"] for each in client.get(ROOT, params={"q": "格化"}).json()["items"]] == [grid]
    header = client.patch(f"{ROOT}/{wells}", json={"title": "Old wells", "workflowMode": 2}).json()
    assert header == client.get(f"{ROOT}/{wells}").json()
    assert {**header, "id": "", "updatedAt": ""} == {
        "id": "",
        "title": "Old wells",
        "createdAt": "2023-11-14T22:13:20.000Z",
        "updatedAt": "",
        "workflowMode": 2,
        "branchFrom": None,
        "running": None,
        "tags": [],
        "settings": {},
    }
    assert client.delete(f"{ROOT}/{wells}").status_code == 204
    assert code_of(client.get(f"{ROOT}/{wells}")) == (404, "conversation_not_found")
    assert code_of(client.delete(f"{ROOT}/{wells}")) == (404, "conversation_not_found")


def test_what_a_conversation_is_set_to_is_kept_with_it(client: TestClient, begin: Begin) -> None:
    chosen = {"provider": "mock", "model": "m1", "system": "Be brief."}
    conversation = begin(settings=chosen)
    assert client.get(f"{ROOT}/{conversation}").json()["settings"] == chosen
    changed = client.patch(f"{ROOT}/{conversation}", json={"settings": {"model": "", "skills": []}}).json()
    assert changed["settings"] == {"provider": "mock", "system": "Be brief."}
    unknown = client.patch(f"{ROOT}/{conversation}", json={"settings": {"skills": ["no-such"]}})
    assert unknown.status_code == 422


@pytest.mark.parametrize(
    ("query", "place"),
    [({"limit": 0}, "/limit"), ({"limit": "x"}, "/limit"), ({"q": "x" * 1001}, "/q")],
)
def test_a_wrong_query_is_told_with_its_place(
    client: TestClient, query: dict[str, object], place: str
) -> None:
    answer = client.get(ROOT, params=query)
    assert code_of(answer) == (422, "invalid_input")
    assert answer.json()["params"]["violations"][0]["path"] == place


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", "bad_json"), (b"\xff", "bad_json"), (b'{"title": 1}', "invalid_input"), (b"[]", "invalid_input"),
     (b'{"title": "' + b"x" * 2000 + b'"}', "invalid_input"), (b"[" * 100_000, "bad_json")],
)  # fmt: skip
def test_a_wrong_body_is_told_and_changes_nothing(client: TestClient, body: bytes, code: str) -> None:
    answer = client.post(ROOT, content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["code"] in {code, "invalid_input"}
    assert answer.status_code in {400, 422}
    assert client.get(ROOT).json()["items"] == []


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (rb"a\ud83d", "a\ufffd"),
        (rb"\ude00b", "\ufffdb"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud83d \ud83d", "\\ud83d \ufffd"),
    ],
)
def test_half_a_character_is_taken_as_one_that_cannot_be_shown(
    client: TestClient, sent: bytes, kept: str
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/api/v1/conversations", content=b'{"title": "%s"}' % sent, headers=headers)
    assert (answer.status_code, answer.json()["title"]) == (201, kept)


def test_a_body_without_end_is_cut_off(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    assert code_of(client.post(ROOT, content=b" " * 5_000_000, headers=headers)) == (413, "too_large")
    pieces = (b" " * 1_000_000 for _ in range(50))
    assert code_of(client.post(ROOT, content=pieces, headers=headers)) == (413, "too_large")


def test_a_window_shows_what_was_said_from_the_end(client: TestClient, begin: Begin) -> None:
    conversation = begin()
    for at in range(5):
        payload = {"id": f"c{at}", "title": f"Card {at}"}
        client.post(f"{ROOT}/{conversation}/cards", json={"type": "Approval", "payload": payload})
    newest = client.get(f"{ROOT}/{conversation}/entries", params={"limit": 2}).json()
    assert (newest["start"], newest["total"], newest["run"]) == (3, 5, None)
    assert [each["card"]["title"] for each in newest["entries"]] == ["Card 3", "Card 4"]
    older = client.get(f"{ROOT}/{conversation}/entries", params={"before": 3, "limit": 2}).json()
    assert [each["index"] for each in older["entries"]] == [1, 2]


def test_a_card_stands_in_its_first_place_with_its_newest_state(client: TestClient, begin: Begin) -> None:
    conversation = begin()
    card = {"type": "Approval", "payload": {"id": "a1", "title": "May I?"}}
    assert client.post(f"{ROOT}/{conversation}/cards", json=card).json() == {"index": 0}
    client.post(f"{ROOT}/{conversation}/cards", json={"type": "Table", "payload": {"title": "T"}})
    client.post(
        f"{ROOT}/{conversation}/cards/a1/actions/decide", json={"approved": True}, headers={"If-Match": "0"}
    )
    entries = client.get(f"{ROOT}/{conversation}/entries").json()["entries"]
    assert [(each["index"], each["rev"], each["type"]) for each in entries] == [
        (0, 2, "Approval"), (1, 1, "Table"),
    ]  # fmt: skip
    assert (entries[0]["card"]["status"], entries[0]["locked"], entries[0]["cardId"]) == (
        "approved",
        True,
        "a1",
    )
    alone = client.get(f"{ROOT}/{conversation}/entries", params={"limit": 1}).json()
    assert (alone["start"], alone["entries"]) == (2, [])  # the newest entry is shown further up


def test_versions_have_titles_of_their_own(client: TestClient, begin: Begin) -> None:
    def branch(conversation: str) -> dict[str, object]:
        return client.post(f"{ROOT}/{conversation}/branch", json={"at": 0}).json()

    wells = begin(title="Wells")
    second = branch(wells)
    titles = [second["title"], branch(str(second["id"]))["title"], branch(wells)["title"]]
    assert titles == ["Wells (2)", "Wells (3)", "Wells (4)"]
    assert branch(begin(title="Plan (2031)"))["title"] == "Plan (2031) (2)"
    assert branch(begin())["title"] == ""
    long = branch(begin(title="井" * 1000))["title"]
    assert str(long).endswith("井 (2)")


def test_drafts_are_kept_by_key_and_go_when_they_are_emptied(client: TestClient, begin: Begin) -> None:
    path = f"{ROOT}/{begin()}/drafts"
    assert client.put(f"{path}/message", json={"text": "What about 单元"}).status_code == 204
    assert client.put(f"{path}/card 1", json={"text": "{}"}).status_code == 204
    assert client.get(path).json() == {"drafts": {"message": "What about 单元", "card 1": "{}"}}
    assert client.get(f"{path}/message").json() == {"text": "What about 单元"}
    client.put(f"{path}/message", json={"text": ""})
    assert client.get(path).json() == {"drafts": {"card 1": "{}"}}
    assert client.put(f"{path}/{'k' * 500}", json={"text": "x"}).status_code == 404


@pytest.mark.parametrize(
    ("kind", "media"), [("yaml", "application/yaml"), ("json", "application/json"), ("md", "text/markdown")]
)
def test_an_export_is_a_file_that_is_imported_again(
    client: TestClient, begin: Begin, kind: str, media: str
) -> None:
    conversation = begin(title='井/位 "x"\r\nSet-Cookie: y')
    client.post(f"{ROOT}/{conversation}/cards", json={"type": "Table", "payload": {"title": "T"}})
    file = client.get(f"{ROOT}/{conversation}/export", params={"format": kind})
    assert file.headers["content-type"].startswith(media)
    assert file.headers["content-disposition"].startswith('attachment; filename="___ _x_')
    assert "set-cookie" not in file.headers
    for content_type in (media, "application/octet-stream"):
        answer = client.post(
            f"{ROOT}/import",
            params={"format": kind},
            content=file.content,
            headers={"Content-Type": content_type},
        )
        assert answer.status_code == 201
        copy = answer.json()
        assert copy["id"] != conversation
        entries = client.get(f"{ROOT}/{copy['id']}/entries").json()["entries"]
        assert [each["type"] for each in entries] == ["Table"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be"])
def test_an_import_may_be_in_utf_16_as_a_file_of_the_store_may(client: TestClient, encoding: str) -> None:
    text = "title: 井位\nentries:\n- kind: Text\n  role: user\n  content: 你好 😀\n"
    content = text.encode(encoding) if encoding == "utf-8-sig" else f"\ufeff{text}".encode(encoding)
    answer = client.post(
        f"{ROOT}/import?format=yaml", content=content, headers={"Content-Type": "application/yaml"}
    )
    assert answer.status_code == 201, answer.text
    assert answer.json()["title"] == "井位"
    (entry,) = client.get(f"{ROOT}/{answer.json()['id']}/entries").json()["entries"]
    assert (entry["role"], entry["content"]) == ("user", "你好 😀")


def test_an_import_that_is_none_is_told(client: TestClient) -> None:
    path, yaml = f"{ROOT}/import", {"Content-Type": "application/yaml"}
    assert code_of(client.post(path, content=b"a: [", headers=yaml)) == (422, "usage")
    for content, reason in (
        (b"\xff\xfea", "it is not utf-16 at byte 2"),
        (b"title: \xff", "it is not utf-8 at byte 7"),
        ("title: 井".encode("gb18030"), "it is not utf-8 at byte 7 but perhaps gb18030"),
    ):
        refused = client.post(path, content=content, headers=yaml)
        assert code_of(refused) == (422, "usage")
        assert reason in refused.text
    assert code_of(client.post(path, content=b"a: b", headers={"Content-Type": "text/plain"})) == (
        415,
        "content_type",
    )
    bomb = b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"
    assert code_of(client.post(path, content=bomb, headers=yaml)) == (422, "usage")
    assert code_of(client.post(path, content=b"x" * 34_000_000, headers=yaml)) == (413, "too_large")


def test_a_branch_begins_with_what_was_said(client: TestClient, begin: Begin) -> None:
    conversation = begin(title="Wells")
    for at in range(3):
        client.post(f"{ROOT}/{conversation}/cards", json={"type": "Table", "payload": {"title": f"T{at}"}})
    branch = client.post(f"{ROOT}/{conversation}/branch", json={"at": 2})
    assert branch.status_code == 201
    assert branch.json()["branchFrom"] == conversation
    client.post(f"{ROOT}/{branch.json()['id']}/cards", json={"type": "Table", "payload": {"title": "other"}})
    titles = [
        each["card"]["title"]
        for each in client.get(f"{ROOT}/{branch.json()['id']}/entries").json()["entries"]
    ]
    assert titles == ["T0", "T1", "other"]
    expected = [{"index": 2, "conversationIds": [conversation, branch.json()["id"]]}]
    for each in (conversation, branch.json()["id"]):
        assert client.get(f"{ROOT}/{each}/branches").json()["items"] == expected
    assert code_of(client.post(f"{ROOT}/{conversation}/branch", json={"at": 9})) == (422, "usage")
    client.delete(f"{ROOT}/{conversation}")
    assert client.get(f"{ROOT}/{branch.json()['id']}/branches").json()["items"] == []


def test_what_cannot_be_sent_is_refused_at_once(
    client: TestClient, begin: Begin, provider: MockProvider
) -> None:
    conversation = begin()
    messages = f"{ROOT}/{conversation}/messages"
    assert code_of(client.post(messages, json={"text": "  "})) == (422, "usage")
    assert code_of(client.post(messages, json={"text": "x", "attachments": ["0" * 64]})) == (404, "not_found")
    assert code_of(client.post(f"{ROOT}/{conversation}/regenerate", json={})) == (422, "usage")
    assert code_of(client.post(f"{ROOT}/{conversation}/edit", json={"index": 0, "text": "x"})) == (
        422,
        "usage",
    )
    assert code_of(client.post(f"{ROOT}/{conversation}/resume", json={})) == (422, "usage")
    for path in ("/api/v1/runs/no-such", "/api/v1/runs/no-such/checkpoints"):
        assert code_of(client.get(path)) == (404, "not_found")
    assert code_of(client.post("/api/v1/runs/no-such/cancel", json={})) == (404, "not_found")
    assert provider.requests == []


def until_finished(client: TestClient, begun: dict[str, str]) -> None:
    for _ in range(1_000):
        if client.get(f"/api/v1/runs/{begun['runId']}").json()["status"] == "finished":
            return
    raise AssertionError("the run does not come to its end")


def test_an_answer_made_anew_is_a_version_also_when_it_says_the_same(
    client: TestClient, begin: Begin, provider: MockProvider
) -> None:
    provider.queue_text("Nine days.").queue_text("Nine days.")
    first = begin()
    until_finished(client, client.post(f"{ROOT}/{first}/messages", json={"text": "How long?"}).json())
    begun = client.post(f"{ROOT}/{first}/regenerate", json={}).json()
    until_finished(client, begun)
    second = begun["conversationId"]
    versions = [{"index": 1, "conversationIds": [first, second]}]
    for known in (first, second):
        assert client.get(f"{ROOT}/{known}/branches").json() == {"items": versions}


def test_a_file_that_is_no_conversation_is_not_imported(client: TestClient) -> None:
    refused = client.post(
        f"{ROOT}/import?format=yaml", content=b"hello: 1\n", headers={"Content-Type": "application/yaml"}
    )
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("this is no conversation: ")


async def test_ten_thousand_idle_conversations_are_listed_each_once(parts: Parts, client: TestClient) -> None:
    headers = [Header(id=f"c{at:05}", title=f"Talk {at}", created=at, updated=at) for at in range(10_000)]
    for header in headers:
        await parts.store.create(Conversation(header))
    listed: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(ROOT, params={"limit": 200, "cursor": cursor} if cursor else {"limit": 200}).json()
        listed += [each["id"] for each in page["items"]]
        cursor = page["cursor"]
    assert listed == [header.id for header in reversed(headers)]


@pytest.mark.parametrize("mode", ["x" * 1_001, 2**53 + 1, 10**4_000, [], {"a": 1}])
def test_a_mode_that_would_weigh_on_every_listing_is_refused(client: TestClient, mode: object) -> None:
    assert client.post(ROOT, json={"workflowMode": mode}).status_code == 422
