"""``skillgit propose --model``: whether each skill still helps on another model, and what is proposed if it does not.

A skill is measured with its text and with its name and description alone, on the same items, as many as the decision
takes. What was answered is in the ledger and in notes like every evaluation, so that the same command after a stop pays
for nothing again. Which models a server has listed before is a file of the repository's own folder: a model is added
once it was judged for every skill.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shlex import join
from xml.etree.ElementTree import Element

from skillgit.app.measure import junit
from skillgit.app.measure.arms import NONE, resolve_all, set_up_arms
from skillgit.app.measure.retest import model_overrides
from skillgit.app.measure.verify import draw
from skillgit.app.proposals.jobs import Jobs
from skillgit.app.proposals.pull_request import Publication
from skillgit.app.proposals.requests import ProposeRequest
from skillgit.app.recorded.score_summary import SkillComparison, compare
from skillgit.app.setup.basis import ResultBasis, find_lender
from skillgit.app.setup.measurement import Arm, ArmTrial, Measurement
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan, obstacle, total_of, whole_plan
from skillgit.app.setup.planner import PREFLIGHT
from skillgit.app.setup.run_setup import Setup
from skillgit.app.skill_format.atomic_write import write_output
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.request import OnTerms
from skillgit.app.workspace.revision import version_in
from skillgit.app.workspace.skill_choice import name_of
from skillgit.app.workspace.skills_here import own_tasks
from skillgit.app.workspace.workspace import Workspace
from skillgit.calls.route import Route
from skillgit.domain.address import version_label
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import Split
from skillgit.domain.outcomes import Pairs
from skillgit.domain.usefulness import WORTH, Advice, Usefulness, items_needed, judge
from skillgit.errors import (
    BudgetError,
    ConfigError,
    ConflictError,
    ExitCode,
    FatalBackendError,
    NotFoundError,
    ServiceError,
    SkillgitError,
    StoppedError,
    UsageError,
)
from skillgit.files import read_plain, write_file
from skillgit.index import queries
from skillgit.plugin.backend import ListsModels
from skillgit.store import refs
from skillgit.store.lock import ProposalLock
from skillgit.store.promotion import RETIRED, move_proposal, retired_skill, write_proposal
from skillgit.store.repo import Repo, message_of
from skillgit.store.trunk import trunk_revision
from skillgit.store.work_tree import skill_tree

NEW = "new"
"""Stands for the models that a server lists and did not list before."""
_SHORT = 12
_NAME = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,199}", re.ASCII)
"""The name of a model, as a server may give it: it gets into settings, commands and messages."""
_LISTED = "models.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillOnModel:
    """What was found of one skill on one model."""

    skill: str  # its folder
    model: str  # as it was named
    answer: str = "failed"  # a :class:`Usefulness`; ``failed`` where there is none
    action: Advice = Advice.KEEP
    sentence: str = ""  # why, without a full stop
    hint: str = ""  # a command that leads on, or out
    text: str = ""  # which text it is: file, revision, event and commit
    basis: ResultBasis = field(default_factory=ResultBasis)
    items: int = 0  # how many were measured
    of: int = 0  # how many the split has
    worth: float = WORTH  # the least gain for which it is kept
    needed: int = 0  # how many it takes to find such a gain, or its lack, four times out of five
    score: float | None = None
    without: float | None = None  # the score of the same items without the skill
    compared: SkillComparison | None = None  # the two, item by item; p is for a gain, one-sided
    p_worse: float | None = None  # likewise for a loss
    p_worth: float | None = None  # at most the chance of such gains if the skill gained ``worth``
    branch: str = ""
    commit: str = ""  # the commit that removes it; empty where that is not proposed
    url: str = ""  # its pull request; empty for none
    noted: int = 0
    cost: Cost = field(default_factory=Cost)
    warnings: tuple[str, ...] = ()
    error: ExitCode = ExitCode.OK  # the code of the error that ended it

    @property
    def key(self) -> str:
        return f"{name_of(self.skill)} on {self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModels:
    """What a server listed."""

    server: str  # backend and address
    known: int  # how many models it had listed before
    new: tuple[str, ...]  # as ``backend/model``; none where it was never asked before


@dataclass(frozen=True, slots=True, kw_only=True)
class UsefulnessReport:
    base: str
    listed: tuple[ListedModels, ...]
    skills: tuple[SkillOnModel, ...]  # each skill on each model
    cost: Cost
    exit_code: ExitCode


def judge_usefulness(context: Context, request: ProposeRequest, watcher: EvalWatcher) -> UsefulnessReport | Plan:
    """Judge every skill on every model; where one fails the others go on, and the caps are for all together."""
    jobs = Jobs(context, request)
    with Workspace(jobs.context) as workspace:
        publication = Publication.to(jobs.context, workspace.repo, jobs.request.base) if request.pull_request else None
        servers = _Servers(workspace, jobs)
        works = [
            _Judging(jobs, workspace, path, model, watcher, error=servers.errors.get(path) if model == NEW else None)
            for path in jobs.skills
            for model in dict.fromkeys((*(name for name in request.models if name != NEW), *servers.new(path)))
        ]
        plans = {work.entry.key: work.plan() for work in works}
        facts = {key: plan.facts[key] for key, plan in plans.items()} | servers.facts
        plan = whole_plan("propose", facts, plans, request.caps, once=PREFLIGHT)
        if request.dry_run:
            return replace(plan, exit_code=next(filter(None, (work.entry.error for work in works)), ExitCode.OK))
        if works:
            watcher.remark(plan.sentence)
        entries: list[SkillOnModel] = []
        for work in works:
            spent = sum((entry.cost for entry in entries), Cost())
            entries.append(work.carry_out(request.caps.without(spent), publication))
            if entries[-1].error is ExitCode.INTERRUPTED:
                break
        servers.remember(still_open={work.entry.model for work in works if work.is_open})
        if request.junit:
            suites = [_suite(work.entry) for work in works]
            write_output(context.directory / request.junit, junit.document("propose", suites))
    codes = {entry.error for entry in entries} - {ExitCode.OK}
    order = (ExitCode.INTERRUPTED, *(entry.error for entry in entries))
    answer = ExitCode.NO if any(entry.action is not Advice.KEEP for entry in entries) else ExitCode.OK
    if answer is ExitCode.OK and any(entry.answer == Usefulness.CANNOT_TELL for entry in entries):
        answer = ExitCode.UNDERPOWERED
    return UsefulnessReport(
        base=jobs.request.base,
        listed=servers.listed,
        skills=tuple(entries),
        cost=sum((entry.cost for entry in entries), Cost()),
        exit_code=next((code for code in order if code in codes), answer),
    )


def _suite(entry: SkillOnModel) -> Element:
    """Return the test case of a skill on a model: what is kept passes, and what was not judged is an error."""
    gain = {} if entry.compared is None else {"gain": entry.compared.delta, "interval": entry.compared.interval}
    facts = {"model": entry.model, "text": entry.text, "score": entry.score, "without": entry.without, **gain}
    suite = junit.suite(entry.key, {**facts, "items": f"{entry.items} of {entry.of}", "commit": entry.commit})
    kind = {"failed": "error", Usefulness.CANNOT_TELL: "skipped", Usefulness.HELPS: ""}.get(entry.answer, "failure")
    sentence = entry.sentence or "it was not judged"
    junit.add_case(suite, "verdict", kind, f"{entry.answer}: {entry.action}; {sentence}", entry.hint)
    return suite


class _Servers:
    """The servers that answer for the targets of skills: what they list, and what they listed before."""

    def __init__(self, workspace: Workspace, jobs: Jobs) -> None:
        self._file = workspace.repo.private_dir / _LISTED
        self.errors: dict[str, SkillgitError] = {}
        """What kept a server from being asked, by skill."""
        self._by_skill: dict[str, str] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        for path in jobs.skills if NEW in jobs.request.models else ():
            try:
                route = _prepare(jobs, workspace, path, "")[0].routes["target"]
                server = f"{route.served.backend} {route.served.address}".strip()
                if server not in self._names:
                    names = asyncio.run(_listed(route))
                    self._names[server] = tuple(f"{route.served.backend}/{name}" for name in names)
                self._by_skill[path] = server
            except SkillgitError as error:
                self.errors[path] = error
        before = _listed_before(self._file)
        self.listed = tuple(
            ListedModels(
                server=server,
                known=len(before.get(server, names)),
                new=tuple(name for name in names if name not in before.get(server, names)),
            )
            for server, names in self._names.items()
        )

    @property
    def facts(self) -> dict[str, str]:
        return {
            f"at {each.server}": f"{each.known} known, new: {', '.join(each.new) or 'none'}" for each in self.listed
        }

    def new(self, path: str) -> tuple[str, ...]:
        """Return what the server of a skill's target did not list before; ``new`` where that is not known."""
        if path in self.errors:
            return (NEW,)
        return next((each.new for each in self.listed if each.server == self._by_skill.get(path)), ())

    def remember(self, still_open: set[str]) -> None:
        """Keep that models are known: all that a server lists at first, later those that are not ``still_open``."""
        if not self.listed:
            return
        names_by_server = _listed_before(self._file)
        for each in self.listed:
            names = (name for name in self._names[each.server] if name not in still_open or name not in each.new)
            names_by_server[each.server] = [*dict.fromkeys((*names_by_server.get(each.server, ()), *names))]
        write_file(self._file, json.dumps(names_by_server, indent=1, sort_keys=True).encode())


