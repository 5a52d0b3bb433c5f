"""The git repository: how it is found or made, its folders, its identity and the tips of its refs.

It opens a repository and answers simple questions; history is for ``history_reader`` and ``event_writer``. libgit2 is
loaded with the first repository: screens are ready before that, and it takes as long as half of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote

from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import ConflictError, HistoryError, RepositoryNotFoundError, RevisionNotFoundError, UsageError
from skillgit.lazy import loaded_on_use
from skillgit.store import refs
from skillgit.store.git_binary import configured, until_kept
from skillgit.store.lock import repo_lock
from skillgit.store.refs import RefFiles, RefSnapshot
from skillgit.store.seals import private_folder

with loaded_on_use():
    import pygit2

UNSHALLOW = "git fetch --unshallow && skillgit pull"
"""The hint that brings what a shallow clone lacks."""
REPAIR = "skillgit fsck --repair"
"""What helps where a file of git's is missing or damaged."""
_SHORT = 12
_LAST_TIME = 253_402_300_799
"""The end of the year 9999, in seconds since 1970: most programs reject later dates."""
_REFUSALS = (
    ("sha256", "uses the SHA-256 object format, which skillgit cannot read", "create one with git init"),
    ("refstorage", "keeps its refs as reftable, which skillgit cannot read", "create one with git init"),
    ("not owned", "belongs to another user", "git config --global --add safe.directory <path>, if you trust it"),
    ("unsupported extension", "uses a git extension that skillgit cannot read", "create one with git init"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    name: str = "skillgit"
    email: str = "skillgit@localhost"


class Repo:
    """An open git repository.

    Attributes:
        raw: The pygit2 repository, for the modules of this package.
        git_dir: The folder of HEAD and of git's index of this work tree.
        common_dir: The folder that holds refs and objects; all work trees share it.
        workdir: The work tree; absent in a bare repository.
        dead_ends: Commits from which no walk back meets the start of a run, with the error that ends it; None where it
            is only that history ends. Branches share their histories, and each is walked once.
        whole: Commits that are here with all that they lead back to by first parents.
    """

    def __init__(self, raw: pygit2.Repository) -> None:
        self.raw = raw
        self.git_dir = Path(raw.path)
        pointer = self.git_dir / "commondir"
        self.common_dir = (self.git_dir / (pointer.read_text().strip() if pointer.is_file() else "")).resolve()
        self.workdir = Path(raw.workdir) if raw.workdir else None
        self.dead_ends: dict[str, HistoryError | None] = {}
        self.whole: set[str] = set()
        self._private: Path | None = None
        self._still: Mapping[str, tuple[Mapping[str, str], list[str]]] | None = None
        self._ref_files = RefFiles(self.common_dir, lambda name: refs.parse(name) is not None)
        self._mark_files = RefFiles(self.common_dir, refs.is_mark)

    @classmethod
    def discover(cls, path: Path) -> Repo:
        """Open the repository that contains ``path``; a RepositoryNotFoundError if libgit2 can open none."""
        if not path.is_dir():
            raise RepositoryNotFoundError(f"there is no folder '{path}'", hint="skillgit init DIR")
        _set_up_libgit2()
        try:
            git_dir = pygit2.discover_repository(str(path))
            if git_dir is None:
                raise RepositoryNotFoundError(f"'{path}' is not in a git repository", hint="skillgit init")
            repo = cls(pygit2.Repository(git_dir))
        except (pygit2.GitError, OSError) as error:
            raise _refusal(path, error) from error
        try:
            repo.raw.lookup_reference("HEAD")
        except pygit2.GitError as error:
            hint = f"echo 'ref: refs/heads/main' > {git_dir}HEAD"
            raise HistoryError(f"HEAD of the repository at '{path}' is damaged", hint=hint) from error
        absent = next((folder for folder in object_folders(repo.common_dir) if not folder.is_dir()), None)
        if absent is not None:
            raise HistoryError(
                f"this repository shares the objects of {shown(str(absent))}, which is not there",
                hint="bring it back, or write where it is now into objects/info/alternates of the repository",
            )
        return repo

    @classmethod
    def init(cls, path: Path) -> Repo:
        """Make ``path`` a repository on ``init.defaultBranch``, or ``main``; one that exists is opened as it is."""
        _set_up_libgit2()
        try:
            if (path / ".git").exists():
                return cls(pygit2.Repository(str(path)))
            name = configured(path, os.environ, "init.defaultBranch")
            return cls(pygit2.init_repository(str(path), initial_head=name or "main"))
        except (pygit2.GitError, OSError) as error:
            raise _refusal(path, error) from error

    @property
    def is_partial(self) -> bool:
        """Whether git fetches some objects only when it needs them, which libgit2 cannot."""
        return any((self.common_dir / "objects" / "pack").glob("*.promisor"))

    @property
    def unfetched(self) -> tuple[str, str]:
        """Say why a run of the remote may not be here, and the command that fetches it; empty for a whole clone."""
        if self.raw.is_shallow:
            return "this is a shallow clone", UNSHALLOW
        for remote in self.raw.remotes:
            if remote.fetch_refspecs and not any("refs/heads/*" in spec for spec in remote.fetch_refspecs):
                return f"this clone has one branch of {remote.name} only", f"skillgit pull {remote.name}"
        return "", ""

    @property
    def private_dir(self) -> Path:
        """The folder for files of this user and repository that are never shared; made when missing."""
        if self._private is None or not self._private.is_dir():
            self._private = private_folder(self.common_dir)
        return self._private

    def identity(self) -> Identity:
        """Return who signs commits here: git's ``user.name`` and ``user.email``, or skillgit itself."""
        name, email = (_clean_name(self.config(key) or "") for key in ("user.name", "user.email"))
        return Identity(name=name or Identity().name, email=email or Identity().email)

    def signature(self, time: datetime) -> pygit2.Signature:
        """Return the signature of a commit that is made here at ``time``."""
        identity = self.identity()
        return pygit2.Signature(identity.name, identity.email, int(time.timestamp()), 0)

    def config(self, key: str) -> str:
        """Return the value of ``key`` in git's configuration; empty if it is not set."""
        config = self.raw.config
        try:
            return str(config[key]) if key in config else ""
        except UnicodeDecodeError as error:
            raise UsageError(f"git's setting {key} is not UTF-8", hint=f"git config --show-origin {key}") from error

    def set_config(self, key: str, value: str) -> None:
        self.raw.config[key] = value

    def head(self) -> tuple[str, str]:
        """Return the branch that is checked out, empty if none is, and its commit, empty without commits."""
        raw = self.raw
        branch = raw.references["HEAD"].target
        commit = "" if raw.head_is_unborn else str(raw.head.target)
        return (refs.short(branch) if isinstance(branch, str) else "", commit)

    def work_trees(self, branch: str) -> list[Path]:
        """Return the folders that have ``branch`` checked out: the main work tree's and those of linked ones."""
        main = self.raw if Path(self.raw.path).resolve() == self.common_dir else pygit2.Repository(str(self.common_dir))
        folders = {self.common_dir: main.workdir} if main.workdir else {}
        for name in self.raw.list_worktrees():
            folders[self.common_dir / "worktrees" / name] = self.raw.lookup_worktree(name).path
        heads = ((Path(folder), git_dir / "HEAD") for git_dir, folder in folders.items())
        return [folder for folder, head in heads if folder.is_dir() and head.read_text().strip() == f"ref: {branch}"]

    def check_movable(self, branch: str) -> None:
        """Refuse to move ``branch`` where it is checked out, as git does: a commit there would take the move back."""
        for folder in self.work_trees(branch):
            raise ConflictError(
                f"{refs.short(branch)} is checked out in {folder}, where the next commit would take this back",
                hint=f"git -C {quote(str(folder))} switch --detach",
            )

    def tip(self, name: str) -> str | None:
        """Return the commit that the ref ``name`` points to, ``None`` without one; a HistoryError if it is damaged."""
        if self._still is not None and (ref := refs.parse(name)) is not None:
            tip = self.tips(ref.run).get(name)
            if tip is not None or name not in self.damaged_refs(ref.run):
                return tip
        try:
            reference = self.raw.references.get(name)
            return None if reference is None else str(reference.resolve().target)
        except pygit2.GitError as error:
            raise HistoryError(f"git cannot read {refs.short(name)}: {error}", hint=REPAIR) from error

    def tips(self, run: str = "") -> dict[str, str]:
        """Return skillgit's refs, of ``run`` or all, tracking copies included, with what they point to.

        A symbolic or damaged ref is left out, as git does; :meth:`tip` says what is wrong with it.
        """
        if self._still is None:
            all_tips = self._ref_files.read()
            return {name: oid for name, oid in all_tips.items() if _is_of(name, run)} if run else all_tips
        return {name: oid for tips, _ in self._groups(run) for name, oid in tips.items()}

    def marks(self) -> dict[str, str]:
        """Return the tags that people set, with the objects that they point to: commits, or tags with a message."""
        return self._mark_files.read()

    def damaged_refs(self, run: str = "") -> list[str]:
        """Return refs, of ``run`` or all, whose file holds no commit (also symbolic ones): they cannot be moved."""
        if self._still is None:
            return sorted(name for name, oid in self.look().loose.items() if not oid and _is_of(name, run))
        return sorted(name for _, names in self._groups(run) for name in names)

    def _groups(self, run: str) -> Iterable[tuple[Mapping[str, str], list[str]]]:
        groups = self._still or {}
        return [groups[run]] if run in groups else [] if run else groups.values()

    @contextmanager
    def still(self) -> Iterator[None]:
        """Let a block that moves no ref see all refs as they are now; it asks about each of many runs at no cost."""
        try:
            with repo_lock(self):
                tips, names = self.tips(), self.damaged_refs()
        except ConflictError:
            # in a read-only repository a part of a run's refs cannot move meanwhile
            tips, names = self.tips(), self.damaged_refs()
        groups: dict[str, tuple[dict[str, str], list[str]]] = {}
        for name, oid in tips.items():
            if ref := refs.parse(name):
                groups.setdefault(ref.run, ({}, []))[0][name] = oid
        for name in names:
            if ref := refs.parse(name):
                groups.setdefault(ref.run, ({}, []))[1].append(name)
        self._still = groups
        try:
            yield
        finally:
            self._still = None

    def look(self) -> RefSnapshot:
        """Return what the refs look like now, so that a later look can say whether any moved."""
        return self._ref_files.look()

    def commit(self, oid: str) -> pygit2.Commit:
        """Return the commit ``oid``; a RevisionNotFoundError if it is missing, as in a shallow clone."""
        try:
            obj = self.raw.get(oid)
            if isinstance(obj, pygit2.Commit) and 0 <= obj.commit_time <= _LAST_TIME:
                return obj
        except (pygit2.GitError, ValueError, LookupError) as error:
            raise HistoryError(f"commit {oid[:_SHORT]} cannot be read: {error}", hint=REPAIR) from error
        if obj is None:
            hint = UNSHALLOW if self.raw.is_shallow else REPAIR
            raise RevisionNotFoundError(f"there is no commit {oid}", hint=hint)
        if isinstance(obj, pygit2.Commit):
            raise HistoryError(f"commit {oid[:_SHORT]} has a time that is not a date", hint="skillgit fsck")
        raise RevisionNotFoundError(f"{oid} is not a commit but a {obj.type_str}", hint="skillgit fsck")

    def write_blob(self, content: bytes) -> pygit2.Oid:
        """Write a file; nothing refers to it yet, so that git may prune it, or the folder that it comes to."""
        return until_kept(self, lambda: self.raw.create_blob(content))

    def write_commit(
        self, signature: pygit2.Signature, message: str, content: pygit2.Oid, parents: Iterable[str | None]
    ) -> str:
        """Write a commit, which no ref leads to yet, and return its id; parents that are None are left out."""
        commits: list[str | pygit2.Oid] = [parent for parent in parents if parent is not None]
        return str(self.raw.create_commit(None, signature, signature, message, content, commits))

    def has_object(self, oid: str) -> bool:
        return pygit2.Oid(hex=oid) in self.raw

    def reaches(self, tip: str, ancestor: str) -> bool:
        """Say whether ``ancestor`` is ``tip`` or one of its ancestors."""
        if not (self.has_object(tip) and self.has_object(ancestor)):
            return False
        try:
            return tip == ancestor or bool(self.raw.descendant_of(tip, ancestor))
        except pygit2.GitError:
            # one of them is not a commit
            return False


def _is_of(name: str, run: str) -> bool:
    ref = refs.parse(name)
    return ref is not None and (not run or ref.run == run)


def _set_up_libgit2() -> None:
    """Configure how libgit2 writes, before it opens the refs of a repository.

    The disk confirms objects, refs and reflogs before their names exist. The files of a tree need not exist, since git
    may prune them while the rest is written (``event_writer``).
    """
    pygit2.settings.enable_fsync_gitdir(value=True)
    pygit2.settings.enable_strict_object_creation(value=False)


def first_parents(repo: Repo, tip: str | None) -> Iterator[pygit2.Commit]:
    """Yield the commit ``tip``, its first parent and so on, as far as there is one."""
    while tip is not None:
        commit = repo.commit(tip)
        yield commit
        tip = str(commit.parent_ids[0]) if commit.parent_ids else None


def message_of(commit: pygit2.Commit) -> str:
    """Return the message of ``commit`` as UTF-8: its header may name any codec, and some of Python's take for ever."""
    return commit.raw_message.decode(errors="replace")


def author_of(commit: pygit2.Commit) -> str:
    """Return the author's name in ``commit``, read as :func:`message_of` reads the message."""
    return commit.author.raw_name.decode(errors="replace")


def _clean_name(text: str) -> str:
    """Return ``text`` without the characters that would break a commit's header, as git itself removes them."""
    return "".join(character for character in text if character not in "<>\n\r\0").strip()


def object_folders(common_dir: Path) -> list[Path]:
    """Return the folder of a repository's objects and those that it borrows from, which may be missing."""
    folders = [(common_dir / "objects").resolve()]
    for folder in folders:
        listing = folder / "info" / "alternates"
        if listing.is_file():
            lines = listing.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
            lenders = [(folder / line).resolve() for line in lines if line and not line.startswith(("#", '"'))]
            folders.extend(path for path in lenders if path not in folders)
    return folders


def _refusal(path: Path, error: Exception) -> RepositoryNotFoundError:
    for sign, sentence, hint in _REFUSALS:
        if sign in str(error):
            return RepositoryNotFoundError(f"the repository at '{path}' {sentence}", hint=hint)
    return RepositoryNotFoundError(f"the repository at '{path}' cannot be opened: {error}", hint="git status")
