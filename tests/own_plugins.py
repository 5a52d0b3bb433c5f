"""An environment and a backend of a user's own, in files: what decides an outcome is spread over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SUMS = """
from pathlib import Path

import scoring
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.plugin.backend import system, user
from skillgit.plugin.environment import EnvironmentInfo, Option


class Sums:
    info = EnvironmentInfo(
        name="sums",
        summary="Additions",
        fields={"a": "a number"},
        scorer="equality",
        source="made here",
        options=(Option(name="shout", type=bool, default=False, help="Whether the question is in capitals."),),
    )
    asks_judge = True

    def __init__(self, options, root):
        self.root = root
        self.shout = options.get("shout", False)
        self.prompt = Path(__file__).with_name("prompt.md").read_text()

    @property
    def digest(self):
        return f"sums {self.prompt} {self.shout}"

    def items(self, split):
        first = {"train": 0, "selection": 20, "test": 40}[split]
        numbers = (self.root / "numbers.txt").read_text().split()
        return [Item(id=f"{split}-{n}", content={"a": first + int(number)}) for n, number in enumerate(numbers)]

    def seed_skill(self):
        return Skill("sums", {"SKILL.md": b"---\\nname: sums\\ndescription: Adds.\\n---\\n\\n# Sums\\n\\nAdd.\\n"})

    def taxonomy(self):
        return "- wrong"

    async def rollout(self, item, skill, target):
        with (self.root / "rollouts.log").open("a") as log:
            log.write(f"{item.id}\\n")
        reply = await target.chat([system(self.prompt + skill.document), user(str(item.content["a"]))])
        turns = (Turn(role="assistant", content=reply.text),)
        return Trajectory(item_id=item.id, turns=turns, answer=reply.text)

    async def score(self, item, trajectory, judge):
        await judge.chat([user(trajectory.answer)])
        return scoring.scored(item, trajectory.answer), "as it is"


class Others(Sums):
    pass
"""
SCORING = """
from skillgit.domain.evaluation import Scored


def scored(item, answer):
    from rules import rule

    value = rule(item, answer) * 0.5
    return Scored(value, value)
"""
RULES = """
def rule(item, answer):
    return 1.0
"""
ECHO = """
from skillgit.plugin.backend import BackendInfo, Reply, Usage


class Echo:
    info = BackendInfo(name="echo", summary="Repeats", models=(), needs_network=False)

    def __init__(self, settings):
        self.settings = settings

    async def complete(self, request):
        return Reply(text=request.messages[-1].text, usage=Usage(tokens_in=3, tokens_out=3))

    async def aclose(self):
        pass
"""
CONFIG = """
env: {name: "sums.py:Sums"}
model:
  target: small
  optimizer: small
  judge: small
  target_backend: "models/echo.py:Echo"
  optimizer_backend: "models/echo.py:Echo"
train: {num_epochs: 1, batch_size: 3}
"""


def write_plugins(folder: Path) -> Path:
    """Write the files of both plug-ins and a configuration into ``folder``, and return it."""
    files = {"sums.py": SUMS, "scoring.py": SCORING, "rules.py": RULES, "models/echo.py": ECHO, "run.yaml": CONFIG}
    for name, text in (files | {"prompt.md": "You add.\n", "numbers.txt": "1 2 3\n"}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def edit(path: Path, old: str, new: str) -> None:
    """Replace ``old`` with ``new`` in a file that holds it."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
