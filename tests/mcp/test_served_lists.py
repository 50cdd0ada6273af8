"""What our server lists besides tools (resources, templates, prompts, completions), and tells of them."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, cast

import anyio
import mcp_types as types
import pytest
from mcp.server.session import ServerSession

from dialoom.base.errors import UsageError
from dialoom.mcp import MCPClient, McpError, MCPOptions
from dialoom.mcp.server import (
    Blank,
    Content,
    ListChanged,
    News,
    Prompt,
    PromptArgument,
    Resource,
    ResourceBytes,
    ResourceChanged,
    ResourceTemplate,
    ResourceText,
    Served,
)
from dialoom.mcp.server.beside import beside
from dialoom.mcp.server.sdk_face import sdk_server
from dialoom.mcp.server.sdk_news import MAX_CLIENTS, MAX_UNTOLD, MAX_URIS, Followers
from dialoom.tools import ToolRegistry, tool
from mcp import Client, MCPError

BOTH = pytest.mark.parametrize("era", ["auto", "legacy"])
PICTURE = ResourceBytes(uri="book://cover", data=b"\x89PNG", mime_type="image/png")


class Shelf:
    """Two hundred and fifty books, of which one can be read, and a picture."""

    async def listed(self, start: int, count: int) -> Sequence[Resource]:
        books = [Resource(uri=f"book://{number}", name=f"book {number}") for number in range(250)]
        return books[start : start + count]

    async def read(self, uri: str) -> Content | None:
        if uri == PICTURE.uri:
            return PICTURE
        return ResourceText(uri=uri, text="once upon a time") if uri == "book://7" else None


async def tell_a_tale(given: Mapping[str, str]) -> Sequence[str | Content]:
    if given["hero"] == "nobody":
        raise UsageError("nobody is no hero; name another")
    return [f"a tale of {given['hero']}", PICTURE, ResourceText(uri="book://7", text="once")]


async def complete(blank: Blank) -> Sequence[str]:
    if blank == Blank(of="tale", argument="hero", begun="a", known={"place": "Rome"}):
        return ["ann", "abe"]
    return [f"{blank.of} {blank.argument} {number}" for number in range(150)]


TALE = Prompt(
    name="tale",
    title="A tale",
    description="Tells one.",
    arguments=(PromptArgument(name="hero"), PromptArgument(name="place", required=False)),
    fill=tell_a_tale,
)


def library(news: News | None = None) -> Served:
    return Served(
        tools=ToolRegistry([look, put]),
        read_only=frozenset({"look"}),
        resources=Shelf(),
        templates=(ResourceTemplate(uri="book://{number}", name="book", title="A book"),),
        prompts=(TALE,),
        complete=complete,
        news=news,
    )


@tool
def look() -> str:
    """Look."""
    return "seen"


@tool
def put() -> str:
    """Put."""
    return "done"


@asynccontextmanager
async def visited(served: Served, era: Any = "auto") -> AsyncGenerator[MCPClient]:
    client = MCPClient.in_process(sdk_server(served), name="ours", options=MCPOptions(era=era))
    async with asyncio.timeout(60), client:
        yield client


async def test_resources_are_listed_page_by_page_and_read():
    async with (
        asyncio.timeout(60),
        Client(sdk_server(Served(tools=ToolRegistry(), resources=Shelf()))) as client,
    ):
        first = await client.list_resources()
        last = await client.list_resources(cursor="200")
        assert (len(first.resources), first.next_cursor) == (100, "100")
        assert (len(last.resources), last.next_cursor) == (50, None)
        assert (await client.list_resource_templates()).resource_templates == []
        content = (await client.read_resource("book://7")).contents[0]
        assert isinstance(content, types.TextResourceContents)
        assert content.text == "once upon a time"
        cover = (await client.read_resource(PICTURE.uri)).contents[0]
        assert isinstance(cover, types.BlobResourceContents)
        assert (base64.b64decode(cover.blob), cover.mime_type) == (PICTURE.data, "image/png")
        with pytest.raises(MCPError, match="resource not found"):
            await client.read_resource("book://8")
        with pytest.raises(MCPError, match="there is no such cursor"):
            await client.list_resources(cursor="x")


@BOTH
async def test_prompts_are_listed_and_filled_in(era: str):
    async with visited(library(), era) as client:
        (listed,) = await client.prompts()
        assert (listed.name, listed.title, listed.description) == ("tale", "A tale", "Tells one.")
        assert listed.arguments is not None
        assert [(each.name, each.required) for each in listed.arguments] == [("hero", True), ("place", False)]
        words, picture, text = (await client.get_prompt("tale", {"hero": "ann"})).messages
        assert words.content == types.TextContent(text="a tale of ann")
        assert picture.content == types.ImageContent(data="iVBORw==", mime_type="image/png")
        assert isinstance(text.content, types.EmbeddedResource)
        assert isinstance(text.content.resource, types.TextResourceContents)
        assert (text.role, text.content.resource.text) == ("user", "once")


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("gone", {}, "unknown prompt: gone"),
        ("tale", {"place": "Rome"}, "prompt tale lacks hero"),
        ("tale", {"hero": "nobody"}, "nobody is no hero; name another"),
    ],
)
async def test_a_prompt_that_cannot_be_filled_in_says_why(name: str, given: dict[str, str], told: str):
    async with visited(library()) as client:
        with pytest.raises(McpError, match=told) as refused:
            await client.get_prompt(name, given)
        assert refused.value.facts.rpc_code == types.INVALID_PARAMS


@BOTH
async def test_what_a_person_types_is_completed(era: str):
    async with visited(library(), era) as client:
        assert [each.uri_template for each in await client.resource_templates()] == ["book://{number}"]
        heroes = await client.complete({"name": "tale"}, ("hero", "a"), known={"place": "Rome"})
        assert heroes == ("ann", "abe")
        numbers = await client.complete({"uri": "book://{number}"}, ("number", ""))
        assert (len(numbers), numbers[0]) == (100, "book://{number} number 0")


async def test_tools_that_change_nothing_say_so():
    async with visited(library()) as client:
        looks, puts = await client.tools()
    assert looks.annotations == types.ToolAnnotations(read_only_hint=True)
    assert puts.annotations is None


async def test_a_server_without_news_promises_none():
    async with visited(library(), "legacy") as client:
        able = (await client.initialize()).capabilities
    assert able == {
        "prompts": {"listChanged": False},
        "resources": {"subscribe": False, "listChanged": False},
        "tools": {"listChanged": False},
        "completions": {},
    }


class Notices:
    """The notices that came, and a way to wait for the next ones."""

    def __init__(self, client: MCPClient) -> None:
        self._queue: asyncio.Queue[tuple[str, object]] = asyncio.Queue()
        client.set_notification_handler(
            lambda method, fields: self._queue.put_nowait((method, fields.get("uri")))
        )

    async def next(self) -> tuple[str, object]:
        method, uri = await self._queue.get()
        return method.removeprefix("notifications/"), uri


@BOTH
async def test_clients_are_told_of_other_lists_and_of_the_resources_they_follow(era: str):
    news = News()
    async with visited(library(news), era) as client:
        notices = Notices(client)
        await client.subscribe_resource("book://7")
        news.tell(ResourceChanged("book://8"))
        news.tell(ResourceChanged("book://7"))
        assert await notices.next() == ("resources/updated", "book://7")
        for kind in ("tools", "resources", "prompts"):
            news.tell(ListChanged(kind))
            news.tell(ListChanged(kind))  # one that is not yet told counts once
            assert await notices.next() == (f"{kind}/list_changed", None)
        assert client.prompts_changed()
        await client.unsubscribe_resource("book://7")
        if era == "legacy":  # a newer client ends its stream and opens another, at a moment of its own
            news.tell(ResourceChanged("book://7"))
            news.tell(ListChanged("tools"))
            assert await notices.next() == ("tools/list_changed", None)
    news.tell(ListChanged("tools"))  # nobody is there any more


class Session(NamedTuple):
    """A client of an older era: what is sent to it, and what becomes of that."""

    client_params: object
    sent: asyncio.Queue[str]
    failure: Exception | None = None
    stuck: bool = False

    async def send_notification(self, notice: types.ServerNotification) -> None:
        if self.stuck:
            await asyncio.Event().wait()
        if self.failure:
            raise self.failure
        self.sent.put_nowait(notice.method)


def session(failure: Exception | None = None, *, stuck: bool = False) -> ServerSession:
    return cast("ServerSession", Session(object(), asyncio.Queue(), failure, stuck))


def sent(to: ServerSession) -> asyncio.Queue[str]:
    return cast("Session", to).sent


async def test_a_client_that_is_gone_or_takes_nothing_keeps_no_other_from_its_news():
    news, followers = News(), Followers(send_seconds=0.01)
    gone, stuck, well = session(anyio.ClosedResourceError()), session(stuck=True), session()
    async with asyncio.timeout(60), followers.following(news):
        for each in (gone, stuck, well):
            followers.welcome(each)
        for kind in ("tools", "prompts"):
            news.tell(ListChanged(kind))
            assert await sent(well).get() == f"notifications/{kind}/list_changed"


async def test_of_too_many_clients_the_first_is_told_nothing_more():
    news, followers = News(), Followers()
    many = [session() for _ in range(MAX_CLIENTS + 1)]
    async with asyncio.timeout(60), followers.following(news):
        for each in many:
            followers.welcome(each)
        news.tell(ListChanged("tools"))
        await sent(many[-1]).get()
    assert [sent(each).qsize() for each in many] == [0] + [1] * (MAX_CLIENTS - 1) + [0]


async def test_what_one_client_may_follow_and_what_may_wait_to_be_told_are_bounded():
    news, followers, one = News(), Followers(), session()
    async with asyncio.timeout(60), followers.following(news):
        assert all(followers.follow(one, f"book://{number}") for number in range(MAX_URIS))
        assert not followers.follow(one, "book://more")
        assert followers.follow(one, "book://0")
        for number in reversed(range(MAX_UNTOLD + 1)):
            news.tell(ResourceChanged(f"book://{number}"))  # there is no room for the last, number 0
        for _ in range(MAX_URIS - 1):
            await sent(one).get()
        news.tell(ResourceChanged("book://0"))
        await sent(one).get()
    assert sent(one).empty()


async def test_a_client_that_follows_too_much_is_refused():
    async with visited(library(News()), "legacy") as client:
        for number in range(MAX_URIS):
            await client.subscribe_resource(f"book://{number}")
        with pytest.raises(McpError, match=f"more than {MAX_URIS} resources are followed"):
            await client.subscribe_resource("book://more")


async def test_what_goes_on_beside_something_fails_it_and_is_ended_with_it():
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def fail(words: str) -> None:
        raise ValueError(words)

    async with beside(work()):
        await asyncio.sleep(0)  # it begins
    assert ended.is_set()
    with pytest.raises(ValueError, match="inside"):
        async with beside(work()):
            await fail("inside")
    with pytest.raises(ValueError, match="beside"):
        async with beside(fail("beside")):
            await asyncio.Event().wait()
    with pytest.raises(ExceptionGroup):
        async with beside(fail("one"), fail("two")):
            await asyncio.Event().wait()
