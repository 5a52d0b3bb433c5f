"""What a run is trained with and a result was measured with, in the words that people read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillgit.app.recorded.run_record import started
from skillgit.app.setup.run_setup import Setup
from skillgit.app.workspace.revision import chosen_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Split
from skillgit.domain.rehearsal import half_rehearsal, rehearsal
from skillgit.index import queries
from skillgit.plugin.environment import asks_judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Lender:
    """A run whose recorded configuration measures."""

    run: str
    reason: str = ""  # why this one; empty where the command works on the run itself


def lender_of(revision: str, run: str) -> Lender:
    """Return the run of a revision that is measured: its outcomes are recorded under that configuration."""
    return Lender(run=run, reason=f"the run of {revision}")


def find_lender(workspace: Workspace, skill: str) -> Lender | None:
    """Return the run that says how ``skill`` is measured where neither a configuration nor a revision does.

    That is the default run where it trains the skill, else the newest run of the skill that asked language models for
    its outcomes, else its newest run. None if no run trains it.

    The decision does not look at whether the configuration can be used here. One that cannot is an error of the
    command: an older run may have had other models and other items.
    """
    runs = queries.runs_of_skill(workspace.index, skill)
    chosen = chosen_run(workspace)
    if not runs or chosen in runs:
        return Lender(run=chosen, reason="the default run") if runs else None
    aside = "; the default run trains another skill" if chosen else ""
    if len(runs) == 1:
        return Lender(run=runs[0], reason=f"the only run of this skill{aside}")

    def is_rehearsal(run: str) -> bool:
        start = started(workspace, run)
        return start is not None and bool(rehearsal(target=start.models.target, judge=start.models.judge))

    real = next((run for run in runs if not is_rehearsal(run)), "")
    if real in {"", runs[0]}:
        return Lender(run=runs[0], reason=f"the newest run of this skill{aside}")
    return Lender(run=real, reason=f"the newest run of this skill; newer ones are rehearsals{aside}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultBasis:
    """What a result rests on, apart from the text of the skill."""

    run: str = ""  # the run that lent its configuration; empty where another one was named
    reason: str = ""  # why it is this run; empty where the command works on the run itself
    config: str = ""  # the configuration that was named; empty where a run lent its own
    target: str = ""  # the model that works on the items, and where it answers
    judge: str = ""  # the same of the model that scores; empty where none is asked
    data: str = ""  # where the items come from, and how many each split has
    rehearsal: str = ""  # which of the models only rehearse; empty where all are

    @property
    def source(self) -> str:
        """Which configuration it was measured by."""
        return f"the configuration of run {self.run}" if self.run else self.config

    @property
    def sentence(self) -> str:
        """All of it in one line; empty where nothing was measured."""
        if not self.target:
            return ""
        judge = f", scored by {self.judge}" if self.judge else ""
        reason = f" ({self.reason})" if self.reason else ""
        words = f"{self.source}{reason}; {self.data}; target {self.target}{judge}"
        return f"{words}; {self.rehearsal}" if self.rehearsal else words


def basis_of(setup: Setup) -> ResultBasis:
    """Return what ``setup`` measures with."""
    judge = asks_judge(setup.task.environment)
    return ResultBasis(
        run=setup.run,
        reason=setup.reason,
        config="" if setup.run else setup.config.name,
        target=_answerer(setup, "target"),
        judge=_answerer(setup, "judge") if judge else "",
        data=data_of(setup),
        rehearsal=rehearsal(target=setup.routes["target"].name, judge=setup.routes["judge"].name if judge else ""),
    )


def _answerer(setup: Setup, role: str) -> str:
    """Return the model of ``role`` in words, and where the server is known to have another one, that one."""
    served = setup.routes[role].served
    return f"{served.phrase}, which answers as {served.answers_as}" if served.answers_as else served.phrase


def data_of(setup: Setup) -> str:
    """Return how many items each split has, of which environment, and where they come from."""
    counts = ", ".join(f"{len(setup.task.items[split])} {split.value}" for split in Split)
    config = setup.config
    keys = {"env.data_path", "env.split_dir", *config.path_keys}
    values = {entry.key: str(entry.value) for entry in config.entries if entry.key in keys and entry.value}
    paths = dict.fromkeys(values[key] for key in sorted(values))
    source = ", ".join(paths) or "the items that come with it"
    return f"{counts}, of {setup.task.environment.info.name}: {source}"


GOES_ON = "goes on"
"""The label of where a run that was stopped goes on."""


def training_facts(setup: Setup, *, run: str, text: str, length: str, goes_on: str = "") -> dict[str, str]:
    """Return what a run trains with what, by label, for its plan and the lines before its first call."""
    basis, words = basis_of(setup), rehearsal(**models_of(setup))
    return {
        "text": text,
        "run": run,
        **({GOES_ON: goes_on} if goes_on else {}),
        "config": setup.config.name,
        "target": basis.target,
        "optimizer": _answerer(setup, "optimizer"),
        **({"judge": basis.judge} if basis.judge else {}),
        "data": basis.data,
        "length": length,
        **({"models": words} if words else {}),
    }


def training_lines(facts: Mapping[str, str]) -> tuple[str, ...]:
    """Return ``facts`` of :func:`training_facts` as the short block before the first call."""
    models = ", ".join(f"{role} {facts[role]}" for role in ("target", "optimizer", "judge") if role in facts)
    beginning = (f"run {facts['run']} goes on {facts[GOES_ON]}",) if GOES_ON in facts else ()
    return (
        *beginning,
        f"text: {facts['text']}",
        f"run {facts['run']}, configuration {facts['config']}; {facts['data']}; {facts['length']}",
        "; ".join(filter(None, (models, facts.get("models", "")))),
    )


def models_of(setup: Setup) -> dict[str, str]:
    """Return role to model, as ``backend/model``, of those that are asked."""
    return {role: route.name for role, route in setup.routes.items()}


def warnings_of(setup: Setup) -> tuple[str, ...]:
    """Return what to say before the first call of a run whose models do not go together."""
    names = models_of(setup)
    warning = half_rehearsal(target=names["target"], optimizer=names["optimizer"])
    return (*name_warnings(setup), *((warning,) if warning else ()))


def name_warnings(setup: Setup) -> tuple[str, ...]:
    """Return a sentence for each model that its server does not have and another one answers for."""
    return tuple(dict.fromkeys(filter(None, (route.served.warning for route in setup.routes.values()))))
