"""The seam where a request that is no JSON is refused."""

from collections.abc import Generator
from contextlib import contextmanager

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line


@contextmanager
def writing_json() -> Generator[None]:
    """Raise `UsageError` when what is written inside cannot be: values of other types, or too deep ones."""
    try:
        yield
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the request cannot be written as JSON: {one_line(str(error))}") from error
