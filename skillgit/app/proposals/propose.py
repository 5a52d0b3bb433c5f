"""``skillgit propose``: skills are trained on their reviewed tasks, and what is better is left as a branch.

For each skill: pin what it is trained from, train or go on with its run, judge the best version on items that chose no
version, write one commit, move the branch, and, if asked to, push it and open a pull request. A process that dies
anywhere is followed by one that looks at what is there and does what is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from skillgit.app.history.status import LEDGER, unfinished
from skillgit.app.interventions.three_way_merge import merge
from skillgit.app.measure.pull_request_gate import gate
from skillgit.app.measure.pull_request_verdicts import SkillReport
from skillgit.app.measure.requests import GateRequest
from skillgit.app.proposals.jobs import Jobs, SkillJob
from skillgit.app.proposals.proposal import (
    MeasuredGain,
    ProposeReport,
    SkillProposal,
    Upshot,
    exit_code,
    task_counts,
)
from skillgit.app.proposals.pull_request import Publication
from skillgit.app.proposals.requests import ProposeRequest
from skillgit.app.recorded.score_summary import Scores
from skillgit.app.setup.basis import models_of
from skillgit.app.setup.model_session import EvalProgress
from skillgit.app.setup.plan import Plan, obstacle, whole_plan
from skillgit.app.setup.planner import PREFLIGHT
from skillgit.app.train.run_report import Trained
from skillgit.app.train.train import plan_train, train
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import version_in
from skillgit.app.workspace.skills_here import own_tasks
from skillgit.app.workspace.workspace import Workspace
from skillgit.calls.ledger import Ledger
from skillgit.domain.address import version_label
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import Split
from skillgit.domain.event import RunOutcome
from skillgit.domain.gate_policies import PAIRED, STRICT
from skillgit.domain.rehearsal import rehearsal
from skillgit.domain.run_state import fold
from skillgit.domain.skill import Skill
from skillgit.engine.search import Watcher
from skillgit.errors import BudgetError, ConflictError, ExitCode, ServiceError, SkillgitError, StoppedError
from skillgit.store import refs
from skillgit.store.git_binary import git
from skillgit.store.history import run_names
from skillgit.store.history_reader import read_run, skill_at
from skillgit.store.lock import ProposalLock
from skillgit.store.promotion import move_proposal, proposed_run, write_proposal
from skillgit.store.repo import Repo, message_of
from skillgit.store.seals import is_own
from skillgit.store.work_tree import skill_tree

_SHORT = 12
_TRIES = 3
"""How often a branch is looked at again that another machine moved meanwhile."""
_NOT_NEW = {
    Upshot.PROPOSED: "what it proposed was taken or declined",
    Upshot.NO_BETTER: "it brought no better version",
    Upshot.CANNOT_TELL: "the gain of its best version may be chance",
    Upshot.BEHIND: "another proposal scores no lower; once its branch is deleted, this one has its turn",
}
"""How a proposal ended after which nothing is new, to be behind the name of its run."""


def propose(context: Context, request: ProposeRequest, watcher: Watcher) -> ProposeReport:
    """Propose what is better. Where one skill fails the others go on, and each may spend what those before it left."""
    jobs = Jobs(context, request)
    with Workspace(jobs.context) as workspace:
        publication = Publication.to(jobs.context, workspace.repo, jobs.request.base) if request.pull_request else None
    proposals: list[SkillProposal] = []
    for path in jobs.skills:
        caps = request.caps.without(sum((entry.cost for entry in proposals), Cost()))
        proposals.append(_Proposing(jobs, publication, watcher, path, caps).carry_out())
        if proposals[-1].error is ExitCode.INTERRUPTED:
            break
    cost = sum((entry.cost for entry in proposals), Cost())
    return ProposeReport(
        base=jobs.request.base, proposals=tuple(proposals), cost=cost, exit_code=exit_code((*proposals,))
    )


def plan_propose(context: Context, request: ProposeRequest) -> Plan:
    """Return what :func:`propose` would do with the same request; nothing is written and no model is asked."""
    jobs, facts, plans, codes = Jobs(context, request), dict[str, str](), dict[str, Plan](), list[ExitCode]()
    with Workspace(jobs.context) as workspace:
        publication = Publication.to(jobs.context, workspace.repo, jobs.request.base) if request.pull_request else None
    for path in jobs.skills:
        name = path.rpartition("/")[2]
        try:
            with Workspace(jobs.context) as workspace:
                job = jobs.job(workspace, path)
                tracked = refs.tracking(publication.remote.name, job.branch) if publication is not None else ""
                facts[name] = _settled(jobs, workspace, job, (tracked and workspace.repo.tip(tracked)) or "")[2]
                caps = request.caps.beside(_counted(workspace, job.pin.run))
            if facts[name]:
                continue
            plans[name] = plan_train(jobs.context, job.training(caps, request.caps.max_calls))
            of_run = plans[name].facts
            parts = (
                of_run["data"],
                f"target {of_run['target']}",
                f"optimizer {of_run['optimizer']}",
                of_run.get("models", ""),
            )
            facts[name] = f"run {job.pin.run} from {job.pin.base[:_SHORT]}; {'; '.join(filter(None, parts))}"
        except SkillgitError as error:
            facts[name] = obstacle(error.message, error.hint)
            codes.append(error.exit_code)
    plan = whole_plan("propose", facts, plans, request.caps, once=PREFLIGHT)
    return replace(plan, exit_code=next(iter(codes), ExitCode.OK))


def _settled(jobs: Jobs, workspace: Workspace, job: SkillJob, there: str) -> tuple[str, Upshot | None, str]:
    """Return the commit of the proposal of the job's run, empty without one, and how it ended; None for not yet.

    ``there`` is what the remote has as the branch, empty for nothing.
    """
    repo, run = workspace.repo, job.pin.run
    tips = (tip for tip in (repo.tip(job.branch), there) if tip and proposed_run(repo, tip) == run)
    standing, old = next(tips, ""), f"nothing is new since run {run}"
    if standing and jobs.is_taken(workspace, job.path, standing):
        return standing, Upshot.NOTHING_NEW, f"{old}: what it proposed was taken"
    if standing:
        return standing, Upshot.STANDS, f"{refs.short(job.branch)} has what run {run} brought, and nothing is new since"
    if job.pin.answer:
        return "", Upshot.NOTHING_NEW, f"{old}: {_NOT_NEW[Upshot(job.pin.answer)]}"
    return "", None, ""


class _Proposing:
    """The work on one skill within what is left of the caps."""

    def __init__(self, jobs: Jobs, publication: Publication | None, watcher: Watcher, path: str, caps: Caps) -> None:
        self._jobs, self._context, self._watcher = jobs, jobs.context, watcher
        self._publication, self._path, self._caps = publication, path, caps
        self._name = path.rpartition("/")[2]
        self._cost = Cost()
        self._result = SkillProposal(skill=path, answer=Upshot.FAILED)

    _workspace: Workspace
    _repo: Repo
    _job: SkillJob
    _there: str  # what the remote has as the branch; empty for nothing

    def carry_out(self) -> SkillProposal:
        """Return how it ended; an error of the user's, a provider's or the machine's is part of that."""
        try:
            with (
                Workspace(self._context) as self._workspace,
                ProposalLock(self._workspace.repo, self._name, self._context.clock),
            ):
                self._carry_out()
        except StoppedError:
            self._end(Upshot.UNFINISHED, "it was stopped", error=ExitCode.INTERRUPTED)
        except BudgetError as error:
            self._end(Upshot.UNFINISHED, error.message, hint="the same command goes on", error=error.exit_code)
        except SkillgitError as error:
            is_made = self._result.answer in {Upshot.PROPOSED, Upshot.STANDS}
            answer = self._result.answer if is_made else Upshot.FAILED
            self._end(answer, error.message, hint=error.hint, error=error.exit_code)
        return replace(self._result, cost=self._cost)

    def _end(self, answer: Upshot, sentence: str, *, hint: str = "", error: ExitCode = ExitCode.OK) -> None:
        self._result = replace(self._result, answer=answer, sentence=sentence, hint=hint, error=error)

    @property
    def _left(self) -> Caps:
        return self._caps.without(self._cost)

    def _carry_out(self) -> None:
        workspace, repo = self._workspace, self._workspace.repo
        self._repo, self._job = repo, self._jobs.job(workspace, self._path)
        job, pin = self._job, self._job.pin
        self._result = replace(self._result, run=pin.run, base=pin.base, branch=refs.short(job.branch))
        there = self._there = self._publication.tip(repo, job.branch) if self._publication is not None else ""
        standing, answer, sentence = _settled(self._jobs, workspace, job, there)
        if standing:
            self._conclude(Upshot.PROPOSED, standing, pin.url)
        if answer is None:
            pin.write(repo, self._name)
            training = self._train()
            workspace.index.refresh()
            self._decide(training)
            return
        self._end(answer, sentence)
        if answer is Upshot.STANDS:
            self._result = replace(self._result, commit=standing)
            commit = self._against(there, standing) if there not in {"", standing} else standing
            if commit:
                self._publish(commit)

    def _conclude(self, answer: Upshot, commit: str = "", url: str = "") -> None:
        replace(self._job.pin, answer=answer.value, commit=commit, url=url).write(self._repo, self._name)

    def _refuse(self, answer: Upshot, sentence: str) -> None:
        self._conclude(answer)
        self._end(answer, sentence)

    def _train(self) -> Trained:
        repo, job = self._repo, self._job
        if self._left.spent_up:
            raise BudgetError("the skills before it have spent what there was", hint="the same command goes on")
        if git(repo, "status", "--porcelain", "--", self._path).out:
            self._watcher.remark(f"{self._path} has changes that are not committed; they stay where they are")
        self._watcher.remark(f"{self._name}: run {job.pin.run} from {job.pin.base[:_SHORT]}")
        before, baseline = _bought(repo, job.pin.run), _counted(self._workspace, job.pin.run)
        try:
            request = job.training(self._left.beside(baseline), self._jobs.request.caps.max_calls)
            return train(self._context, request, self._watcher)
        finally:
            self._cost += _bought(repo, job.pin.run) - before

    def _decide(self, training: Trained) -> None:
        job, rows = self._job, {row.label: row for row in training.report}
        best = rows["best"]
        if not best.version:
            answer = Upshot.CANNOT_TELL if training.outcome is RunOutcome.UNDERPOWERED else Upshot.NO_BETTER
            self._refuse(answer, training.sentence.rstrip("."))
            return
        commit = version_in(self._workspace, f"{job.pin.run}/{version_label(best.version)}").commit
        self._result = replace(self._result, version=best.version)
        report = self._judge(job.pin.base, commit)
        if self._gain(report) is None:
            return
        first, last = ("none" if row.selection is None else f"{row.selection:.4f}" for row in (rows["seed"], best))
        cost = training.cost
        facts = {
            "selection": f"{last}, was {first}; these items chose the version",
            "target": job.setup.routes["target"].served.phrase,
            "models": rehearsal(**models_of(job.setup)),
            "items": ", ".join(f"{len(job.setup.task.items[split])} {split.value}" for split in Split),
            "tasks": task_counts(own_tasks(self._jobs.context.directory, self._name)),
            "cost": f"{cost.calls} calls, {cost.tokens_in} tokens in, {cost.tokens_out} out, {cost.price}",
        }
        self._place(commit, facts)

    def _judge(self, base: str, text: str | Skill, rule: str = PAIRED.name, *, head: str = "") -> SkillReport | None:
        """Compare ``text`` with what the skill is at ``base`` on the items that decide; None if they are the same.

        What is recorded is taken from there, and the rest is measured within the caps. ``head`` is the commit that
        holds the text, if it has one of its own by now: then the outcomes are noted there.
        """
        repo, job, is_noted, time = self._repo, self._job, bool(head), self._context.clock()
        head = head or write_proposal(repo, base, self._path, text, "a text to be measured\n", time=time)
        if skill_tree(repo, head, self._path) == skill_tree(repo, base, self._path):
            return None
        request = GateRequest(
            base=base,
            head=head,
            configs=(job.config,),
            overrides=job.overrides,
            **asdict(self._left),
            split=job.split.value,
            rule=rule,
            note=is_noted,
        )
        watcher = _Unwatched()
        try:
            with Workspace(self._context) as workspace:
                report = gate(workspace, request, watcher)
        finally:
            self._cost += watcher.cost
        if isinstance(report, Plan):
            raise TypeError("it was not a dry run")
        return report.skills[0]

    def _gain(self, report: SkillReport | None) -> MeasuredGain | None:
        """Return the gain of a text that may be proposed; for another one say why not, and return None."""
        gain = MeasuredGain.of(report, self._job.split.value) if report is not None else None
        self._result = replace(self._result, gain=gain)
        if report is None or gain is None:
            self._refuse(Upshot.NO_BETTER, "the best version has the text that it began with")
        elif report.word == "incomplete":
            raise ServiceError(report.reason, hint="the same command measures what is missing")
        elif report.word == "passes":
            return gain
        else:
            reason = report.reason or "it does not pass"
            answer = Upshot.CANNOT_TELL if gain.delta > 0 or report.word == "underpowered" else Upshot.NO_BETTER
            self._refuse(answer, reason)
        return None

    def _place(self, version: str, facts: Mapping[str, str]) -> None:
        """Write the commit on what the base is now, if it can be, and let the branch lead to it."""
        repo, job, pin, remark = self._repo, self._job, self._job.pin, ""
        now = self._jobs.base(self._workspace)
        whole: str | Skill = version
        if skill_tree(repo, now, self._path) != skill_tree(repo, pin.base, self._path):
            outcome = self._combined(now, version)
            if outcome is None:
                return
            whole, gain, remark = outcome
            if gain is not None:
                pin = replace(pin, base=now)
                self._result = replace(self._result, gain=gain, is_merged=True, base=now)
        is_ours = is_own(repo, start=read_run(repo, pin.run)[0].commit)
        message = self._result.message(pin, facts, remark, is_own=is_ours)
        commit = write_proposal(repo, pin.base, self._path, whole, message, time=self._context.clock())
        here = repo.tip(job.branch)
        for tip in dict.fromkeys(filter(None, (here, self._there))):
            commit = self._against(tip, commit)
            if not commit:
                return
        if commit != here:
            reason = f"skillgit: propose {pin.run}/{version_label(self._result.version)}"
            move_proposal(repo, job.branch, here, commit, reason=reason)
        self._conclude(Upshot.PROPOSED, commit)
        self._result = replace(self._result, commit=commit)
        self._end(Upshot.PROPOSED, remark)
        if self._result.is_merged:
            # no run records it, and the ledger has the answers
            self._judge(pin.base, whole, head=commit)
        self._publish(commit)

    def _combined(self, now: str, version: str) -> tuple[str | Skill, MeasuredGain | None, str] | None:
        """Return what to propose now that the base has another text: both together with the gain, measured again.

        Without a gain it is the version itself, on the commit that it was measured on, and the reason why. None if
        nothing is to be proposed, which is said.
        """
        repo, name = self._repo, self._jobs.request.base
        change = f"{name} changed {self._path} while it was trained"
        if not skill_tree(repo, now, self._path):
            return version, None, f"{name} has no {self._path} any more; this is for its last text"
        base, ours, theirs = (skill_at(repo, commit, self._path) for commit in (self._job.pin.base, now, version))
        merging = merge(base, ours, theirs)
        text = merging.settled(()) if not merging.conflicts else None
        if text is None:
            return version, None, f"{change}, in the same lines; a merge shows the conflict"
        try:
            report = self._judge(now, text)
        except (BudgetError, ServiceError) as error:
            return version, None, f"{change}; what a merge makes of both was not measured, for {error.message}"
        if report is None:
            self._refuse(Upshot.NO_BETTER, f"{name} has it already")
            return None
        gain = self._gain(report)
        return None if gain is None else (text, gain, f"{change}; this is both together, and was measured again")

    def _against(self, tip: str, commit: str) -> str:
        """Return which of two proposals the branch shall lead to; empty if ``tip`` stays, which is said."""
        repo, short = self._repo, refs.short(self._job.branch)
        if not proposed_run(repo, tip):
            raise ConflictError(
                f"{short} has work of someone's: {tip[:_SHORT]} is not a proposal",
                hint=f"git branch -m {short} NAME keeps it elsewhere; or propose with --branch",
            )
        if skill_tree(repo, tip, self._path) == skill_tree(repo, commit, self._path):
            return tip
        if self._jobs.is_taken(self._workspace, self._path, tip):
            return commit
        report = self._judge(tip, commit, STRICT.name)
        if report is not None and (report.word == "passes" or self._is_outdated(report, tip, commit)):
            return commit
        scores = "" if report is None else f", {report.base.score or 0:.4f} against {report.head.score or 0:.4f}"
        sentence = f"{short} has the proposal of run {proposed_run(repo, tip)}, which scores no lower on the same items"
        self._refuse(Upshot.BEHIND, f"{sentence}{scores}")
        way = f"git diff {self._jobs.request.base}...{tip[:_SHORT]}; once {short} is deleted, propose goes on with this"
        self._result = replace(self._result, commit="", hint=way)
        return ""

    def _is_outdated(self, report: SkillReport, tip: str, commit: str) -> bool:
        """Say whether ``tip``, which scores the same, was made for a text that the base left, as ``commit`` was not."""
        is_level = report.word == "fails" and report.base.score == report.head.score
        suits = [self._jobs.suits(self._workspace, self._path, oid) for oid in (tip, commit)]
        return is_level and suits == [False, True]

    def _publish(self, commit: str) -> None:
        """Push the branch and open a pull request; nothing where that was not asked for."""
        publication, repo, job, there = self._publication, self._repo, self._job, self._there
        if publication is None:
            return
        publication.check(job.branch)
        for _ in range(_TRIES):
            if there == commit or publication.push(self._workspace, job.branch, commit, there):
                break
            there = publication.tip(repo, job.branch)
            if there and (commit := self._against(there, commit)) in {"", there}:
                break
        else:
            raise ConflictError(f"{refs.short(job.branch)} moves while it is pushed", hint="propose again")
        if not commit:
            return
        title, _, body = message_of(repo.commit(commit)).partition("\n\n")
        url = publication.open(job.branch, commit, title, body)
        self._conclude(Upshot.PROPOSED, commit, url)
        self._result = replace(self._result, commit=commit, remote=publication.remote.name, url=url)


def _bought(repo: Repo, run: str) -> Cost:
    """Return what this machine has bought for ``run``, with what is in no commit yet."""
    with Ledger.read(repo.private_dir / LEDGER) as ledger:
        return ledger.spent(f"{run}/", f"{run}0")  # "0" comes after "/"


def _counted(workspace: Workspace, run: str) -> Cost:
    """Return what a process that goes on with ``run`` counts as spent before it buys anything."""
    purchases = _bought(workspace.repo, run)
    if run not in run_names(workspace.repo.tips()):
        return purchases
    making = sum((entry.cost for entry in unfinished(workspace, [run]) or ()), Cost())
    return max(purchases, fold(record.event for record in read_run(workspace.repo, run)).cost + making, key=_size)


def _size(cost: Cost) -> tuple[float, int]:
    return cost.usd, cost.calls


class _Unwatched:
    """Looks on while texts are compared: what is measured is part of the result."""

    def __init__(self) -> None:
        self.cost = Cost()

    def progress(self, progress: EvalProgress) -> None:
        self.cost = progress.cost

    def measured(self, name: str, split: str, scores: Scores) -> None: ...

    def remark(self, text: str) -> None: ...

    def spent(self, cost: Cost) -> None: ...
