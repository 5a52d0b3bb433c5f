"""What a released skill says could be learnt: each rule, taken out and proposed again, passes lint and applier."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillgit.domain.edit import Edit, EditStatus, Op, apply
from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import build_index, find_leak
from skillgit.domain.skill import Skill
from skillgit.domain.skill_rules import rules
from skillgit.domain.untrusted.model_text import clean
from skillgit.plugin.environment import secrets_of
from skillgit.plugin.registry import load_environment

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", ROOT.parent / "shared" / "data"))
ENVIRONMENTS = {
    "docvqa": "docvqa",
    "livemath": "livemathematicianbench",
    "officeqa": "officeqa",
    "searchqa": "searchqa",
    "spreadsheetbench": "spreadsheetbench",
    "alfworld": "alfworld",
}

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no real data at {DATA}; SKILLGIT_REAL_DATA names its folder"
)


def proposals(text: str) -> list[tuple[str, str, str]]:
    """Return each rule that stands in ``text`` once, with the text without it and the line after which it stood."""
    lines = text.splitlines(keepends=True)
    found = []
    for rule in rules(text):
        if text.count(rule.text) != 1:
            continue
        start = text.index(rule.text)
        begin, end = text.rfind("\n", 0, start) + 1, text.find("\n", start + len(rule.text)) + 1 or len(text)
        before = [line.strip() for line in text[:begin].splitlines() if line.strip()]
        anchor = before[-1] if before and text.count(before[-1]) == 1 else ""
        found.append((text[begin:end].rstrip("\n"), text[:begin] + text[end:], anchor))
    assert lines
    return found


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_each_rule_of_a_released_skill_can_be_proposed_again(name, tmp_path):
    if name == "alfworld":
        pytest.importorskip("alfworld.gen")
    (path,) = (DATA / "skills/skillopt_ckpt").glob(f"{name}_*_skill.md")
    text = path.read_text(encoding="utf-8")
    options = {"scorer": "skillopt"} if name == "spreadsheetbench" else {}
    environment = load_environment(ENVIRONMENTS[name], tmp_path)(options, tmp_path)
    index = build_index(
        (item.id, split, secrets_of(environment, item)) for split in Split for item in environment.items(split)
    )
    refused, count = [], 0
    for rule, rest, anchor in proposals(text):
        count += 1
        skill = Skill("s", {"SKILL.md": f"---\nname: s\ndescription: x\n---\n\n{rest}".encode()})
        where = {"op": Op.INSERT_AFTER, "anchor": clean(anchor)} if anchor else {"op": Op.APPEND}
        (report,) = apply(skill, [Edit(content=clean(rule), **where)]).reports
        leak = find_leak(index, rule, rest)
        if report.status is not EditStatus.APPLIED or leak is not None:
            refused.append((rule, report.status.value, report.detail, str(leak)))
    assert count >= 10
    assert len(refused) <= count / 20, refused
