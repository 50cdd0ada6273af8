"""Web pages as documents: what load_document makes of a page."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dialoom.net.guard import UrlPolicy, UrlRefusedError
from dialoom.rag import LoadError, LoadOptions, load_document
from dialoom.rag.loaders import BlockedUrlError, Loaded, Source, UrlLoader
from dialoom.rag.types import Document
from dialoom.testing.wire import WireReply, WireServer
from tests.net.scripted import Hop, ScriptedFetcher
from tests.net.test_guard import Names
from tests.rag.small_pdf import small_pdf

PUBLIC = "93.184.216.34"
PAGE = b"<html><title>Fees</title><body><h1>Fees</h1><p>Nine <b>euros</b>.</p></body></html>"


def options(fetcher: ScriptedFetcher, **fields: object) -> LoadOptions:
    return LoadOptions(url_fetcher=fetcher, url_resolver=Names(a_test=[PUBLIC]), **fields)


def one_page(body: bytes, kind: str, url: str = "https://a.test/x", **fields: object) -> Document:
    fetcher = ScriptedFetcher(Hop(headers={"content-type": kind}, body=(body,)))
    (document,) = load_document(url, options(fetcher, **fields))
    return document


@pytest.mark.promise("rag-001")
def test_a_page_is_read_as_its_words_under_its_url() -> None:
    document = one_page(PAGE, "text/html", "https://a.test/fees?x=1#top")
    assert (document.id, document.text) == ("https://a.test/fees?x=1", "Fees\n\nNine euros.")
    assert document.metadata == {
        "source": "https://a.test/fees?x=1",
        "encoding": "utf-8",
        "title": "Fees",
    }


@pytest.mark.promise("rag-011")
@pytest.mark.parametrize(
    ("kind", "url", "body", "text"),
    [
        ("application/pdf", "https://a.test/x.html", small_pdf("Nine euros."), "Nine euros."),
        ("text/csv", "https://a.test/x", b"name,fee\nlamp,9\n", "name: lamp\nfee: 9"),
        ("text/plain", "https://a.test/x.csv?y", b"name,fee\nlamp,9\n", "name: lamp\nfee: 9"),
        ("text/plain", "https://a.test/x.exe", b"<b>Nine</b>", "<b>Nine</b>"),
        ("application/json", "https://a.test/x", b'{"fee": 9}', '{"fee": 9}'),
        ("text/plain; charset=gbk", "https://a.test/x", "退款".encode("gbk"), "退款"),
        ("text/plain; charset=punycode", "https://a.test/x", b"plain", "plain"),
    ],
)
def test_a_page_is_read_as_what_it_says_it_is(kind: str, url: str, body: bytes, text: str) -> None:
    assert one_page(body, kind, url).text == text


@pytest.mark.promise("rag-018")
def test_fetcher_resolver_and_extractor_are_yours_to_replace() -> None:
    class Shouting:
        def load(self, source: Source) -> Loaded:
            text = source.data.decode().upper()
            return Loaded(source=source.id, documents=[Document(id=source.id, text=text)])

    fetcher, names = ScriptedFetcher(Hop(body=(b"nine",))), Names(b_test=["1.1.1.1"])
    loaded = UrlLoader(fetcher, resolver=names, extractor=Shouting()).load("http://b.test/")
    assert [document.text for document in loaded.documents] == ["NINE"]
    assert (fetcher.asked, names.asked) == ([("http://b.test/", "1.1.1.1")], ["b.test"])


@pytest.mark.promise("rag-021")
async def test_the_policy_of_the_options_decides_and_a_running_loop_is_no_hindrance() -> None:
    reply = WireReply(headers={"content-type": "text/plain"}, body=(b"hello",))
    async with WireServer([reply]) as server:
        with pytest.raises(BlockedUrlError) as caught:
            load_document(server.url)
        assert (caught.value.code, caught.value.source) == ("address", server.url)
        here = LoadOptions(url_policy=UrlPolicy(allow_networks=("127.0.0.1/32",), ports=None))
        (document,) = await asyncio.to_thread(load_document, server.url, here)
    assert document.text == "hello"


def test_a_page_is_bounded_like_any_source() -> None:
    fetcher = ScriptedFetcher(Hop(body=(b"a" * 500,) * 3))
    with pytest.raises(BlockedUrlError, match="has more than 1000 bytes"):
        load_document("https://a.test/", options(fetcher, max_source_bytes=1_000))


@pytest.mark.parametrize(
    ("hop", "code", "words"),
    [
        (Hop(status=404), "unreadable", "https://a.test/x answered 404; check it"),
        (Hop(unreachable=True), "unreadable", "connection refused"),
    ],
)
def test_a_page_that_is_not_there_cannot_be_read(hop: Hop, code: str, words: str) -> None:
    with pytest.raises(LoadError) as caught:
        load_document("https://a.test/x?key=hidden", options(ScriptedFetcher(hop)))
    assert (caught.value.code, str(caught.value)) == (code, words)


def test_a_server_that_is_too_slow_is_a_timeout() -> None:
    class Never(ScriptedFetcher):
        def get(self, *_: object) -> Any:
            raise TimeoutError

    with pytest.raises(LoadError) as caught:
        load_document("https://a.test/x", options(Never()))
    assert caught.value.code == "timeout"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "FTP://a.test/", "gopher://a.test/"])
def test_other_protocols_are_refused_and_never_taken_for_a_path(url: str) -> None:
    with pytest.raises(BlockedUrlError) as caught:
        load_document(url)
    assert caught.value.code == "scheme"
    assert isinstance(caught.value.__cause__, UrlRefusedError)


def test_a_path_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "http").mkdir()
    (tmp_path / "http" / "a.txt").write_text("hello", encoding="utf-8")
    (document,) = load_document(f"/{tmp_path}/http/a.txt")
    assert document.text == "hello"
