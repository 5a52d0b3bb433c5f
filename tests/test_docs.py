"""Documents point at things that exist."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import skillgit
from skillgit.app.config.resolved import NEUTRAL
from skillgit.app.config.schema import NOT_KEYS, SECTIONS

ROOT = Path(__file__).parents[1]
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
            mark = " *" if key in NEUTRAL else ""
            lines.append(f"| `{name}`{mark} | {default} | {field.description} |")
        lines.append("")
    return "\n".join(lines)


def shown(value: object) -> str:
    """Write a value as it stands in YAML."""
    return value if isinstance(value, str) and value else json.dumps(value)


def test_the_configuration_reference_is_up_to_date():
    path = ROOT / "docs" / "configuration.md"
    head, begin, rest = path.read_text(encoding="utf-8").partition("<!-- keys -->\n\n")
    _, end, tail = rest.partition("<!-- /keys -->")
    wanted = head + begin + configuration_table() + "\n" + end + tail
    if os.environ.get("UPDATE_DOCS"):
        path.write_text(wanted, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == wanted, "run UPDATE_DOCS=1 make docs"
