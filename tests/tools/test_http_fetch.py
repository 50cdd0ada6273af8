"""The web page tool: what a model gets to read, and what it is refused."""

import socket
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.llm import ToolCall
from dialoom.net.fetch import FetchedPage
from dialoom.net.guard import UrlPolicy
from dialoom.testing.wire import WireReply, WireServer
from dialoom.tools import ToolRegistry, ToolResult, execute_calls
from dialoom.tools.builtin import WebPage, http_fetch_tool
from dialoom.tools.builtin.fetch import _words
from tests.net.scripted import Hop, ScriptedFetcher

PAGE = """<!DOCTYPE html><html><head><title>Fees &amp; taxes</title><style>p {color: red}</style></head>
<body><!-- <p>hidden</p> --><script>if (a < b) alert("x")</SCRIPT ><h1>Fees</h1>
<p>Nine  <b>euros</b>,
paid once.<br>No&nbsp;more.<table><tr><td>5 &lt; 9</td></tr></table></p></body></html>"""


class OneName:
    async def resolve(self, host: str) -> Sequence[str]:
        if host != "a.test":
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        return ["93.184.216.34"]


async def fetched(url: str, *hops: Hop, max_chars: int = 1_000) -> ToolResult:
    tool = http_fetch_tool(fetcher=ScriptedFetcher(*hops), resolver=OneName(), max_chars=max_chars)
    (result,) = await execute_calls(
        ToolRegistry([tool]), [ToolCall(id="1", name="http_fetch", arguments={"url": url})]
    )
    return result


async def test_a_model_reads_the_words_of_a_page() -> None:
    result = await fetched("https://a.test/fees#top", Hop(body=(PAGE.encode(),)))
    assert not result.is_error
    assert msgspec.json.decode(result.content, type=WebPage) == WebPage(
        url="https://a.test/fees",
        status=200,
        text="Fees & taxes\nFees\nNine euros, paid once.\nNo more.\n5 < 9",
        cut=False,
    )


async def test_other_text_is_read_as_it_is_and_a_long_one_in_part() -> None:
    kind = {"content-type": "application/json; charset=GBK"}
    result = await fetched(
        "https://a.test/", Hop(headers=kind, body=('{"费用": 9}'.encode("gbk"),)), max_chars=6
    )
    page = msgspec.json.decode(result.content, type=WebPage)
    assert (page.text, page.cut) == ('{"费用":', True)
    odd = {"content-type": "text/plain; charset=unicode_escape"}
    result = await fetched("https://a.test/", Hop(headers=odd, body=(b"\\u0041\xff",)))
    assert msgspec.json.decode(result.content, type=WebPage).text == "\\u0041\ufffd"


@pytest.mark.promise("rag-055")
@pytest.mark.parametrize(
    ("url", "hop", "word"),
    [
        ("http://169.254.169.254/", Hop(), "not public"),
        ("http://localhost/", Hop(), "not public"),
        ("file:///etc/passwd", Hop(), "does not begin with"),
        ("https://unknown.test/", Hop(), "has no address"),
        ("https://a.test/", Hop(status=302, headers={"location": "https://10.0.0.1/"}), "not public"),
        ("https://a.test/", Hop(peer="127.0.0.1"), "not checked"),
        ("https://a.test/", Hop(headers={"content-type": "application/pdf"}), "not read"),
        ("https://a.test/", Hop(body=(b"a" * 1_000_000,) * 3), "more than 2000000 bytes"),
        ("https://a.test/", Hop(unreachable=True), "connection refused"),
    ],
)
async def test_what_is_refused_is_told_to_the_model(url: str, hop: Hop, word: str) -> None:
    result = await fetched(url, hop)
    assert result.is_error
    assert word in result.content


async def test_a_real_page_is_read_when_the_policy_lets_it() -> None:
    here = UrlPolicy(allow_networks=("127.0.0.1/32",), ports=None)
    async with WireServer([WireReply(headers={"content-type": "text/plain"}, body=(b"hello",))]) as server:
        assert (await http_fetch_tool(here)(server.url)).text == "hello"


def test_a_bound_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="max_chars is 0"):
        http_fetch_tool(max_chars=0)


@given(
    st.lists(
        st.sampled_from(["<", ">", "<!--", "-->", "<script>", "</script>", "<p>", "a", "&lt;", "\n", "</"])
    )
)
def test_any_markup_comes_to_an_end(pieces: list[str]) -> None:
    page = FetchedPage(
        url="https://a.test/",
        status=200,
        content_type="text/html",
        charset=None,
        body="".join(pieces).encode(),
    )
    assert "\n\n" not in _words(page)


@pytest.mark.parametrize("piece", ["<", "<!--", "<script>", "<script", "<a href='", "&lt;", "</p>"])
def test_a_hostile_page_is_read_in_linear_time(piece: str) -> None:
    body = (piece * (300_000 // len(piece))).encode()
    page = FetchedPage(url="https://a.test/", status=200, content_type="text/html", charset=None, body=body)
    assert len(_words(page)) <= len(body)
