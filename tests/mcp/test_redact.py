"""Secrets are taken out of what is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.mcp.config import MCPServerConfig
from dialoom.mcp.config_fields import OAuth, Transport
from dialoom.mcp.redact import Redaction


def test_words_of_a_server_are_shown_without_the_secrets_it_was_given():
    config = MCPServerConfig(
        "x",
        transport=Transport.SSE,
        url="https://ann:pass%20word@tools.example/sse?key=from-query",
        headers={"Authorization": "Bearer from-header", "X-Port": "8080"},
        environment={"TOKEN": "from-environment"},
        auth=OAuth(client_secret="from-login"),
    )
    redaction = Redaction.of_fields(config.to_dict())
    said = "from-header from-environment from-login from-query pass word 8080 and no more"
    assert redaction.text(said) == "*** *** *** *** *** 8080 and no more"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("401 for Authorization: Bearer abcdefgh.12", "401 for Authorization: Bearer ***"),
        ("key sk-abcdefghijklmnop is wrong", "key *** is wrong"),
        ("ghp_abcdefghijklmnop", "***"),
        ("jwt eyJhbGciOiJI.eyJzdWIi.c2ln", "jwt ***"),
        ("the bearer of this", "the bearer of this"),
        ("no secret here", "no secret here"),
    ],
)
def test_what_looks_like_a_token_is_taken_out_too(said: str, shown: str):
    assert Redaction().text(said) == shown


def test_a_bounded_text_is_one_line():
    assert Redaction(["secret"]).text("secret\nand more of it", limit=12) == "*** and mor…"


def test_a_url_that_cannot_be_split_is_a_secret_as_a_whole():
    redaction = Redaction.of_fields({"url": "https://[half/secret"})
    assert redaction.text("cannot open https://[half/secret") == "cannot open ***"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=6, max_size=12), max_size=4))
def test_no_given_secret_is_left(secrets: list[str]):
    shown = Redaction(secrets).text(" ".join(["told", *secrets, "end"]))
    assert not [secret for secret in secrets if secret in shown.replace("***", "")]
