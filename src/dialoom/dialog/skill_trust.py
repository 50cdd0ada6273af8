"""Which skills of projects a person said yes to, kept in one file; one that changed is asked about anew."""

import os
from pathlib import Path

from dialoom.dialog.json_file import read_json, write_json
from dialoom.dialog.skill_folders import FoundSkill


class TrustFile:
    """A `SkillTrust` in a JSON file of digests by folder. A file that is not there trusts nothing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def is_trusted(self, found: FoundSkill) -> bool:
        """Whether exactly this content was trusted in exactly this place."""
        return self._read().get(_place(found)) == found.digest

    def trust(self, found: FoundSkill) -> None:
        """Say yes to the skill as it is now. Raises `StoreError` when that cannot be kept."""
        self._write({**self._read(), _place(found): found.digest})

    def distrust(self, found: FoundSkill) -> None:
        """Take a yes back; without one nothing changes."""
        kept = self._read()
        if kept.pop(_place(found), None) is not None:
            self._write(kept)

    def _read(self) -> dict[str, str]:
        return {place: str(digest) for place, digest in read_json(self._path).items()}

    def _write(self, kept: dict[str, str]) -> None:
        write_json(self._path, dict(sorted(kept.items())))


def _place(found: FoundSkill) -> str:
    return str(Path(found.skill.folder).resolve())
