"""The trunk and the work tree: where seed skills are, how one is added, how a version is checked out without loss."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os.path import lexists
from pathlib import Path
from shlex import quote

import pygit2
from pygit2.enums import CheckoutStrategy, FileMode

from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.file_names import COMPONENT_BYTES, PATH_BYTES, entry_name, escaped, git_fault, shown
from skillgit.errors import ConflictError, RevisionNotFoundError, UnsafeNameError, UsageError
from skillgit.store import diff, refs, tree
from skillgit.store.git_binary import git, keep, until_kept
from skillgit.store.repo import Repo
from skillgit.store.transaction import RefUpdate, update_refs
from skillgit.store.trunk import left_branches, trunk, trunk_tip

ATTRIBUTES = b"*.md diff=markdown\n*.md text eol=lf\n"
"""The ``.gitattributes`` of a repository that begins with a skill."""

_LITERAL = CheckoutStrategy.SAFE | CheckoutStrategy.RECREATE_MISSING | CheckoutStrategy.DISABLE_PATHSPEC_MATCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    commit: str
    is_new: bool  # whether the skill was added now; otherwise it was there


def skills_on_trunk(repo: Repo) -> tuple[str, ...]:
    tip = trunk_tip(repo)
    return skills_at(repo, tip) if tip else ()


def skills_at(repo: Repo, commit: str) -> tuple[str, ...]:
    """Return the paths of the skill folders at ``commit`` that have a ``SKILL.md``, those in ``skills/`` first."""
    root = repo.commit(commit).tree
    return tuple(path for path in tree.skill_paths(repo, commit) if tree.entry_at(root, f"{path}/{DOCUMENT}"))


def add_skill(repo: Repo, path: str, skill: Skill, *, time: datetime) -> Seeded:
    """Commit ``skill`` to the folder ``path`` on the trunk, unless something is there already.

    A trunk that is not here begins where ``origin`` has it, or at HEAD; a repository without commits gets
    ``.gitattributes`` too. Where the work tree is on the trunk, the new files appear in it and in git's index; existing
    files are left alone.
    """
    branch = trunk(repo)
    tip, short = repo.tip(branch), refs.short(branch)
    base = tip or trunk_tip(repo) or (None if repo.raw.head_is_unborn else str(repo.raw.head.target))
    old = repo.commit(base).tree if base else None
    if old is not None:
        tree.check_way(old, path)
    there = old is not None and tree.entry_at(old, path) is not None
    if old is not None and there and not any(tree.entry_at(old, f"{path}/{name}") for name in tree.DOCUMENTS):
        hint = f"git add {quote(path)}, then git commit, or another name"
        raise ConflictError(f"'{path}' on {short} is a folder without {DOCUMENT}", hint=hint)
    if tip and there:
        return Seeded(commit=tip, is_new=False)

    def write() -> tuple[pygit2.Tree, str]:
        new = _with_skill(repo, old, path, skill)
        if base and there:
            return new, base
        return new, repo.write_commit(repo.signature(time), f"Add skill {skill.name}\n", new.id, [base])

    new, commit = until_kept(repo, write)
    update_refs(repo, [RefUpdate(name=branch, new=commit, old=tip)], reason=f"skillgit: add skill {skill.name}")
    keep(repo, write)
    try:
        _follow(repo, branch, old, new)
    except (pygit2.GitError, OSError) as error:
        raise ConflictError(
            f"{short} has the skill now, but the work tree cannot take it in: {error}",
            hint=f"git checkout {quote(short)} -- {quote(path)}",
        ) from error
    return Seeded(commit=commit, is_new=not there)


def _with_skill(repo: Repo, old: pygit2.Tree | None, path: str, skill: Skill) -> pygit2.Tree:
    if old is None:
        return tree.with_skill(repo, None, path, skill, {".gitattributes": ATTRIBUTES})
    return old if tree.entry_at(old, path) is not None else tree.with_skill(repo, old, path, skill)


def _follow(repo: Repo, branch: str, old: pygit2.Tree | None, new: pygit2.Tree) -> None:
    """Let index and work tree take in what a commit on ``branch``, where that is checked out, added."""
    if repo.workdir is None:
        return
    if repo.raw.head_is_unborn and len(repo.raw.index) == 0:
        # nothing was ever committed or staged, so that no branch is left behind
        repo.raw.set_head(branch)
    if repo.raw.head_is_unborn or repo.raw.head.name != branch:
        return
    index = repo.raw.index
    changes = new.diff_to_tree(swap=True) if old is None else old.diff_to_tree(new)
    files = [delta.new_file for delta in changes.deltas if delta.new_file.path not in index]
    for file in files:
        index.add(pygit2.IndexEntry(file.path, file.id, FileMode(file.mode)))
    index.write()
    missing = [file.path for file in files if not lexists(repo.workdir / file.path)]
    if missing:
        repo.raw.checkout_index(strategy=_LITERAL, paths=missing)  # type: ignore[no-untyped-call]


def document_differs(repo: Repo, path: str, skill: Skill) -> bool:
    """Say whether the work tree has another ``SKILL.md`` in the folder ``path`` than ``skill``."""
    file = repo.workdir / path / DOCUMENT if repo.workdir is not None else None
    return file is not None and file.is_file() and file.read_bytes() != skill.files[DOCUMENT]


def skill_trees(repo: Repo, commit: str) -> dict[str, str]:
    """Return the path of every skill folder at ``commit`` with the id of its tree."""
    return {path: skill_tree(repo, commit, path) for path in skills_at(repo, commit)}


def skill_tree(repo: Repo, commit: str, path: str) -> str:
    """Return the id of the tree at ``path`` of ``commit``; empty if the commit or the folder is not here."""
    obj = repo.raw[commit] if repo.has_object(commit) else None
    folder = tree.entry_at(obj.tree, path) if isinstance(obj, pygit2.Commit) else None
    return str(folder.id) if isinstance(folder, pygit2.Tree) else ""


_SHOWN = 5
_EXECUTABLE = 0o111
_BRANCHES = "refs/heads/"


def checkout(repo: Repo, commit: str, branch: str = "") -> tuple[str, ...]:
    """Detach HEAD at ``commit``, or put it on ``branch``, whose tip that is; return the files that changed."""
    _work_tree(repo)
    repo.commit(commit)
    before = repo.head()[1]
    target = (branch,) if branch else ("--detach", commit)
    answer = git(repo, "checkout", "--quiet", *target, "--", hooks=True)
    if answer.code != 0:
        list(_blobs(repo, commit, ""))  # where a name is at fault, that is what is to be said
        raise ConflictError(
            f"git will not check out {branch or commit[:12]}: {escaped(answer.error)}",
            hint="commit or stash the changes: git stash" if "overwritten" in answer.error else "git status",
        )
    if not before:
        return tuple(sorted(_as_text(path) for path, _ in _blobs(repo, commit, "")))
    names = diff.diff(repo, before, commit, options=("--name-only", "-z", "--no-renames"))
    return tuple(path.decode(errors="replace") for path in names.split(b"\0") if path)


def differs(repo: Repo, path: str) -> bool:
    """Say whether the folder ``path`` of the work tree holds what HEAD does not, and git does not ignore."""
    if repo.workdir is None:
        return False
    status = ("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none")
    return bool(git(repo, *status, "--", f":(literal){path}").out.strip())


def differing_skills(repo: Repo) -> tuple[str, ...]:
    """Return the skill folders of HEAD and of the work tree whose texts are not the same in both, sorted."""
    _, commit = repo.head()
    if repo.workdir is None or not commit:
        return ()
    paths = {*skills_at(repo, commit), *skills_in_work_tree(repo)}
    return tuple(sorted(path for path in paths if differs(repo, path)))


def work_tree_commit(repo: Repo) -> str:
    """Return HEAD's commit where it has the skills of the work tree, else a new commit that has them.

    No ref leads to the new one: it is there for a measurement, and git removes it in time. The same texts make the same
    commit.
    """
    _work_tree(repo)
    _, head = repo.head()
    if not head:
        raise RevisionNotFoundError("the repository has no commit yet", hint="skillgit init")
    if not (paths := differing_skills(repo)):
        return head
    texts = [(path, *folder_files(repo, path)) for path in paths]
    base = repo.commit(head)

    def write() -> str:
        root = base.tree
        for path, files, executable in texts:
            if DOCUMENT in files:
                root = tree.with_skill(repo, root, path, Skill(path.rpartition("/")[2], files, executable))
            else:
                root = tree.edited(repo, root, {f"{path}/{DOCUMENT}": None})  # it holds no skill any more
        time = datetime.fromtimestamp(base.commit_time, UTC)
        return repo.write_commit(repo.signature(time), "the skills of the work tree\n", root.id, [head])

    return until_kept(repo, write)


def folder_files(repo: Repo, path: str) -> tuple[dict[str, bytes], frozenset[str]]:
    """Return the files in the folder ``path`` of the work tree that a commit of it would hold, and the executable ones.

    Links, submodules and what git ignores are left out.
    """
    root = _work_tree(repo) / path
    files: dict[str, bytes] = {}
    executable: set[str] = set()
    for name in _committable(repo, f":(literal){path}"):
        file = root / Path(name).relative_to(path)
        if file.is_symlink() or not file.is_file():
            continue
        inside = file.relative_to(root).as_posix()
        files[inside] = file.read_bytes()
        if file.stat().st_mode & _EXECUTABLE:
            executable.add(inside)
    return files, frozenset(executable)


def _committable(repo: Repo, *patterns: str) -> tuple[str, ...]:
    """Return the paths of the work tree that git tracks or would take in; what it ignores is left out."""
    listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    return tuple(os.fsdecode(name) for name in git(repo, *listing, "--", *patterns).out.split(b"\0") if name)


def skills_in_work_tree(repo: Repo) -> tuple[str, ...]:
    """Return the paths of the skill folders of the work tree that a commit would hold, those in ``skills/`` first."""
    names = _committable(repo, f"*/{DOCUMENT}")
    paths = sorted(name.removesuffix(f"/{DOCUMENT}") for name in names if name.endswith(f"/{DOCUMENT}"))
    return tuple(sorted(paths, key=lambda path: not path.startswith("skills/")))


def is_branch(repo: Repo, name: str) -> bool:
    return repo.tip(f"{_BRANCHES}{name}") is not None


def last_branch(repo: Repo) -> str:
    """Return the branch that HEAD is on, or was on last; empty if that is unknown or gone."""
    name, _ = repo.head()
    if name:
        return name.removeprefix(_BRANCHES)
    branches = (branch.removeprefix(_BRANCHES) for branch in left_branches(repo))
    return next((branch for branch in branches if is_branch(repo, branch)), "")


def write_paths(repo: Repo, commit: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Write ``paths`` as in ``commit``; HEAD and index stay, and only what git has somewhere is overwritten."""
    root = _work_tree(repo)
    files: dict[str, pygit2.Oid] = {}
    for path in paths:
        blobs = dict(_blobs(repo, commit, path.strip("/")))
        if not blobs:
            raise RevisionNotFoundError(
                f"{commit[:12]} has no '{path}'", hint=f"git ls-tree -r --name-only {commit[:12]}"
            )
        files.update(blobs)
    conflicts = [path for path in sorted(files) if not _is_safe(repo, root / path)]
    if conflicts:
        more = " …" if conflicts[_SHOWN:] else ""
        raise ConflictError(
            f"{escaped(', '.join(conflicts[:_SHOWN]))}{more} would lose changes",
            hint="commit them or put them away: git stash",
        )
    answer = git(repo, "--literal-pathspecs", "restore", f"--source={commit}", "--worktree", "--overlay", "--", *files)
    if answer.code != 0:
        raise ConflictError(f"git cannot write the files: {escaped(answer.error)}", hint="git status")
    return tuple(sorted(map(_as_text, files)))


