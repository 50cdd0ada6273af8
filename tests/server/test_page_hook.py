"""The wheel is built wherever Python is; it brings the page where npm can build it."""

from pathlib import Path

import pytest
from scripts.page_hook import BUILT, PageHook

MAKES_IT = f'[ "$1" = ci ] || {{ mkdir -p ../{BUILT} && echo page > ../{BUILT}/index.html; }}'
HALF = f"mkdir -p ../{BUILT} && touch ../{BUILT}/half; exit 1"


@pytest.mark.parametrize(
    ("npm", "built", "told"),
    [
        (MAKES_IT, ["index.html"], ""),
        (HALF, [], "the page could not be built"),
        ("exit 1", [], "the page could not be built"),
        (None, [], "npm is not here: the wheel serves the plain page only"),
    ],
)
def test_a_wheel_is_built_with_the_page_or_says_that_it_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    npm: str | None, built: list[str], told: str,
) -> None:  # fmt: skip
    (tmp_path / "web").mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    if npm is not None:
        (programs / "npm").write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{npm}\n")
        (programs / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    hook = PageHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel")  # pyright: ignore[reportArgumentType] - it looks at neither
    hook.initialize("standard", {})
    assert sorted(each.name for each in (tmp_path / BUILT).glob("*")) == built
    said = capfd.readouterr()
    assert told in said.out + said.err
    assert bool(said.out + said.err) is bool(told)
