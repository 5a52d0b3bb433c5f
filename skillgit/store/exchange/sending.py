"""Send refs of runs: which ones, what the other side has already, and the answer to each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from skillgit.errors import SkillgitError
from skillgit.store import history, refs
from skillgit.store.exchange.transport import RemoteConnection, ask, refusal, talk
from skillgit.store.lock import repo_lock
from skillgit.store.repo import Repo
from skillgit.store.trunk import trunk

_ORDER = (refs.RefKind.RUN, refs.RefKind.SLOW, refs.RefKind.BEST, refs.RefKind.TAG, refs.RefKind.REJECTED)


class RejectedMode(StrEnum):
    """How refused candidates travel."""

    BRANCHES = "branches"
    """Each as its branch, those in the attic in the attic."""
    ATTIC = "attic"
    """All in one chain under a hidden ref."""
    NONE = "none"
    """They stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What is to be sent of one run."""

    run: str
    refs: Mapping[str, str]  # branches and tags, which arrive together or not at all
    hidden: Mapping[str, str]


def snapshot(repo: Repo) -> dict[str, str]:
    """Return this repository's own refs, the trunk included, at one moment."""
    with repo_lock(repo):
        tips, branch = repo.tips(), trunk(repo)
        tip = repo.tip(branch)
    own = {name: oid for name, oid in tips.items() if (ref := refs.parse(name)) is not None and not ref.remote}
    return own | ({branch: tip} if tip else {})


