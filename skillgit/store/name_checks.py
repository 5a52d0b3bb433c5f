"""Whether the names in the trees of a run can become paths, for those who check it out, export or install it.

The skill folder and the evidence are ours to write, by names that every system can hold. Beside the skill a commit may
hold anything that git can check out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.untrusted.names import PATH_BYTES, entry_name, git_fault, name_fault, name_key, path_fault, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo


class NameChecks:
    """Looks at the names that the events of one run bring; each name is found once, at the first event that has it.

    Args:
        repo: The repository.
    """

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._seen: set[tuple[str, bool]] = set()
        """Trees, each with whether it was looked at by the rules of a skill."""
        self._found: set[str] = set()

    def problems(self, record: Recorded) -> Iterator[str]:
        """Yield what is wrong with the names in the commit and the evidence of ``record``."""
        skill = record.event.skill
        if fault := path_fault(skill):
            yield from self._new(f"its skill folder {shown(skill)} is no path: {fault}")
        for sentence in self._faults(record.tree, skill, strict=False):
            yield from self._new(f"its tree has {sentence}")
        for sentence in self._faults(record.evidence, "", strict=True) if record.evidence else ():
            yield from self._new(f"its evidence has {sentence}")

    def _new(self, sentence: str) -> Iterator[str]:
        if sentence not in self._found:
            self._found.add(sentence)
            yield sentence

    def _faults(self, tree: str, skill: str, *, strict: bool) -> Iterator[str]:
        """Yield every name in ``tree``, and in the folders in it, that cannot be written to, with the reason."""
        waiting = [(tree, "", strict)]
        while waiting:
            oid, path, strict = waiting.pop()
            folder = self._repo.raw.get(oid)
            if not isinstance(folder, pygit2.Tree) or (oid, strict) in self._seen:
                continue
            if strict or not f"{skill}/".startswith(path):
                # Folders that lead to a skill are looked at again: another event may have its skill elsewhere in them.
                self._seen.add((oid, strict))
            names: dict[str, str] = {}
            for entry in folder:
                name = entry_name(entry.raw_name or b"")
                inside = f"{path}{name}"
                if fault := _fault(name, names, strict=strict):
                    yield f"the name {shown(inside)}: {fault}"
                if isinstance(entry, pygit2.Tree) and len(inside) <= PATH_BYTES:
                    waiting.append((str(entry.id), f"{inside}/", strict or inside == skill))
                elif isinstance(entry, pygit2.Tree):
                    yield f"the name {shown(inside)}: it is longer than {PATH_BYTES} bytes"


def _fault(name: str, beside: dict[str, str], *, strict: bool) -> str:
    """Return why ``name`` cannot stand in a folder; ``beside`` are the names before it, which it is added to."""
    key = name_key(name) if strict else name
    other = beside.get(key)
    beside[key] = name
    if fault := name_fault(name) if strict else git_fault(name):
        return fault
    if other == name:
        return "it is there twice"
    return "" if other is None else f"on some systems it is the same as {shown(other)}"
