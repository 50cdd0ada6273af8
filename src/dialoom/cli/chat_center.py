"""The center of the terminal: stores beside the index, the chosen model, and a person's own kit."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from dialoom.agent import AGENT_TYPES
from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.cli.chat_claim import ConversationClaim
from dialoom.cli.mcp_servers import cleared, client_options, found_server, user_folder
from dialoom.cli.model import OpenModel
from dialoom.conversation import ConversationNotFoundError
from dialoom.dialog import Center, Dialog, FoundSkills, RunPolicy, Stores, TrustFile, find_skills, skill_roots
from dialoom.llm import Capability, Model
from dialoom.mcp import MCPClient, MCPServerConfig
from dialoom.mcp.tool_source import MCPToolSource
from dialoom.stores import SqliteCheckpointStore, SqliteConversationStore
from dialoom.tools import Tool
from dialoom.tools.builtin import calculator, clock_tool

ChatTool: TypeAlias = Literal["calculator", "clock"]
CENTER_FILE: Final = "center.json"
"""A person's own skills, prompts and tool servers, as `Center.save_settings` writes them."""
_ABLE: Final = Capability.TEXT | Capability.TOOLS | Capability.STREAMING
CHAT_TOOLS: Final[dict[str, Tool]] = {"calculator": calculator, "clock": clock_tool()}
"""What `--tool` names; a tool may have another name for the model."""


class ChatFlags(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversation is gone on with, and which tools and tool servers its model may call."""

    conversation: str = ""
    resume: bool = False
    tools: tuple[ChatTool, ...] = ()
    servers: tuple[str, ...] = ()

    @property
    def calls_tools(self) -> bool:
        """Whether the model is to call tools, so that it answers and not the documents."""
        return bool(self.tools or self.servers)


@contextmanager
def open_stores(folder: Path) -> Generator[Stores]:
    """Open the stores in `folder`, which is made with the first conversation that is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        SqliteConversationStore(folder / "chat.sqlite") as conversations,
        SqliteCheckpointStore(folder / "chat-runs.sqlite", types=AGENT_TYPES) as checkpoints,
    ):
        yield Stores(conversations, checkpoints)


def center_of(stores: Stores, opened: OpenModel, flags: ChatFlags) -> Center:
    """Return a center whose provider is the chosen model, with what the person's own settings file holds.

    Only tool servers of that file, and those that `flags` name and a person approved, are ever connected: a
    conversation may have come with somebody's project. Raises `StoreError` for a file that is wrong, and
    `UsageError` for a server that is not known or not approved.
    """

    def connect(config: MCPServerConfig) -> MCPClient:
        if config not in center.mcps:
            raise UsageError("it came with the conversation; name it with --server to have it started")
        return MCPClient(config, client_options())

    center = Center(stores, tool_source=MCPToolSource(connect), policy=RunPolicy(chat=opened.options))
    center.load_settings(user_folder() / CENTER_FILE)
    use_model(center, opened, opened.choice.model or "")
    for name in flags.tools:
        center.add_tool(CHAT_TOOLS[name])
    for name in flags.servers:
        center.add_mcp(cleared(found_server(name, None)))
    return center


def use_model(center: Center, opened: OpenModel, name: str) -> None:
    """Have the model `name` answer; its server is not asked whether it has it, it will say so."""
    model = Model(id=name, provider=opened.provider.id, capabilities=_ABLE)
    center.add_provider(opened.provider, models=(model,))


async def open_dialog(center: Center, flags: ChatFlags, claim: ConversationClaim) -> Dialog:
    """Return the conversation to go on with: the one that is named, the newest, or a new one.

    It is claimed before it is read: opening delivers what a run that died had not said, and a run that
    another process carries has not died. Raises `ConversationInUseError`, and `UsageError` when there is
    none to go on with.
    """
    if not flags.conversation and not flags.resume:
        return center.new_dialog()
    found = flags.conversation or await _newest(center)
    claim.move(found)
    try:
        return await center.open(found)
    except ConversationNotFoundError as error:
        raise UsageError(
            f"there is no conversation {one_line(found, 80)!r}; dialoom chat --list shows those there are"
        ) from error


async def is_kept(stores: Stores, conversation_id: str) -> bool:
    """Tell whether a conversation is on the disk."""
    try:
        await stores.conversations.header(conversation_id)
    except ConversationNotFoundError:
        return False
    return True


async def _newest(center: Center) -> str:
    newest = (await center.list_dialogs(limit=1)).headers
    if not newest:
        raise UsageError("there is no conversation to go on with; begin one with dialoom chat")
    return newest[0].id


class ChatSkills:
    """The skills that can be switched on in the terminal: the person's own, and a project's once trusted."""

    def __init__(self, project: Path, home: Path) -> None:
        self._roots = skill_roots(project, home)
        self._trust = TrustFile(user_folder() / "trusted-skills.json")

    def find(self) -> FoundSkills:
        return find_skills(self._roots, self._trust)

    def trust(self, name: str) -> None:
        """Say yes to a project's skill as it is now. Raises `UsageError` when none of this name waits."""
        waiting = [found for found in self.find().untrusted if found.skill.name == name]
        if not waiting:
            raise UsageError(f"no skill {one_line(name, 80)!r} waits to be trusted; /skills lists them")
        self._trust.trust(waiting[0])

    def switch_on(self, dialog: Dialog, name: str) -> None:
        """Switch a skill on for the rest of the conversation.

        Raises `UsageError` for one that is unknown, or not trusted.
        """
        seen = self.find()
        found = {skill.name: skill for skill in seen.skills}
        if name in found:
            dialog.add_skill(found[name])
        elif any(each.skill.name == name for each in seen.untrusted):
            raise UsageError(f"skill {name} came with this project; look at it, then /skill trust {name}")
        dialog.activate_skill(name)
