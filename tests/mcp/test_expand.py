"""Variables are put in when connecting."""

from pathlib import Path

import pytest

from dialoom.base.errors import UsageError
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.config_fields import BearerAuth, OAuth
from dialoom.mcp.expand import MAX_EXPANDED, Variables, expand

VARIABLES = Variables(
    environment={"TOKEN": "t0ken", "EMPTY": "", "NESTED": "${TOKEN}"},
    inputs={"key": "typed-in"},
    workspace=Path("/home/ann/project"),
    home=Path("/home/ann"),
)


def test_every_setting_that_may_hold_a_variable_gets_its_value():
    config = MCPServerConfig(
        "x",
        command="${userHome}/bin/server",
        arguments=["${workspaceFolder}/docs", "--mode=${MODE:-fast}"],
        environment={"KEY": "${input:key}", "PLAIN": "$TOKEN"},
        url="https://tools.example/${env:TOKEN}",
        headers={"Authorization": "Bearer ${TOKEN}"},
        cwd="${workspaceFolder}",
        auth=BearerAuth(token="${TOKEN}"),
    )
    before = config.to_dict()
    assert expand(config, VARIABLES) == MCPServerConfig(
        "x",
        command="/home/ann/bin/server",
        arguments=["/home/ann/project/docs", "--mode=fast"],
        environment={"KEY": "typed-in", "PLAIN": "$TOKEN"},
        url="https://tools.example/t0ken",
        headers={"Authorization": "Bearer t0ken"},
        cwd="/home/ann/project",
        auth=BearerAuth(token="t0ken"),
    )
    assert config.to_dict() == before


def test_a_login_gets_its_client_from_variables():
    config = MCPServerConfig("x", auth=OAuth(client_id="${TOKEN}", client_secret="${NO:-}", scopes=("a",)))
    assert expand(config, VARIABLES).auth == OAuth(client_id="t0ken", scopes=("a",))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${EMPTY}", ""),
        ("${EMPTY:-other}", "other"),
        ("${NESTED}", "${TOKEN}"),
        ("${TOKEN}${TOKEN}", "t0kent0ken"),
        ("${", "${"),
        ("${no name}", "${no name}"),
        ("${GONE:-}", ""),
        ("${GONE:-${TOKEN}", "${TOKEN"),
    ],
)
def test_what_a_variable_becomes(written: str, meant: str):
    assert expand(MCPServerConfig("x", command=written), VARIABLES).command == meant


@pytest.mark.parametrize(
    ("written", "what", "name"),
    [
        ("${GONE}", "variable GONE", "GONE"),
        ("${env:GONE}", "variable GONE", "GONE"),
        ("${input:gone}", "input gone", "gone"),
        ("${workspaceFolder}", "variable workspaceFolder", "workspaceFolder"),
        ("${userHome}", "variable userHome", "userHome"),
    ],
)
def test_a_variable_without_value_and_default_names_itself(written: str, what: str, name: str):
    with pytest.raises(UsageError) as refused:
        expand(MCPServerConfig("x", command=written), Variables())
    assert str(refused.value) == (f"it needs {what}, which is not set; set it, or write ${{{name}:-default}}")


def test_a_value_that_grows_without_end_is_refused():
    config = MCPServerConfig("x", command="${BIG}" * 1024)
    with pytest.raises(UsageError, match="is longer than 1048576 characters with its variables put in"):
        expand(config, Variables(environment={"BIG": "x" * (MAX_EXPANDED // 1023)}))


def test_variables_show_no_value():
    assert (
        repr(VARIABLES) == f"Variables(workspace={Path('/home/ann/project')!r}, home={Path('/home/ann')!r})"
    )
