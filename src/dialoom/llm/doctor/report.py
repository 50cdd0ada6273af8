"""What was found out about a server: a table for people, a profile for the next request."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from dialoom.llm.profile import WireProfile
from dialoom.llm.usage import Usage

Verdict = Literal["yes", "no", "partly", "unknown"]

_MARKS: Mapping[Verdict, str] = {"yes": "yes", "no": "no", "partly": "partly", "unknown": "?"}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question. `changes` are the fields of the profile that follow from it."""

    probe: str
    verdict: Verdict
    detail: str = ""
    changes: Mapping[str, object] = {}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All findings of one examination. `context_window` is in tokens, None when it was not found."""

    server: str
    model: str
    findings: tuple[Finding, ...]
    profile: WireProfile
    context_window: int | None = None
    usage: Usage = Usage()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the model answers at all."""
        return any(each.probe == "chat" and each.verdict == "yes" for each in self.findings)

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        width = max(len(each.probe) for each in self.findings)
        rows = [f"  {each.probe:{width}}  {_MARKS[each.verdict]:6}  {each.detail}" for each in self.findings]
        tokens = (self.usage.input_tokens or 0) + (self.usage.output_tokens or 0)
        spent = f"{len(self.findings)} probes, {tokens} tokens, {self.seconds:.1f} s"
        return [f"{self.server}, model {self.model or 'of its own choice'}", *map(str.rstrip, rows), spent]

    def profile_json(self) -> str:
        """Return the profile as JSON text, without what has its default value."""
        standard = msgspec.to_builtins(WireProfile())
        fields: dict[str, object] = msgspec.to_builtins(self.profile)
        changed = {name: value for name, value in fields.items() if value != standard[name]}
        return msgspec.json.format(msgspec.json.encode(changed), indent=2).decode()
