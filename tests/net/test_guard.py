"""Which URLs may be fetched: what their text says, and where their names lead."""

import asyncio
import socket
from ipaddress import ip_address
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.base.errors import UsageError
from dialoom.net.guard import UrlPolicy, UrlRefusedError, UrlTarget, check_url
from dialoom.net.resolve import SystemResolver, UrlResolution, resolve_target
from dialoom.net.resolve_addresses import is_permitted, parse_address, parse_networks

STRICT = UrlPolicy()
CLOSED_HOSTS = """
127.0.0.1 localhost LOCALHOST. a.localhost [::1] 2130706433 0x7f000001 0177.0.0.1 127.1 0 0x ①②⑦.⓪.⓪.①
127。0。0。1 [::ffff:127.0.0.1] [::127.0.0.1] [2002:7f00:1::] [64:ff9b::7f00:1] [64:ff9b::a9fe:a9fe]
[64:ff9b:1::1] [2001:0:1:2:3:4:80ff:fffe] 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1
169.254.169.254 192.0.0.192 168.63.129.16 224.0.0.1 255.255.255.255 240.0.0.1 [fe80::1] [fec0::1]
[fd00:ec2::254] [ff02::1] [2001:db8::1] [::] [1::1] 256.1.1.1 1.2.3.4.5 1.2.3.09 99999999999999999999
127.0.0.256 [fe80::1%25eth0] a.1
"""


class Names:
    """A resolver with a fixed list of names; counts how often it is asked."""

    def __init__(self, **names: list[str]) -> None:
        self.names = {name.replace("_", "."): answer for name, answer in names.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> list[str]:
        self.asked.append(host)
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.names[host]


def refusal(url: str, policy: UrlPolicy = STRICT) -> str:
    with pytest.raises(UrlRefusedError) as caught:
        check_url(url, policy)
    return caught.value.reason


def test_an_ordinary_url_comes_back_in_parts() -> None:
    target = check_url("HTTPS://Example.COM:8443/a/b?q=1#part", STRICT)
    assert target == UrlTarget(scheme="https", host="example.com", port=8443, path="/a/b?q=1")
    assert (target.url, target.authority) == ("https://example.com:8443/a/b?q=1", "example.com:8443")
    assert check_url("http://example.com.", STRICT).url == "http://example.com/"
    assert check_url("http://[2606:4700::1111]/", STRICT).authority == "[2606:4700::1111]"
    assert check_url("http://bücher.example/ä", STRICT).host == "xn--bcher-kva.example"
    assert target.shown() == "https://example.com:8443/a/b"


@pytest.mark.promise("rag-035")
@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "data:text/html,hi", "//a.b/", ""],
)
def test_only_http_and_https_are_fetched(url: str) -> None:
    assert refusal(url) == "scheme"


def test_a_policy_may_ask_for_https_alone() -> None:
    only = UrlPolicy(schemes=frozenset({"https"}))
    assert refusal("http://example.com/", only) == "scheme"
    assert check_url("https://example.com/", only).port == 443


@pytest.mark.promise("rag-036", "rag-037", "rag-038")
@pytest.mark.parametrize(
    "url",
    [
        "http://exa\tmple.com/\n",
        "http://example.com/\x00",
        "http://example.com/\x9f",
        " http://example.com/",
        "http://example.com/a b",
        "http://example.com/\u3000",
        "http://exa\u200bmple.com/",
        "http://example.com/\u202etxt",
        "http://example.com\\@127.0.0.1/",
        "http://example.com/\ud800",
        "http://example.com/" + "a" * 9_000,
        "http://%31%32%37.0.0.1/",
        "http://exa mple.com/".replace(" ", "^"),
        "http://[::1/",
        "http://xn--\u00fc\u00fc" + "a" * 70 + ".example/",
    ],
)
def test_controls_blanks_backslashes_and_hidden_characters_are_refused(url: str) -> None:
    assert refusal(url) == "characters"


@pytest.mark.promise("rag-039", "rag-040", "rag-041")
@pytest.mark.parametrize("host", [*CLOSED_HOSTS.split(), ""])
def test_an_address_that_is_not_public_is_refused_however_it_is_spelled(host: str) -> None:
    assert refusal(f"http://{host}/x") == "address"
    assert refusal(f"http://example.com@{host}:9/x") == "address"


@pytest.mark.parametrize("host", ["8.8.8.8", "[2606:4700::1111]", "[64:ff9b::808:808]", "[::ffff:8.8.8.8]"])
def test_public_addresses_pass(host: str) -> None:
    assert check_url(f"http://{host}/", STRICT).address == str(ip_address(host.strip("[]")))


def test_user_names_and_odd_ports_are_refused() -> None:
    assert refusal("https://me:secret@example.com/") == "userinfo"
    assert refusal("https://@example.com/") == "userinfo"
    assert refusal("https://example.com:22/") == "port"
    assert refusal("https://example.com:99999/") == "port"
    assert refusal("https://example.com:x/") == "port"


