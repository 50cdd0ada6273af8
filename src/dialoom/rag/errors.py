"""What can go wrong with knowledge, named after what the caller can do about it."""

from typing import Literal

from dialoom.base.errors import DialoomError, StoreError, UsageError

LoadErrorCode = Literal[
    "unsupported",
    "unreadable",
    "binary_content",
    "empty",
    "encrypted",
    "corrupt",
    "no_text_layer",
    "xml_entities",
    "limit",
    "timeout",
]


class LoadError(DialoomError):
    """One source could not be read as a document. Skip it and go on, or tell its owner.

    `code` is one of `LoadErrorCode`, `source` the path or name as it was given.
    """

    code = "load"

    def __init__(self, code: LoadErrorCode, message: str, *, source: str) -> None:
        super().__init__(message)
        vars(self)["code"] = code  # narrower than the word of the class: one class, a closed set of reasons
        self.source = source


class InvalidOptionsError(UsageError):
    """Options that contradict each other or lie outside their range."""

    code = "invalid_options"


class EmptyQueryError(UsageError):
    """A question without a word in it."""

    code = "empty_query"


class EmbedderContractError(DialoomError):
    """An embedder answered with the wrong number, shape or kind of vectors."""

    code = "embedder_contract"


class DimensionMismatchError(StoreError):
    """Vectors of another length than the index holds."""

    code = "dimension_mismatch"


class NonFiniteVectorError(StoreError):
    """A vector holds NaN or infinity; nothing of its batch was stored."""

    code = "non_finite_vector"


class ManifestMismatchError(StoreError):
    """The index was built by another embedder or chunker; rebuild it, or use the old ones."""

    code = "manifest_mismatch"


class ManifestMissingError(StoreError):
    """The index holds chunks but does not say what made them; rebuild it."""

    code = "manifest_missing"


class CorruptIndexError(StoreError):
    """A file that should be an index is not one, or is damaged. It was left as it is."""

    code = "corrupt_index"


class ReadOnlyError(StoreError):
    """The index was opened for reading only."""

    code = "read_only"
