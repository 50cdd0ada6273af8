"""Prompts: named texts with gaps, filled in when they are said."""

import logging
import re
from collections.abc import Mapping

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.llm import Role

MAX_NAME = 200
MAX_TEMPLATE = 256 * 1024
_GAP = re.compile(r"\{\{\s*(\w{1,100})\s*\}\}")
_log = logging.getLogger("dialoom.dialog")


class Filled(msgspec.Struct, frozen=True):
    """A template with its gaps filled.

    `missing` are the gaps that got no value and still stand there, `unused` the values no gap asked for.
    """

    text: str
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


class Prompt(msgspec.Struct, frozen=True):
    """A template under a name: `{{ variable }}` is a gap, everything else is text as it is.

    `role` is who says it, a user unless told otherwise. `defaults` fill gaps that get no value.
    """

    name: str
    template: str
    role: Role = "user"
    defaults: dict[str, str] = {}

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > MAX_NAME:
            raise UsageError(f"a prompt has a name of 1 to {MAX_NAME} characters; this has {len(self.name)}")
        if len(self.template) > MAX_TEMPLATE:
            raise UsageError(
                f"prompt {one_line(self.name, 80)!r} has {len(self.template)} characters; {MAX_TEMPLATE} are "
                "allowed"
            )

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the gaps, each once, in order of appearance."""
        return tuple(dict.fromkeys(_GAP.findall(self.template)))

    def fill(self, variables: Mapping[str, str] | None = None) -> Filled:
        """Return the text with `variables` in its gaps. Pure: what is put in is never looked at for gaps."""
        given = variables or {}
        values = {**self.defaults, **given}
        gaps = self.variables
        return Filled(
            _GAP.sub(lambda gap: str(values.get(gap[1], gap[0])), self.template),
            tuple(gap for gap in gaps if gap not in values),
            tuple(name for name in given if name not in gaps),
        )

    def render(self, variables: Mapping[str, str] | None = None) -> str:
        """Return the filled text. Gaps without a value stay visible and are named in the log."""
        filled = self.fill(variables)
        if filled.missing or filled.unused:
            _log.warning(
                "prompt variables do not match",
                extra={"prompt": self.name, "missing": filled.missing, "unused": filled.unused},
            )
        return filled.text
