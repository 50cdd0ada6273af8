"""One tool server, used: its lists, its tools, its resources, its prompts, and what it announces."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from dialoom.mcp.catalog import Listing, Skipped
from dialoom.mcp.changes import ListKind, OnChange
from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.config_fields import McpTimeouts
from dialoom.mcp.connection import ConnectionState, Live
from dialoom.mcp.errors import McpError
from dialoom.mcp.inputs import Elicit, Fields, OnNotice, OnProgress
from dialoom.mcp.options import MCPOptions
from dialoom.mcp.patience import Patience
from dialoom.mcp.session import MakeRoute, ServerSession, route_by_config, route_in_process, route_of_lines
from dialoom.mcp.transport import LineTransport

if TYPE_CHECKING:
    import mcp_types as types

    from dialoom.mcp.sdk.verbs import MakeRequest


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Who a server says it is. `capabilities` are its own JSON; the words are foreign."""

    name: str
    version: str
    protocol: str
    capabilities: dict[str, object]
    instructions: str | None


class MCPClient:
    """A client of the server that a config describes.

    It connects when it is first used, and again when the connection is lost; `close` ends it, and so does
    leaving `async with`. What asks the server raises `McpError`, and for that one request only; what
    no request can be made of is a `UsageError`. What it returns are the types of the official SDK. Any task
    of one event loop may use it, several at once.
    """

    def __init__(
        self,
        config: MCPServerConfig,
        options: MCPOptions | None = None,
        *,
        make_route: MakeRoute = route_by_config,
    ) -> None:
        self.config = config.copy()
        session = self._session = ServerSession(self.config, options or MCPOptions(), make_route)
        self._tools = Listing[Any](lambda: session.list_all("tools"), session.changes, kind="tools")
        self._resources = Listing[Any](
            lambda: session.list_all("resources"), session.changes, kind="resources"
        )
        self._templates = Listing[Any](
            lambda: session.list_all("resourceTemplates"), session.changes, kind="resources"
        )
        self._prompts = Listing[Any](lambda: session.list_all("prompts"), session.changes, kind="prompts")

    @classmethod
    def over(
        cls,
        make: Callable[[], LineTransport],
        *,
        name: str,
        options: MCPOptions | None = None,
        timeouts: McpTimeouts | None = None,
    ) -> Self:
        """Return a client over transports of your own; `make` is called for each connection."""
        config = MCPServerConfig(name, timeouts=timeouts or McpTimeouts())
        return cls(config, options, make_route=route_of_lines(make))

    @classmethod
    def in_process(cls, server: object, *, name: str, options: MCPOptions | None = None) -> Self:
        """Return a client of a server object of the SDK, such as an `MCPServer`, without any transport."""
        return cls(MCPServerConfig(name), options, make_route=route_in_process(server))

    async def __aenter__(self) -> Self:
        try:
            await self.initialize()
        except BaseException:
            await self.close()  # it would go on trying, and nobody could end that
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def state(self) -> ConnectionState:
        return self._session.connection.state

    @property
    def error(self) -> McpError | None:
        """Why it was last down, None when it never was."""
        return self._session.connection.error

    @property
    def diagnostics(self) -> tuple[str, ...]:
        """The last lines it said that are no messages, without secrets. For people, never for a model."""
        return self._session.connection.diagnostics()

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What the last listings left out because it is broken, or came twice."""
        return tuple(each for listed in self._session.skipped.values() for each in listed)

    async def initialize(self) -> ServerFacts:
        """Connect and agree on a protocol, unless that is done, and return who the server is."""
        live = await self._session.connection.connect()
        return _facts(live)

    async def close(self) -> None:
        """End the connection; a child ends with its whole process group. In bounded time, by any task."""
        await self._session.connection.close()

    async def list_tools(self) -> "tuple[types.Tool, ...]":
        """Ask for all tools, every page."""
        return await self._tools.fetch()

    async def list_resources(self) -> "tuple[types.Resource, ...]":
        """Ask for all resources, every page."""
        return await self._resources.fetch()

    async def list_resource_templates(self) -> "tuple[types.ResourceTemplate, ...]":
        """Ask for all resource templates, every page."""
        return await self._templates.fetch()

    async def list_prompts(self) -> "tuple[types.Prompt, ...]":
        """Ask for all prompts, every page."""
        return await self._prompts.fetch()

    async def tools(self) -> "tuple[types.Tool, ...]":
        """Return the tools, asking only when the server announced a change since it was asked."""
        return await self._tools.current()

    async def resources(self) -> "tuple[types.Resource, ...]":
        """Return the resources, as `tools` does."""
        return await self._resources.current()

    async def resource_templates(self) -> "tuple[types.ResourceTemplate, ...]":
        """Return the resource templates, as `tools` does."""
        return await self._templates.current()

    async def prompts(self) -> "tuple[types.Prompt, ...]":
        """Return the prompts, as `tools` does."""
        return await self._prompts.current()

    async def call_tool(
        self,
        name: str,
        arguments: Fields | None = None,
        *,
        on_progress: OnProgress | None = None,
        on_elicit: Elicit | None = None,
        input_responses: Mapping[str, Fields] | None = None,
        request_state: str | None = None,
        pause_for_input: bool = False,
    ) -> "types.CallToolResult | types.InputRequiredResult":
        """Run a tool and return what the server answered, an error of the tool's own included.

        Progress keeps a call alive beyond `timeouts.idle`; cancelling the task cancels it at the server too.
        With `pause_for_input` an answer that wants input is returned as it is; `input_responses` and its
        `request_state` then take the call up again, in another process too.
        """

        async def send(live: Live, patience: Patience) -> Any:
            verbs = self._session.verbs
            make = verbs.tool_call(name, arguments or {})
            turn = verbs.kept_round(input_responses, request_state)
            ask = verbs.ask_once if pause_for_input else verbs.ask_until_done
            try:
                return await ask(live, make, turn=turn, patience=patience, on_progress=on_progress)
            except verbs.MCPError as error:
                if not verbs.is_header_mismatch(error):
                    raise
            await self._session.list_over(live, patience, "tools")  # what the headers are made from
            return await ask(live, make, turn=turn, patience=patience, on_progress=on_progress)

        return await self._session.ask(send, elicit=on_elicit)

    async def read_resource(self, uri: str) -> "types.ReadResourceResult":
        """Read a resource."""
        return await self._until_done(lambda: self._session.verbs.reading(uri))

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None
    ) -> "types.GetPromptResult":
        """Return a prompt, filled in with `arguments`."""
        return await self._until_done(lambda: self._session.verbs.prompting(name, arguments or {}))

    async def complete(
        self,
        reference: Mapping[str, str],
        argument: tuple[str, str],
        *,
        known: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """Return what an argument may become: its name and its beginning, with other arguments known.

        `reference` is `{"name": ...}` of a prompt or `{"uri": ...}` of a resource template.
        """
        return await self._session.ask(
            lambda live, _: self._session.verbs.complete(
                live, reference, argument=argument, known=known or {}
            )
        )

    async def subscribe_resource(self, uri: str) -> None:
        """Be told when a resource changes, after a reconnection too: by `notifications/resources/updated`."""
        await self._session.subscribe(uri)

    async def unsubscribe_resource(self, uri: str) -> None:
        """Be told no more of it."""
        await self._session.unsubscribe(uri)

    async def answer_input(self, request: Fields) -> Fields:
        """Answer a question of a paused call that is not for a person, such as one for a model's words."""
        return await self._session.ask(lambda live, _: self._session.verbs.answer_request(live, request))

    async def tell_roots_changed(self) -> None:
        """Tell the server that `MCPAnswers.roots` returns other folders now, so that it asks again."""
        await self._session.ask(lambda live, _: self._session.verbs.tell_roots_changed(live))

    def set_notification_handler(self, handler: OnNotice | None) -> None:
        """Hand every notice of the server to `handler`, on the event loop; it must not block."""
        self._session.on_notice = handler

    def tools_changed(self) -> bool:
        """Whether the server announced other tools since they were listed."""
        return self._session.changes.is_set("tools")

    def resources_changed(self) -> bool:
        """Whether the server announced other resources since they were listed."""
        return self._session.changes.is_set("resources")

    def prompts_changed(self) -> bool:
        """Whether the server announced other prompts since they were listed."""
        return self._session.changes.is_set("prompts")

    def clear_list_changed(self, kind: ListKind) -> None:
        """Take the announcement for one kind back; the others stay."""
        self._session.changes.clear(kind)

    def on_list_changed(self, listener: OnChange) -> Callable[[], None]:
        """Call `listener` a moment after lists changed, however many notices came. Returns what ends that."""
        return self._session.changes.listen(listener)

    async def _until_done(self, make: "Callable[[], MakeRequest]") -> Any:
        """Return the answer to what `make` makes, with the server's questions on the way answered."""
        return await self._session.ask(
            lambda live, patience: self._session.verbs.ask_until_done(live, make(), patience=patience)
        )


def _facts(live: Live) -> ServerFacts:
    client = live.client
    who = client.server_info
    able = client.server_capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
    return ServerFacts(
        name=who.name if who else "",
        version=who.version if who else "",
        protocol=client.protocol_version,
        capabilities=cast("dict[str, object]", able),
        instructions=client.instructions,
    )
