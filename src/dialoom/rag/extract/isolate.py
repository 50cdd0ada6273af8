"""A built-in loader whose work is done by a reader process."""

from dialoom.rag.extract.pool import shared_pool
from dialoom.rag.loaders.loader import DocumentLoader, IsolatedFormat, Loaded, Source


class IsolatedLoader:
    """Hands files to the reader processes, unless the options or the system say to read them here.

    A parser of the user's own, `html_parser`, cannot go to another process and is called here too.
    """

    def __init__(self, kind: IsolatedFormat, loader: DocumentLoader) -> None:
        self._kind: IsolatedFormat = kind
        self._loader = loader

    def load(self, source: Source) -> Loaded:
        options = source.options
        here = self._kind not in options.isolated or (
            self._kind == "html" and options.html_parser is not None
        )
        pool = None if here else shared_pool()
        return self._loader.load(source) if pool is None else pool.extract(self._kind, source)