async def _listed(route: Route) -> list[str]:
    backend = route.backend
    if not isinstance(backend, ListsModels):
        raise UsageError(f"{route.served.backend} lists no models", hint="name one: skillgit propose --model MODEL")
    async with aclosing(backend), route.guarded():
        return [name for name in await backend.models() if _NAME.fullmatch(name)]


def _listed_before(file: Path) -> dict[str, list[str]]:
    """Return the models that each server had listed; of a damaged file nothing, so that a server begins again."""
    try:
        document = json.loads(read_plain(file))
    except (OSError, ValueError, RecursionError):
        return {}
    pairs = document.items() if isinstance(document, dict) else ()
    return {server: [*map(str, names)] for server, names in pairs if isinstance(names, list)}


def _prepare(jobs: Jobs, workspace: Workspace, path: str, model: str) -> tuple[Setup, Arm, Arm, OnTerms, str]:
    """Return what measures a skill on a model, empty for that of its run, its two texts, the terms, and a remark."""
    own, repo, base = workspace.of_skill(path), workspace.repo, jobs.base(workspace)
    lender, revision = find_lender(own, path), jobs.request.base
    if lender is not None:
        first, best = (version_in(own, f"{lender.run}/{label}") for label in (version_label(0), "best"))
        text = skill_tree(repo, base, path)
        if not text or (best.version and skill_tree(repo, first.commit, path) == text):
            # the trunk lacks it, or has what it was trained from
            revision = f"{lender.run}/{version_label(best.version or 0)}"
    config = jobs.config if jobs.request.config or lender is None else None
    overrides = (*jobs.request.overrides, *model_overrides(model or None))  # the last one counts
    terms = OnTerms(config=config, overrides=overrides, dry_run=jobs.request.dry_run, max_usd=jobs.request.max_usd)
    setup, arms, remark = set_up_arms(own, resolve_all(own, (revision,), (NONE,)), terms)
    if not arms.pairs:
        raise UsageError(f"{path} says no more than its name and description", hint=f"skillgit show {revision}")
    [(arm, bare)] = arms.pairs
    return setup, arm, bare, terms, remark


