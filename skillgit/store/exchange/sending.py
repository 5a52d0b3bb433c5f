"""Send refs of runs: which ones, what the other side has already, and the answer to each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.errors import SkillgitError
from skillgit.store import archive, refs
from skillgit.store.exchange.transport import ask, refusal, talk
from skillgit.store.lock import repo_lock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.store.exchange.transport import Line
    from skillgit.store.repo import Repo


_ORDER = (refs.Kind.RUN, refs.Kind.SLOW, refs.Kind.BEST, refs.Kind.TAG, refs.Kind.REJECTED)


class Rejected(StrEnum):
    """How refused candidates travel."""

    BRANCHES = "branches"
    """Each as its branch, those in the attic in the attic."""
    ATTIC = "attic"
    """All in one chain under a hidden ref."""
    NONE = "none"
    """They stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What is to be sent of one run.

    Attributes:
        run: The run.
        refs: Branches and tags, which arrive together or not at all.
        hidden: Hidden refs, which a host may refuse.
    """

    run: str
    refs: Mapping[str, str]
    hidden: Mapping[str, str]


def snapshot(repo: Repo) -> dict[str, str]:
    """Return this repository's own refs, ``main`` included, as they stood at one moment."""
    with repo_lock(repo):
        tips, main = repo.tips(), repo.tip(refs.MAIN)
    own = {name: oid for name, oid in tips.items() if (ref := refs.parse(name)) is not None and not ref.remote}
    return own | ({refs.MAIN: main} if main else {})


