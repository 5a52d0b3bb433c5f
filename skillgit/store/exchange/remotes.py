"""The remotes of a repository as git's configuration names them, and notes of two repositories joined."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from shlex import quote

from skillgit.errors import ConflictError, HistoryError, NotFoundError
from skillgit.store import refs
from skillgit.store.exchange.transport import CHECKED, RemoteConnection, ask
from skillgit.store.git_binary import git
from skillgit.store.lock import repo_lock
from skillgit.store.repo import Repo
from skillgit.store.seals import is_asked
from skillgit.store.transaction import RefUpdate, update_refs
from skillgit.store.work_tree import skills_at

_USUAL = "origin"
_NAME = re.compile(r"(?!-)(?!.*\.lock$)[\w-]+(?:\.[\w-]+)*", re.ASCII)
"""Names that git accepts for a remote and that cannot be mistaken for a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    name: str
    url: str
    push_url: str

    def configured_push_urls(self, repo: Repo) -> tuple[str, list[str]]:
        """Return the key that says where to push, with its addresses before ``url.*.insteadOf`` rewrites them."""
        for key in ("pushurl", "url"):
            if repo.config(f"remote.{self.name}.{key}"):
                return key, list(map(str, repo.raw.config.get_multivar(f"remote.{self.name}.{key}")))
        return "url", [self.push_url]


def remotes(repo: Repo) -> tuple[Remote, ...]:
    """Return the remotes in the order of their names."""
    entries = (
        Remote(name=str(remote.name), url=str(remote.url), push_url=str(remote.push_url or remote.url))
        for remote in repo.raw.remotes
        if remote.name is not None and remote.url is not None
    )
    return tuple(sorted(entries, key=lambda remote: remote.name))


def find_remote(repo: Repo, name: str | None) -> Remote:
    """Return the remote called ``name``; without a name ``origin``, or the only one."""
    candidates = remotes(repo)
    names = [remote.name for remote in candidates]
    target = name or (_USUAL if _USUAL in names or len(names) != 1 else names[0])
    match = next((remote for remote in candidates if remote.name == target), None)
    if match is not None:
        return match
    usual = _USUAL if _USUAL not in names else "NAME"
    hint = f"git remote add {quote(target) if _NAME.fullmatch(target) else usual} URL"
    if candidates:
        hint = f"remotes: {', '.join(names)}; or {hint}"
    raise NotFoundError(f"there is no remote '{target}'", hint=hint)


def may_have_evidence(repo: Repo, run: str) -> bool:
    """Say whether a pull of evidence may bring some of ``run``: its remote was not asked, or went on since."""
    try:
        remote = find_remote(repo, None)
    except NotFoundError:
        return False
    tip = repo.tip(refs.tracking(remote.name, refs.run_branch(run)))
    return tip is not None and not is_asked(repo, run, tip)


def join_notes(repo: Repo, theirs: str | None, *, time: datetime) -> bool:
    """Take in the notes that the commit ``theirs`` holds and return whether that changed ours."""
    ours = repo.tip(refs.NOTES)
    if theirs is None or ours == theirs:
        return False
    if ours is None:
        update = RefUpdate(name=refs.NOTES, new=theirs, old=None)
        update_refs(repo, [update], reason="skillgit: notes of another repository")
        return True
    if repo.reaches(ours, theirs):
        return False
    with repo_lock(repo):
        # git moves the ref without a look at what it was; the lock keeps our own writers away meanwhile
        _merge(repo, theirs, time)
    return repo.tip(refs.NOTES) != ours


def _merge(repo: Repo, theirs: str, time: datetime) -> None:
    identity, moment = repo.identity(), f"{int(time.timestamp())} +0000"
    environment: dict[str, str] = {}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": identity.name, f"GIT_{who}_EMAIL": identity.email, f"GIT_{who}_DATE": moment}
    options = (f"--ref={refs.NOTES.removeprefix('refs/notes/')}", "merge", "-q", "-s", "cat_sort_uniq")
    answer = git(repo, "notes", *options, theirs, beside=environment)
    if answer.code != 0:
        text = answer.error.rpartition("\n")[2]
        raise ConflictError(f"git cannot merge the notes of two repositories: {text}", hint="git notes merge --abort")


