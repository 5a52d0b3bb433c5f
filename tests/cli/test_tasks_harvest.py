"""What ``skillgit tasks draft --from sessions`` asks for, and how it says what came of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from skillgit.app.sources.harvest import DraftSummary, Harvested
from skillgit.app.sources.requests import DraftRequest

SUMMARY = DraftSummary(
    id="h-1", title="Sum it up", agent="codex", use="user", signals=("correction", "repeat"), check="command", files=3
)
RESULT = Harvested(
    path=Path("/r/.git/skillgit/drafts/totals/drafts.jsonl"),
    drafts=(SUMMARY,),
    sessions=2,
    turns=5,
    left_out={"of headless runs": 1},
    not_drafted={"with too many or too large files": 1, "as part of the previous request": 3},
    other_projects=3,
    redacted=4,
    places=("/r",),
    source="",
    is_met=True,
    unknown={"codex 9: new-kind": 2},
    remarks=("x.jsonl cannot be read: Permission denied",),
    cost=None,
    is_dry_run=False,
)


@pytest.fixture(autouse=True)
def skill(tmp_path) -> None:
    (tmp_path / "totals").mkdir()
    (tmp_path / "totals" / "SKILL.md").write_text("---\nname: totals\ndescription: Sums.\n---\nSum.\n")


def test_options_become_a_request(skillgit, fake):
    calls = fake("sources.harvest.harvest", RESULT)
    words = ("--from", "codex", "--since", "7d", "--project", "a", "--project", "b", "--rubric", "--max-calls", "3")
    ended = skillgit("tasks", "draft", "totals", *words)
    request = DraftRequest(
        subject="totals",
        source="codex",
        since="7d",
        projects=(Path("a"), Path("b")),
        rubric=True,
        max_calls=3,
    )
    assert calls == [(request,)]
    assert ended.text == (
        "h-1 · Sum it up\n"
        "    codex · used by user · correction · repeat · scored by command\n"
        "1 draft from 5 requests in 2 sessions\n"
        "prompts left out: 1 of headless runs\n"
        "not drafted: 3 as part of the previous request · 1 with too many or too large files\n"
        "records that are not known: 2 codex 9: new-kind\n"
        "3 other projects not read; --project DIR allows one\n"
        "4 different values taken out of the requests and their files\n"
        "next: skillgit tasks review --skill totals\n"
    )
    assert "Permission denied" in ended.err
    fake("sources.harvest.harvest", replace(RESULT, is_dry_run=True))
    ends = skillgit("tasks", "draft", "totals", "--from", "sessions", "--dry-run").text.splitlines()[-2:]
    assert ends == ["4 different values taken out of the requests and their files", "nothing was written"]


def test_it_has_a_document(skillgit, fake):
    fake("sources.harvest.harvest", RESULT)
    document = json.loads(skillgit("tasks", "draft", "totals", "--from", "sessions", "--json").out)
    assert (document["schema"], document["drafts"][0]["id"]) == ("skillgit.tasks-harvest/1", "h-1")
