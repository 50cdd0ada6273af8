"""Pages fetched hop by hop: from a script, and from real servers on this machine."""

import asyncio
import gzip
import ssl
from pathlib import Path

import pytest

from dialoom.net.fetch import FetchedPage, fetch_url
from dialoom.net.fetch_pinned import PinnedFetcher
from dialoom.net.guard import UrlPolicy, UrlRefusedError
from dialoom.net.transport import HttpTimeouts, TransportError
from dialoom.testing.wire import Hold, WireReply, WireServer
from tests.net.scripted import HTML, Hop, ScriptedFetcher
from tests.net.test_guard import Names

PUBLIC = "93.184.216.34"
NAMES = {"a_test": [PUBLIC], "b_test": ["1.1.1.1"], "inside_test": ["10.0.0.5"]}
HERE = UrlPolicy(allow_networks=("127.0.0.0/8",), ports=None)
KEY = Path(__file__).parent / "pages.test.pem"


def moved(location: str, status: int = 302) -> Hop:
    return Hop(status=status, headers={"location": location})


async def refused(*hops: Hop, url: str = "https://a.test/x", policy: UrlPolicy | None = None) -> str:
    with pytest.raises(UrlRefusedError) as caught:
        await fetch_url(url, policy, fetcher=ScriptedFetcher(*hops), resolver=Names(**NAMES))
    return caught.value.reason


async def trouble(url: str, policy: UrlPolicy = HERE) -> str:
    with pytest.raises(TransportError) as caught:
        await fetch_url(url, policy, resolver=Names(a_test=["127.0.0.1"]))
    return caught.value.kind


@pytest.mark.promise("rag-045")
async def test_a_page_comes_from_the_address_that_was_checked() -> None:
    fetcher, names = (
        ScriptedFetcher(Hop(headers={"content-type": 'Text/HTML; charset="GBK"'})),
        Names(**NAMES),
    )
    page = await fetch_url("https://a.test/x?y#z", fetcher=fetcher, resolver=names)
    assert page == FetchedPage(
        url="https://a.test/x?y", status=200, content_type="text/html", charset="GBK", body=b"hello"
    )
    assert (fetcher.asked, names.asked) == ([("https://a.test/x?y", PUBLIC)], ["a.test"])


@pytest.mark.promise("rag-049")
async def test_redirects_are_followed_one_by_one_and_each_name_is_looked_up_once() -> None:
    fetcher, names = ScriptedFetcher(moved("../y", 301), moved("//b.test/z", 307), Hop()), Names(**NAMES)
    page = await fetch_url("https://a.test/x/w", fetcher=fetcher, resolver=names)
    assert page.url == "https://b.test/z"
    assert fetcher.asked == [
        ("https://a.test/x/w", PUBLIC),
        ("https://a.test/y", PUBLIC),
        ("https://b.test/z", "1.1.1.1"),
    ]
    assert names.asked == ["a.test", "b.test"]


@pytest.mark.promise("rag-048")
@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("https://169.254.169.254/latest/meta-data/", "address"),
        ("https://inside.test/", "address"),
        ("file:///etc/passwd", "scheme"),
        ("https://a.test\\@b.test/", "characters"),
        ("https://a.test/\t", "characters"),
        ("https://[::1/", "characters"),
        ("https://me@b.test/", "userinfo"),
        ("https://b.test:25/", "port"),
        ("", "protocol"),
    ],
)
async def test_every_hop_is_checked_like_the_first(location: str, reason: str) -> None:
    assert await refused(moved(location)) == reason


@pytest.mark.promise("rag-050")
async def test_a_redirect_to_plain_http_is_refused_unless_the_policy_allows_it() -> None:
    assert await refused(moved("http://a.test/")) == "downgrade"
    page = await fetch_url(
        "https://a.test/",
        UrlPolicy(allow_downgrade=True),
        fetcher=ScriptedFetcher(moved("http://a.test/"), Hop()),
        resolver=Names(**NAMES),
    )
    assert page.url == "http://a.test/"


async def test_redirects_come_to_an_end() -> None:
    assert await refused(moved("/again")) == "redirects"
    assert await refused(moved("/again"), policy=UrlPolicy(max_redirects=0)) == "redirects"


