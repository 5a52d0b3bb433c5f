"""The rules of a skill: where each line comes from, and why a rule is there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from skillgit.app.workspace.request import Arg, MisuseError, OfPast, OfSkill, Opt
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import LIST, Answer, Verb, VerbSession
from skillgit.view.lists import LISTS

with loaded_on_use():
    from skillgit.app.attribution import provenance, why
    from skillgit.app.workspace import workspace
    from skillgit.view import rules as rules_view
    from skillgit.view import why as why_view

Blame: TypeAlias = "provenance.Blame"
BlameRow: TypeAlias = "provenance.BlameRow"
_LINE_OF = re.compile(r"(?P<path>[^\s:]+):(?P<line>\d+)")
_RANGE = re.compile(r"(?P<first>[1-9]\d*)(?:(?P<comma>,)(?P<plus>\+)?(?P<last>[1-9]\d*)?)?")


@dataclass(frozen=True, kw_only=True)
class BlameRequest(OfSkill, OfPast):
    """Each line has the version and the step that brought it, its evidence and number of rollouts, how much the version
    gained, the items that it fixed and broke, and the train items whose rollouts moved the edit.

    REV defaults to the newest version of the default run, PATH to SKILL.md. Lines that were moved or restored keep
    their origin.
    """

    revision: Annotated[str, Arg("[REV]", words="revisions", tool="revision")] = ""
    path: Annotated[str, Arg("[PATH]", tool="path")] = ""
    ranges: Annotated[
        tuple[str, ...],
        Opt("Show lines N to M; N,+COUNT and N alone work, too; repeat it for more", "-L", metavar="N,M", tool="lines"),
    ] = ()


def _blame(session: VerbSession, request: BlameRequest) -> Answer[Blame]:
    ranges = [*map(_range, request.ranges)]
    result = provenance.blame(session.workspace, request.revision, request.path, ranges)
    lines = rules_view.lines(result, session.screen)
    notes = _lacking(session, result.run, "items and some sources") if result.absent else ()
    return Answer(table=LISTS["blame"], rows=result.lines, result=result, lines=lines, pager=True, notes=notes)


def _range(text: str) -> tuple[int, int | None]:
    """Return first and last line of ``N,M``, ``N,+COUNT``, ``N,`` or ``N``."""
    match = _RANGE.fullmatch(text)
    if match is not None:
        first = int(match["first"])
        last = None if not match["last"] else int(match["last"]) + (first - 1 if match["plus"] else 0)
        last = last if match["comma"] else first
        if last is None or last >= first:
            return first, last
    raise MisuseError(f"-L {text} names no lines; write -L 3,7")


def _lacking(session: VerbSession, run: str, unknown: str) -> tuple[tuple[str, str], ...]:
    return (("", workspace.lacking_evidence(session.workspace, run, unknown)),)


BLAME = Verb("blame", BlameRequest, _blame, forms=LIST)


@dataclass(frozen=True, kw_only=True)
class WhyRequest(OfSkill, OfPast):
    """Name the rule by the number of its line in SKILL.md, by a file and its line, or by some of its words. Words that
    no rule has now are looked for in history, so that a rule that was removed or never accepted is found, too.

    REV defaults to the newest version of the default run, or with --skill of a run that trains it.
    """

    rule: Annotated[str, Arg("LINE|FILE:LINE|TEXT", tool="rule")]
    revision: Annotated[str, Opt("Look at REV", "--rev", metavar="REV", words="revisions", tool="revision")] = ""
    path: Annotated[str, Opt("Look in this file of the skill only", "--file", metavar="PATH")] = ""


def _why(session: VerbSession, request: WhyRequest) -> Answer[why.Story]:
    spot = None if request.path else _LINE_OF.fullmatch(request.rule)
    rule, path = (spot["line"], spot["path"]) if spot is not None else (request.rule, request.path)
    story = why.why(session.workspace, rule, request.revision, path)
    notes = _lacking(session, story.run, "failures and findings") if story.absent else ()
    return Answer("why/1", story, why_view.lines(story, session.screen, session.now), pager=True, notes=notes)


WHY = Verb("why", WhyRequest, _why)
