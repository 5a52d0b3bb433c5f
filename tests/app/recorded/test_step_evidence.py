from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.attribution.provenance import BroughtLines
from skillgit.app.recorded.step_evidence import AppliedEdit, StepEvidence, TrainAttempt, with_questions
from skillgit.store.evidence import write_evidence
from skillgit.store.repo import Repo

FILES = ("patch.json", "rollout.json", "findings.json", "comparison.json")
OF_EDITS = ("edits", "items", "status", "op", "support", "content", "findings", "pattern", "count")
OF_ITEMS = ("id", "turns", "category", "current", "answer", "hard", "trajectory", "role")
KEYS = st.sampled_from((*OF_EDITS, *OF_ITEMS))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["applied", "regressed", "t1"]),
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)


def edit(place: int, content: str, op: str = "append") -> AppliedEdit:
    return AppliedEdit(
        position=place,
        op=op,
        file="SKILL.md",
        anchor="",
        content=content,
        support=place + 1,
        source="failure",
        items=(),
    )


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Repo:
    return Repo.init(tmp_path_factory.mktemp("evidence") / "repository")


@given(documents=st.fixed_dictionaries(dict.fromkeys(FILES, JSON)))
def test_evidence_of_any_shape_is_read_without_an_error(shared, documents) -> None:
    evidence = StepEvidence(
        shared, write_evidence(shared, {name: json.dumps(told).encode() for name, told in documents.items()})
    )

    assert evidence.present
    assert all(found.op is not None for found in evidence.edits())
    assert len(evidence.attempts(["t1", "t2"])) <= 2
    assert evidence.rollouts() >= 0
    evidence.findings()
    evidence.compared()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_damaged_evidence_tells_nothing(shared, content: bytes) -> None:
    evidence = StepEvidence(shared, write_evidence(shared, dict.fromkeys(FILES, content)))

    assert (evidence.edits(), evidence.findings(), evidence.rollouts(), evidence.compared()) == ((), (), 0, ())


def test_evidence_that_is_not_here_is_absent(shared) -> None:
    assert not StepEvidence(shared, "").present
    assert not StepEvidence(shared, "0" * 40).present


def test_what_was_lost_comes_before_what_stayed_wrong(shared) -> None:
    rows = [
        {"id": "t1", "category": "improved", "current": {"answer": "a", "hard": 1.0, "soft": 1.0}},
        {"id": "t2", "category": "persistent_fail", "current": {"answer": "b", "hard": 0.0, "soft": 0.5}},
        {"id": "t3", "category": "regressed", "current": {"answer": "c", "hard": 0.0, "soft": 0.0}},
    ]
    evidence = StepEvidence(shared, write_evidence(shared, {"comparison.json": json.dumps(rows).encode()}))

    assert [(seen.item, seen.answer, seen.soft) for seen in evidence.compared()] == [("t3", "c", 0.0), ("t2", "b", 0.5)]


def test_questions_are_looked_up_in_the_steps_before(shared) -> None:
    def step(item: str, answer: str, feedback: str) -> StepEvidence:
        asked = {"id": item, "turns": [{"role": "user", "content": f"Text.\n\nWhat of {item}?"}]}
        row = {"id": item, "hard": 0.0, "soft": 0.0, "answer": answer, "feedback": feedback, "trajectory": "t.json"}
        files = {"rollout.json": json.dumps([row]).encode(), "t.json": json.dumps(asked).encode()}
        return StepEvidence(shared, write_evidence(shared, files))

    failed = (
        TrainAttempt(item="t1", answer="a"),
        TrainAttempt(item="t2", answer="b"),
        TrainAttempt(item="t3", answer="c"),
    )
    steps = [step("t1", "another", "no"), step("t1", "a", "expected z"), step("t2", "other", "not that")]

    found = with_questions(failed, steps)

    assert [(seen.question, seen.feedback) for seen in found] == [
        ("What of t1?", "expected z"),
        ("What of t2?", ""),
        ("", ""),
    ]


def test_a_line_belongs_to_the_edit_that_holds_it() -> None:
    edits = [edit(0, "- One rule.\n- Another rule."), edit(1, "a part of it", "replace"), edit(2, "- A third rule.")]

    assert BroughtLines(edits).edit_of("- Another rule.") == edits[0]
    assert BroughtLines(edits).edit_of("* another  RULE") == edits[0], "bullets, case and space do not matter"
    assert BroughtLines(edits).edit_of("- A rule with a part of it inside.") == edits[1]
    assert BroughtLines(edits).edit_of("- A third rule.") == edits[2]
    assert BroughtLines(edits).edit_of("- Something else entirely.") is None
    assert BroughtLines(edits).edit_of("") is None
    assert BroughtLines(edits[:1]).edit_of("") == edits[0], "the only edit brought the blank line, too"
    assert BroughtLines([]).edit_of("- Anything.") is None