@pytest.mark.promise("rag-047", "rag-054", "rag-056")
@pytest.mark.parametrize(
    "hop", [Hop(peer="127.0.0.1"), Hop(peer="1.1.1.1"), Hop(peer="?"), Hop(dns_pinned=False)]
)
async def test_an_answer_from_elsewhere_is_not_read(hop: Hop) -> None:
    assert await refused(hop) == "peer"


async def test_a_peer_may_be_written_in_another_way() -> None:
    page = await fetch_url(
        "https://a.test/", fetcher=ScriptedFetcher(Hop(peer=f"::ffff:{PUBLIC}")), resolver=Names(**NAMES)
    )
    assert page.status == 200


async def test_the_next_address_is_tried_when_one_cannot_be_reached() -> None:
    fetcher, names = ScriptedFetcher(Hop(unreachable=True), Hop()), Names(a_test=[PUBLIC, "1.1.1.1"])
    await fetch_url("https://a.test/", fetcher=fetcher, resolver=names)
    assert [address for _, address in fetcher.asked] == [PUBLIC, "1.1.1.1"]
    with pytest.raises(TransportError, match="connection refused"):
        await fetch_url("https://a.test/", fetcher=ScriptedFetcher(Hop(unreachable=True)), resolver=names)


@pytest.mark.promise("rag-051")
async def test_what_is_no_document_is_not_read() -> None:
    assert await refused(Hop(headers={"content-type": "image/png"})) == "content_type"
    assert await refused(Hop(headers={})) == "content_type"
    for kind in ("text/markdown", "application/pdf", "APPLICATION/XHTML+XML ; charset=utf-8"):
        fetcher = ScriptedFetcher(Hop(headers={"content-type": kind}))
        assert (await fetch_url("https://a.test/", fetcher=fetcher, resolver=Names(**NAMES))).status == 200


async def test_an_error_is_an_answer_and_its_picture_is_not_read() -> None:
    fetcher = ScriptedFetcher(Hop(status=404, headers={"content-type": "image/png"}))
    page = await fetch_url("https://a.test/x", fetcher=fetcher, resolver=Names(**NAMES))
    assert (page.status, page.body, fetcher.replies[0].pieces_read) == (404, b"", 0)


@pytest.mark.promise("rag-052")
async def test_a_body_is_counted_as_it_comes_whatever_was_announced() -> None:
    small = UrlPolicy(max_bytes=100)
    endless = (b"a" * 10,) * 1_000
    fetcher = ScriptedFetcher(Hop(headers=HTML | {"content-length": "10"}, body=endless))
    with pytest.raises(UrlRefusedError) as caught:
        await fetch_url("https://a.test/", small, fetcher=fetcher, resolver=Names(**NAMES))
    assert (caught.value.reason, fetcher.replies[0].pieces_read) == ("size", 11)
    announced = Hop(headers=HTML | {"content-length": "9" * 30})
    assert await refused(announced, policy=small) == "size"
    assert await refused(Hop(headers=HTML | {"content-length": "101"}), policy=small) == "size"
    wrong = ScriptedFetcher(Hop(headers=HTML | {"content-length": "-5"}))
    assert (
        await fetch_url("https://a.test/", small, fetcher=wrong, resolver=Names(**NAMES))
    ).body == b"hello"


def packed(body: bytes, encoding: str = "gzip") -> Hop:
    pieces = tuple(body[start : start + 7] for start in range(0, len(body), 7))
    return Hop(headers=HTML | {"content-encoding": encoding}, body=pieces)


async def test_a_packed_body_is_unpacked_and_counted_unpacked() -> None:
    text = b"abc" * 60_000
    hop = packed(gzip.compress(text[:1_000]) + gzip.compress(text[1_000:]))
    page = await fetch_url("https://a.test/", fetcher=ScriptedFetcher(hop), resolver=Names(**NAMES))
    assert page.body == text
    whole = Hop(headers=HTML | {"content-encoding": "x-gzip"}, body=(gzip.compress(text),))
    page = await fetch_url("https://a.test/", fetcher=ScriptedFetcher(whole), resolver=Names(**NAMES))
    assert page.body == text
    bomb = packed(gzip.compress(b"\0" * 30_000_000))
    assert await refused(bomb) == "size"
    nothing = Hop(headers=HTML | {"content-encoding": "gzip"}, body=(gzip.compress(b""),) * 100)
    assert await refused(nothing, policy=UrlPolicy(max_bytes=1_000)) == "size"


