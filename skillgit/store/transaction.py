"""Refs are moved here and nowhere else: all of a change or nothing, compared with what the writer had seen.

A process that is killed inside a libgit2 transaction leaves ``<ref>.lock`` behind, and then neither libgit2 nor git
moves that ref again. Such a file is removed only while the repository lock is held, which says that no skillgit process
owns it, and only after it has stood unchanged for a while in which no git process works in the repository.

Where a process dies amid the moves, git may prune what no ref leads to yet. So what nothing can compute again, the
evidence of an event, is referenced before the ref that makes the event visible, and what follows from the event comes
last: that is then as any writer or ``fsck --repair`` makes it. Removals go the other way round.

After a loss of power a ref leads to whole objects, or is where it was: libgit2 has the disk confirm every file that it
writes and the name of that file (``repo``), and here the names of new folders follow, those of objects before any ref
moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pygit2
from pygit2.transaction import ReferenceTransaction

from skillgit.errors import ConcurrentWriteError, ConflictError
from skillgit.files import sync
from skillgit.store.git_binary import git_is_at_work, keep, until_kept
from skillgit.store.lock import repo_lock
from skillgit.store.refs import RefKind, parse, short
from skillgit.store.repo import Repo

_PATIENCE_S = 1.0
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class RefUpdate:
    name: str
    # the commit that it shall point to; `None` removes it. If it equals `old`, the ref is only watched: the change
    # is refused if it moved.
    new: str | None
    old: str | None = None  # the commit that it must point to now; `None` if it must not exist
    is_derived: bool = False  # whether it is computed from other refs, so that its old value does not matter


def update_refs(
    repo: Repo,
    updates: Sequence[RefUpdate],
    *,
    reason: str,
) -> None:
    """Move all of ``updates`` or none, else a ConcurrentWriteError."""
    signer = repo.identity()
    repo.raw.set_ident(signer.name, signer.email)
    with repo_lock(repo):
        _check_names(repo, updates)
        changing = _folders(repo, updates)
        sync(repo.common_dir / "objects")
        with ExitStack() as stack:
            # libgit2 moves the refs of one transaction in an order of its own; what is entered last ends first
            stages = sorted({_stage(update) for update in updates}, reverse=True)
            transactions = {stage: stack.enter_context(repo.raw.transaction()) for stage in stages}
            for update in updates:
                _lock(repo, transactions[_stage(update)], update.name)
            for update in updates:
                _compare(repo, update)
            for update in updates:
                transaction = transactions[_stage(update)]
                if update.new is None:
                    transaction.remove(update.name)
                elif update.is_derived or update.new != update.old:
                    transaction.set_target(update.name, update.new, message=reason)
        for folder in changing:
            with suppress(FileNotFoundError):
                sync(folder)


def write_refs(repo: Repo, write: Callable[[], Sequence[RefUpdate]], *, reason: str) -> Sequence[RefUpdate]:
    """Make the moves that ``write`` returns once it has written their objects, again where git prunes some of them."""
    updates = until_kept(repo, write)
    update_refs(repo, updates, reason=reason)
    keep(repo, write)
    return updates


def _stage(update: RefUpdate) -> int:
    """Return when ``update`` is made, first to last: evidence, truth, what is derived; then removals, in reverse."""
    ref = parse(update.name)
    if ref is not None and ref.kind is RefKind.EVIDENCE:
        rank = 0
    elif ref is not None and ref.kind.is_truth:
        rank = 1
    else:
        rank = 2
    return rank if update.new is not None else 5 - rank


def _folders(repo: Repo, updates: Sequence[RefUpdate]) -> list[Path]:
    """Return the folders that will have another folder, or a name less, once ``updates`` are made."""
    targets: set[Path] = set()
    for update in updates:
        for root in ("", "logs/"):
            folders = (repo.common_dir / f"{root}{update.name}").parents
            inside = [folder for folder in folders if folder.is_relative_to(repo.common_dir)]
            # git takes a folder away that has become empty
            targets.update(
                folder.parent if update.new is not None else folder
                for folder in inside[:-1]
                if update.new is None or not folder.is_dir()
            )
    return sorted(targets)


def _compare(repo: Repo, update: RefUpdate) -> None:
    tip = repo.tip(update.name)
    if not update.is_derived and tip != update.old:
        raise ConcurrentWriteError(
            f"{short(update.name)} moved from {update.old or 'nothing'} to {tip or 'nothing'} while skillgit"
            " worked on it; nothing was written",
            hint="skillgit fsck",
        )


def _lock(repo: Repo, transaction: ReferenceTransaction, name: str) -> None:
    path = repo.common_dir / f"{name}.lock"
    last_mark, since = None, time.monotonic()
    while True:
        try:
            transaction.lock_ref(name)
        except (pygit2.GitError, OSError) as error:
            mark = file_mark(path)
            if mark != last_mark:
                last_mark, since = mark, time.monotonic()
            elif time.monotonic() - since > _PATIENCE_S:
                if mark is None:
                    raise ConflictError(f"git cannot lock {short(name)}: {error}", hint="git fsck") from error
                if git_is_at_work(repo):
                    raise ConflictError(
                        f"git works in this repository now and holds {short(name)}", hint="try again when it has ended"
                    ) from error
                path.unlink(missing_ok=True)
            time.sleep(_PAUSE_S)
        else:
            return


def file_mark(path: Path) -> tuple[int, int, int] | None:
    """Return what distinguishes a lock file from the next at the same path; ``None`` without one."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _check_names(repo: Repo, updates: Sequence[RefUpdate]) -> None:
    """Refuse names that git cannot create, before the first lock: a failure later would leave a change half made."""
    for update in updates:
        parts = update.name.split("/")
        for end in range(3, len(parts)):
            outer = "/".join(parts[:end])
            if repo.tip(outer) is not None:
                raise ConflictError(
                    f"{short(update.name)} cannot exist next to {short(outer)}",
                    hint=f"rename it: git branch -m {short(outer)} <name>",
                )
