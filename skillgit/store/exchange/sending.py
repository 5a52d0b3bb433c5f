"""Refs are sent here: what the other side has is asked first, and the answer to each ref is told.

Never with force, never as a mirror, never with pruning: what the other side has and this one lacks stays there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.store import refs
from skillgit.store.exchange.parcels import surpassed
from skillgit.store.exchange.refusals import refusal
from skillgit.store.exchange.transport import ask, talk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.store.exchange.transport import Line
    from skillgit.store.repo import Repo

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
