"""A small run for the kit of strategies: a generated environment, models of fixed rules, and a log of what happens.

An item is solved once the skill holds its word, which feedback on train items names. Questions, answers and checks of
all items hold marks that occur nowhere else, so that it shows where something of an item has got to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Outcome, Scored, Split
from skillgit.domain.ids import short_digest, text_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.run_state import RunState, VersionOutcomes, advance, begin
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.engine.evidence_files import Attempts
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.run_loop import Start, Trainer
from skillgit.engine.search import Monitor, Session, Task, Transition
from skillgit.engine.strategy import Strategy
from skillgit.plugin.backend import Backend, BackendInfo, Reply, Request, Usage, system, user
from skillgit.plugin.environment import Environment, EnvironmentInfo, Judge, Target
from skillgit.testing.case import Promises

WORDS = ("amber", "birch", "coral", "dune")
_HASTE = "hurry"  # with it in the skill nothing is solved, so that some candidates are refused
_SIZES = {Split.TRAIN: 12, Split.SELECTION: 6, Split.TEST: 3}
_FIELDS = {"question": "the input", "answer": "the answer", "check": "a check"}
_SKILL = b"---\nname: ways\ndescription: Does tasks in the right way. Use for tasks.\n---\n\n# Ways\n\n- Be brief.\n"
_SETTINGS: Mapping[str, Mapping[str, object]] = {
    "train": {"num_epochs": 2, "batch_size": 4, "seed": 1, "stop_at_ceiling": False},
    "optimizer": {"use_slow_update": False, "use_meta_skill": False},
}


def _mark(split: Split, number: int, name: str) -> str:
    return f"zq{short_digest([split, number, name])[:10]}"


def _item(split: Split, number: int) -> Item:
    marks = {name: _mark(split, number, name) for name in _FIELDS}
    return Item(id=f"{split}-{number}", content={"word": WORDS[number % len(WORDS)], **marks})


_HIDDEN = {
    _mark(split, number, name): f"{label} of the {split} item {split}-{number}"
    for split, size in _SIZES.items()
    if split is not Split.TRAIN
    for number in range(size)
    for name, label in _FIELDS.items()
}
_MARKED = re.compile("|".join(_HIDDEN))


@dataclass(slots=True)
class RunLog:
    """What happens in a rehearsal, and which promises that breaks."""

    promises: Promises
    calls: int = 0  # answered by models
    inside: int = 0  # calls of the strategy in progress
    asking: int = 0  # calls through the session's door in progress

    @contextmanager
    def within(self) -> Iterator[None]:
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def look(self, subject: str, text: str) -> None:
        """Note it where ``text`` holds something of an item that a strategy may not see."""
        if (match := _MARKED.search(text)) is not None:
            self.promises.note(f"{subject} holds {_HIDDEN[match.group()]}, which a strategy may not see")


class RehearsalEnvironment:
    """Tasks that want to be done in one of four ways; a subclass has the ``log`` of its run."""

    info = EnvironmentInfo(
        name="ways",
        summary="Tasks that want to be done in a certain way",
        fields={"word": "the way"},
        scorer="the way",
        source="generated",
    )
    digest = "ways-1"
    log: RunLog

    def __init__(self, options: Mapping[str, object], root: Path | None = None) -> None:
        del options, root

    def items(self, split: Split) -> Sequence[Item]:
        split = Split(split)
        if self.log.inside and split is not Split.TRAIN:
            self.log.promises.note(f"it takes items of the {split} split from the environment")
        return [_item(split, number) for number in range(_SIZES[split])]

    def seed_skill(self) -> Skill:
        return Skill("ways", {"SKILL.md": _SKILL})

    def taxonomy(self) -> str:
        return "- another way"

    def secrets(self, item: Item) -> Secrets:
        return Secrets(answers=(str(item.content["answer"]),), checks=(str(item.content["check"]),))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        if self.log.inside and not item.id.startswith(Split.TRAIN):
            self.log.promises.note(f"it rolls out {item.id}, which no train item is")
        question = f"{item.content['question']}: which way? It has to be {item.content['word']}."
        reply = await target.chat([system(skill.document), user(question)])
        turns = (Turn(role="user", content=question), Turn(role="assistant", content=reply.text))
        return Trajectory(item_id=item.id, turns=turns, answer=reply.text)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        score = float(trajectory.answer == "that way")
        return Scored(score, score), f"lacks {item.content['word']}; {item.content['answer']} {item.content['check']}"


@dataclass(slots=True)
class RehearsalModel:
    """Target and optimizer; ``replies`` answers prompts of the optimizer that ask for another thing than JSON."""

    log: RunLog
    replies: Callable[[str], str] | None = None
    before: Callable[[Request], Reply | None] = lambda _: None  # may answer, or fail, in its place
    info = BackendInfo(name="rehearsal", summary="Fixed rules", needs_network=False)

    async def complete(self, request: Request) -> Reply:
        prompt = "\n".join(message.text for message in request.messages)
        log, is_target = self.log, request.model == "target"
        log.promises.hold(log.asking, f"it asks the {request.model} past the calls of its session")
        if log.inside or not is_target:
            log.look(f"a prompt to the {request.model}", prompt)
        if (reply := self.before(request)) is None:
            text = _work(request) if is_target else self._advice(request, prompt)
            reply = Reply(text=text, usage=Usage(tokens_in=10, tokens_out=2))
        log.calls += 1
        return reply

    def _advice(self, request: Request, prompt: str) -> str:
        if self.replies is not None:
            return self.replies(prompt)
        lacking = [word for word in WORDS if f"lacks {word}" in prompt] or list(WORDS)
        draw = int(short_digest(prompt)[:4], 16)
        words = [lacking[draw % len(lacking)], *([_HASTE] if draw % 3 == 0 else [])]
        return json.dumps(_filled("", request.schema or {"type": "string"}, words))

    async def aclose(self) -> None:
        """Release nothing."""


def _work(request: Request) -> str:
    word = re.search(r"It has to be (\w+)", request.messages[-1].text)
    skill = request.messages[0].text
    return "that way" if word is not None and word[1] in skill and _HASTE not in skill else "another way"


def _filled(name: str, schema: Mapping[str, Any], words: Sequence[str]) -> object:
    """Return a value that fits ``schema`` and speaks of ``words``; a list has an entry for each of them."""
    match schema:
        case {"type": "object", "properties": dict(properties)}:
            return {key: _filled(key, inner, words) for key, inner in properties.items()}
        case {"type": "array", "items": inner}:
            return [_filled(name, inner, [word]) for word in words]
        case {"enum": [first, *_]}:
            return first
        case {"type": "integer"}:
            return 0
    return {"file": "SKILL.md", "anchor": "", "items": ""}.get(name, f"Do it the {words[0]} way.")


class RehearsalHistory(list["Transition"]):
    """A stand-in for git."""

    def skill(self, version: int) -> Skill:
        for transition in self:
            if transition.event.version == version and transition.skill is not None:
                return transition.skill
        raise KeyError(version)

    def outcomes(self, version: int) -> Mapping[str, Outcome] | None:
        outcomes = VersionOutcomes()
        for transition in self:
            outcomes.take(transition.event, transition.evidence)
        return outcomes.of(version)

    def attempts(self) -> Attempts:
        attempts = Attempts()
        for transition in self:
            attempts.take(transition.event, transition.evidence)
        return attempts

    @property
    def digest(self) -> str:
        """Identify what the run came to, its evidence included."""
        events = [[repr(each.event), each.skill.digest if each.skill is not None else ""] for each in self]
        files = [
            sorted((name, text_digest(content.decode())) for name, content in each.evidence.items()) for each in self
        ]
        return short_digest([events, files])

    def state(self) -> RunState | None:
        if not self:
            return None
        state = begin(self[0].event)
        for transition in self[1:]:
            state = advance(state, transition.event)
        return state


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallRun:
    """The settings of a run that is made again and again."""

    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    replies: Callable[[str], str] | None = None

    @property
    def method(self) -> MethodSettings:
        sections = {*_SETTINGS, *self.settings}
        return MethodSettings.model_validate(
            {name: {**_SETTINGS.get(name, {}), **self.settings.get(name, {})} for name in sections}
        )

    async def train(
        self,
        strategy: Strategy,
        log: RunLog,
        *,
        ledger: Ledger,
        history: RehearsalHistory | None = None,
        before: Callable[[Request], Reply | None] = lambda _: None,
    ) -> RehearsalHistory:
        """Train to the end, or from where ``history`` ends; ``before`` is asked first of all that models are."""
        history = RehearsalHistory() if history is None else history
        trainer = self._trainer(strategy, log, history, ledger, RehearsalModel(log, self.replies, before))
        while (transition := await trainer.next(history.state())) is not None:
            history.append(transition)
        return history

    def _trainer(
        self, strategy: Strategy, log: RunLog, history: RehearsalHistory, ledger: Ledger, model: Backend
    ) -> Trainer:
        environment: Environment = type("Ways", (RehearsalEnvironment,), {"log": log})({})
        calls = _Door(
            routes={role: Route(backend=model, backend_name="rehearsal", model=role, price=None) for role in _ROLES},
            ledger=ledger,
            caps=Caps(),
            sleep=_instantly,
            random=Random(0),  # noqa: S311 - jitter
        )
        calls.log = log
        session = Session(
            run="rehearsal",
            skill_path="skills/ways",
            task=Task(environment=environment, items={split: tuple(environment.items(split)) for split in Split}),
            settings=self.method,
            calls=calls,
            workers=4,
            clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            monitor=Monitor(),
            outcomes=history.outcomes,
            attempts=history.attempts,
        )
        start = Start(skill=environment.seed_skill(), config="c", splits="s", evidence={})
        return Trainer(session=session, strategy=strategy, start=start, history=history)


_ROLES = ("target", "optimizer", "judge")


class _Door(Calls):
    """The door, which says while a call goes through it."""

    log: RunLog

    async def call(self, *question: Any, **options: Any) -> Reply:  # noqa: ANN401 - all that the door takes
        self.log.asking += 1
        try:
            return await super().call(*question, **options)
        finally:
            self.log.asking -= 1


async def _instantly(_: float) -> None:
    return None
