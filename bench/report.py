"""A bench's result as one JSON object or as a table for people."""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version


@dataclass(frozen=True)
class Row:
    """One figure: ours and the rival's in `unit` (less is better), their ratio, and the most it may be."""

    row: str
    unit: str
    ours: float
    rival: str
    theirs: float
    must: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def ok(self) -> bool:
        return self.ratio <= self.must

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "ratio": round(self.ratio, 3), "ok": self.ok}


def to_json(bench: str, rows: Sequence[Row], packages: Sequence[str]) -> str:
    """Return the one JSON object that machines read."""
    return json.dumps(
        {
            "bench": bench,
            "versions": {name: _version(name) for name in ("dialoom", *packages)},
            "machine": f"{platform.machine()} {platform.system()} Python {platform.python_version()}",
            "rows": [row.to_dict() for row in rows],
            "ok": all(row.ok for row in rows),
        }
    )


def to_table(bench: str, rows: Sequence[Row]) -> str:
    """Return one line per row: ours, theirs, the ratio and whether it holds."""
    lines = [f"{bench}: ours / rival, less is better"]
    for row in rows:
        state = "ok  " if row.ok else "FAIL"
        figures = (
            f"{row.ours:9.3g} / {row.theirs:9.3g} {row.unit:<4} ratio {row.ratio:6.3f} (at most {row.must:g})"
        )
        lines.append(f"  {state} {row.row:<44} {figures}  against {row.rival}")
    return "\n".join(lines)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"