def _work_tree(repo: Repo) -> Path:
    if repo.workdir is None:
        raise UsageError("a bare repository has no work tree", hint="clone it, then check out there")
    return repo.workdir


def _blobs(repo: Repo, commit: str, path: str) -> Iterator[tuple[str, pygit2.Oid]]:
    """Yield the files at or under ``path``; links are files too."""
    root: pygit2.Object = repo.commit(commit).tree
    if path:
        try:
            root = repo.commit(commit).tree[path]
        except (KeyError, ValueError):
            return
    waiting = [(path, root)]
    while waiting:
        name, entry = waiting.pop()
        if isinstance(entry, pygit2.Blob):
            yield name, entry.id
        elif isinstance(entry, pygit2.Tree) and len(name) <= PATH_BYTES:
            # as git takes it on a command line: not every name is UTF-8
            waiting.extend((f"{name}/{_checked(child)}".lstrip("/"), child) for child in entry)


def _as_text(path: str) -> str:
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _checked(entry: pygit2.Object) -> str:
    """Return the name of ``entry`` unless it is unsafe on any system; git would not check it out either."""
    raw = entry.raw_name or b""
    # git would find only half-way that no file can be called so
    long = f"it is longer than {COMPONENT_BYTES} bytes" if len(raw) > COMPONENT_BYTES else ""
    if fault := git_fault(name := entry_name(raw)) or long:
        raise UnsafeNameError(
            f"{shown(name)} cannot be checked out: {fault}", hint="skillgit show and diff show what it holds"
        )
    return raw.decode(errors="surrogateescape")


def _is_safe(repo: Repo, file: Path) -> bool:
    if not lexists(file):  # nor if its name is too long for this system
        return True
    return not file.is_symlink() and file.is_file() and pygit2.hash(file.read_bytes()) in repo.raw
