"""Replies of a capable model to prompts of a real training, as they were recorded, parse, pass the lint and apply."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent / "engine"))
from toy import History, ToyBackend, run_to_end, trainer

from skillgit.domain.edit import EditSource, EditStatus, apply
from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import Secrets, build_index, find_leak
from skillgit.domain.skill import Skill
from skillgit.engine.candidate import fits, update
from skillgit.engine.proposals import Draft, without_duplicates
from skillgit.engine.replies import AnalysisReply, GuidanceReply, PatchReply, RankReply, parse
from skillgit.engine.strategy import TrainSearch
from skillgit.strategies.racing import Racing
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


def test_recorded_patches_of_one_text_unite_to_one_candidate():
    """What a capable model proposed for one text in several minibatches is what a round of racing puts together."""
    drafts: dict[str, list[Draft]] = {}
    for path in PROMPTS:
        prompt = path.read_text(encoding="utf-8")
        heading = re.search(r"^# system\n+# (.+)$", prompt, re.MULTILINE)[1]
        if heading.startswith("Analyse"):
            answer = path.with_name(path.name.replace(".prompt.", ".answer.")).read_text(encoding="utf-8")
            shown = sections(sections(prompt, "skill")[-1][1], "file")
            document = next(body for attributes, body in shown if attributes["path"] == "SKILL.md")
            drafts.setdefault(document, []).append(parse(answer, AnalysisReply).draft(EditSource.FAILURE, []))
    assert max(map(len, drafts.values())) >= 3
    for document, group in drafts.items():
        skill = Skill("ticket-routing", {"SKILL.md": f"{document}\n".encode()})
        proposal = asyncio.run(_united(skill, group))
        apart = [draft for draft in without_duplicates(group) if draft.proposals]
        assert proposal is not None or len(apart) < 2
        if proposal is not None:
            assert len(proposal.edits) == sum(len(draft.proposals) for draft in apart)
            assert apply(skill, proposal.edits).skill.digest == proposal.application.skill.digest
            assert all(edit.content in proposal.application.skill.document for edit in proposal.edits)


async def _united(skill: Skill, drafts: list[Draft]):
    """Return the union of a round whose steps proposed ``drafts`` of ``skill``."""
    history = History()
    made = trainer(ToyBackend(), history, strategy=Racing())
    await run_to_end(made, history, limit=1)
    search = TrainSearch.within(made.rounds.search(history.state(), 1))
    search = replace(search, history=SimpleNamespace(skill=lambda _: skill))
    return await Racing().unite(search, [search.propose(draft) for draft in drafts])