@pytest.mark.promise("rag-042")
def test_a_policy_relaxes_one_rule_at_a_time() -> None:
    inside = UrlPolicy(allow_networks=("10.1.0.0/16", "fd00::/8"))
    assert check_url("http://10.1.2.3/", inside).address == "10.1.2.3"
    assert check_url("http://[fd00::7]/", inside).address == "fd00::7"
    assert check_url("http://[::ffff:10.1.2.3]/", inside).port == 80
    assert refusal("http://10.2.0.1/", inside) == "address"
    assert refusal("http://localhost/", inside) == "address"
    here = UrlPolicy(allow_networks=("127.0.0.1/32",), ports=None)
    assert check_url("http://localhost:5000/", here).address == "127.0.0.1"
    tunnel = UrlPolicy(allow_networks=("2002::/16", "2001::/32", "::/96"))
    assert refusal("http://[2002:7f00:1::]/", tunnel) == "address"
    assert refusal("http://[2001:0:1:2:3:4:80ff:fffe]/", tunnel) == "address"
    assert refusal("http://[::127.0.0.1]/", tunnel) == "address"
    named = check_url("http://me:secret@example.com/", UrlPolicy(userinfo=True))
    assert named.url == "http://example.com/"


@pytest.mark.parametrize(
    "fields",
    [
        {"allow_networks": ("10.1.2.3/8",)},
        {"schemes": frozenset({"ftp"})},
        {"max_bytes": 0},
        {"max_redirects": -1},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        UrlPolicy(**fields)  # type: ignore[arg-type]  # the fields are wrong on purpose


def test_a_refusal_shows_neither_password_nor_query() -> None:
    with pytest.raises(UrlRefusedError) as caught:
        check_url("https://me:secret@example.com:22/a?key=hidden", STRICT)
    assert str(caught.value) == (
        "'https://example.com:22/a' was not fetched: it carries a user name; leave it out"
    )


@given(st.integers(0, 2**32 - 1))
def test_wrapping_an_address_never_opens_what_is_closed(number: int) -> None:
    inner = ip_address(number)
    wrapped = [
        f"::ffff:{inner}",
        f"64:ff9b::{inner}",
        f"2002:{number >> 16:x}:{number & 0xFFFF:x}::1",
        f"2001:0:1:2:3:4:{number >> 16 ^ 0xFFFF:x}:{number & 0xFFFF ^ 0xFFFF:x}",
        f"::{inner}",
    ]
    faces = [address for text in wrapped if (address := parse_address(text))]
    assert len(faces) == 5
    assert is_permitted(inner) or not any(is_permitted(face) for face in faces)
    everything = parse_networks(["0.0.0.0/0", "::/0"])
    assert all(is_permitted(face, everything) for face in faces)


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_a_refusal(text: str) -> None:
    for url in (text, f"http://{text}/", f"https://example.com/{text}"):
        try:
            target = check_url(url, STRICT)
        except UrlRefusedError:
            continue
        assert check_url(target.url, STRICT) == target


@pytest.mark.promise("rag-044")
@pytest.mark.parametrize(
    "answers", [["10.0.0.5"], ["93.184.216.34", "127.0.0.1"], [], ["fe80::1%eth0"], ["not an address"]]
)
async def test_every_answer_of_a_name_server_is_checked(answers: list[str]) -> None:
    with pytest.raises(UrlRefusedError) as caught:
        await resolve_target(check_url("http://a.test/", STRICT), STRICT, Names(a_test=answers))
    assert caught.value.reason == "address"


async def test_a_name_that_is_not_known_has_no_address() -> None:
    with pytest.raises(UrlRefusedError, match=r"the host a\.test has no address") as caught:
        await resolve_target(check_url("http://a.test/", STRICT), STRICT, Names())
    assert caught.value.reason == "address"


async def test_good_answers_are_kept_in_their_order_and_an_address_is_not_looked_up() -> None:
    names = Names(a_test=["2606:4700::1111", "93.184.216.34", "93.184.216.34"])
    target = check_url("http://a.test/", STRICT)
    found = await resolve_target(target, STRICT, names)
    assert found == [
        UrlResolution(target=target, address=address) for address in ("2606:4700::1111", "93.184.216.34")
    ]
    literal = check_url("http://8.8.8.8/", STRICT)
    assert await resolve_target(literal, STRICT, names) == [UrlResolution(target=literal, address="8.8.8.8")]
    assert names.asked == ["a.test"]


@pytest.mark.promise("rag-043")
async def test_the_system_is_asked_when_nobody_else_is() -> None:
    async with asyncio.timeout(60):
        assert "127.0.0.1" in await SystemResolver().resolve("localhost") + await SystemResolver().resolve(
            "127.0.0.1"
        )
        with pytest.raises(OSError):  # noqa: PT011 - the system chooses the words and the kind
            await SystemResolver().resolve("a..b")


def test_an_answer_that_comes_too_late_hurts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    go, done = Event(), Event()

    def slow(*_: object, **__: object) -> list[object]:
        go.wait(60)
        done.set()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await SystemResolver().resolve("a.test")

    asyncio.run(give_up())
    go.set()
    assert done.wait(60)
