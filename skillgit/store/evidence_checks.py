"""Whether the evidence of a run is here, is kept by its ref, and is that of the run's own events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.event import Rejected
from skillgit.errors import SkillgitError
from skillgit.store import reader, refs
from skillgit.store.dropping import dropped_trees, dropping_problems
from skillgit.store.objects import missing_files
from skillgit.store.own_runs import evidence_elsewhere, is_own
from skillgit.store.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.store.evidence import Link
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

_SHORT = 12


def evidence_problems(
    repo: Repo, run: str, records: Sequence[Recorded], tips: Mapping[str, str], chain: Sequence[Link]
) -> Iterator[Problem]:
    """Yield what is wrong with the evidence of ``run``, whose hidden ref keeps ``chain``.

    A clone has none, rightly, or only that of what was written in it since.
    """
    place = refs.evidence_ref(run)
    kept, dropped = {link.tree for link in chain}, dropped_trees(repo, run)
    whole = place in tips and bool(records) and records[0].evidence in kept
    wanted = whole or (bool(records) and is_own(repo, start=records[0].commit))
    elsewhere = evidence_elsewhere(repo, run)
    seen: set[str] = set()
    for record in records:
        if not record.evidence or (record.evidence not in kept and record.evidence in dropped):
            continue
        here = repo.has_object(record.evidence)
        missing = list(missing_files(repo, record.evidence, seen)) if here else []
        if missing:
            yield Problem(commit=record.commit, sentence=f"its evidence lacks {_listed(missing)}")
        elif here and wanted and record.evidence not in kept:
            sentence = f"its evidence is not kept by {refs.short(place)}, so that git gc will drop it"
            yield Problem(commit=record.commit, sentence=sentence, repairable=True)
        elif not here and wanted and record.commit not in elsewhere:
            yield Problem(commit=record.commit, sentence="its evidence is lost")
    yield from dropping_problems(repo, run, records, kept)
    yield from _stray_links(repo, run, records, chain, tips)


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"'{paths[0]}'{more}"


def _stray_links(
    repo: Repo, run: str, records: Sequence[Recorded], chain: Sequence[Link], tips: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield evidence of events that the run does not have: its own that were lost, or those of another run."""
    known = {record.commit: record for record in records}
    for link in chain:
        if link.event in known:
            yield from _other_tree(run, known[link.event], link)
            continue
        if not link.event:
            sentence = f"a commit of {refs.short(refs.evidence_ref(run))} names no event, so that it is no evidence"
            yield Problem(commit=link.commit, sentence=sentence)
            continue
        try:
            found = reader.read_commit(repo, link.event)
        except SkillgitError:
            sentence = (
                f"{refs.short(refs.evidence_ref(run))} keeps evidence of commit {link.event[:_SHORT]}, which is lost"
            )
            yield Problem(commit=link.commit, sentence=sentence)
            continue
        if found.event.run != run:
            sentence = f"{refs.short(refs.evidence_ref(run))} keeps evidence of run {found.event.run}"
            yield Problem(commit=link.commit, sentence=sentence, repairable=True)
        else:
            branch = refs.short(found.branch)
            sentence = f"it was an event of the run, and {branch} does not lead to it any more"
            if gone := found.branch not in {*tips, *repo.damaged_refs(run)}:
                sentence += f"; git branch {branch} {link.event[:_SHORT]} brings it back"
            mendable = gone and isinstance(found.event, Rejected) and refs.run_branch(run) in tips
            yield Problem(commit=link.event, sentence=sentence, repairable=mendable)


def _other_tree(run: str, record: Recorded, link: Link) -> Iterator[Problem]:
    """Yield that a commit names other evidence than the chain keeps for it."""
    if link.tree == record.evidence:
        return
    named = f"names other evidence, {record.evidence[:_SHORT]}" if record.evidence else "names none"
    place = refs.short(refs.evidence_ref(run))
    sentence = f"{place} keeps the evidence {link.tree[:_SHORT]} of it, and the commit {named}"
    yield Problem(commit=record.commit, sentence=sentence)
