"""HTML pages."""

import pytest

from tests.rag.reading import heads, read, read_one, warned

PAGE = """<!doctype html><html><head><title> Refund
 policy </title><style>p{color:red}</style><script>alert("</p>")</script></head><body>
<nav><a href=/>Home</a></nav><!-- COMMENT --><h1><a>Refund</a> policy</h1><p>foo<b>bar</b>&nbsp;&ge;&#32;1</p>
<p hidden>secret</p><p style="display:none">secret<b hidden>too</b></p><noscript>none</noscript>
<h2></h2><h2>Time <i>to</i> pay</h2>183 Main<br>East<table><tr><td>AB<td>12</table><h3>Last</h3>end</body>"""


@pytest.mark.promise("rag-005")
def test_a_page_becomes_its_words_with_title_and_headings() -> None:
    document = read_one("a.html", PAGE.encode())
    assert heads(document) == [(1, "Refund policy"), (2, "Time to pay"), (3, "Last")]
    assert document.metadata == {"source": "/kb/a.html", "encoding": "utf-8", "title": "Refund policy"}
    words = " ".join(document.text.split())
    assert words == "Home Refund policy foobar ≥ 1 Time to pay 183 Main East AB 12 Last end"


@pytest.mark.parametrize("kind", ["<main>{}</main>", "<div role=main>{}</div>", "<article>{}</article>"])
def test_the_main_mode_keeps_all_of_what_the_page_calls_its_main_part(kind: str) -> None:
    """Short lists under a heading look like menus to whoever has to guess."""
    part = """<h1>Collecting</h1><nav><a href=/>Home</a></nav><p>We hold an order for nine days.</p>
        <h2>What should I bring?</h2><ul><li>the shelf code;</li><li>an identity card.</li></ul>
        <aside>Ten stamps are a set of reflectors.</aside>"""
    page = f"<body><nav><a href=/p>Prices</a></nav>{kind.format(part)}<footer>Imprint</footer></body>"
    document = read_one("a.html", page.encode(), html_mode="main")
    assert heads(document) == [(1, "Collecting"), (2, "What should I bring?")]
    assert document.text.split("\n\n")[1:] == [
        "We hold an order for nine days.",
        "What should I bring?",
        "  • the shelf code;\n  • an identity card.",
    ]


def test_the_main_mode_leaves_menus_out() -> None:
    article = "<p>Refunds take three business days after the parcel has come back to us.</p>" * 6
    page = f"<body><nav><ul><li><a href=/>Home</a><li><a href=/p>Prices</a></ul></nav><main>{article}</main>"
    assert "Home" in read_one("a.htm", page.encode()).text
    assert "Home" not in read_one("a.htm", page.encode(), html_mode="main").text
    menu = b"<body><nav><a href=/>Only a menu</a></nav></body>"
    assert read_one("a.htm", menu, html_mode="main").text == "Only a menu"


@pytest.mark.parametrize(
    ("declared", "codec", "named"),
    [
        ('<meta charset="gb2312">', "gbk", "gb18030"),
        ('<meta http-equiv=Content-Type content="text/html; charset=big5">', "big5", "big5hkscs"),
        ('<?xml version="1.0" encoding="euc-kr"?>', "euc-kr", "cp949"),
        ("<meta charset=utf-16>", "utf-8", "utf-8"),
        ("<meta charset=punycode>", "utf-8", "utf-8"),
        ("<meta charset=nonsense>", "utf-8", "utf-8"),
    ],
)
def test_the_declared_charset_is_read_as_browsers_read_it(declared: str, codec: str, named: str) -> None:
    document = read_one("a.html", f"{declared}<p>三三</p>".encode(codec))
    assert (document.text.strip(), document.metadata["encoding"]) == ("三三", named)


def test_a_page_without_words_is_a_warning() -> None:
    for data in (b"", b"<html><body><script>x</script></body></html>"):
        loaded = read("a.html", data)
        assert (loaded.documents, warned(loaded)) == ([], ["empty"])


def test_our_own_marks_in_a_page_are_dropped() -> None:
    assert read_one("a.html", "<p>a\ufdd01b</p>".encode()).text == "a1b"