def by_run(tips: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return run to those of the refs ``tips`` that are its own; tracking copies belong to none."""
    runs: dict[str, dict[str, str]] = {}
    for name, oid in tips.items():
        ref = refs.parse(name)
        if ref is not None and ref.run and not ref.remote:
            runs.setdefault(ref.run, {})[name] = oid
    return runs


def usual(run: str, there: Mapping[str, str]) -> RejectedMode:
    """Return how candidates of ``run`` travel to a repository with the refs ``there`` by default: as before."""
    branches = any(name.startswith(f"refs/heads/rejected/{run}/") for name in there)
    return RejectedMode.BRANCHES if branches else RejectedMode.ATTIC


def parcel(
    repo: Repo,
    run: str,
    tips: Mapping[str, str],
    there: Mapping[str, str],
    form: RejectedMode,
    *,
    plan: str | None,
    evidence: bool,
) -> Parcel:
    """Return what is to be sent of ``run``, whose plan is in the commit ``plan``."""
    kinds = _ORDER if form is RejectedMode.BRANCHES else _ORDER[:-1]
    positions = [(kinds.index(ref.kind), name) for name in tips if (ref := refs.parse(name)) and ref.kind in kinds]
    hidden = {} if plan is None else {refs.plan_ref(run): plan}
    if evidence:
        hidden |= {name: tips[name] for name in (refs.evidence_ref(run), refs.dropped_ref(run)) if name in tips}
    attic = refs.attic_ref(run)
    if form is RejectedMode.ATTIC and (chain := _chain(repo, run, tips, there)) is not None:
        hidden[attic] = chain
    elif form is RejectedMode.BRANCHES and attic in tips:
        hidden[attic] = tips[attic]
    return Parcel(run=run, refs={name: tips[name] for _, name in sorted(positions)}, hidden=hidden)


def surpassed(repo: Repo, name: str, new: str, old: str | None) -> bool | None:
    """Say whether the other repository is ahead with the ref ``name``; None if it has something that ``new`` lacks."""
    if old is None or old == new:
        return False
    ref = refs.parse(name)
    if refs.is_release(name) or (ref is not None and ref.kind in {refs.RefKind.TAG, refs.RefKind.REJECTED}):
        return None
    if repo.reaches(new, old):
        return False
    return True if repo.reaches(old, new) else None


def _chain(repo: Repo, run: str, tips: Mapping[str, str], there: Mapping[str, str]) -> str | None:
    """Return the end of a chain of all refused candidates of ``run``; it continues the one that is there."""
    attic = refs.attic_ref(run)
    mine = (history.read_attic(repo, tips[attic]) if attic in tips else {}) | history.foldable(run, tips)
    base: str | None = None
    prefix: dict[str, str] = {}
    for end in filter(None, (there.get(attic), tips.get(attic))):
        chain = candidates(repo, end)
        if chain is not None and chain.items() <= mine.items():
            base, prefix = end, chain
            break
    return history.extended(repo, base, {branch: mine[branch] for branch in sorted(mine) if branch not in prefix})


def candidates(repo: Repo, end: str) -> dict[str, str] | None:
    """Return branch to commit for the attic that ends with ``end``; None if it is not here, or is none."""
    with suppress(SkillgitError):
        return history.read_attic(repo, end)
    return None


_AT_ONCE = 4000
"""Refs of one ``git push``: they are on its command line, which may have 2 MB."""
_REASON = re.compile(r"\((?P<reason>[^()]*)\)\s*\Z")
_BROKEN = "[remote failure]"


class RefState(StrEnum):
    PUSHED = "pushed"
    UP_TO_DATE = "up_to_date"
    REJECTED = "rejected"


class RefusalCause(StrEnum):
    MOVED = "moved"
    """The other side has something that is not here."""
    HOST = "host"
    """The host does not want it."""
    HELD = "held"
    """Another ref of its group was not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRef:
    """What happened to one ref, or would."""

    ref: str
    run: str = ""  # the run that it belongs to; empty for main, releases and notes
    state: RefState
    old: str = ""  # what it pointed to on the other side; empty if it was not there
    new: str
    cause: RefusalCause | None = None  # why it was not taken; absent if it was
    reason: str = ""
    optional: bool = False  # whether a host may refuse it without harm to history


def advertised(repo: Repo, line: RemoteConnection, remote: str) -> dict[str, str]:
    """Return the refs of ``remote`` with what they point to."""
    out = ask(repo, line, remote, "ls-remote", "--refs", "--quiet", remote).out.decode(errors="replace")
    rows = (row.partition("\t") for row in out.splitlines())
    return {name: oid for oid, _, name in rows if name}


def plan(
    repo: Repo, targets: Mapping[str, str], there: Mapping[str, str], *, remote: str, optional: bool = False
) -> list[SentRef]:
    """Return what :func:`send` has to do so that the other side's refs ``there`` become ``targets``.

    Refs that have to go count as pushed already. If one of them is refused because the other side has something that
    is not here, the others are held back, unless they are optional.
    """
    results = [_looked_at(repo, name, oid, there, remote, optional=optional) for name, oid in targets.items()]
    if optional or all(update.state is not RefState.REJECTED for update in results):
        return results
    return [_held(update) if update.state is RefState.PUSHED else update for update in results]


def send(repo: Repo, line: RemoteConnection, remote: str, plans: Sequence[SentRef], *, verify: bool) -> list[SentRef]:
    """Send ``plans``, optional ones one by one, the others all or none; ``verify`` asks the ``pre-push`` hook."""
    going = [update for update in plans if update.state is RefState.PUSHED]
    updates: dict[str, SentRef] = {}
    for start in range(0, len(going), _AT_ONCE):
        part = going[start : start + _AT_ONCE]
        updates |= {update.ref: update for update in _pushed(repo, line, remote, part, verify=verify)}
    return [updates.get(update.ref, update) for update in plans]


def send_leased(repo: Repo, line: RemoteConnection, remote: str, update: SentRef) -> SentRef:
    """Send one ref whose history may be replaced, if ``remote`` has it where ``update`` says that it was."""
    return _pushed(repo, line, remote, [update], verify=True, leased=True)[0]


def held_with(hidden: Sequence[SentRef], lines: Sequence[SentRef]) -> list[SentRef]:
    """Return ``hidden`` with those held back whose run has a ref among ``lines`` that was refused."""
    stay = {update.run for update in lines if update.state is RefState.REJECTED}
    return [_held(update) if update.run in stay and update.state is RefState.PUSHED else update for update in hidden]


def _looked_at(repo: Repo, name: str, new: str, there: Mapping[str, str], remote: str, *, optional: bool) -> SentRef:
    old, run = there.get(name, ""), refs.run_of(name)
    update = SentRef(ref=name, run=run, state=RefState.PUSHED, old=old, new=new, optional=optional)
    ahead = surpassed(repo, name, new, old or None)
    if ahead or old == new:
        return replace(update, state=RefState.UP_TO_DATE)
    if ahead is None:
        is_here = repo.has_object(old)
        problem = f"it went on here and on {remote}" if is_here else f"{remote} has something that is not here"
        if refs.is_release(name):
            problem = f"{remote} has another release of that version"
        return refused(update, RefusalCause.MOVED, problem)
    return update


def _held(update: SentRef) -> SentRef:
    return refused(update, RefusalCause.HELD, "held back, for another ref of the run was refused")


def _pushed(
    repo: Repo, line: RemoteConnection, remote: str, going: Sequence[SentRef], *, verify: bool, leased: bool = False
) -> list[SentRef]:
    options = (
        *(f"--force-with-lease={update.ref}:{update.old}" for update in going if leased),
        "--porcelain",
        "--progress" if line.shows else "--no-progress",
        *(() if going[0].optional else ("--atomic",)),
        *(() if verify else ("--no-verify",)),
        "--no-follow-tags",
        "--recurse-submodules=no",
    )
    specs = [f"{update.new}:{update.ref}" for update in going]
    # a remote that is set up as a mirror takes no refspecs, and would delete what is not here
    answer = talk(repo, line, "-c", f"remote.{remote}.mirror=false", "push", *options, remote, *specs, hooks=True)
    replies = _told(answer.out.decode(errors="replace"))
    if answer.code != 0 and (not replies or any(_BROKEN in reason for _, reason in replies.values())):
        raise refusal(remote, answer.error, pushes=True)
    return [_judged(update, *replies.get(update.ref, ("!", _BROKEN))) for update in going]


def _told(out: str) -> dict[str, tuple[str, str]]:
    """Return ref to flag and words, as ``git push --porcelain`` prints them."""
    replies = {}
    for row in out.splitlines():
        flag, _, rest = row.partition("\t")
        spec, tab, reason = rest.partition("\t")
        if tab:
            replies[spec.rpartition(":")[2]] = (flag, reason)
    return replies


def _judged(update: SentRef, flag: str, text: str) -> SentRef:
    if flag != "!":
        return replace(update, state=RefState.UP_TO_DATE) if flag == "=" else update
    match = _REASON.search(text)
    reason = match["reason"] if match else text
    if "atomic" in reason:
        return _held(update)
    by_host = "[remote rejected]" in text or _BROKEN in text
    return refused(update, RefusalCause.HOST if by_host else RefusalCause.MOVED, reason)


def refused(update: SentRef, cause: RefusalCause, reason: str) -> SentRef:
    return replace(update, state=RefState.REJECTED, cause=cause, reason=" ".join(reason.split()))


_USUAL = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpushed:
    """A run with work that a remote does not have."""

    run: str
    remote: str
    commits: int | None  # how many commits of its line are not there; absent if nothing of the run is


def unpushed(repo: Repo) -> tuple[Unpushed, ...]:
    """Return the runs, by name, that ``origin``, or the only remote, does not have as they are."""
    names = [remote.name for remote in repo.raw.remotes]
    remote = _USUAL if _USUAL in names else names[0] if len(names) == 1 else None
    if remote is None:
        return ()
    tips, runs = repo.tips(), []
    for name, tip in sorted(tips.items()):
        ref = refs.parse(name)
        if ref is None or ref.kind is not refs.RefKind.RUN or ref.remote:
            continue
        there = tips.get(refs.tracking(remote, name))
        if there is None:
            runs.append(Unpushed(run=ref.run, remote=str(remote), commits=None))
        elif there != tip and (ahead := repo.raw.ahead_behind(tip, there)[0]):
            runs.append(Unpushed(run=ref.run, remote=str(remote), commits=ahead))
    return tuple(runs)
