"""Addresses are judged by their text alone."""

import pytest

from dialoom.base.errors import UsageError
from dialoom.net import is_loopback, safe_url, split_url


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.",
        "api.localhost",
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "[::1]",
        "::ffff:127.0.0.1",
    ],
)
def test_this_machine_is_recognised_in_all_its_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["example.org", "localhost.example.org", "10.0.0.1", "::", "0.0.0.0", "", "1.2.3"]
)
def test_any_other_host_is_not_this_machine(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org/v1",
        "ftp://example.org",
        "http://",
        "http://[::1",
        "http://a:99999",
        "http://a:0",
        "http://a\n/b",
    ],
)
def test_what_is_no_http_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(UsageError, match="is no http address; write one like"):
        split_url(url)


def test_a_shown_address_holds_no_secret() -> None:
    assert safe_url("https://ada:secret@host:8080/v1?key=secret#part") == "https://host:8080/v1"
    assert "secret" not in safe_url("http://ada:secret@[::1/v1")
