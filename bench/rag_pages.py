"""A manual of our own in HTML through `dialoom ingest`: what a megabyte of it takes of the processor.

Its pages are as those of a real one: navigation, headings, tables, code in pieces, English and Chinese.
"""

import random
import tempfile
from pathlib import Path

from bench.rag_manuals import MS_PER_MB, ingest
from bench.report import Row

PAGES = 240
FEW = 8
"""So few are read by as many processes as many are."""
_WORDS = [
    *("the", "parcel", "reader", "returns", "a", "wick", "when", "its", "battery", "is", "cold", "and"),
    *("every", "trailer", "that", "was", "stored", "before", "lamp", "went", "out", "of", "warehouse"),
    *("may", "raise", "an", "error", "unless", "default", "order", "has", "been", "given", "to", "it"),
]
_CHINESE = ("仓库收到退货后当天验货，验货通过起三个工作日内退款。", "请在签收后四十八小时内把照片发给客服。")


def row() -> Row:
    """Return what a megabyte takes beyond what starting takes: the CPU of all processes, however busy."""
    with tempfile.TemporaryDirectory() as home:
        large, small = Path(home) / "large", Path(home) / "small"
        more = write_manual(large, pages=PAGES) - write_manual(small, pages=FEW)
        taken = [
            min(ingest(folder, Path(home) / f"{folder.name}{turn}.sqlite").cpu for turn in range(2))
            for folder in (large, small)
        ]
    cost = 1000 * (taken[0] - taken[1]) / more
    return Row("ingest of HTML, CPU of all processes", "ms/MB", cost, "5 MB/s", MS_PER_MB, must=1.0)


def write_manual(folder: Path, *, pages: int) -> float:
    """Write so many pages of some 35 kB; return how many megabytes they have."""
    folder.mkdir(parents=True)
    rng = random.Random(5)  # noqa: S311 - words
    written = [_page(number, rng).encode() for number in range(pages)]
    for number, page in enumerate(written):
        (folder / f"page{number:04}.html").write_bytes(page)
    return sum(map(len, written)) / 1e6


def _page(number: int, rng: random.Random) -> str:
    links = "".join(
        f'<li class="toctree-l1"><a class="reference" href="page{each:04}.html">Chapter {each}</a></li>'
        for each in range(60)
    )
    sections = "".join(_section(f"{number}.{part}", rng, chinese=number % 8 == 7) for part in range(12))
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Chapter {number}</title>'
        f'<script>var page = {number};</script></head><body><nav><ul>{links}</ul></nav><main role="main">'
        f"<h1>Chapter {number}</h1>{sections}</main><footer>Made for a bench</footer></body></html>"
    )


def _section(name: str, rng: random.Random, *, chinese: bool) -> str:
    code = "".join(
        f'<span class="n">{word}</span> <span class="o">=</span> <span class="mi">{at}</span>\n'
        for at, word in enumerate(rng.choices(_WORDS, k=20))
    )
    cells = "".join(f"<td>{word}</td><td>{rng.randrange(999)}</td>" for word in rng.choices(_WORDS, k=3))
    said = "".join(f"<p>{_sentences(rng)}</p>" for _ in range(4))
    return (
        f'<section id="s{name}"><h2>{name} Reading<a class="headerlink" href="#s{name}">¶</a></h2>{said}'
        f'<div class="highlight"><pre>{code}</pre></div><table><tr>{cells}</tr></table>'
        f"<p>{rng.choice(_CHINESE) if chinese else _sentences(rng)}</p></section>"
    )


def _sentences(rng: random.Random) -> str:
    words, name = " ".join(rng.choices(_WORDS, k=14)).capitalize(), rng.choice(_WORDS)
    return f'{words} <code class="docutils literal"><span class="pre">{name}()</span></code>. '