_MANY = 500
"""So many refs that git had better keep them in one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRef:
    """A ref of another repository that is new, or has moved."""

    ref: str
    run: str  # the run that it belongs to; empty for other branches and for notes
    old: str  # to what it pointed when it was fetched last; empty if it is new
    new: str


def fetch(
    repo: Repo, line: RemoteConnection, remote: str, *, with_rejected: bool, evidence: bool
) -> tuple[FetchedRef, ...]:
    """Fetch tracking copies and return those that moved; ``with_rejected``, branches and attics of candidates too."""
    hidden = ["plan", *(("attic",) if with_rejected else ()), *(("evidence", "dropped") if evidence else ())]
    names = ("refs/heads/*", *(f"refs/skillgit/{kind}/*" for kind in hidden), "refs/notes/skillgit/*")
    specs = [f"+{name}:{refs.tracking(remote, name)}" for name in names]
    _drop_copies_of_removed_remotes(repo)
    before = tracked(repo, remote)
    _fetch(repo, line, remote, *specs, *(() if with_rejected else ("^refs/heads/rejected/*",)))
    after = tracked(repo, remote)
    changes = {name: oid for name, oid in after.items() if before.get(name) != oid}
    pack(repo, len(changes))
    return tuple(
        FetchedRef(ref=name, run=refs.run_of(name), old=before.get(name, ""), new=oid) for name, oid in changes.items()
    )


def _drop_copies_of_removed_remotes(repo: Repo) -> None:
    """Delete hidden copies whose remote git no longer knows: ``git remote remove`` and ``rename`` leave them here."""
    prefixes = tuple(refs.tracking(remote.name, "refs/skillgit/") for remote in remotes(repo))
    output = git(repo, "for-each-ref", "--format=%(refname) %(objectname)", "refs/skillgit/remotes/").out.decode()
    copies = (line.split() for line in output.splitlines())
    deletions = [RefUpdate(name=ref, new=None, old=oid) for ref, oid in copies if not ref.startswith(prefixes)]
    if deletions:
        update_refs(repo, deletions, reason="skillgit: copies of a removed remote")


def fetch_notes(repo: Repo, line: RemoteConnection, remote: str) -> None:
    name = "refs/notes/skillgit/*"
    _fetch(repo, line, remote, f"+{name}:{refs.tracking(remote, name)}")


def fetch_branch(repo: Repo, line: RemoteConnection, remote: str, branch: str) -> None:
    """Bring the tracking copy of the ref ``branch`` of ``remote`` up to date."""
    _fetch(repo, line, remote, f"+{branch}:{refs.tracking(remote, branch)}")


def _fetch(repo: Repo, line: RemoteConnection, remote: str, *specs: str) -> None:
    options = (
        "--progress" if line.shows else "--no-progress",
        "--no-tags",
        "--no-prune",
        "--no-write-fetch-head",
        "--no-auto-maintenance",
        "--no-recurse-submodules",
    )
    ask(repo, line, remote, *CHECKED, "fetch", *options, remote, *specs)


def tracked(repo: Repo, remote: str) -> dict[str, str]:
    """Return the refs of ``remote`` as they were when they were fetched last, under their names there."""
    prefixes = {refs.tracking(remote, name): name for name in ("refs/notes/skillgit/", "refs/heads/", "refs/skillgit/")}
    form = "%(objectname) %(refname)%(if)%(symref)%(then) symbolic%(end)"
    out = git(repo, "for-each-ref", f"--format={form}", *prefixes).out.decode(errors="replace")
    tips = {}
    for row in out.splitlines():
        oid, name, *symbolic = row.split()
        if not symbolic:
            own, there = next(pair for pair in prefixes.items() if name.startswith(pair[0]))
            tips[there + name.removeprefix(own)] = oid
    return tips


def pack(repo: Repo, count: int) -> None:
    """Let git keep its refs in one file if so many have moved that reading them one by one would take long."""
    if count > _MANY:
        with repo_lock(repo):
            git(repo, "pack-refs", "--all")


def releases(repo: Repo, main: str | None) -> dict[str, str]:
    """Return the release tags, with ids, of the skills at ``main``, but not others', such as ``library/v1.2.3``."""
    out = git(repo, "for-each-ref", "--format=%(objectname)\t%(refname)", "refs/tags/").out
    return _releases_in(out, _skills(repo, main))


def fetch_releases(
    repo: Repo, line: RemoteConnection, remote: str, main: str | None, *, dry_run: bool = False
) -> tuple[str, ...]:
    """Bring in and return the missing release tags of ``remote``, for the skills on its ``main``."""
    out = ask(repo, line, remote, "ls-remote", "--refs", "--quiet", remote, "refs/tags/*").out
    missing = tuple(sorted(_releases_in(out, _skills(repo, main)).keys() - releases(repo, main).keys()))
    if missing and not dry_run:
        options = ("--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
        ask(repo, line, remote, *CHECKED, "fetch", "--quiet", *options, remote, *(f"{name}:{name}" for name in missing))
    return missing


def _skills(repo: Repo, main: str | None) -> frozenset[str]:
    try:
        return frozenset(path.rpartition("/")[2] for path in skills_at(repo, main)) if main else frozenset()
    except HistoryError:
        # a commit of someone's own, which fsck names
        return frozenset()


def _releases_in(out: bytes, skills: frozenset[str]) -> dict[str, str]:
    rows = (row.partition("\t") for row in out.decode(errors="replace").splitlines())
    return {name: oid for oid, _, name in rows if refs.is_release(name) and name.split("/")[2] in skills}
