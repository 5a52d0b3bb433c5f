"""Questions with a short answer, some about pictures: how they are asked, judged, and kept secret.

A benchmark of them is a card, which also says where rows have the fields of an item (``rows``), prompts, and a class
that says which scorers there are and when an answer is right.
"""

from __future__ import annotations

import base64
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from string import ascii_uppercase
from typing import Any, ClassVar, cast

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, media_type_of
from skillgit.domain.untrusted.file_names import path_fault
from skillgit.errors import ConfigError, DataError
from skillgit.files import read_plain
from skillgit.plugin.backend import Image
from skillgit.plugin.data_rows import Row
from skillgit.plugin.environment import Attachment, Judge, PublishedRow, Target
from skillgit_envs.answers import AGAIN, ask_judge, graded, material, until_answered
from skillgit_envs.shipped_environment import PackagedEnvironment, PromptWording, read_again

_EXAMPLE = Item(id="example", content={"question": "question"})
"""An item whose question identifies how questions are written."""


class Questions(PackagedEnvironment):
    """Questions that the target answers in ``env.max_turns`` replies at most.

    A subclass names its scorers in ``scorers``, of which the option ``scorer`` chooses one.
    """

    scorers: ClassVar[Mapping[Any, str]] = {}
    """Each scorer's identity by its name: what changes whenever a score can change."""
    judges: ClassVar[Collection[str]] = ()  # the scorers that ask a judge

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._turns, self._scorer = int(self._options["max_turns"]), str(self._options.get("scorer", ""))
        if self._turns < 1:
            raise ConfigError(f"env.max_turns is {self._turns}; it must be at least 1", hint="1 asks once")

    @property
    def _most_replies(self) -> int:
        return self._turns

    @property
    def asks_judge(self) -> bool:
        return self._scorer in self.judges

    def _verdicts(self, item: Item) -> int:
        del item
        return int(self.asks_judge)


class ShortAnswers(Questions):
    """Items of a ``question`` with an ``answer``, and ``choices`` if the answer is the letter of one of them."""

    @property
    def _grading(self) -> Sequence[str]:
        """What identifies the scorer: its name, which changes whenever a score can change, and a judge's prompt."""
        return [self.scorers[self._scorer], *([self._prompt_file("judge")] if self.asks_judge else [])]

    @property
    def _shaping(self) -> Sequence[object]:
        """What else shapes a prompt."""
        return ()

    @property
    def digest(self) -> str:
        prompts = [self.target_prompt(), *self._shaping, AGAIN, self._turns]
        prompts += [] if self._wording is PromptWording.OWN else [self.question(_EXAMPLE)]
        return short_digest([self.info.name, *self._grading, *prompts])

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
    """Short answers that are right or wrong; a subclass says which (``is_right``)."""

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        answer, gold = trajectory.answer.strip(), str(item.content["answer"]).strip()
        is_right = bool(answer) and await self.is_right(item, answer, judge)
        return graded(gold, answer, right=is_right)

    @abstractmethod
    async def is_right(self, item: Item, answer: str, judge: Judge) -> bool:
        """Say whether an answer that is not empty is right."""

    async def _ask(self, judge: Judge, texts: Mapping[str, object], read: Callable[[str], bool], form: str) -> bool:
        """Return what ``read`` makes of the judge's reply to ``prompts/judge.md`` with ``texts``; see ``ask_judge``."""
        return await ask_judge(judge, self._prompt_file("judge"), material(texts), read, form=form)


def labelled(item: Item) -> dict[str, str]:
    """Return the choices of an item by their letters; none where the answer is written out."""
    return dict(zip(ascii_uppercase, cast("Sequence[str]", item.content.get("choices", ())), strict=False))


_MEGABYTE = 1_000_000


class VisualQuestions(ShortAnswers):
    """Items that name their pictures in ``images``, or have none, with the options of the group ``pictures``.

    Pictures are found once, known by digest, and shown in their order.
    """

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        own = None if self._brings_data else self._folder / "data"
        self._image_dir = root / self._text("image_dir") if self._options["image_dir"] else own
        self._image_paths: dict[str, Path] = {}

    @property
    def _shaping(self) -> Sequence[object]:
        return [self._text("image_detail")]

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        content["pictures"] = [self._found(row, name, folder) for name in content["images"]]
        return super().item(row, content, folder)

    def _more_names(self, row: Row, name: str) -> Sequence[str]:
        """Return the names that the picture ``name`` may have besides."""
        del row, name
        return ()

    def _found(self, row: Row, name: str, beside: Path) -> str:
        """Find a picture in ``env.image_dir``, or next to the data, and return the digest of its bytes."""
        folder, most = self._image_dir or beside, float(self._options["max_image_mb"])
        # Data can be a stranger's: a path that leads out of the folder is looked for by its last part alone.
        names = [
            each for each in (name, PurePosixPath(name).name, *self._more_names(row, name)) if not path_fault(each)
        ]
        path = next((folder / alias for alias in names if (folder / alias).is_file()), None)
        if path is None:
            problem = f"{row.where}: there is no picture {name} in {folder}"
            raise DataError(problem, hint="set env.image_dir to the folder of the pictures")
        data = read_plain(path, most=None, follow=True)
        if len(data) > most * _MEGABYTE:
            raise DataError(
                f"{row.where}: {path} has {len(data) / _MEGABYTE:.1f} MB, more than {most:g}",
                hint="make the pictures smaller, or raise env.max_image_mb if the model takes such pictures",
            )
        if not media_type_of(data):
            raise DataError(f"{row.where}: {path} is not a PNG, JPEG, GIF or WebP", hint="convert it")
        self._image_paths[name] = path
        return hashlib.sha256(data).hexdigest()[:16]

    def _images(self, item: Item) -> tuple[Image, ...]:
        return self.pictures(item)

    def pictures(self, item: Item) -> tuple[Image, ...]:
        detail = self._text("image_detail").replace("auto", "")
        return tuple(self._image(name, detail) for name in self._names(item))

    def _names(self, item: Item) -> Sequence[str]:
        return cast("Sequence[str]", item.content["images"])

    def _image(self, name: str, detail: str) -> Image:
        data = read_again(self._image_paths[name], f"picture {name}")
        return Image(media_type=media_type_of(data), data=base64.b64encode(data).decode(), detail=detail)


def picture(name: str, row: PublishedRow, value: object, *, suffix: str = "") -> Attachment:
    """Return the picture in a published value as a file, its suffix by its bytes; a DataError if it holds none."""
    content = value.get("bytes") if isinstance(value, dict) else None
    kind = media_type_of(content) if isinstance(content, bytes) else ""
    if not isinstance(content, bytes) or not kind:
        problem = f"row {row.number} of {row.file} has no picture for {name}"
        raise DataError(problem, hint="take the revision that is pinned")
    return Attachment(name=f"{name}{suffix or '.' + kind.partition('/')[2]}", content=content)
