from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from wire import wire_server

from skillgit.app.sources.requests import DraftRequest
from skillgit.app.sources.tasks_draft import RubricWriter, draft
from skillgit.errors import ConfigError, FatalBackendError, ServiceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE, SKILL = Path("tasks.jsonl"), Path("SKILL.md")
GOOD = {"prompt": "What is 2 + 2?", "answers": ["4"]}


@pytest.fixture
def skill(empty) -> None:
    (empty.directory / SKILL).write_text("# Sums\n\nAdd the numbers.\n")


def request(**more: object) -> DraftRequest:
    return DraftRequest(**{"subject": str(SKILL), "file": FILE, "config": "tasks/default", **more})


def drafted(context, *replies: object, count: int = 5):
    """Let a model server reply with ``replies``, the first one first."""
    texts = [reply if isinstance(reply, str) else json.dumps({"tasks": reply}) for reply in replies]
    script = [("# Draft tasks", texts[0]), *(("cannot be used", text) for text in texts[1:])]
    with wire_server(scripted=tuple(script), keep=True) as wire:
        overrides: Sequence[str] = (
            "model.optimizer_backend=openai_compatible",
            "model.optimizer=analyst",
            f"model.openai_compatible_base_url={wire.url}/v1",
        )
        result = draft(context, request(limit=count, overrides=tuple(overrides)))
        return result, [entry.document["messages"] for entry in wire.log() if entry.role]


def rows(context) -> list[dict]:
    return [json.loads(line) for line in (context.directory / FILE).read_text().splitlines()]


@pytest.mark.usefixtures("skill")
def test_a_model_drafts_tasks_that_are_marked_as_drafts(empty):
    judged = {"prompt": "Explain sums.", "criteria": ["It is short."], "status": "reviewed", "id": "mine"}
    result, asked = drafted(empty, [GOOD, judged], count=2)
    assert [row["status"] for row in rows(empty)] == ["draft", "draft"]
    assert [row["id"] for row in rows(empty)] == list(result.ids)
    assert "mine" not in result.ids, "a model says neither its ids nor that it was reviewed"
    assert result.model == "openai_compatible/analyst"
    assert result.cost.calls == 1
    assert asked[0][1]["content"].endswith("Add the numbers.\n</skill>\n\nWrite 2 tasks.")


@pytest.mark.usefixtures("skill")
def test_what_is_no_task_or_not_new_is_left_out(empty):
    (empty.directory / FILE).write_text(json.dumps(GOOD) + "\n")
    code = {"prompt": "Do it.", "check": {"type": "command", "command": "rm -r ."}}
    new = {"prompt": "What is 3 + 3?", "answers": ["6"]}
    result, _ = drafted(empty, [GOOD, {"prompt": "Why?"}, code, new, new])
    assert len(result.ids) == 1
    assert [reason.partition(" ")[0] for reason in result.refused] == ["the", "draft", "draft", "the"]
    assert result.refused[2] == "draft 3 has a check that runs code"


@pytest.mark.usefixtures("skill")
def test_a_reply_that_is_no_json_is_asked_for_once_more(empty):
    result, asked = drafted(empty, "I would rather not.", [GOOD])
    assert len(result.ids) == 1
    assert "it contains no JSON object" in asked[1][-1]["content"]


@pytest.mark.usefixtures("skill")
@pytest.mark.parametrize("reply", ["no", [{"prompt": "Why?"}]])
def test_without_a_usable_draft_nothing_is_written(empty, reply: object):
    with pytest.raises(ServiceError):
        drafted(empty, reply)
    assert not (empty.directory / FILE).exists()


@pytest.mark.usefixtures("skill")
@pytest.mark.parametrize("dry_run", [True, False])
def test_fixed_rules_draft_nothing_and_a_plan_promises_nothing_of_them(empty, dry_run):
    ways = {
        "optimizer": ("drafting needs", lambda: draft(empty, request(limit=3, dry_run=dry_run))),
        "judge": ("criteria need", lambda: RubricWriter(empty, request(rubric=True, dry_run=dry_run))),
    }
    for role, (need, ask) in ways.items():
        with pytest.raises(ConfigError, match=f"{need} a language model, and offline/analyst follows") as refusal:
            ask()
        assert f"-o model.{role}_backend=" in refusal.value.hint
    assert not (empty.directory / FILE).exists()


@pytest.mark.usefixtures("skill")
def test_a_key_that_is_missing_is_the_hint_and_not_another_model(empty, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    words = ("model.optimizer_backend=openai_chat", "model.optimizer=m", "model.openai_chat_api_key_env=NO_SUCH_KEY")
    with pytest.raises(FatalBackendError, match="no key in the environment variable NO_SUCH_KEY") as refusal:
        draft(empty, request(overrides=words))
    assert refusal.value.hint.startswith("export NO_SUCH_KEY")


def test_so_many_drafts_cannot_be_asked_for(empty):
    with pytest.raises(UsageError, match="0 drafts cannot be asked for"):
        draft(empty, request(limit=0))
