"""``skillgit fsck``: whether history keeps its invariants, and the repair of what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from shlex import quote

from skillgit.app.history.status import unfinished
from skillgit.app.recorded.recomputed_gates import recompute_gates
from skillgit.app.recorded.run_record import edit_schedule, least_coverage
from skillgit.app.setup.run_setup import refused_settings
from skillgit.app.skill_format import frontmatter
from skillgit.app.upkeep import run_checks
from skillgit.app.upkeep.commit_checks import note_problems
from skillgit.app.upkeep.evidence_checks import trajectory_problems
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import ConflictError, HistoryError, RevisionNotFoundError, SkillError, SkillgitError
from skillgit.index import index_check, queries, refresh
from skillgit.store import history, history_reader, integrity, refs
from skillgit.store import repair as repairs
from skillgit.store.commit_message import Recorded
from skillgit.store.integrity import IntegrityProblem as Found
from skillgit.store.integrity import sight_problems
from skillgit.store.lock import RunLock
from skillgit.store.repair import StepBack, plan_step_back, step_back
from skillgit.store.repo import Repo
from skillgit.store.seals import folders_elsewhere
from skillgit.store.trunk import trunk

_ELSEWHERE = frozenset({refs.RefKind.TAG, refs.RefKind.DROPPED, refs.RefKind.PLAN, refs.RefKind.NOTES})
"""The refs that do not show that a run is one of this repository: a clone of its accepted line may have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    run: str = ""  # the run; empty if it is not wrong with one run alone
    commit: str = ""  # the commit; empty if the problem lies in no commit
    sentence: str
    repairable: bool = False  # whether it can be mended without losing a fact
    remark: bool = False  # whether it breaks no rule of history, and is something to know before the run is used


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    runs: int
    commits: int
    problems: tuple[Problem, ...]  # what is wrong, and remarks; after a repair, what is left of it
    mended: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return all(problem.remark for problem in self.problems)


def fsck(context: Context, run: str | None, deep: bool = False, *, repair: bool = False) -> Checked:  # noqa: FBT001, FBT002 - as agreed
    """Check ``run`` or all; ``deep`` asks gates again and compares the index, ``repair`` mends what follows."""
    repo = Repo.discover(context.directory)
    repairs_made = _mended_files(repo) if repair else []
    if problems := _file_problems(repo):
        # Whatever reads such a file may wait for ever.
        return Checked(runs=0, commits=0, problems=tuple(problems), mended=tuple(repairs_made))
    # before any look at the workspace, which replaces an index that cannot be read without a word
    fault = index_check.fault(repo) if repair else None
    index_problems = _rebuild_index(repo, fault, repairs_made) if fault is not None else []
    sight = [_of("", problem) for problem in sight_problems(repo)]
    with open_workspace(context) as workspace:
        names = _names(workspace) if run is None else [_known(workspace, run)]
        if repair and not sight:
            repairs_made += [sentence for name in names for sentence in _mended_run(context, workspace, name)]
            workspace.index.refresh()
        problems = [
            *sight,
            *_private_remarks(repo),
            *_left_problems(repo),
            *_trunk_remarks(repo),
            *_note_problems(workspace, names if run is not None else None),
        ]
        with workspace.repo.still():
            problems += [problem for name in names for problem in _problems(workspace, name, deep=deep)]
        stale = _stale(workspace, names if run is not None else None) if deep else []
        commits = sum(queries.events_of(workspace.index, name) for name in names)
    if repair and stale:
        stale = _rebuild_index(repo, index_check.IndexFault.STALE, repairs_made)
    problems += [*index_problems, *stale]
    return Checked(runs=len(names), commits=commits, problems=tuple(problems), mended=tuple(repairs_made))


def _rebuild_index(repo: Repo, fault: index_check.IndexFault, repairs_made: list[str]) -> list[Problem]:
    with refresh.rebuild(repo) as index:
        if index.on_disk:
            if fault is not index_check.IndexFault.MISSING:  # as in every new clone
                repairs_made.append(f"rebuilt the index, which was {fault}")
            return []
    folder = repo.common_dir / "skillgit"
    return [Problem(sentence=f"the index cannot be written; ls -l {quote(str(folder))} shows who owns or locks it")]