class _Judging:
    """One skill on one model: the plan, the measurement, the answer, and the branch of what is proposed."""

    def __init__(
        self,
        jobs: Jobs,
        workspace: Workspace,
        path: str,
        model: str,
        watcher: EvalWatcher,
        *,
        error: SkillgitError | None = None,
    ) -> None:
        self._jobs, self._workspace, self._path, self._watcher = jobs, workspace, path, watcher
        self.entry = SkillOnModel(skill=path, model=model)
        self.is_open = True
        """Whether the same command has to try again."""
        self._measurement: Measurement | None = None
        try:
            if error is not None:
                raise error
            setup, self._arm, self._bare, self._terms, remark = _prepare(jobs, workspace, path, model)
        except SkillgitError as fault:
            self._fail(fault)
            return
        items, alpha, worth = setup.task.items, setup.rule.alpha, setup.config.values.gate.worth
        self._split = Split.TEST if setup.config.values.evaluation.eval_test and items[Split.TEST] else Split.SELECTION
        every, needed = items[self._split], items_needed(alpha, worth)
        sample = draw(every, needed, 0)
        trials = [ArmTrial(arm=arm, split=self._split, items=sample) for arm in (self._arm, self._bare)]
        self._measurement = Measurement(workspace, setup, self._terms, watcher, command="propose", trials=trials)
        self.entry = replace(
            self.entry,
            text=self._arm.text,
            basis=self._measurement.basis,
            items=len(sample),
            of=len(every),
            worth=worth,
            needed=needed,
            warnings=(remark,) if remark else (),
        )

    def _fail(self, error: SkillgitError) -> None:
        # what is wrong with the model or the configuration would be tomorrow too: the model is known, and can be named
        self.is_open = not isinstance(error, FatalBackendError | UsageError | NotFoundError)
        self.entry = replace(self.entry, sentence=error.message, hint=error.hint, error=error.exit_code)

    def plan(self) -> Plan:
        """Return what it asks; where nothing can be measured, the reason is its only fact."""
        entry, measurement = self.entry, self._measurement
        if measurement is None:
            facts = {entry.key: obstacle(entry.sentence, entry.hint)}
            return Plan(command="propose", facts=facts, total=total_of(()))
        lack = f"; {entry.needed} would find a gain of {entry.worth:g}, or its lack, four times out of five"
        count = f"{entry.items} of {entry.of} {self._split.value}{lack if entry.items < entry.needed else ''}"
        facts = {entry.key: f"{count}\ntext  {entry.text}\nby    {entry.basis.sentence}"}
        try:
            with measurement.open(dry_run=True):
                return measurement.plan(facts, entry.warnings)
        except ConfigError as error:
            self._measurement = None
            self._fail(error)
            return self.plan()

    def carry_out(self, caps: Caps, publication: Publication | None) -> SkillOnModel:
        """Return what was found; an error of the user's, a provider's or the machine's is part of that."""
        if self._measurement is None:
            return self.entry
        try:
            if caps.spent_up:
                raise BudgetError("what came before has spent what there was", hint="the same command goes on")
            self._measure(self._measurement, caps)
            if self.entry.action is Advice.RETIRE:
                with ProposalLock(self._workspace.repo, name_of(self._path), self._jobs.context.clock):
                    self._retire(publication)
            self.is_open = False
        except StoppedError:
            self.entry = replace(self.entry, sentence="it was stopped", error=ExitCode.INTERRUPTED)
        except SkillgitError as error:
            self._fail(error)
        return self.entry

    def _measure(self, measurement: Measurement, caps: Caps) -> None:
        measurement.terms = replace(self._terms, **asdict(caps))
        self._watcher.remark(self.entry.key)

        async def work() -> tuple[str, ...]:
            await measurement.make_trials()
            return measurement.reused()

        def note() -> None:
            self._decide(measurement)
            entry = self.entry
            sampled = {"sampled_of": entry.of} if entry.items < entry.of else {}
            finding = {"score": entry.without, "answer": entry.answer, "action": entry.action, "p_worse": entry.p_worse}
            measurement.note({**sampled, **({"without": finding} if entry.compared else {})})

        with measurement.open():
            try:
                reuse = measurement.carry_out(None, work(), note=note)
            finally:
                self.entry = replace(self.entry, cost=measurement.cost(), noted=measurement.noted)
        if self.entry.compared is None:
            raise ServiceError("; ".join(measurement.shortages), hint="the same command measures what is missing")
        if not isinstance(reuse, Plan):
            self.entry = replace(self.entry, warnings=(*self.entry.warnings, *reuse))

    def _decide(self, measurement: Measurement) -> None:
        """Compare the two texts; nothing is decided where one of them has a score on too few items."""
        sides = [measurement.evaluations.get((arm.key, self._split)) for arm in (self._arm, self._bare)]
        evaluations = [each for each in sides if each is not None and each.scored]
        if len(evaluations) < len(sides) or measurement.shortages:
            return
        rule, entry = measurement.setup.rule, self.entry
        first, second = evaluations
        pairs = Pairs(first, second, rule.metric, rule.soft_weight)
        p_worse, room = Pairs(second, first, rule.metric, rule.soft_weight).p, 1.0 - float(pairs.current)
        gains = [float(gain) for gain in pairs.gains.values()]
        judgement = judge(gains, p=pairs.p, p_worse=p_worse, room=room, alpha=rule.alpha, worth=entry.worth)
        lacking = f"a gain of {entry.worth:g} is ruled out at {rule.alpha:g}"
        more = f"; that takes {entry.needed} items" if entry.items < entry.needed else ""
        sentence = {
            Usefulness.HELPS: "",
            Usefulness.NO_DIFFERENCE: f"{lacking}; the model alone leaves {room:.4f} to gain",
            Usefulness.HARMS: f"{lacking}, and it scores lower than without; the model alone leaves {room:.4f} to gain",
            Usefulness.CANNOT_TELL: f"no gain was found, but one of {entry.worth:g} is not ruled out{more}",
        }[judgement.answer]
        self.entry = replace(
            entry,
            answer=judgement.answer.value,
            action=judgement.action,
            sentence=sentence,
            hint=self._way(measurement.setup.run) if judgement.action is Advice.RETRAIN else "",
            score=float(pairs.score),
            without=float(pairs.current),
            compared=compare(rule, (self._arm.name, first), (NONE, second), sides=2),
            p_worse=p_worse,
            p_worth=judgement.p_worth,
        )

    def _way(self, run: str) -> str:
        """Return the command that trains the text for the model; ``run`` has lent its configuration."""
        request, repo, name, arm = self._jobs.request, self._workspace.repo, name_of(self._path), self._arm
        config = self._terms.config
        settings = [word for setting in self._terms.overrides for word in ("-o", setting)]
        if config is None:  # a run has lent its own, and lends it to a run from any of its versions
            tree = skill_tree(repo, arm.commit, self._path)
            versions = (row for row in queries.log_rows(self._workspace.index, run) if row.version is not None)
            version = next((row for row in versions if skill_tree(repo, row.commit, self._path) == tree), None)
            if version is not None:
                return join(["skillgit", "train", "--from", str(version.address), *settings])
        if own_tasks(self._jobs.context.directory, name):
            base = "" if request.base == trunk_revision(repo) else request.base
            terms = (("--config", request.config), ("--base", base))
            options = [word for option, value in terms if value for word in (option, value)]
            return join(["skillgit", "propose", name, *options, *settings])
        return join(["skillgit", "train", config or "CONFIG", "--from", arm.name, "--skill", name, *settings])

    def _retire(self, publication: Publication | None) -> None:
        """Leave a commit that removes the skill as its branch, and a pull request of it where one is wanted."""
        repo, path, branch = self._workspace.repo, self._path, self._jobs.branch(self._path)
        base, short = self._jobs.base(self._workspace), refs.short(branch)
        if not skill_tree(repo, base, path):
            self.entry = replace(self.entry, sentence=f"{self.entry.sentence}; {self._jobs.request.base} has no {path}")
            return
        here, there = repo.tip(branch), publication.tip(repo, branch) if publication is not None else ""
        tips = [tip for tip in (here, there) if tip]
        for tip in tips:
            if retired_skill(repo, tip) != path:
                raise ConflictError(
                    f"{short} has work of someone's: {tip[:_SHORT]} does not retire {path}",
                    hint=f"git branch -m {short} NAME keeps it elsewhere; or propose with --branch",
                )
        commit = next((tip for tip in tips if _removes(repo, tip, path, base)), "")
        if not commit:
            time = self._jobs.context.clock()
            commit = write_proposal(repo, base, path, None, self._message(base), time=time)
        if commit != here:
            move_proposal(repo, branch, here, commit, reason=f"skillgit: retire {path}")
        self.entry = replace(self.entry, branch=short, commit=commit)
        if publication is not None:
            publication.check(branch)
            if there != commit and not publication.push(self._workspace, branch, commit, there):
                raise ConflictError(f"{short} moves while it is pushed", hint="propose again")
            title, _, body = message_of(repo.commit(commit)).partition("\n\n")
            self.entry = replace(self.entry, url=publication.open(branch, commit, title, body))

    def _message(self, base: str) -> str:
        """Return the message of the commit, in Markdown that is plain text; no word of it is a model's."""
        entry, pair = self.entry, self.entry.compared
        if pair is None:
            raise AssertionError("what is proposed was measured")
        spread = pair.too_few if pair.interval is None else "95 % {:+.4f} to {:+.4f}".format(*pair.interval)
        return f"""retire {name_of(self._path)}: {entry.answer} on {entry.model}

The model was asked with {self._path} of {base[:_SHORT]} and without it: {entry.sentence}.

- {pair.metric}: {entry.score:.4f}, without {entry.without:.4f}
- gain: {pair.delta:+.4f}, {spread}, p {entry.p_worse:.4f} one-sided for a loss, n {pair.n}, {pair.split} split
- target: {entry.basis.target}
- text: {entry.text}

Skillgit-{RETIRED}: {self._path}
"""


def _removes(repo: Repo, commit: str, path: str, base: str) -> bool:
    """Say whether ``commit`` removes the text that ``base`` has of a skill, and is not out of date."""
    text = skill_tree(repo, base, path)
    return any(skill_tree(repo, str(parent), path) == text for parent in repo.commit(commit).parent_ids)
