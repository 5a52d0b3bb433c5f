"""Documents point at things that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from documents import check_part

import skillgit
from skillgit.app.setup.config.resolved import is_neutral
from skillgit.app.setup.config.schema import NOT_KEYS, SECTIONS
from skillgit.cli.main import cli
from skillgit.plugin import registry
from skillgit.verbs.command_line import VerbCommand
from skillgit.view import lists
from skillgit.view.deliveries import INSTALLED
from skillgit.view.diff import RULES
from skillgit.view.item import ATTEMPTS
from skillgit.view.items import CHANGES
from skillgit.view.log import EVENTS
from skillgit.view.plan import COST
from skillgit.view.runs import RUNS
from skillgit.view.score_tables import ITEMS, MODEL_SCORES

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = {
    "cost": COST,
    "diff --items": CHANGES,
    "diff --rules": RULES,
    "install --list": INSTALLED,
    "items": ITEMS,
    "items --item": ATTEMPTS,
    "items --models": MODEL_SCORES,
    "log": EVENTS,
    "runs": RUNS,
}
LISTS = {name: [*kind.names] for name, kind in {**lists.LISTS, **TABLES}.items()} | {
    "config": ["key", "value", "origin"]
}
"""What commands print in each row for programs."""
ROOT = Path(__file__).parents[1]
AGENTS = ("claude_code_exec", "codex_exec", "opencode_exec", "copilot_exec")
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "envs").rglob("README.md"),
        *(ROOT / "backends").rglob("README.md"),
    ]
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(path: Path) -> set[str]:
    """Return the anchors that a host makes of the headings of a document."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+?)\s*$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_relative_link_leads_somewhere(path: Path):
    for link in LINK.findall(without_code(path.read_text(encoding="utf-8"))):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        found = (path.parent / target).resolve() if target else path
        assert found.exists(), link
        assert found.is_relative_to(ROOT), link
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), link


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_source_file_that_is_named_exists(path: Path):
    names = re.findall(r"`((?:\w+/)+\w+\.py)`", path.read_text(encoding="utf-8"))
    rooms = {name.partition("/")[0] for name in names} & {folder.name for folder in (ROOT / "skillgit").iterdir()}
    assert [name for name in names if name.partition("/")[0] in rooms and not (ROOT / "skillgit" / name).exists()] == []


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading) for heading in headings[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, flags=re.MULTILINE)) <= kinds
    assert re.fullmatch(r"\d+\.\d+\.\d+", skillgit.__version__)


def configuration_table() -> str:
    """Return the reference of all keys as Markdown, made from the typed sections."""
    lines = []
    for section, settings in SECTIONS.items():
        lines += [f"### `{section}`", "", "| key | default | meaning |", "|---|---|---|"]
        for name, field in settings.model_fields.items():
            key = f"{section}.{name}"
            if key in NOT_KEYS:
                continue
            default = "required" if field.is_required() else f"`{shown(field.get_default(call_default_factory=True))}`"
            mark = " *" if is_neutral(key) else ""
            lines.append(f"| `{name}`{mark} | {default} | {field.description} |")
        lines.append("")
    return "\n".join(lines)


def shown(value: object) -> str:
    """Write a value as it stands in YAML."""
    return value if isinstance(value, str) and value else json.dumps(value)


def columns_table() -> str:
    """Return the columns of every list that a command prints for programs as Markdown."""
    lines = ["| command | columns |", "|---|---|"]
    for command, columns in sorted(LISTS.items()):
        lines.append(f"| `skillgit {command}` | {' '.join(f'`{column}`' for column in columns)} |")
    return "\n".join(lines) + "\n"


def test_the_configuration_reference_is_up_to_date():
    check_part("configuration.md", "keys", configuration_table())


def agent_settings() -> str:
    """Return the settings of every coding agent as Markdown, from what their backends list."""
    lines = []
    for name in AGENTS:
        settings = registry.load_backend(name, ROOT).info.settings
        rows = [f"| `{key}` | {json.dumps(knob.default)} | {knob.meaning} |" for key, knob in settings.items()]
        lines += [f"### `{name}`", "", "| setting | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def test_the_settings_of_coding_agents_are_up_to_date():
    check_part("configuration.md", "settings", agent_settings())


def test_every_coding_agent_has_its_settings_there():
    names = {plugin.name for plugin in registry.installed(registry.BACKENDS)}
    backends = {name: registry.load_backend(name, ROOT) for name in names}
    assert {name for name, backend in backends.items() if hasattr(backend, "complete_through")} == set(AGENTS)


def test_the_columns_of_lists_are_up_to_date():
    check_part("scripting.md", "columns", columns_table())


def test_every_command_that_prints_columns_is_listed():
    printing = {
        command for command, verb in all_verbs(cli, "") if isinstance(verb, VerbCommand) and "plain" in verb.keys
    }
    assert {command.partition(" -")[0] for command in LISTS} == printing - {"sql"}


def all_verbs(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command by its whole name."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from all_verbs(found, f"{before}{name} ")
        else:
            yield f"{before}{name}", found
