"""The parts of a score that the judge decides are named before it is asked as they are named in the score."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saying import Says

from skillgit.domain.trajectory import Trajectory
from skillgit.plugin.environment import JudgedPart, LeavesFiles, judged_parts
from skillgit_envs.tasks import Tasks

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ("It is kind.", "It names a date.", "It is short.")
criteria = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3)
names = st.sampled_from(["", "form", "tone"])
judges = st.builds(
    lambda texts, name: {"type": "judge", "criteria": texts, **({"name": name} if name else {})}, criteria, names
)
comparisons = st.just({"type": "judge", "rubric": "It is kind.", "against": "Dear all"})
rules = st.sampled_from([{"type": "contains", "answer": "good"}, {"type": "exact", "answer": "x", "name": "form"}])
checks = st.lists(st.one_of(judges, comparisons, rules), min_size=1, max_size=4)


@given(checks)
def test_every_judged_part_is_in_the_score_and_every_other_part_is_a_rule(tmp_path_factory, found):
    environment = Tasks({}, tmp_path_factory.getbasetemp())
    item = environment.task(
        "the row", {"prompt": "Do it.", "checks": found}, tmp_path_factory.getbasetemp() / "t.jsonl"
    )
    replies = []
    for check in found:
        if "against" in check:
            replies += [json.dumps({"winner": winner, "reason": "r"}) for winner in ("A", "tie")]
        elif check["type"] == "judge":
            replies.append(json.dumps({"scores": [0.25] * len(check["criteria"]), "reason": "r"}))
    trajectory = Trajectory(item_id=item.id, turns=(), answer="good")
    scored, _ = asyncio.run(environment.score(item, trajectory, Says(*replies)))
    parts = judged_parts(environment, item)
    if not any(check["type"] == "judge" for check in found):
        assert parts == []
    elif not scored.parts:
        assert [part.name for part in parts] == [""]
    else:
        values, judged = dict(scored.parts), {part.name for part in parts}
        assert judged <= values.keys()
        assert {values[part.name] for part in parts if not part.position} <= {0.25}
        assert [values[part.name] for part in parts if part.position] == [1.0, 0.5] * sum("against" in c for c in found)
        assert all(values[name] in {0.0, 1.0} for name in values.keys() - judged)
    assert {part.criterion for part in parts if not part.position} <= set(TEXTS)


def test_only_python_leaves_files(tmp_path: Path):
    assert isinstance(Tasks({}, tmp_path), LeavesFiles)
    assert [Tasks({"tools": tools}, tmp_path).leaves_files for tools in ("none", "read", "python")] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("row", [{"rubric": "It is kind."}, {"answer": "x"}])
def test_a_single_rubric_is_the_whole_score(tmp_path: Path, row):
    environment = Tasks({}, tmp_path)
    item = environment.task("the row", {"prompt": "Do it.", **row}, tmp_path / "t.jsonl")
    expected = [JudgedPart(criterion="It is kind.")] if "rubric" in row else []
    assert judged_parts(environment, item) == expected