def _mended_files(repo: Repo) -> list[str]:
    aside = [damage for damage in integrity.damaged_files(repo) if damage.loose]
    sentences = [f"{damage.sentence}; set aside as {integrity.set_aside(repo, damage)}" for damage in aside]
    return [*sentences, *repairs.remove_locks(repo), *repairs.mend_packed(repo)]


def _file_problems(repo: Repo) -> list[Problem]:
    if text := repairs.packed_damage(repo):
        sentence = f"{text}; git reads no history beside it, and a repair keeps the lines that are whole"
        return [Problem(sentence=sentence, repairable=True)]
    return [
        Problem(sentence=f"{damage.sentence}; history is not read beside it", repairable=damage.loose)
        for damage in integrity.damaged_files(repo)
    ]


def _private_remarks(repo: Repo) -> Iterator[Problem]:
    """Yield which private folders were moved away; one's own from another machine is one, too."""
    for folder in folders_elsewhere(repo.common_dir):
        sentence = (
            f"{folder} is another user's or another machine's and is not used; if it is yours, move what you"
            f" want to keep, such as ledger.db, to {folder.with_name('skillgit')}"
        )
        yield Problem(sentence=sentence, remark=True)


def _left_problems(repo: Repo) -> list[Problem]:
    try:
        locks = repairs.left_locks(repo)
    except ConflictError:
        # nobody can lock anything where nobody can write
        return []
    return [Problem(sentence=f"{path} was left by a process that died", repairable=True) for path in locks]


def _trunk_remarks(repo: Repo) -> list[Problem]:
    """Return why the last commit of the trunk cannot be read; what plain git wrote there is no part of any run."""
    name = trunk(repo)
    tip, short = repo.tip(name), refs.short(name)
    try:
        if tip is not None:
            repo.commit(tip)
    except SkillgitError as error:
        sentence = f"{short}: {error.message}; its runs are whole, and a promotion needs a later commit on {short}"
        return [Problem(commit=tip or "", sentence=sentence, remark=True)]
    return []


def _names(workspace: Workspace) -> list[str]:
    parts = map(refs.parse, (*workspace.repo.tips(), *workspace.repo.damaged_refs()))
    own = {ref.run for ref in parts if ref is not None and ref.kind not in _ELSEWHERE and not ref.remote}
    return sorted({*history_reader.runs(workspace.repo), *own, *repairs.logged_runs(workspace.repo)})


def _known(workspace: Workspace, run: str) -> str:
    return run if run in workspace.index.broken or run in _names(workspace) else find_run(workspace, run)


def _mended_run(context: Context, workspace: Workspace, run: str) -> list[str]:
    if refs.run_branch(run) not in workspace.repo.tips() and not _is_damaged(workspace.repo, run):
        # a clone; its writer's repository is where such a run is mended
        return []
    with RunLock(workspace.repo, run, context.clock):
        try:
            back = [f"{run}: {lines}" for lines in repairs.restore_candidates(workspace.repo, run)]
        except (HistoryError, RevisionNotFoundError):
            # the check says what of it cannot be read
            back = []
        if (plan := plan_step_back(workspace.repo, run)) is not None:
            lines = step_back(workspace.repo, run, plan)
            workspace.index.refresh()
            return [*back, *(f"{run}: {line}" for line in (*lines, *_bought_again(workspace, run, plan)))]
        # names that follow from a history that is not sound may be all that is left of the one that was
        if not all(problem.repairable or problem.remark for problem in run_checks.check_run(workspace.repo, run)):
            return back
        try:
            return [*back, *(f"{run}: {lines}" for lines in repairs.repair_run(workspace.repo, run))]
        except (HistoryError, RevisionNotFoundError):
            # what cannot be read cannot be mended; the check says what it is
            return back


def _is_damaged(repo: Repo, run: str) -> bool:
    """Say whether the branch of ``run`` is lost, and not only absent as in a clone."""
    name = refs.run_branch(run)
    return name in repo.damaged_refs() or (repo.common_dir / "logs" / name).is_file()


