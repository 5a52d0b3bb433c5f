"""What an environment shows of itself is what it does, whoever wrote it."""

from __future__ import annotations

import socket
import tomllib
from pathlib import Path

import pytest
from documents import DOCS, check_part, part

from skillgit.app.setup import environment_profile
from skillgit.app.setup.environment_profile import ProfiledEnvironment, profile_of
from skillgit.app.setup.plugins import PluginKind
from skillgit.domain.evaluation import Split
from skillgit.errors import BackendError, SandboxError
from skillgit.plugin.environment import EnvironmentInfo, Need, NeedKind, Option, secrets_of
from skillgit.plugin.registry import ENVIRONMENTS, installed, load_environment
from skillgit.view.setup import plugin_lines
from skillgit.view.surface import Screen
from skillgit.view.text import width

NAMES = [plugin.name for plugin in installed(ENVIRONMENTS) if plugin.name != "harbor"]  # which brings no items


SLOW = {"alfworld", "inspect", "spreadsheetbench"}
"""They start games, an evaluation of Inspect and open workbooks."""


@pytest.fixture
def offline(monkeypatch):
    """Refuse every connection to another machine."""

    def refuse(_self, address):
        raise AssertionError(f"a connection to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.soak] * (name in SLOW)) for name in NAMES])
def test_every_environment_shows_an_item_and_its_prompt_on_a_hundred_columns(name):
    if name == "alfworld":
        pytest.importorskip("textworld", reason="the games are not installed")
    if name == "inspect":
        pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
    if name == "spreadsheetbench" and not any(map(environment_profile.shutil.which, ("soffice", "libreoffice"))):
        pytest.skip("LibreOffice is not installed")
    profile = profile_of(load_environment(name, Path()), Path())
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
            assert field.value in prompt or field.name in {"image", "extract", "repo", "base_commit"}
    entry = ProfiledEnvironment(
        kind=PluginKind.ENVIRONMENT, name=name, reference="a:B", info=made.info, profile=profile
    )
    lines = list(plugin_lines(entry, Screen()))
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


def benchmarks_table(known: dict[str, str]) -> str:
    """Return the table of the benchmarks; the row of one that cannot be made here is the ``known`` one."""
    facts = tomllib.loads((DOCS / "benchmarks.toml").read_text(encoding="utf-8"))
    heads = ("items with it", "public items", "split of the reference", "source", "licence", "scorers", "agreement")
    rows = [f"| benchmark | {' | '.join(heads)} | calls | needs |", f"|{'---|' * 10}"]
    rows += [row(name, facts[name], known) for name in NAMES if name in facts]
    return "\n".join(rows) + "\n"


def row(name: str, facts: dict[str, str], known: dict[str, str]) -> str:
    environment = load_environment(name, Path())
    info, profile = environment.info, profile_of(environment, Path())
    if profile.fault:
        return known[name]
    public = info.public
    source = (
        info.source if public is None else f"{public.place}{f' at {public.revision[:8]}' if public.revision else ''}"
    )
    scorers = [
        f"`{scorer.name}`{' (a judge)' if scorer.judge else ''}" if scorer.name else "one"
        for scorer in sorted(profile.scorers, key=lambda scorer: not scorer.default)
    ]
    least, most = (total // profile.counts[Split.TEST] for total in profile.calls.target)
    calls = f"{least}" if least == most else f"{least} to {most}"
    test = facts["split"].rpartition("/")[2]
    if test.isdecimal():
        whole = f"{least * int(test):,}" if least == most else f"{least * int(test):,} to {most * int(test):,}"
        calls = f"{calls} ({whole})"
    cells = (
        f"`{name}`",
        "/".join(str(count) for count in profile.counts.values()),
        facts["items"],
        facts["split"],
        source,
        info.licence or "not stated",
        ", ".join(scorers),
        facts["agreement"] or "not measured",
        calls,
        ", ".join(need.name for need in profile.needs) or "nothing",
    )
    return f"| {' | '.join(cells)} |"


def defects_table() -> str:
    """Return what is known to be wrong with public data, beside their licences."""
    rows = ["| benchmark | licence of the public data | known of them | by |", "|---|---|---|---|"]
    for name in tomllib.loads((DOCS / "benchmarks.toml").read_text(encoding="utf-8")):
        public = load_environment(name, Path()).info.public
        rows += [
            f"| `{name}` | {public.licence or 'none stated'} | {defect.sentence} | {defect.source} |"
            for defect in (public.defects if public is not None else ())
        ]
    return "\n".join(rows) + "\n"


def test_the_table_of_known_defects_is_up_to_date():
    check_part("benchmarks.md", "defects", defects_table())


def test_the_table_of_benchmarks_is_up_to_date(monkeypatch):
    """``UPDATE_DOCS=1 pytest tests/app/setup/test_environment_profile.py`` writes it anew."""
    monkeypatch.setattr(environment_profile, "_MOST_FIELDS", 0)
    old = part("benchmarks.md", "benchmarks")
    known = {line.split("`")[1]: line for line in old.splitlines() if line.startswith("| `")}
    check_part("benchmarks.md", "benchmarks", benchmarks_table(known))
