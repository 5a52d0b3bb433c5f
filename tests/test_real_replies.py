"""Replies of a capable model to prompts of a real training, as they were recorded, parse, pass the lint and apply."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from skillgit.domain.edit import EditSource, EditStatus
from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import Secrets, build_index, find_leak
from skillgit.domain.skill import Skill
from skillgit.engine.candidate_text import fits, update
from skillgit.engine.questions import parse
from skillgit.engine.reply_schemas import AnalysisReply, GuidanceReply, PatchReply, RankReply
from skillgit_backends.offline.text import sections

DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", Path(__file__).parents[2] / "shared" / "data")) / "replies"
PROMPTS = sorted(DATA.glob("*.prompt.md"))
SCHEMAS = {
    "Analyse failures": AnalysisReply,
    "Analyse successes": AnalysisReply,
    "Merge patches": PatchReply,
    "Rank edits": RankReply,
    "Slow update": GuidanceReply,
}
ANSWER = re.compile(r"expected(?: one of)?:\s*(.+)")

pytestmark = pytest.mark.skipif(
    not PROMPTS, reason=f"no recorded replies at {DATA}; SKILLGIT_REAL_DATA names its folder"
)


def secrets(prompts: list[Path]) -> list[tuple[str, Split, Secrets]]:
    """Return what is secret about the tasks that the prompts show: the labels that were expected, and the tickets."""
    items: dict[str, Secrets] = {}
    for path in prompts:
        for attributes, body in sections(path.read_text(encoding="utf-8"), "trajectory"):
            turns = tuple(text for turn, text in sections(body, "turn") if turn.get("role") == "user")
            expected = ANSWER.findall("\n".join(text for _, text in sections(body, "feedback")))
            answer = next((text for _, text in sections(body, "answer")), "")
            items[attributes["id"]] = Secrets(answers=tuple(expected) or (answer,), inputs=turns)
    return [(item, Split.TRAIN, secret) for item, secret in items.items()]


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.name[:8])
def test_a_recorded_reply_is_used_whole(path):
    prompt = path.read_text(encoding="utf-8")
    heading = re.search(r"^# system\n+# (.+)$", prompt, re.MULTILINE)[1]
    answer = path.with_name(path.name.replace(".prompt.", ".answer.")).read_text(encoding="utf-8")
    reply = parse(answer, SCHEMAS[heading])
    if not isinstance(reply, PatchReply):
        return
    shown = sections(prompt, "skill")[-1][1]
    document = next(body for attributes, body in sections(shown, "file") if attributes["path"] == "SKILL.md")
    skill = Skill("ticket-routing", {"SKILL.md": f"{document}\n".encode()})
    fits(skill)(reply)
    draft = reply.draft(EditSource.FAILURE, [])
    index = build_index(secrets(PROMPTS))
    reports = update(skill, draft, None, lambda _, edit: str(find_leak(index, edit.content, document) or "")).reports
    assert [(report.status, report.detail) for report in reports] == [(EditStatus.APPLIED, "")] * len(reply.edits)


def test_the_tasks_of_the_replies_are_found():
    assert len(secrets(PROMPTS)) >= 14