def _bought_again(workspace: Workspace, run: str, plan: StepBack) -> Iterator[str]:
    """Yield what going on with ``run`` buys again, by what the ledger keeps of the events that are lost."""
    entries = unfinished(workspace, [run]) or ()
    for entry in entries:
        calls = _calls(entry.cost.calls)
        yield f"{entry.what} is made again; the ledger keeps {calls} of it, which are not bought again"
    cost = sum(record.event.cost.calls for record in plan.losses if hasattr(record.event, "cost"))
    if (lacking := cost - sum(entry.cost.calls for entry in entries)) > 0:
        yield f"the ledger lacks {_calls(lacking)} of the {cost} that what is lost had cost; they are bought again"
    elif not entries:
        yield "the ledger keeps no call of what is lost; going on buys again what it takes to make it"


def _calls(count: int) -> str:
    return f"{count} call{'s' * (count != 1)}"


def _problems(workspace: Workspace, run: str, *, deep: bool) -> Iterator[Problem]:
    repo = workspace.repo
    if (plan := plan_step_back(repo, run)) is not None:
        last = plan.events[-1]
        sentence = f"what comes after {last.event.kind} is damaged; the run can go on from there"
        yield Problem(run=run, commit=last.commit, sentence=sentence, repairable=True)
    problems = list(run_checks.check_run(repo, run, budget=edit_schedule(workspace, run)))
    for problem in problems:
        yield _of(run, problem)
    try:
        yield from _vanished(repo, run, {problem.commit for problem in problems})
        records = history_reader.read_run(repo, run)
        if refusals := refused_settings(workspace, run):
            sentence = f"it began elsewhere, and its configuration sets {refusals}, which only you may set"
            yield Problem(run=run, commit=records[0].commit, sentence=sentence, remark=True)
        for version, commit in history.versions(records).items():
            if text := _frontmatter_problem(repo, commit, records[0].event.skill):
                yield Problem(run=run, commit=commit, sentence=f"{version_label(version)}: {text}")
        sentences = {(problem.commit, problem.sentence) for problem in problems}
        for problem in _deep_problems(repo, records) if deep else ():
            if (problem.commit, problem.sentence) not in sentences:
                yield _of(run, problem)
    except SkillgitError:
        # said already, by the commits that cannot be read
        return


def _vanished(repo: Repo, run: str, sentences: set[str]) -> Iterator[Problem]:
    """Yield the refused candidates of a run whose branch is gone, but for those that ``sentences`` name."""
    if refs.run_branch(run) in repo.tips(run):
        for name, oid in repairs.lost_candidates(repo, run).items():
            if oid not in sentences:
                sentence = f"{refs.short(name)} is gone, and its reflog says where it stood"
                yield Problem(run=run, commit=oid, sentence=sentence, repairable=True)


def _deep_problems(repo: Repo, records: list[Recorded]) -> Iterator[Found]:
    """Yield what only opening every file and asking every gate again finds."""
    yield from trajectory_problems(repo, records)
    for gate in recompute_gates(repo, records, least_coverage(repo, records)):
        for sentence in gate.differing:
            yield Found(commit=gate.commit, sentence=sentence)


def _frontmatter_problem(repo: Repo, commit: str, path: str) -> str:
    try:
        text = history_reader.skill_at(repo, commit, path).files.get(DOCUMENT)
    except (SkillgitError, KeyError):
        return ""
    try:
        frontmatter.read((text or b"").decode())
    except UnicodeDecodeError:
        return f"{DOCUMENT} is not UTF-8"
    except SkillError as error:
        return error.message
    return ""


def _note_problems(workspace: Workspace, names: list[str] | None) -> Iterator[Problem]:
    """Yield problems of notes; those on commits of other runs only where all runs are asked for."""
    for problem in note_problems(workspace.repo):
        row = queries.row_of_commit(workspace.index, problem.commit)
        run = row.run if row is not None else ""
        if names is None or run in names:
            yield _of(run, problem)


def _of(run: str, problem: Found) -> Problem:
    return Problem(run=run, **asdict(problem))


def _stale(workspace: Workspace, names: list[str] | None) -> list[Problem]:
    """Return the runs that the index says something else of than git; all, and what is of no run, without ``names``."""
    differing = sorted(index_check.differing_runs(workspace.index))
    sentence = "the index differs from what git holds"
    return [Problem(run=run, sentence=sentence, repairable=True) for run in differing if names is None or run in names]
