"""The file tool reads text below its root and reaches nothing else."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.tools import ToolRegistry, ToolResult
from dialoom.tools.builtin import read_file_tool
from tests.tools.calls import call, facts

SECRET = "not for models"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    top = tmp_path / "root"
    (top / "notes").mkdir(parents=True)
    (top / "notes" / "today.txt").write_text("Grüße\n", encoding="utf-8")
    (top / "bom.txt").write_bytes(b"\xef\xbb\xbfa")
    (top / "binary.dat").write_bytes(b"\xff\xfe\x00")
    (top / "nul.txt").write_bytes(b"a\x00b")
    (top / "big.txt").write_bytes(b"x" * 101)
    (top / "full.txt").write_bytes(b"x" * 100)
    (top / "out.txt").symlink_to(tmp_path / "secret.txt")
    (top / "up").symlink_to(tmp_path)
    (top / "same.txt").symlink_to(top / "notes" / "today.txt")
    (top / "loop").symlink_to(top / "loop")
    os.mkfifo(top / "pipe")
    return top


async def read(root: Path, path: str) -> ToolResult:
    registry = ToolRegistry([read_file_tool(str(root), max_bytes=100)])
    return await registry.execute(call("read_file", path=path))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("notes/today.txt", "Grüße\n"),
        ("./notes//today.txt", "Grüße\n"),
        ("bom.txt", "a"),
        ("full.txt", "x" * 100),
    ],
)
async def test_text_below_the_root_is_read(root: Path, path: str, text: str) -> None:
    assert (await read(root, path)).content == text


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "'' is no path of a file here; give one from the top folder, without '..'"),
        (".", "'.' is no path of a file here; give one from the top folder, without '..'"),
        (
            "../secret.txt",
            "'../secret.txt' is no path of a file here; give one from the top folder, without '..'",
        ),
        ("notes/../../secret.txt", "is no path of a file here"),
        ("/etc/passwd", "is no path of a file here"),
        ("C:\\secret.txt", "is no path of a file here"),
        ("a\0b", "is no path of a file here"),
        ("out.txt", "there is no file 'out.txt' here that can be read"),
        ("up/secret.txt", "there is no file 'up/secret.txt' here that can be read"),
        ("same.txt", "there is no file 'same.txt' here that can be read"),
        ("loop", "there is no file 'loop' here that can be read"),
        ("missing.txt", "there is no file 'missing.txt' here that can be read"),
        ("notes/today.txt/x", "there is no file 'notes/today.txt/x' here that can be read"),
        ("n" * 5000, "here that can be read"),
        ("notes", "'notes' is not a file; name one inside of it"),
        ("pipe", "'pipe' is not a file; name one inside of it"),
        ("binary.dat", "'binary.dat' is not UTF-8 text"),
        ("nul.txt", "'nul.txt' is not text"),
        ("big.txt", "'big.txt' is larger than 100 bytes and was not read"),
    ],
)
async def test_everything_else_is_told(root: Path, path: str, problem: str) -> None:
    result = await read(root, path)
    assert problem in str(facts(result)["error"])


@pytest.mark.parametrize("device", ["null", "zero"])
async def test_a_root_of_devices_gives_nothing(device: str) -> None:
    assert (await read(Path("/dev"), device)).is_error


def test_reading_leaves_no_file_open(root: Path) -> None:
    read_file = read_file_tool(root)
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert read_file("notes/today.txt")
    for path in ("notes", "missing", "out.txt", "binary.dat", "notes/today.txt/x"):
        with pytest.raises(UsageError):
            read_file(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_root_that_is_no_folder_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="cannot be read from: it is no folder, or this system has no way"):
        read_file_tool(root / "bom.txt")
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(UsageError, match="cannot be read from: it is no folder, or this system has no way"):
        read_file_tool(root)


@given(
    parts=st.lists(
        st.sampled_from(["..", ".", "", "up", "out.txt", "notes", "secret.txt", "loop", "/"]), max_size=6
    )
)
def test_no_path_leads_out(parts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    top = tmp_path_factory.getbasetemp() / "fixed"
    if not top.exists():
        (top / "root" / "notes").mkdir(parents=True)
        (top / "secret.txt").write_text(SECRET, encoding="utf-8")
        (top / "root" / "up").symlink_to(top)
        (top / "root" / "out.txt").symlink_to(top / "secret.txt")
    try:
        text = read_file_tool(top / "root")("/".join(parts))
    except UsageError:
        return
    assert SECRET not in text
