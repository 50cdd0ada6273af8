"""A file is replaced whole or not at all, and nobody else reads it unless they could before."""

import os
import stat
import sys
from pathlib import Path

import pytest

from dialoom.base.files import replace_file

needs_modes = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of this kind")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@needs_modes
def test_a_new_file_is_private_and_an_older_one_keeps_its_mode_unless_one_is_given(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    replace_file(path, b"one")
    assert (path.read_bytes(), mode_of(path)) == (b"one", 0o600)
    path.chmod(0o640)
    replace_file(path, b"two")
    assert (path.read_bytes(), mode_of(path)) == (b"two", 0o640)
    replace_file(path, b"three", mode=0o600)
    assert (path.read_bytes(), mode_of(path)) == (b"three", 0o600)
    assert names(tmp_path) == ["settings.json"]


def test_a_name_as_long_as_names_can_be_is_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250 + ".json")
    replace_file(path, b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_step_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "settings.json"
    replace_file(path, b"old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="Input/output error"):
            replace_file(path, b"new", mode=0o600)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["settings.json"]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        replace_file(tmp_path / "folder", b"x")
    assert names(tmp_path) == ["folder"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """As root a device would be gone: `--out /dev/null` must not turn it into a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileExistsError, match="it is no regular file"):
        replace_file(pipe, b"new")
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_a_link_goes_on_leading_to_its_file(tmp_path: Path) -> None:
    path, link = tmp_path / "kept.json", tmp_path / "link.json"
    path.write_bytes(b"old")
    link.symlink_to(path)
    replace_file(link, b"new")
    assert (link.is_symlink(), path.read_bytes()) == (True, b"new")
