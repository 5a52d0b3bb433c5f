from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillgit.app.sources.tasks import review
from skillgit.errors import DataError, NotFoundError, UsageError
from skillgit_envs.tasks import Tasks

FILE = Path("tasks.jsonl")
LINES = [
    '{"prompt":"a",   "answer":"x"}',
    '{"id": "one", "status": "draft", "prompt": "b", "answers": ["y"]}',
    "",
    '{"id": "two", "status": "draft", "prompt": "c", "criteria": ["It is kind."]}',
]


@pytest.fixture
def file(empty) -> Path:
    path = empty.directory / FILE
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_drafts_are_listed_with_what_counts_as_right(empty, file):
    result = review(empty, FILE)
    assert [(draft.id, draft.line, draft.prompt, draft.expected) for draft in result.drafts] == [
        ("one", 2, "b", {"answers": ["y"]}),
        ("two", 4, "c", {"criteria": ["It is kind."]}),
    ]
    assert (result.accepted, result.count) == ((), 3)
    assert file.read_text() == "\n".join(LINES) + "\n"


def test_an_accepted_draft_is_marked_and_the_rest_stays(empty, file):
    result = review(empty, FILE, ["two"])
    assert result.accepted == ("two",)
    assert [draft.id for draft in result.drafts] == ["one"]
    lines = file.read_text().split("\n")
    assert lines[:3] == LINES[:3]
    assert json.loads(lines[3])["status"] == "reviewed"


@pytest.mark.usefixtures("file")
def test_a_run_uses_the_file_when_all_drafts_are_accepted(empty):
    environment = Tasks({"data_path": str(FILE), "split_ratio": "1:1:1"}, empty.directory)
    with pytest.raises(DataError, match=r"tasks\.jsonl:2 is a draft"):
        environment.items("train")
    assert review(empty, FILE, ["all"]).drafts == ()
    assert len(environment.items("train")) == 1


def test_a_draft_that_is_not_there_is_refused(empty, file):
    with pytest.raises(NotFoundError, match=r"there is no draft three in tasks\.jsonl"):
        review(empty, FILE, ["one", "three"])
    assert file.read_text() == "\n".join(LINES) + "\n"
    with pytest.raises(UsageError, match=r"there is no file gone\.jsonl"):
        review(empty, Path("gone.jsonl"))