def by_run(tips: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return run to those of the refs ``tips`` that are its own; tracking copies are nobody's."""
    found: dict[str, dict[str, str]] = {}
    for name, oid in tips.items():
        ref = refs.parse(name)
        if ref is not None and ref.run and not ref.remote:
            found.setdefault(ref.run, {})[name] = oid
    return found


def usual(run: str, there: Mapping[str, str]) -> Rejected:
    """Return how candidates of ``run`` travel to a repository with the refs ``there`` if nobody says: as before."""
    branches = any(name.startswith(f"refs/heads/rejected/{run}/") for name in there)
    return Rejected.BRANCHES if branches else Rejected.ATTIC


def parcel(
    repo: Repo, run: str, tips: Mapping[str, str], there: Mapping[str, str], rejected: Rejected, *, evidence: bool
) -> Parcel:
    """Return what is to be sent of ``run``.

    Args:
        repo: The repository.
        run: The run.
        tips: Its refs here.
        there: Its refs in the other repository.
        rejected: How refused candidates travel.
        evidence: Whether its evidence goes too.
    """
    kinds = _ORDER if rejected is Rejected.BRANCHES else _ORDER[:-1]
    found = [(ref, name) for name in tips if (ref := refs.parse(name)) is not None]
    ordered = sorted(
        (one for one in found if one[0].kind in kinds), key=lambda one: (_ORDER.index(one[0].kind), one[1])
    )
    hidden = {}
    if evidence:
        hidden = {name: tips[name] for name in (refs.evidence_ref(run), refs.dropped_ref(run)) if name in tips}
    place = refs.attic_ref(run)
    chain = None
    if rejected is Rejected.ATTIC:
        chain = _chain(repo, run, tips, there)
    elif rejected is Rejected.BRANCHES:
        chain = tips.get(place)
    if chain is not None:
        hidden[place] = chain
    return Parcel(run=run, refs={name: tips[name] for _, name in ordered}, hidden=hidden)


def surpassed(repo: Repo, name: str, new: str, old: str | None) -> bool | None:
    """Say whether the other repository is ahead with the ref ``name``; None if it has something that ``new`` lacks.

    Args:
        repo: This repository.
        name: The ref.
        new: To what it points here.
        old: To what it points there.
    """
    if old is None or old == new:
        return False
    ref = refs.parse(name)
    if refs.is_release(name) or (ref is not None and ref.kind in {refs.Kind.TAG, refs.Kind.REJECTED}):
        return None
    if repo.reaches(new, old):
        return False
    return True if repo.reaches(old, new) else None


def _chain(repo: Repo, run: str, tips: Mapping[str, str], there: Mapping[str, str]) -> str | None:
    """Return the end of a chain of all refused candidates of ``run``; it goes on from the one that is there."""
    place = refs.attic_ref(run)
    mine = {one.branch: one for one in archive.foldable(run, tips)}
    if place in tips:
        mine = {one.branch: one for one in archive.read_attic(repo, tips[place])} | mine
    commits = {branch: one.commit for branch, one in mine.items()}
    base: str | None = None
    kept: dict[str, str] = {}
    for end in filter(None, (there.get(place), tips.get(place))):
        known = candidates(repo, end)
        if known is not None and known.items() <= commits.items():
            base, kept = end, known
            break
    return archive.extended(repo, base, [mine[branch] for branch in sorted(mine) if branch not in kept])


def candidates(repo: Repo, end: str) -> dict[str, str] | None:
    """Return branch to commit for the attic that ends with ``end``; None if it is not here, or is none."""
    try:
        return {one.branch: one.commit for one in archive.read_attic(repo, end)}
    except SkillgitError:
        return None


_AT_ONCE = 4000
"""Refs of one ``git push``: they stand on its command line, which may have 2 MB."""
_REASON = re.compile(r"\((?P<reason>[^()]*)\)\s*\Z")
_BROKEN = "[remote failure]"


class State(StrEnum):
    """What became of a ref."""

    PUSHED = "pushed"
    UP_TO_DATE = "up_to_date"
    REJECTED = "rejected"


class Cause(StrEnum):
    """Why a ref was not taken."""

    MOVED = "moved"
    """The other side has something that is not here."""
    HOST = "host"
    """The host does not want it."""
    HELD = "held"
    """Another ref that it goes with was not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRef:
    """What became of one ref, or would.

    Attributes:
        ref: Its full name.
        run: The run that it belongs to; empty for main, releases and notes.
        state: What became of it.
        old: What it pointed to on the other side; empty if it was not there.
        new: What it was to point to.
        cause: Why it was not taken; absent if it was.
        reason: The same in words.
        optional: Whether a host may refuse it without harm to history.
    """

    ref: str
    run: str = ""
    state: State
    old: str = ""
    new: str
    cause: Cause | None = None
    reason: str = ""
    optional: bool = False


def advertised(repo: Repo, line: Line, remote: str) -> dict[str, str]:
    """Return the refs of ``remote`` with what they point to.

    Raises:
        RemoteError: It could not be reached, or refused.
    """
    out = ask(repo, line, remote, "ls-remote", "--refs", "--quiet", remote).out.decode(errors="replace")
    found = (row.partition("\t") for row in out.splitlines())
    return {name: oid for oid, _, name in found if name}


def plan(
    repo: Repo, wanted: Mapping[str, str], there: Mapping[str, str], *, remote: str, optional: bool = False
) -> list[SentRef]:
    """Return what :func:`send` has to do so that the other side's refs ``there`` become ``wanted``.

    Refs that have to go are told as pushed already. If one of them is refused because the other side has something that
    is not here, the others are held back, unless they are optional.
    """
    found = [_looked_at(repo, name, oid, there, remote, optional=optional) for name, oid in wanted.items()]
    if optional or all(one.state is not State.REJECTED for one in found):
        return found
    return [_held(one) if one.state is State.PUSHED else one for one in found]


def send(repo: Repo, line: Line, remote: str, planned: Sequence[SentRef], *, verify: bool) -> list[SentRef]:
    """Send those of ``planned`` that have to go and return what became of each.

    Optional ones are taken or refused one by one, the others all or none.

    Args:
        repo: The repository that has the objects.
        line: The connection.
        remote: The remote.
        planned: What :func:`plan` returned.
        verify: Whether the user's own ``pre-push`` hook is asked.

    Raises:
        RemoteError: The connection broke, or was refused before any ref was looked at.
    """
    going = [one for one in planned if one.state is State.PUSHED]
    done: dict[str, SentRef] = {}
    for start in range(0, len(going), _AT_ONCE):
        part = going[start : start + _AT_ONCE]
        done |= {one.ref: one for one in _pushed(repo, line, remote, part, verify=verify)}
    return [done.get(one.ref, one) for one in planned]


def held_with(hidden: Sequence[SentRef], lines: Sequence[SentRef]) -> list[SentRef]:
    """Return ``hidden`` with those held back whose run has a ref among ``lines`` that was refused."""
    stay = {one.run for one in lines if one.state is State.REJECTED}
    return [_held(one) if one.run in stay and one.state is State.PUSHED else one for one in hidden]


def _looked_at(repo: Repo, name: str, new: str, there: Mapping[str, str], remote: str, *, optional: bool) -> SentRef:
    old = there.get(name, "")
    ref = refs.parse(name)
    one = SentRef(
        ref=name, run=ref.run if ref is not None else "", state=State.PUSHED, old=old, new=new, optional=optional
    )
    ahead = surpassed(repo, name, new, old or None)
    if ahead or old == new:
        return replace(one, state=State.UP_TO_DATE)
    if ahead is None:
        known = repo.has_object(old)
        told = f"it went on here and on {remote}" if known else f"{remote} has something that is not here"
        if refs.is_release(name):
            told = f"{remote} has another release of that version"
        return refused(one, Cause.MOVED, told)
    return one


def _held(one: SentRef) -> SentRef:
    return refused(one, Cause.HELD, "held back, for another ref of the run was refused")


def _pushed(repo: Repo, line: Line, remote: str, going: Sequence[SentRef], *, verify: bool) -> list[SentRef]:
    options = (
        "--porcelain",
        "--progress" if line.shows else "--no-progress",
        *(() if going[0].optional else ("--atomic",)),
        *(() if verify else ("--no-verify",)),
        "--no-follow-tags",
        "--recurse-submodules=no",
    )
    specs = [f"{one.new}:{one.ref}" for one in going]
    # a remote that is set up as a mirror takes no refspecs, and would delete what is not here
    answer = talk(repo, line, "-c", f"remote.{remote}.mirror=false", "push", *options, remote, *specs, hooks=True)
    told = _told(answer.out.decode(errors="replace"))
    if answer.code != 0 and (not told or any(_BROKEN in said for _, said in told.values())):
        raise refusal(remote, answer.error)
    return [_judged(one, *told.get(one.ref, ("!", _BROKEN))) for one in going]


def _told(out: str) -> dict[str, tuple[str, str]]:
    """Return ref to flag and words, as ``git push --porcelain`` tells them."""
    found = {}
    for row in out.splitlines():
        flag, _, rest = row.partition("\t")
        spec, tab, said = rest.partition("\t")
        if tab:
            found[spec.rpartition(":")[2]] = (flag, said)
    return found


def _judged(one: SentRef, flag: str, said: str) -> SentRef:
    if flag != "!":
        return replace(one, state=State.UP_TO_DATE) if flag == "=" else one
    match = _REASON.search(said)
    reason = match["reason"] if match else said
    if "atomic" in reason:
        return _held(one)
    by_host = "[remote rejected]" in said or _BROKEN in said
    return refused(one, Cause.HOST if by_host else Cause.MOVED, reason)


def refused(one: SentRef, cause: Cause, reason: str) -> SentRef:
    """Return ``one`` as a ref that was not taken."""
    return replace(one, state=State.REJECTED, cause=cause, reason=" ".join(reason.split()))


_USUAL = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpushed:
    """A run with work that a remote does not have.

    Attributes:
        run: The run.
        remote: The remote.
        commits: How many commits of its line are not there; absent if nothing of the run is.
    """

    run: str
    remote: str
    commits: int | None


def unpushed(repo: Repo) -> tuple[Unpushed, ...]:
    """Return the runs of this repository that ``origin``, or the only remote, does not have as they are; by name."""
    names = [remote.name for remote in repo.raw.remotes]
    remote = _USUAL if _USUAL in names else names[0] if len(names) == 1 else None
    if remote is None:
        return ()
    tips, found = repo.tips(), []
    for name, tip in sorted(tips.items()):
        ref = refs.parse(name)
        if ref is None or ref.kind is not refs.Kind.RUN or ref.remote:
            continue
        there = tips.get(refs.tracking(remote, name))
        if there is None:
            found.append(Unpushed(run=ref.run, remote=str(remote), commits=None))
        elif there != tip and (ahead := repo.raw.ahead_behind(tip, there)[0]):
            found.append(Unpushed(run=ref.run, remote=str(remote), commits=ahead))
    return tuple(found)
