"""Questions with a short answer: how they are asked, what is secret about them, and which scorer compares answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, ClassVar, cast

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.plugin.backend import Image
from skillgit.plugin.environment import Judge, Target
from skillgit_envs.answers import AGAIN, ask_judge, graded, material, until_answered
from skillgit_envs.shipped_environment import PromptWording, Questions

_EXAMPLE = Item(id="example", content={"question": "question"})
"""An item whose question identifies how questions are written."""


class ShortAnswers(Questions):
    """Items of a ``question`` with an ``answer``, and ``choices`` if the answer is the letter of one of them.

    A subclass has ``info``, whose option ``scorer`` names one of ``_scorers``, reads rows (``_read``) and scores.
    """

    _scorers: ClassVar[Mapping[Any, str]]
    """Each scorer's identity by its name: what changes whenever a score can change."""
    _judges: ClassVar[Collection[str]] = ()  # the scorers that ask a judge

    @property
    def _rule(self) -> str:
        return str(self._options["scorer"])

    @property
    def asks_judge(self) -> bool:
        return self._rule in self._judges

    def _verdicts(self, item: Item) -> int:
        del item
        return int(self.asks_judge)

    @property
    def _scorer(self) -> Sequence[str]:
        """What identifies the scorer: its name, which changes whenever a score can change, and a judge's prompt."""
        return [self._scorers[self._rule], *([self._prompt_file("judge")] if self.asks_judge else [])]

    @property
    def _shaping(self) -> Sequence[object]:
        """What else shapes a prompt."""
        return ()

    @property
    def digest(self) -> str:
        prompts = [self.target_prompt(), *self._shaping, AGAIN, self._turns]
        prompts += [] if self._wording is PromptWording.OWN else [self.question(_EXAMPLE)]
        return short_digest([self.info.name, *self._scorer, *prompts])

    def secrets(self, item: Item) -> Secrets:
        """Return the question, and the right words; a letter is not secret."""
        has_letter = item.content.get("choices") or item.content.get("options")
        answers = () if has_letter else (str(item.content["answer"]),)
        return Secrets(answers=answers, inputs=(str(item.content["question"]),))

    def answer_choices(self, item: Item) -> Mapping[str, str] | None:
        """Return the choices of an item by their letters; None where a model scores."""
        return None if self.asks_judge else labelled(item)

    def question(self, item: Item) -> str:
        """Return what is asked, with the choices behind it."""
        listing = "\n".join(f"({label}) {text}" for label, text in labelled(item).items())
        choices = f"\n\n<choices>\n{listing}\n</choices>" if listing else ""
        return f"<question>\n{item.content['question']}\n</question>{choices}"

    def _images(self, item: Item) -> tuple[Image, ...]:
        """Return what is shown with the question."""
        del item
        return ()

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        prompt, turn, images = self._system(skill), self._turn(self.question(item)), self._images(item)
        return await until_answered(target, item.id, prompt, turn, max_turns=self._turns, images=images)


class RightOrWrong(ShortAnswers):
    """Short answers that are right or wrong; a subclass says which (``_is_right``)."""

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        answer, gold = trajectory.answer.strip(), str(item.content["answer"]).strip()
        is_right = bool(answer) and await self._is_right(item, answer, judge)
        return graded(gold, answer, right=is_right)

    @abstractmethod
    async def _is_right(self, item: Item, answer: str, judge: Judge) -> bool:
        """Say whether an answer that is not empty is right."""

    async def _ask(self, judge: Judge, texts: Mapping[str, object], read: Callable[[str], bool], form: str) -> bool:
        """Return what ``read`` makes of the judge's reply to ``prompts/judge.md`` with ``texts``; see ``ask_judge``."""
        return await ask_judge(judge, self._prompt_file("judge"), material(texts), read, form=form)


def labelled(item: Item) -> dict[str, str]:
    """Return the choices of an item by their letters; none where the answer is written out."""
    return dict(zip(ascii_uppercase, cast("Sequence[str]", item.content.get("choices", ())), strict=False))
