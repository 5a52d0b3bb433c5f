"""``skillgit promote``: a version becomes what the trunk holds, and, if it is asked for, a release."""

from __future__ import annotations

import re
from dataclasses import dataclass
from shlex import quote

from skillgit.app.recorded.evaluation_notes import known_evaluations
from skillgit.app.skill_format import frontmatter
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import version_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Gauge, Metric, Scored, Split
from skillgit.errors import ConflictError, RevisionNotFoundError, SkillError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.store import promotion, refs
from skillgit.store.lock import RunLock

_SHORT = 12
_NUMBER, _PART = r"(?:0|[1-9]\d*)", r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMANTIC = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PART}(?:\.{_PART})*)?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?", re.ASCII
)
"""A version as Semantic Versioning 2.0.0 writes it (semver.org)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """What the trunk holds now."""

    run: str
    version: int
    skill: str
    score: float | None  # its score on the selection split under the run's metric; absent if it was not measured
    test: float | None  # its newest score on the test split as the run measures; absent if there is none
    before: str = ""  # what the trunk held until now, as `<run>/v<N>`; empty if that was not a promotion
    commit: str = ""  # the merge commit; empty if nothing was written
    held: bool = False  # whether the trunk held the version's text already
    release: str = ""  # the version that it was released as; empty for none
    tag: str = ""  # the tag of the release; empty for none
    branch: str = ""  # the trunk


def promote(
    context: Context, revision: str, *, force: bool = False, dry_run: bool = False, release: str = ""
) -> Promoted:
    """Bring a version to the trunk with a merge commit.

    ``force`` replaces a text that someone changed on the trunk by hand. ``release`` is a semantic version to write to
    ``metadata.version`` and to tag.
    """
    if release and not _SEMANTIC.fullmatch(release):
        raise UsageError(f"'{release}' is not a semantic version", hint="write it like 1.2.0 or 2.0.0-rc.1")
    with Workspace(context) as workspace:
        row = version_in(workspace, revision)
        with RunLock(workspace.repo, row.run, context.clock):
            return _promote(workspace, row, force=force, dry_run=dry_run, version=release)


def _promote(workspace: Workspace, row: LogRow, *, force: bool, dry_run: bool, version: str) -> Promoted:
    repo, path, name = workspace.repo, workspace.index.skill_path(row.run), str(row.address)
    branch, trunk = promotion.existing_trunk(repo)
    last = promotion.last_change(repo, path)
    release = _release(workspace, row, path, version) if version else None
    is_tagged = release is None or release.is_tagged
    if release is None:
        is_held = promotion.holds(repo, path, row.commit) or _holds_as_released(workspace, row, path, trunk)
    else:
        is_held = promotion.holds(repo, path, row.commit, release.document)
        if is_tagged and not promotion.holds(repo, path, row.commit, release.document, at=release.tag):
            raise ConflictError(
                f"{refs.short(release.tag)} is the release of another text", hint="release it under a higher version"
            )
    gauge = queries.gauge(workspace.index, row.run)
    test = _test_score(workspace, row, gauge)
    if not is_held and not force:
        _check_not_by_hand(workspace, row, path, last)
    commit = ""
    if dry_run:
        if not is_held:
            promotion.check_work_trees(repo, path, row.commit, release)
    elif not is_held:
        message, reason = _message(row, path, gauge, test, version), f"skillgit: promote {name}"
        commit = promotion.promote(
            repo, path, row.commit, message, time=workspace.context.clock(), reason=reason, release=release
        )
        workspace.index.refresh()
    elif release is not None and not is_tagged:
        promotion.tag_release(repo, release, time=workspace.context.clock(), reason=f"skillgit: release {name}")
        commit = trunk
    return Promoted(
        run=row.run,
        version=row.version or 0,
        skill=path,
        score=row.score,
        test=test,
        before=last.version if last is not None else "",
        commit=commit,
        held=is_held and is_tagged,
        release=version,
        tag=refs.short(release.tag) if release is not None else "",
        branch=refs.short(branch),
    )


def _release(workspace: Workspace, row: LogRow, path: str, version: str) -> promotion.Release:
    skill = path.rpartition("/")[2]
    try:
        text = promotion.document_of(workspace.repo, row.commit, path).decode()
    except UnicodeDecodeError as error:
        raise SkillError(f"{path}/SKILL.md of {row.address} is not UTF-8", hint="skillgit lint") from error
    tag = refs.release_tag(skill, version)
    return promotion.Release(
        tag=tag,
        is_tagged=workspace.repo.tip(tag) is not None,
        message=f"{skill} {version}\n\nVersion {row.version} of run {row.run}.\n",
        document=frontmatter.with_version(text, version).encode(),
    )


def _holds_as_released(workspace: Workspace, row: LogRow, path: str, trunk: str) -> bool:
    """Say whether the trunk has the version's text as one that it was released as."""
    repo = workspace.repo
    try:
        number = frontmatter.version_of(promotion.document_of(repo, trunk, path).decode())
        theirs = promotion.document_of(repo, row.commit, path).decode()
        is_released = bool(number) and repo.tip(refs.release_tag(path.rpartition("/")[2], number)) is not None
        return is_released and promotion.holds(
            repo, path, row.commit, frontmatter.with_version(theirs, number).encode()
        )
    except (RevisionNotFoundError, SkillError, UnicodeDecodeError):
        return False


def _check_not_by_hand(workspace: Workspace, row: LogRow, path: str, last: promotion.LastChange | None) -> None:
    """Refuse to replace what someone wrote on the trunk after the version's line left it."""
    if last is None or last.version or workspace.repo.reaches(row.commit, last.commit):
        return
    seed = queries.row_of_version(workspace.index, row.run, 0)
    if seed is not None and promotion.holds(workspace.repo, path, seed.commit):
        return
    branch = refs.short(promotion.existing_trunk(workspace.repo)[0])
    difference = f"git diff {row.commit[:_SHORT]} {quote(branch)} -- {quote(path)}"
    raise ConflictError(
        f"{path} was changed on {branch} by hand since: {last.commit[:_SHORT]} {last.subject}",
        hint=f"{difference} shows the difference; --force replaces it",
    )


def _test_score(workspace: Workspace, row: LogRow, gauge: Gauge) -> float | None:
    """Return the newest score on the test split as the run measures, from its end or from a note that agrees."""
    scores = [
        Scored(evaluation.hard, evaluation.soft).value(gauge.metric, gauge.soft_weight)
        for evaluation in known_evaluations(workspace, row.commit, row)
        if evaluation.split == Split.TEST.value and evaluation.scored and not evaluation.differs
    ]
    return scores[-1] if scores else None


def _message(row: LogRow, path: str, gauge: Gauge, test: float | None, release: str) -> str:
    name = str(row.address)
    metric = gauge.metric.value if gauge.metric is not Metric.MIXED else f"mixed ({gauge.soft_weight:g} soft)"
    splits = {"selection": row.score, "test": test}
    scores = [f"{split}: {metric} {score:.4f}" for split, score in splits.items() if score is not None]
    scores_text = "\n".join(scores) or "It has not been measured."
    release_text = f"It is released as {release}, and its metadata say so.\n\n" if release else ""
    return (
        f"promote {name}: {row.title}\n\n{path} is that of version {row.version} of run {row.run}.\n\n"
        f"{release_text}{scores_text}\n\n"
        f"Skillgit-{promotion.TRAILER}: {name}\n"
    )
