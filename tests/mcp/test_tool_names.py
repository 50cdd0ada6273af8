"""The names under which models see the tools of servers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.mcp.tool_names import tool_name


@pytest.mark.parametrize(
    ("server", "tool", "prefix", "name"),
    [
        ("files", "read", None, "files__read"),
        ("files", "read", "fs_", "fs_read"),
        ("files", "read", "", "read"),
        ("my server", "read.file", None, "my_server__read_file_64479f"),
        ("中文", "读", "", "__18d41d"),
        ("s", "x" * 70 + "_end", "", "x" * 53 + "_end_f1eaf7"),
    ],
)
def test_a_name_is_the_prefix_and_the_tools_own(server: str, tool: str, prefix: str | None, name: str):
    assert tool_name(server, tool, prefix) == name


def test_two_tools_that_look_alike_stay_two():
    assert tool_name("s", "a.b") != tool_name("s", "a b")
    assert tool_name("s", "a" * 80 + "1") != tool_name("s", "b" * 80 + "1")


@given(st.text(max_size=90), st.text(max_size=90), st.none() | st.text(max_size=20))
def test_every_name_fits_every_provider(server: str, tool: str, prefix: str | None):
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool_name(server, tool, prefix))
