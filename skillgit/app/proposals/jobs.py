"""From a request for proposals to what is to be done for each skill: which items, from which text, in which run."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from shlex import quote

from skillgit.app.proposals.proposal import ProposalPin, Upshot
from skillgit.app.proposals.requests import ProposeRequest
from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.recorded_setup import identified
from skillgit.app.setup.run_setup import Setup, set_up
from skillgit.app.setup.skill_tasks import with_own_tasks
from skillgit.app.train.requests import SkillTraining
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import resolve
from skillgit.app.workspace.shipped_configurations import USUAL, shipped_file
from skillgit.app.workspace.skill_choice import choose_skill, name_of
from skillgit.app.workspace.skills_here import ADD, own_tasks
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Split
from skillgit.domain.ids import check_run_name, short_digest
from skillgit.errors import NotFoundError, UsageError
from skillgit.index import queries
from skillgit.store import refs
from skillgit.store.history import run_names
from skillgit.store.history_reader import read_run
from skillgit.store.promotion import is_ref_name
from skillgit.store.trunk import trunk, trunk_revision
from skillgit.store.work_tree import skill_tree, skills_at

_USUAL = shipped_file(USUAL)
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PATTERN = "NAME"
"""The placeholder for the skill in the name of a branch."""
_HINT = "--branch propose/NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillJob:
    """What is to be done for one skill."""

    path: str  # its folder
    branch: str  # the ref of its proposal
    setup: Setup
    config: str
    overrides: tuple[str, ...]
    pin: ProposalPin

    @property
    def split(self) -> Split:
        """The split that decides: items that chose no version, where the configuration measures any."""
        is_measured = self.setup.config.values.evaluation.eval_test and self.setup.task.items[Split.TEST]
        return Split.TEST if is_measured else Split.SELECTION

    def training(self, caps: Caps, cap: int | None) -> SkillTraining:
        """Return the request to train within ``caps``, reckoned from ``cap``, the calls that the user allows."""
        return SkillTraining(
            config=self.config,
            overrides=self.overrides,
            run=self.pin.run,
            start=self.pin.base,
            folder=self.path,
            cap=cap,
            **asdict(caps),
        )


class Jobs:
    """The skills of a request; what is wrong with the request itself is raised when it is made."""

    def __init__(self, context: Context, request: ProposeRequest) -> None:
        self.request = request
        with Workspace(context) as workspace:
            if workspace.repo.workdir is None:
                raise UsageError("a bare repository has no tasks", hint="clone it, and propose there")
            # paths of a configuration are those of the repository, wherever in it the command was typed
            self.context = replace(context, directory=workspace.repo.workdir)
            branch = request.branch or ("retire/NAME" if request.models else "propose/NAME")
            base = request.base or trunk_revision(workspace.repo)
            self.request = request = replace(request, base=base, branch=branch)
            self._trunk = refs.short(trunk(workspace.repo))
            file = context.directory / (request.config or "")
            self.config = str(file.resolve()) if file.is_file() else request.config or _USUAL
            self.skills = self._skills(workspace, skills_at(workspace.repo, self.base(workspace)))
        for path in self.skills:
            self.branch(path)

    def base(self, workspace: Workspace) -> str:
        """Return the commit that the base is now."""
        return resolve(workspace, self.request.base).commit

    def job(self, workspace: Workspace, path: str) -> SkillJob:
        """Return what is to be done: what is under way goes first, as long as its items and configuration are these."""
        repo, name = workspace.repo, path.rpartition("/")[2]
        overrides = self.request.overrides
        config = load_config(self.context, self.config, overrides)
        overrides = with_own_tasks(workspace, config, overrides, lambda: path, required=True)
        setup = identified(workspace, set_up(load_config(self.context, self.config, overrides)))
        base = self.base(workspace)
        tree, pin = skill_tree(repo, base, path), ProposalPin.read(repo, name)
        run = _run_name(name, tree, setup)
        is_kept = pin is not None and pin.run == _run_name(name, skill_tree(repo, pin.base, path), setup)
        if pin is None or not (pin.run == run or (is_kept and self._goes_on(workspace, path, pin, tree))):
            origin = read_run(repo, run)[0].parents if run in run_names(repo.tips()) else ()
            pin = ProposalPin(run=run, base=origin[0] if origin else base)
        branch = self.branch(path)
        if pin.answer == Upshot.BEHIND and repo.tip(branch) is None:
            pin = replace(pin, answer="")  # what was in its way is gone
        return SkillJob(path=path, branch=branch, setup=setup, config=self.config, overrides=overrides, pin=pin)

    def is_taken(self, workspace: Workspace, path: str, commit: str) -> bool:
        """Say whether the base has the proposal ``commit``, or its text, however that came about."""
        base, repo = self.base(workspace), workspace.repo
        return skill_tree(repo, commit, path) == skill_tree(repo, base, path) or repo.reaches(base, commit)

    def suits(self, workspace: Workspace, path: str, commit: str) -> bool:
        """Say whether the proposal ``commit`` was made for the text that the base has now."""
        repo = workspace.repo
        text = skill_tree(repo, self.base(workspace), path)
        return text in (skill_tree(repo, str(oid), path) for oid in repo.commit(commit).parent_ids)

    def _goes_on(self, workspace: Workspace, path: str, pin: ProposalPin, tree: str) -> bool:
        """Say whether ``pin`` holds though the skill has become another text, ``tree``, at the base.

        It does as long as it is under way, up to the pull request where one is wanted, and after that if the text is
        what it proposed: that someone took a proposal is nothing new.
        """
        repo = workspace.repo
        lacks_request = self.request.pull_request and not pin.url and repo.tip(self.branch(path)) == pin.commit
        is_taken = bool(pin.commit) and skill_tree(repo, pin.commit, path) == tree
        return not pin.answer or is_taken or (lacks_request and not self.is_taken(workspace, path, pin.commit))

    def _skills(self, workspace: Workspace, there: tuple[str, ...]) -> tuple[str, ...]:
        paths = [path for path in there if _NAME.fullmatch(name_of(path))]
        where = f"of {self.request.base}"
        words = (*self.request.skills, *filter(None, (self.context.skill,)))
        if words:
            return tuple(dict.fromkeys(self._chosen(workspace, word, paths) for word in words))
        if self.request.models:
            return tuple(paths)
        names = dict.fromkeys(name_of(path) for path in paths)
        choice = [name for name in names if own_tasks(self.context.directory, name)]
        if not choice:
            hint = ADD.format(f"--skill {quote(next(iter(names), 'NAME'))}")
            raise NotFoundError(f"no skill {where} has reviewed tasks", hint=hint)
        return tuple(choose_skill(name, paths, where=where) for name in choice)

    def _chosen(self, workspace: Workspace, word: str, paths: list[str]) -> str:
        """Return the skill of the base that ``word`` names; to be measured on a model, one that only runs have, too."""
        base = self.request.base
        try:
            return choose_skill(word, paths, where=f"of {base}")
        except NotFoundError:
            trained = {workspace.index.skill_path(run): run for run in reversed(queries.run_names(workspace.index))}
            if word.rstrip("/") not in {*trained, *map(name_of, trained)}:
                raise
        path = choose_skill(word, trained)
        if self.request.models:
            return path
        hint = f"skillgit promote {trained[path]}/best puts it there"
        raise NotFoundError(f"{base} has no {path}, which run {trained[path]} trains", hint=hint)

    def branch(self, path: str) -> str:
        """Return the ref of the branch for the proposal of a skill."""
        pattern = self.request.branch
        if _PATTERN not in pattern and len(self.skills) > 1:
            raise UsageError(f"{pattern} is one branch for {len(self.skills)} skills", hint=_HINT)
        short = pattern.replace(_PATTERN, path.rpartition("/")[2])
        ref = f"refs/heads/{short}"
        if not is_ref_name(ref) or refs.parse(ref) is not None:
            raise UsageError(f"'{short}' cannot be the branch of a proposal", hint=_HINT)
        if short in {self.request.base, self._trunk}:
            raise UsageError(f"{short} is what proposals are made for", hint=_HINT)
        return ref


def _run_name(skill: str, tree: str, setup: Setup) -> str:
    """Return the name of the run that trains the text ``tree`` of a skill as ``setup`` says.

    The same text, items, configuration and servers make the same name on every machine, so that a run is known again
    wherever it was begun, and something is new exactly if the name is.
    """
    servers = sorted({route.served.digest for route in setup.routes.values()} - {""})
    identity = short_digest([skill, tree, setup.splits_digest, setup.config.digest, *servers])
    return check_run_name(f"{skill[:40].rstrip('-')}-propose-{identity[:8]}")
