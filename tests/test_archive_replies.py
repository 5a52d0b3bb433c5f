"""Every reply of two real trainings goes through today's parsing and guards, and today's prompts say no more words."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from skillgit.domain.edit import EditStatus
from skillgit.domain.skill import Skill
from skillgit.engine.candidate import dangling, update
from skillgit.engine.prompt_sections import NAMES, SHOWN, prompt
from skillgit.engine.proposals import Draft
from skillgit.engine.replies import AnalysisReply, GuidanceReply, MemoryReply, PatchReply, parse
from skillgit_backends.offline.text import Briefing

SHARED = Path(os.environ.get("SKILLGIT_REAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
PROMPTS = sorted((SHARED / "archive_sections" / "replies").glob("*/*.prompt.md"))
SCHEMAS = {
    "Analyse failures": AnalysisReply,
    "Analyse successes": AnalysisReply,
    "Merge and rank edits": PatchReply,
    "Slow update": GuidanceReply,
    "Optimizer memory": MemoryReply,
}
HEADINGS = {prompt(name).splitlines()[0].removeprefix("# "): name for name in NAMES}

pytestmark = pytest.mark.skipif(not PROMPTS, reason=f"no recorded replies at {SHARED}; SKILLGIT_REAL_DATA names them")


def read(path: Path) -> tuple[str, str, Briefing, str]:
    """Return the kind of a recorded prompt, its instructions, what it showed, and the answer."""
    system, shown = re.split(r"^\[user\]$", path.read_text("utf-8"), maxsplit=1, flags=re.MULTILINE)
    heading = re.search(r"^# (.+)$", system, re.MULTILINE)[1]
    answer = path.with_name(path.name.replace(".prompt.", ".answer.")).read_text("utf-8")
    return heading, system.removeprefix("[system]\n"), Briefing(shown), answer


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: f"{path.parent.name}-{path.name[:6]}")
def test_a_recorded_reply_is_read_and_each_edit_has_its_place(path):
    heading, _, briefing, answer = read(path)
    reply = parse(answer, SCHEMAS[heading])
    if not isinstance(reply, PatchReply):
        return
    skill = Skill("archive-section", {"SKILL.md": f"{briefing.document}\n".encode()})
    edits = tuple(edit.proposed("failure") for edit in reply.edits)
    reports = update(skill, Draft(proposals=edits), None, alone=True).reports
    assert all(report.status is EditStatus.APPLIED for report in reports)
    for edit in edits:
        others = [other.content for other in edits if other is not edit]
        assert not dangling(edit, [skill.document, *others], []), "a whole reply refers to nothing that is missing"


def test_the_recorded_edits_that_speak_of_a_step_go_with_the_edit_that_has_it():
    dependent = set()
    for path in PROMPTS:
        heading, _, briefing, answer = read(path)
        if SCHEMAS[heading] not in {AnalysisReply, PatchReply}:
            continue
        edits = [edit.proposed("failure") for edit in parse(answer, SCHEMAS[heading]).edits]
        for edit in edits:
            for other in edits:
                rest = [briefing.document, *(each.content for each in edits if each is not edit and each is not other)]
                if other is not edit and (words := dangling(edit, rest, [other.content])):
                    dependent.add((path.name[:6], words))
    assert dependent == {("43c8ab", "step 1"), ("e63e52", "step 1")}


@pytest.mark.parametrize("heading", SCHEMAS)
def test_the_instructions_are_shorter_than_those_of_the_recording(heading):
    recorded = [system for kind, system, _, _ in map(read, PROMPTS) if kind == heading]
    today = f"{prompt(HEADINGS[heading]).rstrip()}\n\n{prompt(SHOWN)}"
    taxonomy = 700  # what the environment's kinds of failure add to the recorded ones, at most
    assert not recorded or len(today) < min(map(len, recorded)) - (taxonomy if "{taxonomy}" in today else 0)
