"""The shared cases of the guard, and hostile servers, over real connections to servers on this machine.

Only names are told by the tests: `127.0.0.2` stands for every public address and is the one address here that
the policy lets through. Whatever listens at 127.0.0.1 must never hear of it.
"""

import asyncio
import gzip
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dialoom.net.fetch_pinned import UrlFetcher
from dialoom.net.resolve import Resolver
from dialoom.net.transport import HttpTimeouts
from dialoom.rag import LoadError, LoadOptions
from dialoom.rag.loaders import BlockedUrlError, Loaded, UrlLoader
from tests.net.page_server import INSIDE, OUTSIDE, PageServer, StrayingFetcher, local_fetcher, stand_in
from tests.net.scripted import HTML, Hop
from tests.net.test_guard import Names
from tests.rag.test_cases import CASES, every_case

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="127.0.0.2 leads nowhere there")
ROOT = Path(__file__).parents[2]
NAMES = Names(a_test=[OUTSIDE])
A_BOMB = gzip.compress(b"a" * 20_000_000) * 10


class CaseNames:
    """The name server of a case: an answer, or one answer after the other; public ones are `OUTSIDE`."""

    def __init__(self, names: Mapping[str, Sequence[Any]]) -> None:
        self.names = names
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answers = self.names.get(host)
        if answers is None:
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        now = answers[self.asked.count(host) - 1] if isinstance(answers[0], list) else answers
        return [stand_in(address) for address in now]


