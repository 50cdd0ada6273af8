"""Where the folders of a server lie is told to nobody: not in answers, cards, exports, events or refusals."""

from pathlib import Path

import pytest

from dialoom.base.errors import StoreError
from dialoom.llm import MockProvider, OfflineProvider
from dialoom.rag import (
    HashEmbedder,
    LoadOptions,
    RagConfig,
    SlidingWindowChunker,
    ingest_documents,
    load_document,
)
from dialoom.server import Parts
from dialoom.server.knowledge import KnowledgeBases, MountedBase
from dialoom.server.own_paths import OwnPaths, common_folder, without_folders
from dialoom.server.problems import problem_of
from dialoom.stores import SqliteVectorStore
from tests.server.live import copied, following, served

TEXT = "The arm of the rig is covered for two years."


async def mounted(folder: Path) -> KnowledgeBases:
    """Return bases of a server, with an index of documents that lie elsewhere among them."""
    documents = folder / "my docs"
    for name in ("rigs/arm.md", "rigs/old/arm.md", "wells.md"):
        (documents / name).parent.mkdir(parents=True, exist_ok=True)
        (documents / name).write_text(f"{TEXT} {name}")
    with SqliteVectorStore(folder / "own.sqlite") as store:
        for path in sorted(documents.rglob("*.md")):
            await ingest_documents(store, HashEmbedder(), SlidingWindowChunker(), load_document(str(path)))
    return KnowledgeBases(
        folder / "kb",
        OfflineProvider(),
        config=RagConfig(k=3),
        load=LoadOptions(),
        mounted={"docs": MountedBase(name="Docs", index=folder / "own.sqlite")},
    )


async def test_documents_are_named_by_their_place_in_the_base_and_by_no_folder_of_the_machine(
    parts: Parts, provider: MockProvider, tmp_path: Path
) -> None:
    provider.queue_text("Two years [1].")
    bases = await mounted(tmp_path)
    wired = copied(parts, knowledge=bases, ground=lambda _id, question: bases.passages("docs", question))
    async with served(wired, tmp_path / "data") as live:
        client, told = live.client, list[str]()
        answer = (await client.post("/api/v1/kb/docs/query", json={"question": "What of the arm?"})).json()
        assert {each["doc_id"] for each in answer["hits"]} == {"rigs/arm.md", "rigs/old/arm.md", "wells.md"}
        streamed = {"question": "What of the arm?", "stream": True}
        told.append((await client.post("/api/v1/kb/docs/query", json=streamed)).text)
        assert "rigs/arm.md#0" in told[0]
        made = (await client.post("/api/v1/kb", json={"name": "Made"})).json()["id"]
        names = {"arm.md": TEXT, "broken.pdf": "no pdf"}
        files = [await upload(client, name, text) for name, text in names.items()]
        async with following(live, "/api/v1/events") as events:
            await client.post(f"/api/v1/kb/{made}/ingest", json={"fileIds": files})
            progress = []
            while not progress or progress[-1]["value"]["phase"] != "done":
                progress += await events.until("ingest.progress")
        conversation = await live.begin()
        path = f"/api/v1/conversations/{conversation}"
        card = {"id": "k", "kbId": made, "title": "Made"}
        await client.post(f"{path}/cards", json={"type": "KnowledgeBase", "payload": card})
        for at, file in enumerate(files):
            async with following(live, f"{path}/events") as events:
                rev = {"If-Match": str((await client.get(f"{path}/entries")).json()["entries"][0]["rev"])}
                action = f"{path}/cards/k/actions/add_source"
                assert (await client.post(action, json={"fileId": file}, headers=rev)).status_code == 200
                while (await events.until("entry.updated"))[-1]["value"]["entry"]["card"]["sources"][at][
                    "status"
                ] == "loading":
                    pass
        async with following(live, f"{path}/events") as events:
            await client.post(f"{path}/messages", json={"text": "What of the arm?"})
            await events.until("RUN_FINISHED")
        told += [str(answer), str(progress)]
        told += [(await client.get(f"{path}/entries")).text]
        told += [
            (await client.get(f"{path}/export", params={"format": kind})).text
            for kind in ("md", "json", "yaml")
        ]
    assert "rigs/arm.md#0" in told[-1]
    assert "id: broken.pdf" in told[-1]
    assert [each for each in told if str(tmp_path) in each or tmp_path.name in each] == []


async def upload(client, name: str, text: str) -> str:
    headers = {"X-Filename": name, "Content-Type": "application/octet-stream"}
    return (await client.post("/api/v1/files", content=text.encode(), headers=headers)).json()["id"]


async def test_a_source_of_an_older_card_is_found_by_the_name_of_its_file(tmp_path: Path) -> None:
    bases = await mounted(tmp_path)
    made = (await bases.create("Made")).id
    new, old = bases.document(made, "arm.md"), bases.document(made, f"/elsewhere/{made}/docs/arm.md")
    assert new == old == f"{tmp_path.as_posix()}/kb/{made}/docs/arm.md"
    assert bases.document(made, "https://example.org/a/b") == "https://example.org/a/b"
    bases.close()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/home/ann/notes/a.md cannot be read", "a.md cannot be read"),
        ("cannot write '/var/lib/x/kb.sqlite' (disk full)", "cannot write 'kb.sqlite' (disk full)"),
        ("https://example.org/a/b is gone", "https://example.org/a/b is gone"),
        ("docs/a.md and 3/4 and / alone", "docs/a.md and 3/4 and / alone"),
    ],
)
def test_an_absolute_path_in_words_is_the_name_it_ends_with(text: str, left: str) -> None:
    assert without_folders(text) == left
    assert str(problem_of(StoreError(text))) == left


def test_what_documents_say_is_left_as_it_is() -> None:
    paths = OwnPaths("/srv/kb/docs", "", "/")
    line = {
        "id": None,
        "text": "see /srv/kb/docs/a.md",
        "sources": ({"doc_id": "/srv/kb/docs/x/a.md", "metadata": {"source": "/etc/b.md"}},),
        "failures": [
            {"doc_id": "https://a.example/x/y", "message": "/srv/kb/docs/c.pdf: no file; /etc/d/e: no"}
        ],
    }
    assert paths.told(line) == {
        "id": None,
        "text": "see /srv/kb/docs/a.md",
        "sources": [{"doc_id": "x/a.md", "metadata": {"source": "b.md"}}],
        "failures": [{"doc_id": "https://a.example/x/y", "message": "c.pdf: no file; e: no"}],
    }


@pytest.mark.parametrize(
    ("documents", "folder"),
    [
        ([], ""),
        (["https://example.org/a"], ""),
        (["/a/b/c.md"], "/a/b"),
        (["/a/b/c.md", "/a/bc/d.md", "note"], "/a"),
        (["/a.md", "/b/c.md"], ""),
    ],
)
def test_the_folder_of_documents_is_the_one_that_holds_all(documents: list[str], folder: str) -> None:
    assert common_folder(documents) == folder
