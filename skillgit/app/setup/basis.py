"""What a run is trained with and a result was measured with, in the words that people read beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.domain.rehearsal import half_rehearsal, rehearsal
from skillgit.plugin.environment import asks_judge

if TYPE_CHECKING:
    from skillgit.app.setup.run_setup import Setup


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultBasis:
    """What a result rests on besides the text of the skill."""

    run: str = ""  # the run that lent its configuration; empty where another one was named
    config: str = ""  # the configuration that was named; empty where a run lent its own
    target: str = ""  # the model that works on the items, and where it answers
    judge: str = ""  # the same of the model that scores; empty where none is asked
    data: str = ""  # where the items come from, and how many each split has
    rehearsal: str = ""  # which of the models are no language models; empty where all are

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
        words = f"{self.source}; {self.data}; target {self.target}{judge}"
        return f"{words}; {self.rehearsal}" if self.rehearsal else words


def basis_of(setup: Setup) -> ResultBasis:
    """Return what ``setup`` measures with."""
    judge = asks_judge(setup.task.environment)
    return ResultBasis(
        run=setup.run,
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


def data_of(setup: Setup, splits: Sequence[Split] = tuple(Split)) -> str:
    """Return how many items each of ``splits`` has, of which environment, and where they come from."""
    counts = ", ".join(f"{len(setup.task.items[split])} {split.value}" for split in splits)
    return f"{counts}, of {setup.task.environment.info.name}: {_source(setup)}"


def _source(setup: Setup) -> str:
    config = setup.config
    keys = {"env.data_path", "env.split_dir", *config.path_keys}
    values = {entry.key: str(entry.value) for entry in config.entries if entry.key in keys and entry.value}
    paths = dict.fromkeys(values[key] for key in sorted(values))
    return ", ".join(paths) or "the items that come with it"


def training_facts(setup: Setup, *, run: str, text: str, length: str) -> dict[str, str]:
    """Return what a run trains with what, by label, for its plan and the lines before its first call."""
    basis = basis_of(setup)
    models = models_of(setup)
    return {
        "text": text,
        "run": run,
        "config": setup.config.name,
        "target": basis.target,
        "optimizer": _answerer(setup, "optimizer"),
        **({"judge": basis.judge} if basis.judge else {}),
        "data": basis.data,
        "length": length,
        **({"models": words} if (words := rehearsal(**models)) else {}),
    }


def training_lines(facts: Mapping[str, str]) -> tuple[str, ...]:
    """Return ``facts`` of :func:`training_facts` as the short block before the first call."""
    models = ", ".join(f"{role} {facts[role]}" for role in ("target", "optimizer", "judge") if role in facts)
    return (
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