def hop_of(step: Mapping[str, Any]) -> Hop:
    headers = dict(step.get("headers", HTML if step["status"] == 200 else {}))
    if "location" in step:
        headers["location"] = step["location"]
    body: tuple[bytes, ...] = (b"hello",)
    if "body_file" in step:
        body = ((CASES / step["body_file"]).read_bytes(),)
    elif "body_repeat" in step:
        text, count = step["body_repeat"]
        body = (text.encode() * 50_000,) * (count // 50_000)
    return Hop(status=step["status"], headers=headers, body=body)


def url_cases() -> list[Any]:
    found = [pytest.param(case, id=case["id"]) for case in every_case() if case["op"] == "guard"]
    skip = pytest.mark.skip(reason=f"THE SHARED CASES ARE NOT AT {CASES}: set DIALOOM_SHARED")
    return found or [pytest.param({}, marks=skip, id="shared")]


async def load(
    server: PageServer,
    url: str,
    *,
    fetcher: UrlFetcher | None = None,
    names: Resolver = NAMES,
    **policy: object,
) -> Loaded:
    loader = UrlLoader(fetcher or local_fetcher(), resolver=names)
    return await asyncio.to_thread(
        loader.load, server.here(url), LoadOptions(url_policy=server.policy(**policy))
    )


@pytest.mark.parametrize("case", url_cases())
async def test_guard(case: Mapping[str, Any]) -> None:
    asked, expect = case["input"], case["expect"]
    names = CaseNames(asked["dns"])
    strays = any("peer" in step for step in asked["hops"])
    fetcher = StrayingFetcher(INSIDE) if strays else local_fetcher()
    async with PageServer(*map(hop_of, asked["hops"])) as server:
        if expect["allow"]:
            loaded = await load(server, asked["url"], fetcher=fetcher, names=names)
            assert len(names.asked) == 1
            if case["id"] == "url-charset-header-wins":
                assert "退款需要三个工作日" in loaded.documents[0].text
        else:
            with pytest.raises(BlockedUrlError) as caught:
                await load(server, asked["url"], fetcher=fetcher, names=names)
            assert (caught.value.code, caught.value.reason) == (expect["reason"], expect["reason"])
    heard = {seen.address for seen in server.asked}
    assert heard == ({INSIDE} if strays else {OUTSIDE} if expect["allow"] else heard - {INSIDE})


@pytest.mark.promise("rag-048")
async def test_a_redirect_to_this_machine_is_not_followed_though_a_server_listens_there() -> None:
    for location in (f"http://{INSIDE}/", "http://localhost/", "http://inside.test/", "http://[::1]/"):
        async with PageServer(Hop(status=302, headers={"location": location})) as server:
            with pytest.raises(BlockedUrlError) as caught:
                await load(server, "http://a.test/", names=Names(a_test=[OUTSIDE], inside_test=[INSIDE]))
        assert (caught.value.code, [seen.address for seen in server.asked]) == ("address", [OUTSIDE])


@pytest.mark.promise("rag-045")
async def test_a_name_that_leads_elsewhere_the_second_time_is_not_asked_twice() -> None:
    names = CaseNames({"rebind.test": [["93.184.216.34"], [INSIDE]]})
    async with PageServer(Hop(status=302, headers={"location": "/again"}), Hop()) as server:
        loaded = await load(server, "https://rebind.test/", names=names)
    assert [document.text for document in loaded.documents] == ["hello"]
    assert [(seen.address, seen.line) for seen in server.asked] == [
        (OUTSIDE, "GET / HTTP/1.1"),
        (OUTSIDE, "GET /again HTTP/1.1"),
    ]
    assert names.asked == ["rebind.test"]


@pytest.mark.parametrize(
    ("kind", "headers", "body"),
    [
        ("gzip", {"content-encoding": "gzip"}, (A_BOMB,)),
        ("long", {}, (b"a" * 50_000,) * 4_000),
        ("lies", {"content-length": "10"}, (b"a" * 50_000,) * 4_000),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much memory was needed at most")
async def test_a_bomb_is_refused_in_less_than_50_mb(
    kind: str, headers: Mapping[str, str], body: tuple[bytes, ...]
) -> None:
    async with PageServer(Hop(), Hop(headers=HTML | headers, body=body)) as server:
        url, first = server.here(f"http://a.test/{kind}"), server.here("http://a.test/")
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.rag.fetch_in_child", "a_test", url, first),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            told, _ = await child.communicate()
    ended, grown = told.decode().split()
    assert (ended, int(grown) < 50) == ("size", True), told
    assert [seen.line for seen in server.asked] == ["GET / HTTP/1.1", f"GET /{kind} HTTP/1.1"]


async def test_a_server_that_drips_for_ever_is_left_when_the_whole_time_is_over() -> None:
    timeouts = HttpTimeouts(connect=5, read=5, total=0.5)
    started = time.monotonic()
    async with PageServer(Hop(body=(b"a",) * 100_000), pause=0.01) as server:
        with pytest.raises(LoadError) as caught:
            await load(server, "http://a.test/", timeouts=timeouts)
    assert caught.value.code == "timeout"
    assert time.monotonic() - started < 30  # the drip itself would last a quarter of an hour


@pytest.mark.parametrize(
    ("header", "body", "text", "encoding"),
    [
        ("text/html; charset=gbk", "<p>退款</p>".encode("gbk"), "退款", "gb18030"),
        ('text/html; charset="GB2312"', "<meta charset=utf-8><p>退款".encode("gbk"), "退款", "gb18030"),
        (
            "text/html",
            '<meta charset="gbk"><p>退款需要三个工作日'.encode("gbk"),
            "退款需要三个工作日",
            "gb18030",
        ),
        ("text/html", "<p>退款".encode("utf-16"), "退款", "utf-16-le"),
        ("text/html; charset=nonsense", "<p>退款".encode(), "退款", "utf-8"),
        ("text/plain; charset=iso-8859-1", b"\x93nine\x94 \x80", "“nine” €", "cp1252"),
    ],
)
async def test_a_page_is_decoded_as_its_header_its_text_or_its_bytes_say(
    header: str, body: bytes, text: str, encoding: str
) -> None:
    async with PageServer(Hop(headers={"content-type": header}, body=(body,))) as server:
        loaded = await load(server, "http://a.test/")
    (document,) = loaded.documents
    assert (document.text, document.metadata["encoding"]) == (text, encoding)
