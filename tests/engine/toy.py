"""A task small enough to see through: an item is solved once the skill contains the word that the item needs."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING

from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.run_loop import Start, Trainer
from skillgit.engine.search import Monitor, Session, Task
from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import BackendInfo, Message, Reply, Usage, system, user
from skillgit.plugin.environment import EnvironmentInfo
from skillgit.strategies.skillopt import SkillOpt
from skillgit.testing.small_run import RehearsalHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillgit.plugin.backend import Request
    from skillgit.plugin.environment import Judge, Target
    from skillgit.strategies import Strategy

SEED = Skill("toy", {"SKILL.md": b"---\nname: toy\ndescription: Toy.\n---\n\n# Toy\n\n- begin\n- begin well\n"})
WORDS = ("amber", "birch", "coral", "dune")


def items(prefix: str, count: int) -> tuple[Item, ...]:
    return tuple(
        Item(id=f"{prefix}{number}", content={"needs": WORDS[number % len(WORDS)], "n": f"{prefix}{number}"})
        for number in range(count)
    )


class ToyEnvironment:
    info = EnvironmentInfo(name="toy", summary="", fields={}, scorer="", source="")
    digest = "toy-1"

    def __init__(self, broken: frozenset[str] = frozenset()) -> None:
        self.broken = broken

    def items(self, split: Split) -> Sequence[Item]:
        return items(split.value, 8)

    def seed_skill(self) -> Skill:
        return SEED

    def taxonomy(self) -> str:
        return "- missing word"

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        if item.id in self.broken:
            raise FatalBackendError(f"{item.id} is out of order")
        question = f"{item.id} needs {item.content['needs']}"
        reply = await target.chat([system(skill.document), user(question)])
        turns = (Turn(role="user", content=question), Turn(role="assistant", content=reply.text))
        return Trajectory(item_id=item.id, turns=turns, answer=reply.text)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        solved = 1.0 if trajectory.answer == "yes" else 0.0
        return Scored(hard=solved, soft=solved), f"lacks {item.content['needs']}"


@dataclass
class ToyBackend:
    """Answers as target and as optimizer; ``script`` may replace optimizer replies by kind of prompt."""

    settings: Mapping[str, object] = field(default_factory=dict)
    script: dict[str, Callable[[str], str | Reply]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    info = BackendInfo(name="toy", summary="", needs_network=False)

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        text = self._target(request.messages) if request.model == "target" else self._optimizer(request.messages)
        if isinstance(text, Reply):
            return text
        return Reply(text=text, usage=Usage(tokens_in=10, tokens_out=2))

    async def aclose(self) -> None:
        return None

    def _target(self, messages: Sequence[Message]) -> str:
        needed = re.search(r"needs (\w+)", messages[1].text)
        assert needed is not None
        return "yes" if needed.group(1) in messages[0].text else "no"

    def _optimizer(self, messages: Sequence[Message]) -> str:
        kind = messages[0].text.splitlines()[0].removeprefix("# ")
        if kind in self.script:
            return self.script[kind](messages[-1].text if len(messages) > 2 else messages[1].text)
        return REPLIES[kind](messages[1].text)


def analyse(prompt: str) -> str:
    shown = prompt[max(map(prompt.rfind, ("<trajectories", "<look"))) :]
    missing = sorted(set(re.findall(r"lacks (\w+)", shown)))[:1]
    edits = [{"op": "append", "content": f"- {word}", "support": 2} for word in missing]
    findings = [{"pattern": f"lacks {word}", "count": 2, "items": ["train1"]} for word in missing]
    return json.dumps({"title": f"add {missing}", "reasoning": "It is missing.", "edits": edits, "findings": findings})


def merge(prompt: str) -> str:
    edits = [
        edit
        for listed in re.findall(r"<patches[^>]*>\n(.*?)\n</patches[^>]*>", prompt, re.DOTALL)
        for patch in json.loads(listed)
        for edit in patch["edits"]
    ]
    unique = {edit["content"]: edit for edit in edits}
    return json.dumps({"title": "merged", "reasoning": "Joined.", "edits": list(unique.values())})


def rewrite(prompt: str) -> str:
    """Return the text with the first word that the trajectories, or a look, lack."""
    body = prompt[prompt.index(">", prompt.index("<body")) + 1 : prompt.index("</body")].strip()
    missing = sorted(set(re.findall(r"lacks (\w+)", prompt[max(map(prompt.rfind, ("<trajectories", "<look"))) :])))[:1]
    return json.dumps({"title": f"write {missing}", "body": "\n".join([body, *(f"- {word}" for word in missing)])})


REPLIES: dict[str, Callable[[str], str]] = {
    "Analyse failures": analyse,
    "Analyse successes": lambda _: json.dumps({"edits": []}),
    "Merge patches": merge,
    "Merge rewrites": lambda _: json.dumps({"title": "merged", "body": ""}),
    "Rewrite from failures": rewrite,
    "Rank edits": lambda _: json.dumps({"selected": [0]}),
    "Slow update": lambda _: json.dumps({"title": "guide", "reasoning": "r", "guidance": "- amber birch coral dune"}),
    "Optimizer memory": lambda _: json.dumps({"memory": "- words help"}),
    "Reflect on an epoch": lambda _: json.dumps({"title": "back", "edits": [{"op": "append", "content": "- dune"}]}),
    "Write a probe": lambda _: json.dumps({"reasoning": "Why?", "probe": "Say which word you miss."}),
    "Put reminders together": lambda _: json.dumps({"notes": ["one for all"]}),
}


ONE_STEP: Mapping[str, object] = {"num_epochs": 1, "batch_size": 8, "seed": 1}
EVERYTHING: Mapping[str, Mapping[str, object]] = {
    "train": {"num_epochs": 2, "batch_size": 3, "accumulation": 2, "seed": 3, "placebo": 2},
    "gradient": {"minibatch_size": 2, "use_deep_reflect": True, "deep_reflect_failures": 2},
    "optimizer": {
        "longitudinal_pair_policy": "changed",
        "slow_update_samples": 3,
        "salvage": True,
        "use_meta_reflect": True,
        "use_skill_aware_reflection": True,
    },
    "gate": {"repeats": 1},
}
"""Settings of a short run in which every stage of the method is carried out."""


class FromTheSeed(SkillOpt):
    """Makes each candidate of the seed, whatever is current."""

    def base(self, _):
        return 0


class History(RehearsalHistory):
    """The list that stands in for git."""


def trainer(
    backend: ToyBackend,
    history: History,
    *,
    environment: ToyEnvironment | None = None,
    ledger: Ledger | None = None,
    caps: Caps | None = None,
    strategy: Strategy | None = None,
    agent: Route | None = None,
    **sections: Mapping[str, object],
) -> Trainer:
    environment = environment or ToyEnvironment()
    defaults: dict[str, Mapping[str, object]] = {"train": {"num_epochs": 2, "batch_size": 4, "seed": 1}}
    given = defaults | sections
    # The toy is solved soon, and most tests want to see what comes after.
    given["train"] = {"stop_at_ceiling": False} | given["train"]
    # One thing at a time: whoever tests contrast, salvage or merging in one call asks for it.
    given["gradient"] = {"contrast": 0, "failure_only": False} | dict(given.get("gradient", {}))
    plain = {"salvage": False, "aggregate": "hierarchical"}
    budget = {"budget_unit": "edits", "learning_rate": 4, "min_learning_rate": 2}
    given["optimizer"] = {**plain, **budget, **given.get("optimizer", {})}
    settings = MethodSettings.model_validate(given)

    async def instantly(_: float) -> None:
        return None

    calls = Calls(
        routes={
            role: Route(backend=backend, backend_name="toy", model=role, price=None)
            for role in ("target", "optimizer", "judge")
        }
        | ({} if agent is None else {"optimizer": agent}),
        ledger=ledger or Ledger.in_memory(),
        caps=caps or Caps(),
        sleep=instantly,
        random=Random(0),  # noqa: S311 - jitter
    )
    session = Session(
        run="toy-1",
        skill_path="skills/toy",
        task=Task(environment=environment, items={split: tuple(environment.items(split)) for split in Split}),
        settings=settings,
        calls=calls,
        workers=4,
        clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        monitor=Monitor(),
        outcomes=history.outcomes,
        attempts=history.attempts,
    )
    start = Start(skill=SEED, config="c", splits="s", evidence={})
    return Trainer(session=session, strategy=strategy or SkillOpt(), start=start, history=history)


async def run_to_end(made: Trainer, history: History, limit: int = 100) -> History:
    state = history.state()
    for _ in range(limit):
        transition = await made.next(state)
        if transition is None:
            break
        history.append(transition)
        state = history.state()
    return history


def facts(history: History) -> list[tuple[object, ...]]:
    """Return all that a run leaves: its events, skills and evidence."""
    return [(transition.event, transition.skill, transition.evidence) for transition in history]


def run(backend: ToyBackend, **options) -> History:
    """Train to the end."""
    history = History()
    return asyncio.run(run_to_end(trainer(backend, history, **options), history))


def kinds(history: History) -> list[EventKind]:
    return [transition.event.kind for transition in history]
