"""Programs that a project's file names are started only after a person said so."""

from pathlib import Path

import msgspec
import pytest

from dialoom.base.errors import StoreError, UsageError
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.config_fields import OAuth, Transport
from dialoom.mcp.trust import Approval, FoundServer, TrustStore, UntrustedServerError, digest_of, what_runs


def found(config: MCPServerConfig, origin: Path) -> FoundServer:
    return FoundServer(config=config, origin=origin)


def server() -> MCPServerConfig:
    return MCPServerConfig("files", command="npx", arguments=["server", "/my data"], environment={"K": "v"})


@pytest.mark.promise("mcpconfig-031")
def test_a_server_of_a_project_is_started_only_after_approval(tmp_path: Path):
    store = TrustStore(tmp_path / "trust")
    project = found(server(), tmp_path / ".mcp.json")
    with pytest.raises(UntrustedServerError) as refused:
        store.cleared(project)
    assert str(refused.value) == (
        f"mcp server 'files' of {tmp_path / '.mcp.json'} was not approved; "
        "see what it would run, and approve it, with: dialoom mcp trust files"
    )
    store.approve(project)
    assert TrustStore(tmp_path / "trust").cleared(project) == server()


def test_the_users_own_servers_need_no_approval(tmp_path: Path):
    store = TrustStore(tmp_path / "trust")
    own = FoundServer(config=server())
    store.approve(own)
    assert store.cleared(own) == server()
    assert not (tmp_path / "trust").exists()


@pytest.mark.parametrize(
    "changed",
    [
        server().set_command("node"),
        server().set_arguments(["server"]),
        server().set_environment({"K": "v", "LD_PRELOAD": "x.so"}),
        server().set_environment({"K": "w"}),
        server().set_cwd("/tmp"),
        server().set_url("https://a.example"),
        server().set_transport(Transport.SSE),
        server().set_headers({"X": "${SECRET}"}),
        server().set_inherit_env("safe"),
    ],
)
def test_an_approval_holds_for_what_runs_and_not_for_a_name(changed: MCPServerConfig, tmp_path: Path):
    store = TrustStore(tmp_path / "trust")
    store.approve(found(server(), tmp_path / ".mcp.json"))
    assert not store.is_approved(found(changed, tmp_path / ".mcp.json"))
    assert not store.is_approved(found(server(), tmp_path / "other" / ".mcp.json"))
    renamed = server().set_name("other").set_auto_start(False)
    assert store.is_approved(found(renamed, tmp_path / ".mcp.json"))


def test_an_approval_can_be_read_and_taken_back(tmp_path: Path):
    store = TrustStore(tmp_path / "trust")
    project = found(server(), tmp_path / ".mcp.json")
    store.approve(project)
    (file,) = (tmp_path / "trust").iterdir()
    approval = msgspec.json.decode(file.read_bytes(), type=Approval)
    assert (approval.digest, approval.origin) == (digest_of(project), str(tmp_path / ".mcp.json"))
    assert approval.server["environment"] == {"K": "***"}
    assert (store.revoke(project), store.revoke(project)) == (True, False)
    assert not store.is_approved(project)


def test_approvals_are_for_their_owner_only(tmp_path: Path):
    folder = tmp_path / "trust"
    store = TrustStore(folder)
    store.approve(found(server(), tmp_path / ".mcp.json"))
    (file,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    folder.chmod(0o770)
    with pytest.raises(StoreError, match=r"others can write to .*trust; run: chmod 700"):
        store.is_approved(found(server(), tmp_path / ".mcp.json"))


def test_what_cannot_run_cannot_be_approved(tmp_path: Path):
    store = TrustStore(tmp_path / "trust")
    with pytest.raises(UsageError, match="mcp server 'x' cannot be approved: command: is empty"):
        store.approve(found(MCPServerConfig("x"), tmp_path / ".mcp.json"))
    (tmp_path / "trust").write_text("in the way")
    with pytest.raises(StoreError, match="cannot keep the approval"):
        store.approve(found(server(), tmp_path / ".mcp.json"))


def test_what_would_happen_is_told_whole_and_without_control_codes():
    remote = MCPServerConfig(
        "x",
        transport=Transport.SSE,
        url="https://u:secret@a.example/sse?k=secret",
        headers={"Authorization": "secret"},
    )
    assert (
        what_runs(FoundServer(config=remote)) == "connect to https://a.example/sse with headers Authorization"
    )
    remote.set_headers({}).set_auth(OAuth())
    assert what_runs(FoundServer(config=remote)) == "connect to https://a.example/sse and a login (OAuth)"
    child = MCPServerConfig("x", command="sh", arguments=["-c", "", "a\x1b[2Jb"], cwd="/srv")
    assert what_runs(FoundServer(config=child)) == "run sh -c '' 'a [2Jb' in /srv"
