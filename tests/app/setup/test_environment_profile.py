"""What an environment shows of itself is what it does, whoever wrote it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from skillgit.app.setup import environment_profile
from skillgit.app.setup.environment_profile import profile_of, profiled_environment
from skillgit.domain.evaluation import Split
from skillgit.errors import BackendError, SandboxError
from skillgit.plugin.environment import EnvironmentInfo, Need, NeedKind, Option, secrets_of
from skillgit.plugin.registry import ENVIRONMENTS, installed, load_environment
from skillgit.view.plugins import environment_lines
from skillgit.view.surface import Screen
from skillgit.view.text import width

NAMES = [plugin.name for plugin in installed(ENVIRONMENTS)]


@pytest.fixture
def offline(monkeypatch):
    """Refuse every connection to another machine."""

    def refuse(_self, address):
        raise AssertionError(f"a connection to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", NAMES)
def test_every_environment_shows_an_item_and_its_prompt_on_a_hundred_columns(name, empty):
    if name == "alfworld":
        pytest.importorskip("textworld", reason="the games are not installed")
    if name == "spreadsheetbench" and not any(map(environment_profile.shutil.which, ("soffice", "libreoffice"))):
        pytest.skip("LibreOffice is not installed")
    entry = profiled_environment(empty, name)
    profile = entry.profile
    assert profile.fault == ""
    assert all(profile.counts.values())
    assert profile.sample is not None
    made = load_environment(name, Path())({}, Path())
    item = next(item for item in made.items(profile.sample.split) if item.id == profile.sample.id)
    assert {field.name: field.value for field in profile.sample.fields} == dict(item.content)
    prompt = "\n".join(turn.content for turn in profile.sample.prompt)
    for field in profile.sample.fields:
        golds = secrets_of(made, item).answers
        is_gold = bool(golds) and field.value in ([*golds], *golds)
        assert not (is_gold and field.shown)
        if isinstance(field.value, str) and field.value and field.shown and field.value.isprintable():
            assert field.value in prompt or field.name in {"image", "extract"}
    lines = list(environment_lines(entry, Screen()))
    assert all(width(line) <= 100 for line in lines)
    assert sum(scorer.default for scorer in profile.scorers) == 1


SKILL = "---\nname: toy\ndescription: Plays.\n---\n\n# Toy\n\nOne.\nTwo.\nThree.\nFour.\nFive.\n"


class Toy:
    """Shows a word and hides another."""

    info = EnvironmentInfo(
        name="toy",
        summary="Plays.",
        fields={"word": "a word", "gold": "what is right"},
        scorer="equality",
        source="made here",
        options=(
            Option(name="scorer", type=str, default="a", help="Which.", values={"a": "by rules", "b": "by a judge"}),
            Option(name="sandbox", type=str, default="auto", help="How."),
        ),
        needs=(
            Need(kind=NeedKind.EXTRA, name="toys", looked_for=("json", "no_such_module"), purpose="toys"),
            Need(kind=NeedKind.PROGRAM, name="shell", looked_for=("no-such-program", "sh"), purpose="a shell"),
        ),
    )

    def __init__(self, options, root):
        del root
        self.asks_judge = options["scorer"] == "b"

    digest = "1"

    def items(self, split):
        from skillgit.domain.trajectory import Item  # noqa: PLC0415 - this class is copied into a file

        return [Item(id=f"{split}-1", content={"word": "tree", "gold": f"{split}", "numbers": [1], "more": {}})]

    def seed_skill(self):
        from skillgit.domain.skill import Skill  # noqa: PLC0415 - as above

        return Skill("toy", {"SKILL.md": SKILL.encode()})

    def taxonomy(self):
        return "- wrong"

    async def rollout(self, item, skill, target):
        from skillgit.plugin.backend import system, user  # noqa: PLC0415 - as above

        assert item.content["numbers"]
        await target.chat([system(f"Play.\n{skill.document}"), user(item.content["word"])])

    async def score(self, item, trajectory, judge):
        raise NotImplementedError


def test_fields_are_marked_by_what_the_prompt_depends_on():
    sample = profile_of(Toy, Path()).sample
    assert {field.name: field.shown for field in sample.fields} == {
        "word": True,
        "gold": False,
        "numbers": True,  # without it there is no rollout
        "more": False,
    }
    assert "Four." not in sample.prompt[0].content
    assert "more lines of the skill toy" in sample.prompt[0].content
    assert sample.prompt[1].content == "tree"


def test_scorers_and_needs_are_told_with_what_this_machine_has(monkeypatch):
    def no_sandbox():
        raise SandboxError("nothing isolates", hint="install bubblewrap")

    monkeypatch.setattr(environment_profile, "Sandbox", no_sandbox)
    profile = profile_of(Toy, Path())
    assert [(each.name, each.default, each.judge) for each in profile.scorers] == [
        ("a", True, False),
        ("b", False, True),
    ]
    assert {need.name: need.present for need in profile.needs} == {
        "judge": None,
        "sandbox": False,
        "toys": False,
        "shell": True,
    }
    assert profile.calls is None


class Stubborn(Toy):
    async def rollout(self, _item, _skill, target):
        while True:
            try:
                await target.chat([])
            except BackendError:
                continue


class Silent(Toy):
    async def rollout(self, _item, _skill, _target):
        return None


class Empty(Toy):
    def items(self, _split):
        return []


class Unmade(Toy):
    def __init__(self, _options, _root):
        raise KeyError("data_path")


@pytest.mark.parametrize(
    ("cls", "said"),
    [(Stubborn, "never end"), (Silent, "asks the target nothing"), (Empty, "no items"), (Unmade, "KeyError")],
)
def test_whatever_a_plugin_does_the_rest_of_it_is_shown(cls, said, monkeypatch):
    monkeypatch.setattr(environment_profile, "_LIMIT_S", 0.05)
    profile = profile_of(cls, Path())
    assert said in profile.fault
    assert "\n" not in profile.fault
    assert {need.name for need in profile.needs} >= {"sandbox", "toys", "shell"}
    assert Split.TRAIN in profile.counts or cls is Unmade
