"""A task of skillgit as another program sees it: items, prompts and scores are those of ``skillgit eval``.

The environment ``tasks`` renders each item and scores each reply, and the backend ``openai_compatible`` asks, so a
request to the target has the same bytes whichever program makes it. A failure of a server ends the program; it never
becomes a score.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from openai import OpenAI, OpenAIError

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import BadRequestError, EnvironmentFaultError, SkillgitError, UnanswerableError
from skillgit.plugin.backend import Backend, Message, Reply, ReplyForm, Request, Tool
from skillgit.plugin.registry import load_backend, load_environment
from skillgit.plugin.seed_folder import read_skill
from skillgit.plugin.skill_marks import as_text

PATIENCE_S = 7200
"""How long a reply may take: a person may write it."""
CALLS_AT_ONCE = 4
_HASH_SEED = "PYTHONHASHSEED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the target did on an item, and what that is worth."""

    item: Item
    prompts: tuple[str, ...]  # the system prompt, unless it is empty, and the user's turn
    reply: str
    answer: str  # as it is taken out of the reply
    scored: Scored
    feedback: str  # what any optimizer may read of the score

    @property
    def question(self) -> str:
        return str(self.item.content["prompt"])


class _Asked:
    """A model as an environment asks it."""

    def __init__(self, backend: Backend, model: str) -> None:
        self._backend, self._model = backend, model
        self.messages: tuple[Message, ...] = ()
        self.reply = ""

    async def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), form: ReplyForm | None = None
    ) -> Reply:
        request = Request(model=self._model, messages=as_text(messages), tools=tuple(tools), temperature=0.0)
        self.messages = request.messages
        reply = await self._backend.complete(request if form is None else form.applied(request))
        self.reply = reply.text
        return reply

    def serve(self) -> NoReturn:
        raise EnvironmentFaultError("the items of tasks start no agent", hint="take an environment that asks itself")


class Task:
    """The items of a task folder and the skill that a training starts from."""

    def __init__(self, words: argparse.Namespace) -> None:
        folder: Path = words.folder
        (data,), (document,) = folder.glob("tasks/*.jsonl"), folder.glob(f".claude/skills/*/{DOCUMENT}")
        self._target, self._judge, self._model = words.target, words.judge or words.optimizer, words.model
        self._environment = load_environment("tasks", folder)({"data_path": str(data.relative_to(folder))}, folder)
        self._seed = read_skill(document.parent)
        self._head = frontmatter(self._seed.document)
        self.train = self._environment.items(Split.TRAIN)
        self.selection = self._environment.items(Split.SELECTION)
        self.test = self._environment.items(Split.TEST)  # for the comparison alone: no program looks at it
        self.body = self._seed.document[len(self._head) :].strip()
        self._measured = {self.body}

    @property
    def candidates_measured(self) -> int:
        """How many texts besides the seed worked on an item."""
        return len(self._measured) - 1

    def outcomes(self, items: Sequence[Item], body: str) -> list[Outcome]:
        """Let the target work on ``items`` with the skill that says ``body``, and return the outcomes in their order.

        A server that fails ends the program, past any handler of the peer.
        """
        self._measured.add(body.strip())
        skill = self._seed.with_text(DOCUMENT, f"{self._head}\n{body.strip()}\n")
        try:
            return asyncio.run(self._all(items, skill))
        except SkillgitError as error:
            raise SystemExit(f"{error.message}; {error.hint}") from error

    async def _all(self, items: Sequence[Item], skill: Skill) -> list[Outcome]:
        turns = asyncio.Semaphore(CALLS_AT_ONCE)
        target, judge = (
            load_backend("openai_compatible", Path())({"base_url": address, "timeout_s": float(PATIENCE_S)})
            for address in (self._target, self._judge)
        )

        async def one(item: Item) -> Outcome:
            async with turns:
                return await self._outcome(item, skill, _Asked(target, self._model), _Asked(judge, self._model))

        async with aclosing(target), aclosing(judge):
            return await asyncio.gather(*map(one, items))

    async def _outcome(self, item: Item, skill: Skill, target: _Asked, judge: _Asked) -> Outcome:
        try:
            trajectory = await self._environment.rollout(item, skill, target)
            scored, feedback = await self._environment.score(item, trajectory, judge)
        except BadRequestError:  # the server takes no such request, so it is no answer of the model
            raise
        except UnanswerableError as error:  # such as a skill that is too long for the model
            trajectory = Trajectory(item_id=item.id, turns=(), answer="")
            scored, feedback = Scored(hard=0.0, soft=0.0), error.message
        return Outcome(
            item=item,
            prompts=tuple(message.text for message in target.messages),
            reply=target.reply,
            answer=trajectory.answer,
            scored=scored,
            feedback=feedback,
        )


class Optimizer(OpenAI):
    """The model that writes texts, asked once for each reply: an error ends the program, past any handler of a peer."""

    def __init__(self, words: argparse.Namespace) -> None:
        super().__init__(base_url=words.optimizer, api_key="none", timeout=PATIENCE_S, max_retries=0)

    def request(self, *details: Any, **options: Any) -> Any:
        try:
            return super().request(*details, **options)
        except OpenAIError as error:
            raise SystemExit(f"the optimizer cannot be asked: {error}") from error


def wanted(document: str) -> argparse.Namespace:
    """Return what the command line asks for; the process starts over where texts have another hash each time."""
    if os.environ.get(_HASH_SEED) != "0":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, _HASH_SEED: "0"})  # noqa: S606
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with tasks/NAME.jsonl and .claude/skills/NAME/SKILL.md")
    parser.add_argument("--seed", type=int, required=True, help="of the peer's own draws")
    parser.add_argument("--target", required=True, help="address of OpenAI's protocol, with its /v1")
    parser.add_argument("--optimizer", required=True, help="address of OpenAI's protocol, with its /v1")
    parser.add_argument("--judge", default="", help="the same for tasks that ask a judge; the optimizer's by default")
    parser.add_argument("--model", required=True, help="name of the model at the target's address")
    parser.add_argument("--optimizer-model", default="optimizer", help="name of the model at the optimizer's address")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    words = parser.parse_args()
    words.folder = words.folder.resolve()
    return words


def new_folder(out: Path) -> Path:
    """Return an empty folder for the files of a peer.

    A peer resumes by its files in another way than it goes on, so it always starts from the seed; replies that a proxy
    kept make that cheap.
    """
    folder = out.resolve() / "peer"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def write_result(words: argparse.Namespace, program: str, task: Task, best: str, scores: tuple[float, float]) -> None:
    """Write the best text and what the peer measured for the seed and for it on the selection split."""
    summary = {
        "program": program,
        "version": version(program),
        "seed": words.seed,
        "selection": dict(zip(("seed", "best"), scores, strict=True)),
        "candidates_measured": task.candidates_measured,
    }
    (words.out / "best.md").write_text(f"{best.strip()}\n", encoding="utf-8")
    (words.out / "summary.json").write_text(f"{json.dumps(summary, indent=1)}\n", encoding="utf-8")
    sys.stdout.write(f"{json.dumps(summary)}\n")
