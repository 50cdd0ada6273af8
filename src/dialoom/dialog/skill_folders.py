"""Skills on disk: found in the folders of a project and of its user, read within bounds, trusted by content.

A project's skills come with its files, from whoever wrote those: they are used only when a person has said
yes to exactly this content.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import msgspec

from dialoom.base.errors import UsageError
from dialoom.base.text import one_line
from dialoom.dialog.skills import MAX_SKILL_CHARS, ReadSkill, Skill, parse_skill

SkillScope: TypeAlias = Literal["project", "user"]

SKILL_FILE = "SKILL.md"
PLACES = (".agents/skills", ".dialoom/skills", ".claude/skills")
"""Where skills are looked for, below a project's folder and the user's home; the first place wins."""

MAX_DEPTH = 5
MAX_FOLDERS = 2000
MAX_RESOURCES = 200
MAX_RESOURCE_BYTES = 16 * 1024 * 1024
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv"})


class SkillRoot(msgspec.Struct, frozen=True):
    """A folder to look for skills in, and whose it is."""

    path: Path
    scope: SkillScope


class FoundSkill(msgspec.Struct, frozen=True):
    """A skill on disk. `digest` names its content: header, instructions and every file it brings."""

    skill: Skill
    scope: SkillScope
    digest: str


class SkillTrust(Protocol):
    """Who knows which skills of projects a person has said yes to."""

    def is_trusted(self, found: FoundSkill) -> bool: ...


class FoundSkills(msgspec.Struct, frozen=True):
    """What was found: skills that may be used, those a person has yet to trust, and what was odd."""

    skills: tuple[Skill, ...] = ()
    untrusted: tuple[FoundSkill, ...] = ()
    warnings: tuple[str, ...] = ()


class NoTrust:
    """Trusts no skill of any project; the user's own need no trust."""

    def is_trusted(self, found: FoundSkill) -> bool:  # noqa: ARG002 - the protocol's word
        return False


def skill_roots(project: Path, home: Path) -> tuple[SkillRoot, ...]:
    """Return where skills of `project` and of the user whose `home` this is are looked for, in that order."""
    scopes: tuple[tuple[Path, SkillScope], ...] = ((project, "project"), (home, "user"))
    return tuple(SkillRoot(folder / place, scope) for folder, scope in scopes for place in PLACES)


def find_skills(roots: Sequence[SkillRoot], trust: SkillTrust | None = None) -> FoundSkills:
    """Look through `roots`. Of two skills with one name the one found first is used and the other named.

    A folder that cannot be read, a skill that cannot serve and a bound that is met are warnings, never
    errors. Reads at most `MAX_FOLDERS` folders, `MAX_DEPTH` levels deep, and follows no links.
    """
    trusted = trust or NoTrust()
    skills: dict[str, Skill] = {}
    untrusted: list[FoundSkill] = []
    warnings: list[str] = []
    for root in roots:
        for folder in _skill_folders(root.path, warnings):
            found = _found(folder, root.scope, warnings)
            if found is None:
                continue
            if root.scope == "project" and not trusted.is_trusted(found):
                untrusted.append(found)
            elif found.skill.name in skills:
                other = skills[found.skill.name].folder
                warnings.append(f"{folder}: not used, for {other} has a skill {found.skill.name!r} too")
            else:
                skills[found.skill.name] = found.skill
    return FoundSkills(tuple(skills.values()), tuple(untrusted), tuple(warnings))


def load_skill(folder: Path) -> ReadSkill:
    """Read the one skill of `folder`, and which files it brings.

    Raises `UsageError` when there is none, it cannot serve, or its files are over 16 MiB together.
    """
    text = _read(folder / SKILL_FILE, 4 * MAX_SKILL_CHARS)
    try:
        read = parse_skill(text.decode("utf-8-sig", "replace"), folder_name=folder.name)
    except UsageError as error:
        raise UsageError(f"{folder / SKILL_FILE}: {error}") from error
    names = tuple(path.relative_to(folder).as_posix() for path in _files(folder))
    warnings = read.warnings
    if len(names) > MAX_RESOURCES:
        names, warnings = names[:MAX_RESOURCES], (*warnings, f"only {MAX_RESOURCES} of its files are listed")
    digests, left = {SKILL_FILE: digest_of(text)}, MAX_RESOURCE_BYTES
    for name in names:
        content = _read(folder / name, left)
        digests[name] = digest_of(content)
        left -= len(content)
    skill = msgspec.structs.replace(read.skill, folder=str(folder), resources=names, digests=digests)
    return ReadSkill(skill, warnings)


def digest_of(content: bytes) -> str:
    """Return a name for the content of a file: its SHA-256."""
    return hashlib.sha256(content).hexdigest()


def _read(path: Path, limit: int) -> bytes:
    """Return the content of a file of a skill. Raises `UsageError` when it cannot be read or is too long."""
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot read {path}: {reason}; name a folder with a readable skill") from error
    if len(content) > limit:
        raise UsageError(f"{path} makes its skill too large; {limit} bytes were left for it")
    return content


def _found(folder: Path, scope: SkillScope, warnings: list[str]) -> FoundSkill | None:
    try:
        read = load_skill(folder)
    except UsageError as error:
        warnings.append(one_line(str(error), 400))
        return None
    warnings += [f"{folder}: {warning}" for warning in read.warnings]
    return FoundSkill(read.skill, scope, digest_of(msgspec.json.encode(read.skill.digests)))


def _skill_folders(root: Path, warnings: list[str]) -> Iterator[Path]:
    """Yield the folders below `root` that hold a skill, by name; a skill has no skills inside."""
    waiting, seen = [(root, 0)], 0
    while waiting:
        folder, depth = waiting.pop()
        seen += 1
        if seen > MAX_FOLDERS:
            warnings.append(f"{root}: has more than {MAX_FOLDERS} folders; the rest was not looked at")
            return
        if (folder / SKILL_FILE).is_file():
            yield folder
        elif depth < MAX_DEPTH:
            waiting += [(child, depth + 1) for child in reversed(_children(folder))]


def _children(folder: Path) -> list[Path]:
    try:
        found = sorted(folder.iterdir())
    except OSError:  # not there, not a folder, not ours: nothing to find
        return []
    return [path for path in found if path.name not in _SKIPPED and path.is_dir() and not path.is_symlink()]


def _files(folder: Path) -> Iterable[Path]:
    """Yield the files a skill brings beside its own, within the bounds of a skill."""
    waiting, found, seen = [(folder, 0)], 0, 0
    while waiting and seen < MAX_FOLDERS and found <= MAX_RESOURCES:
        here, depth = waiting.pop()
        seen += 1
        try:
            entries = sorted(here.iterdir())
        except OSError:
            continue
        for path in entries:
            if path.is_file() and not path.is_symlink() and path != folder / SKILL_FILE:
                found += 1
                yield path
        if depth < MAX_DEPTH:
            waiting += [(child, depth + 1) for child in reversed(_children(here))]
