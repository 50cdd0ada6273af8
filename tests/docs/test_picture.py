"""The picture at the head of the README shows what the commands in it print today."""

import re
from pathlib import Path
from xml.etree import ElementTree

from scripts.make_picture import ROOT, TARGET, screen

_TOOK = re.compile(r"\d+\.\d s\)")


def words_of(lines: list[str]) -> list[str]:
    """All words in their order, however the lines are broken; how long it took is told anew each time."""
    return _TOOK.sub("# s)", " ".join(lines)).split()


def test_the_picture_of_the_readme_shows_what_its_commands_print(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    drawn = ElementTree.parse(TARGET).iter("{http://www.w3.org/2000/svg}text")
    shown = words_of([line.text or "" for line in drawn])
    printed = words_of([line for _, line in screen(tmp_path)])
    assert shown == printed, "the picture is old: make picture"
