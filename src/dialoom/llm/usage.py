"""What an answer cost in tokens, as the server reported it."""

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts of one answer. None means the server did not say, never zero.

    `input_tokens` is the whole prompt, cached parts included; the other input and output counts are
    shares of it, not additions.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    def updated(self, newer: "Usage") -> "Usage":
        """Return this with each count that `newer` reports in place of the old one.

        Servers repeat running totals, so later counts replace earlier ones and are never added.
        """
        told = {name: value for name, value in msgspec.structs.asdict(newer).items() if value is not None}
        return msgspec.structs.replace(self, **told)

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of two answers' counts; what neither reported stays None."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        sums = [mine if theirs is None else (mine or 0) + theirs for mine, theirs in pairs]
        return Usage(**dict(zip(self.__struct_fields__, sums, strict=True)))
