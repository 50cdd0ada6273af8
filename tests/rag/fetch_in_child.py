"""Reads one URL in a process of its own: `python -m tests.rag.fetch_in_child HOST URL FIRST`.

Prints how it ended and by how many megabytes the process had grown at most while it read.
"""

import sys

from dialoom.net.guard import UrlPolicy
from dialoom.rag import LoadError
from dialoom.rag.loaders import LoadOptions, UrlLoader
from tests.net.page_server import OUTSIDE, local_fetcher
from tests.net.test_guard import Names
from tests.rag.reading import largest_from_now, largest_mb


def main(host: str, url: str, first: str) -> None:
    loader = UrlLoader(local_fetcher(), resolver=Names(**{host: [OUTSIDE]}))
    options = LoadOptions(url_policy=UrlPolicy(allow_networks=(f"{OUTSIDE}/32",), ports=None))
    loader.load(first, options)  # what reading takes at all is not what this page takes
    ended = "read"
    before = largest_from_now()
    try:
        loader.load(url, options)
    except LoadError as error:
        ended = error.code
    print(ended, round(largest_mb() - before))


if __name__ == "__main__":
    main(*sys.argv[1:])
