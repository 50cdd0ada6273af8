"""Files and folders."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dialoom.rag.errors import InvalidOptionsError, LoadError
from dialoom.rag.loaders.load import document_id, load_file
from dialoom.rag.loaders.loader import Loaded, LoadOptions, Source
from dialoom.rag.loaders.walk import LoadFailure, Skipped, iter_documents, load_document, walk_files
from dialoom.rag.types import Document


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def told(root: Path, **options: object) -> list[tuple[str, str]]:
    """What a walk says: path below the root, and how it went."""
    said: list[tuple[str, str]] = []
    for item in iter_documents(root, LoadOptions(**options)):
        match item:
            case Loaded():
                said.append((item.source, "loaded"))
            case Skipped():
                said.append((item.path, item.reason))
            case LoadFailure():
                said.append((item.path, item.code))
    return [(path.removeprefix(f"{document_id(root)}/"), how) for path, how in said]


@pytest.mark.promise("rag-012")
def test_a_folder_is_read_in_the_order_of_paths_and_tells_what_it_left_out(tmp_path: Path) -> None:
    write(tmp_path, b_txt="b", a__one_md="1", a_txt="x", a__deep__two_txt="2", tool_exe="MZ", bad_pdf="no")
    write(tmp_path, _git__config_txt="hidden")
    assert told(tmp_path) == [
        (".git", "hidden"),
        ("a.txt", "loaded"),
        ("a/deep/two.txt", "loaded"),
        ("a/one.md", "loaded"),
        ("b.txt", "loaded"),
        ("bad.pdf", "corrupt"),
        ("tool.exe", "unsupported"),
    ]
    assert [document.text for document in load_document(tmp_path)] == ["x", "2", "1", "b"]


@pytest.mark.promise("rag-002")
def test_hidden_files_and_lower_folders_are_a_choice(tmp_path: Path) -> None:
    write(tmp_path, _git__config_txt="hidden", a__b__c_txt="deep", top_txt="top")
    assert told(tmp_path, hidden=True, recursive=False) == [("top.txt", "loaded")]
    assert told(tmp_path, hidden=True, max_depth=2) == [
        (".git/config.txt", "loaded"),
        ("a/b", "depth"),
        ("top.txt", "loaded"),
    ]


def test_a_loop_of_links_is_walked_once(tmp_path: Path) -> None:
    write(tmp_path, a__one_txt="one")
    (tmp_path / "a" / "loop").symlink_to("..")
    (tmp_path / "again").symlink_to("a")
    (tmp_path / "nowhere.txt").symlink_to("missing")
    assert told(tmp_path) == [
        ("a/loop", "loop"),
        ("a/one.txt", "loaded"),
        ("again", "loop"),
        ("nowhere.txt", "unreadable"),
    ]


@pytest.mark.promise("rag-013")
def test_files_of_one_name_have_ids_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, x__readme_md="one", y__readme_md="two")
    ids = [document.id for document in load_document(tmp_path)]
    assert ids == [f"{tmp_path.as_posix()}/x/readme.md", f"{tmp_path.as_posix()}/y/readme.md"]


def test_a_pipe_among_the_files_does_not_stop_the_walk(tmp_path: Path) -> None:
    write(tmp_path, a_txt="a")
    os.mkfifo(tmp_path / "pipe.txt")
    assert told(tmp_path) == [("a.txt", "loaded"), ("pipe.txt", "special")]
    with pytest.raises(LoadError, match="not a regular file"):
        load_file(tmp_path / "pipe.txt")


def test_a_root_that_is_a_file_is_read_alone(tmp_path: Path) -> None:
    write(tmp_path, a_txt="a", b_txt="b")
    assert [item.source for item in iter_documents(tmp_path / "a.txt") if isinstance(item, Loaded)] == [
        document_id(tmp_path / "a.txt")
    ]


@pytest.mark.parametrize("path", ["missing", "missing/deeper.txt", "nul\0.txt"])
def test_what_is_not_there_is_named(tmp_path: Path, path: str) -> None:
    with pytest.raises(LoadError) as caught:
        load_document(tmp_path / path)
    assert caught.value.code == "unreadable"
    with pytest.raises(LoadError, match="check the path") as caught:
        list(walk_files(tmp_path / path, LoadOptions()))
    assert caught.value.code == "unreadable"


def test_a_folder_that_cannot_be_listed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, a__one_txt="one", b_txt="b", c_txt="c")
    real_scan, real_access = os.scandir, os.access

    def scan(folder: str) -> object:
        if folder.endswith("/a"):
            raise PermissionError(13, "Permission denied")
        return real_scan(folder)

    # a test may run as root, whom no permission stops
    monkeypatch.setattr(os, "scandir", scan)
    monkeypatch.setattr(os, "access", lambda path, mode: "b.txt" not in path and real_access(path, mode))
    assert told(tmp_path) == [("a", "unreadable"), ("b.txt", "unreadable"), ("c.txt", "loaded")]


def test_a_file_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="cannot be read") as caught:
        load_file(tmp_path / ("x" * 300 + ".txt"))
    assert caught.value.code == "unreadable"


@pytest.mark.promise("rag-024")
def test_a_file_that_is_too_large_is_not_read_on(tmp_path: Path) -> None:
    write(tmp_path, a_txt="x" * 5000)
    with pytest.raises(LoadError, match="larger than 4000 bytes") as caught:
        load_file(tmp_path / "a.txt", LoadOptions(max_source_bytes=4000))
    assert caught.value.code == "limit"


def test_a_name_without_extension_is_judged_by_its_content(tmp_path: Path) -> None:
    write(tmp_path, README="# hello", odd_xyz="text")
    assert load_document(tmp_path / "README")[0].text == "# hello"
    with pytest.raises(LoadError, match=r"known are \.csv") as caught:
        load_document(tmp_path / "odd.xyz")
    assert caught.value.code == "unsupported"


@pytest.mark.promise("rag-016")
def test_a_loader_of_your_own_comes_first(tmp_path: Path) -> None:
    class Shouting:
        def load(self, source: Source) -> Loaded:
            document = Document(id=source.id, text=source.data.decode().upper())
            return Loaded(source=source.id, documents=[document])

    write(tmp_path, a_txt="quiet", b_rst="loud")
    loaders = {".rst": Shouting(), ".txt": Shouting()}
    assert [item.text for item in load_document(tmp_path, LoadOptions(loaders=loaders))] == ["QUIET", "LOUD"]


def test_a_name_that_is_not_unicode_has_an_id_that_is(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/bad\xff.txt"
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a name of bytes
        file.write("text")
    (document,) = load_document(tmp_path)
    assert (document.id, document.text) == (f"{tmp_path.as_posix()}/bad�ff.txt", "text")


@pytest.mark.parametrize("options", [{"max_source_bytes": 0}, {"extractor_timeout": -1}, {"max_depth": 0}])
def test_bounds_that_bound_nothing_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidOptionsError, match="must be above 0"):
        LoadOptions(**options)


def test_documents_may_be_read_on_many_threads(tmp_path: Path) -> None:
    write(tmp_path, a_html="<h1>one</h1>", b_md="# two")
    results: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: results.append([item.text for item in load_document(tmp_path)]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results == [["one", "# two"]] * 4


def test_names_that_are_no_utf_8_are_documents_of_their_own(tmp_path: Path) -> None:
    names = [b"caf\xe9.txt", b"caf\xe8.txt", "café.txt".encode()]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_text("words")
    found = load_document(tmp_path)
    assert {document.id.rpartition("/")[2] for document in found} == {
        "caf\ufffde8.txt",
        "caf\ufffde9.txt",
        "café.txt",
    }


def test_what_is_excluded_is_passed_by_without_a_word(tmp_path: Path) -> None:
    for name in ("a.txt", "index.txt", "old/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("words")
    options = LoadOptions(exclude=frozenset({str(tmp_path / "index.txt"), str(tmp_path / "old")}))
    assert [item.source for item in iter_documents(tmp_path, options) if isinstance(item, Loaded)] == [
        str(tmp_path / "a.txt")
    ]
    assert len(list(iter_documents(tmp_path, options))) == 1


def test_links_out_of_the_folder_are_followed_only_when_that_is_wanted(tmp_path: Path) -> None:
    kb, elsewhere = tmp_path / "kb", tmp_path / "kb-elsewhere"
    write(kb, a_txt="alpha")
    write(elsewhere, b_txt="beta", sub__c_txt="gamma")
    (kb / "all").symlink_to("/")
    (kb / "b.txt").symlink_to(elsewhere / "b.txt")
    (kb / "sub").symlink_to("../kb-elsewhere/sub")
    (kb / "z.txt").symlink_to("a.txt")
    assert told(kb) == [
        ("a.txt", "loaded"),
        ("all", "outside"),
        ("b.txt", "outside"),
        ("sub", "outside"),
        ("z.txt", "loaded"),
    ]
    (kb / "all").unlink()
    assert [name for name, _ in told(kb, outside_links=True)] == ["a.txt", "b.txt", "sub/c.txt", "z.txt"]
    linked = tmp_path / "linked"
    linked.symlink_to(kb)
    assert ("a.txt", "loaded") in told(linked)


@pytest.mark.parametrize("read_path", [load_document, load_file, lambda path: list(iter_documents(path))])
def test_an_empty_path_is_not_the_current_folder(read_path: Callable[[str], object]) -> None:
    with pytest.raises(LoadError, match="the path is empty; name a file or folder"):
        read_path("")


def test_metadata_that_cannot_be_kept_is_refused_before_anything_is_read() -> None:
    with pytest.raises(InvalidOptionsError, match="the metadata 'owner' is a dict; give a text, a number"):
        LoadOptions(metadata={"owner": {"name": "ann"}})


def test_a_loader_whose_metadata_cannot_be_kept_fails_its_file_alone(tmp_path: Path) -> None:
    class Nested:
        def load(self, source: Source) -> Loaded:
            document = Document(id=source.id, text="x", metadata={"tree": {"a": 1}})
            return Loaded(source=source.id, documents=[document])

    (tmp_path / "a.tree").write_text("x")
    (tmp_path / "b.txt").write_text("fine")
    broken, fine = iter_documents(tmp_path, LoadOptions(loaders={".tree": Nested()}))
    assert isinstance(broken, LoadFailure)
    assert (broken.code, "cannot be kept: the metadata 'tree' is a dict" in broken.message) == (
        "corrupt",
        True,
    )
    assert isinstance(fine, Loaded)
