"""How a history is damaged: by a forger who makes everything after it fit, by a clumsy hand, by a disk."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pygit2
from sample_run import PATH, RUN, with_file

from skillgit.store import refs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo

MAKER = pygit2.Signature("maker", "maker@localhost", 1795300000, 0)


@dataclass(frozen=True, slots=True)
class Patient:
    """A repository with the sample run that is about to be damaged.

    Attributes:
        repo: The repository.
        history: The run's events, in order.
        git: Runs real git in it.
    """

    repo: Repo
    history: list[Recorded]
    git: Callable[..., str]

    def commit(self, place: int) -> str:
        return self.history[place].commit

    def file(self, oid: str) -> Path:
        """Return the file of a loose object, made writable."""
        path = self.repo.common_dir / "objects" / oid[:2] / oid[2:]
        path.chmod(0o644)
        return path

    def blob(self, place: int, path: str = f"{PATH}/SKILL.md") -> str:
        return str(self.repo.commit(self.commit(place)).tree[path].id)

    def evidence_blob(self, place: int, name: str) -> str:
        return str(self.repo.raw[self.history[place].evidence][name].id)

    def set_ref(self, name: str, oid: str) -> None:
        self.repo.raw.references.create(name, oid, force=True)


def forge(
    patient: Patient,
    place: int,
    *,
    message: Callable[[str], str] = str,
    content: Callable[[pygit2.Tree], pygit2.Tree] = lambda found: found,
    parents: Callable[[list[str]], list[str]] = list,
) -> None:
    """Change the commit of one event; all commits after it, all refs and the evidence are made anew to fit."""
    repo, new = patient.repo, dict[str, str]()
    for index, record in enumerate(patient.history):
        commit = repo.commit(record.commit)
        text, root, above = commit.message, commit.tree, [new.get(parent, parent) for parent in record.parents]
        if index == place:
            text, root, above = message(text), content(root), parents(above)
        made = repo.raw.create_commit(None, commit.author, commit.committer, text, root.id, above)
        new[record.commit] = str(made)
    chain: list[str] = []
    for link in reversed(list(_chain(repo))):
        text = re.sub(r"[0-9a-f]{40}", lambda match: new[match[0]], link.message)
        chain = [str(repo.raw.create_commit(None, link.author, link.committer, text, link.tree_id, chain))]
    patient.set_ref(refs.evidence_ref(RUN), chain[0])
    for name, oid in repo.tips().items():
        if oid in new:
            patient.set_ref(name, new[oid])


def _chain(repo: Repo):
    return repo.raw.walk(repo.tip(refs.evidence_ref(RUN)))


def replaced(place: int, old: str, new: str) -> Callable[[Patient], None]:
    """Damage: a forger changes ``old`` to ``new`` in the message of an event."""

    def damage(patient: Patient) -> None:
        assert old in patient.repo.commit(patient.commit(place)).message
        forge(patient, place, message=lambda text: text.replace(old, new, 1))

    return damage


def everywhere(place: int, *pairs: tuple[str, str]) -> Callable[[Patient], None]:
    """Damage: a forger changes all of these in the message of an event, wherever they stand."""

    def damage(patient: Patient) -> None:
        text = patient.repo.commit(patient.commit(place)).message
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        forge(patient, place, message=lambda _: text)

    return damage


def added(place: int, line: str) -> Callable[[Patient], None]:
    """Damage: a forger adds a trailer to the message of an event."""
    return replaced(place, "\nSkillgit-Event:", f"\n{line}\nSkillgit-Event:")


def smuggled(place: int, path: str, text: bytes) -> Callable[[Patient], None]:
    """Damage: a forger changes a file in the tree of an event."""
    return lambda patient: forge(patient, place, content=lambda root: with_file(patient.repo, root, path, text))


def reparented(place: int, *above: int) -> Callable[[Patient], None]:
    """Damage: a forger gives an event the commits of other events as parents."""
    return lambda patient: forge(patient, place, parents=lambda _: [patient.commit(number) for number in above])


def evidence_changed(place: int, name: str, change: Callable[[bytes], bytes | None]) -> Callable[[Patient], None]:
    """Damage: a forger changes a file in the evidence of an event, or drops it, and the commit names the new tree."""

    def damage(patient: Patient) -> None:
        old = patient.history[place].evidence
        content = patient.repo.raw[patient.repo.raw[old][name].id].data
        assert change(content) != content
        new = str(with_file(patient.repo, patient.repo.raw[old], name, change(content)).id)
        forge(patient, place, message=lambda text: text.replace(old, new))
        repo, chain = patient.repo, list[str]()
        for link in reversed(list(_chain(repo))):
            tree = pygit2.Oid(hex=new) if str(link.tree_id) == old else link.tree_id
            chain = [str(repo.raw.create_commit(None, link.author, link.committer, link.message, tree, chain))]
        patient.set_ref(refs.evidence_ref(RUN), chain[0])

    return damage


def without(place: int, name: str) -> Callable[[Patient], None]:
    """Damage: a file of an event's evidence is gone, and everything else fits."""
    return evidence_changed(place, name, lambda _: None)


def written_anew(place: int, name: str, content: bytes) -> Callable[[Patient], None]:
    """Damage: a file of an event's evidence holds ``content``, and everything else fits."""
    return evidence_changed(place, name, lambda _: content)


def raw_message(place: int, change: Callable[[bytes], bytes]) -> Callable[[Patient], None]:
    """Damage: the commit at the end of the run's branch gets a message that no git porcelain would write."""

    def damage(patient: Patient) -> None:
        content = patient.repo.raw[patient.commit(place)].read_raw()
        oid = patient.repo.raw.odb.write(pygit2.enums.ObjectType.COMMIT, change(content))
        patient.set_ref(refs.run_branch(RUN), str(oid))

    return damage


def written(find: Callable[[Patient], str], change: Callable[[bytes], bytes | None]) -> Callable[[Patient], None]:
    """Damage: the file of a loose object holds something else, or is gone."""

    def damage(patient: Patient) -> None:
        path = patient.file(find(patient))
        content = change(path.read_bytes())
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)

    return damage


def flipped(data: bytes) -> bytes:
    """Return a loose object with one bit of its content changed."""
    content = zlib.decompress(data)
    return zlib.compress(content[:-1] + bytes([content[-1] ^ 1]))