@pytest.mark.parametrize(
    "hop",
    [
        packed(b"not gzip at all"),
        packed(gzip.compress(b"cut" * 1_000)[:-20]),
        packed(gzip.compress(b"more") + b"rubbish"),
        packed(b"abc", "br"),
        packed(b"abc", "gzip, gzip"),
    ],
)
async def test_a_body_packed_in_another_way_is_refused(hop: Hop) -> None:
    assert await refused(hop) == "protocol"


async def test_an_empty_packed_body_is_empty() -> None:
    hop = Hop(headers=HTML | {"content-encoding": "gzip"}, body=())
    page = await fetch_url("https://a.test/", fetcher=ScriptedFetcher(hop), resolver=Names(**NAMES))
    assert page.body == b""


@pytest.mark.promise("rag-053")
async def test_a_real_server_is_asked_directly_and_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    reply = WireReply(headers={"Content-Type": "text/plain; charset=utf-8"}, body=(b"ab", b"cd"))
    async with WireServer([reply]) as server:
        port = server.url.rpartition(":")[2]
        page = await fetch_url(f"http://a.test:{port}/x?y=1", HERE, resolver=Names(a_test=["127.0.0.1"]))
    assert (page.body, page.charset) == (b"abcd", "utf-8")
    (seen,) = server.requests
    assert (seen.method, seen.path, seen.headers["host"]) == ("GET", "/x?y=1", f"a.test:{port}")
    assert "cookie" not in seen.headers
    assert "authorization" not in seen.headers


@pytest.mark.promise("rag-046")
async def test_over_tls_the_name_and_its_certificate_are_those_of_the_url() -> None:
    names: list[str] = []
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(KEY)
    served.sni_callback = lambda _, name, __: names.append(name)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"host: pages.test:" in head.lower()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=served)
    async with server:
        port = server.sockets[0].getsockname()[1]
        resolver = Names(pages_test=["127.0.0.1"], other_test=["127.0.0.1"])
        ours = PinnedFetcher(tls=ssl.create_default_context(cafile=KEY))
        page = await fetch_url(f"https://pages.test:{port}/", HERE, fetcher=ours, resolver=resolver)
        assert (page.body, names) == (b"ok", ["pages.test"])
        with pytest.raises(TransportError, match=r"TLS failed \(Hostname mismatch") as caught:
            await fetch_url(f"https://other.test:{port}/", HERE, fetcher=ours, resolver=resolver)
        assert caught.value.kind == "connect"
        with pytest.raises(TransportError, match=r"TLS failed \(self-signed"):  # nobody trusts it but us
            await fetch_url(f"https://pages.test:{port}/", HERE, resolver=resolver)


async def test_a_body_shorter_than_announced_is_trouble() -> None:
    reply = WireReply(headers=HTML, body=(b"abc",), framing="length", end="cut")
    lies = WireReply(headers=HTML | {"Content-Length": "999"}, body=(b"abc",), framing="close")
    async with WireServer([lies, reply]) as server:
        assert await trouble(server.url) == "closed"
    async with WireServer([WireReply(headers=HTML, body=(b"abc",), end="reset")]) as server:
        assert await trouble(server.url) == "closed"


async def test_slow_servers_are_left() -> None:
    hold = Hold()
    slow = UrlPolicy(
        allow_networks=("127.0.0.0/8",), ports=None, timeouts=HttpTimeouts(connect=5, read=0.2, total=30)
    )
    async with WireServer([WireReply(headers=HTML, body=(b"a", hold))]) as server:
        assert await trouble(server.url, slow) == "timeout"
    whole = UrlPolicy(
        allow_networks=("127.0.0.0/8",), ports=None, timeouts=HttpTimeouts(connect=5, read=30, total=1.0)
    )
    async with WireServer([WireReply(headers=HTML, body=(b"a", hold))]) as server:
        assert await trouble(server.url, whole) == "timeout"


async def test_what_does_not_speak_http_is_trouble() -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"220 mail.test ESMTP\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await trouble(f"http://127.0.0.1:{port}/") == "closed"
    assert await trouble(f"http://127.0.0.1:{port}/") == "connect"
