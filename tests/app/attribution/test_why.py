from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from asking import ask
from rule_run import DATES, DATES_EXACTLY, METRES, PERSON, READ, TABLES, TRIED, UNITS, write_rule_run
from sample_run import PATH, RUN

from skillgit.app.attribution.why import why
from skillgit.errors import NotFoundError, UsageError


@pytest.fixture
def events(repo):
    return write_rule_run(repo)


def fates(story) -> list[tuple[str, int]]:
    return [(change.fate, change.version) for change in story.later]


def test_a_rule_is_told_from_the_failures_to_the_gate(context, events) -> None:
    story = ask(why, context, UNITS)

    assert (story.rule.text, story.here, story.path) == (UNITS, True, f"{PATH}/SKILL.md")
    assert (story.origin.version, story.origin.step, story.commit) == (1, 1, events[1].commit)
    assert [(seen.item, seen.question, seen.answer, seen.feedback) for seen in story.failures] == [
        ("t1", "How tall is the tower in feet?", "324 m", 'expected "1,063 ft"'),
        ("t2", "How heavy is it?", "\x1b[2Jseven", 'expected "7 kg"'),
    ]
    assert [found.pattern for found in story.findings] == ["the unit is missing"], "what both items share"
    assert (story.rollouts, story.credit.edit, story.edits, story.credit.op) == (3, 0, 2, "replace")
    assert (story.gate.verdict.score, story.gate.verdict.current) == (0.6, 0.4)
    assert (story.gate.patch.merged, story.gate.patch.applied) == (4, 2)
    assert (story.credit.fixed, story.credit.broken) == (("q05", "q06", "q07"), ("q04",))
    assert story.gate.cost == events[1].event.cost
    assert fates(story) == [("stands", 5)]
    assert not story.absent


@pytest.mark.usefixtures("events")
def test_a_line_is_named_by_its_number(context) -> None:
    lines = {row.text: row.line for row in _blamed(context)}

    assert ask(why, context, str(lines[f"- {UNITS}"])).rule.text == UNITS
    assert ask(why, context, str(lines["# Demo"])).credit.source == "seed"
    with pytest.raises(UsageError, match="none at 900"):
        ask(why, context, "900")
    with pytest.raises(UsageError, match="none at 0"):
        ask(why, context, "0")


def _blamed(context):
    from skillgit.app.attribution.provenance import blame  # noqa: PLC0415 - of one test

    return ask(blame, context).lines


@pytest.mark.usefixtures("events")
def test_some_words_are_enough_and_others_that_fit_are_told(context) -> None:
    assert ask(why, context, "unit asks").rule.text == UNITS
    assert ask(why, context, "dates exactly").rule.text == DATES_EXACTLY
    story = ask(why, context, "the question")
    assert {story.rule.text, *(hit.rule.text for hit in story.others)} == {READ, UNITS}


@pytest.mark.usefixtures("events")
def test_a_reworded_rule_tells_what_it_said_before_and_who_tried_the_like(context) -> None:
    story = ask(why, context, DATES_EXACTLY)

    assert story.origin.version == 2
    assert [(wording.rule.text, wording.origin.version) for wording in story.earlier] == [(DATES, 1)]
    assert [(tried.event.step, tried.text) for tried in story.tried] == [(2, f"- {TRIED}")]


@pytest.mark.usefixtures("events")
def test_an_older_version_tells_what_became_of_its_rule(context) -> None:
    story = ask(why, context, DATES, "v1")

    assert fates(story) == [("reworded", 2), ("stands", 5)]
    assert story.later[0].rule.text == DATES_EXACTLY
    assert story.later[1].rule.text == DATES_EXACTLY


@pytest.mark.usefixtures("events")
def test_a_rule_that_was_removed_is_found_with_the_version_that_did_it(context) -> None:
    story = ask(why, context, "metres")

    assert (story.rule.text, story.here, story.found.version) == (METRES, False, 0)
    assert fates(story) == [("removed", 1)]
    assert story.later[0].origin.title == "answer in the unit, say dates in full"


@pytest.mark.usefixtures("events")
def test_a_rule_of_history_with_all_the_words_goes_before_a_standing_one_with_some(context) -> None:
    story = ask(why, context, "in exactly this order", "v1")
    assert (story.rule.text, story.here) == (DATES_EXACTLY, False)
    assert [other.rule.text for other in story.others] == [DATES]


@pytest.mark.usefixtures("events")
@pytest.mark.parametrize("text", ["# Demo", "---"])
def test_a_line_that_is_no_rule_is_never_said_to_be_removed(context, text) -> None:
    line = next(row.line for row in _blamed(context) if row.text == text)
    assert fates(ask(why, context, str(line))) == []


@pytest.mark.usefixtures("events")
def test_a_rule_that_a_revert_brought_back_says_so(context) -> None:
    story = ask(why, context, READ)

    assert (story.credit.source, story.restored) == ("seed", 4)


@pytest.mark.usefixtures("events")
def test_the_rule_of_a_rejected_candidate_is_told_from_its_side_branch(context) -> None:
    story = ask(why, context, TRIED, "r2")

    assert (story.origin.kind, story.origin.step, story.later) == ("rejected", 2, ())
    assert story.gate.verdict.score < story.gate.verdict.current


@pytest.mark.usefixtures("events")
def test_a_persons_rule_names_the_person(context) -> None:
    story = ask(why, context, "tables")

    assert (story.rule.text, story.author, story.gate.verdict) == (TABLES, PERSON, None)


@pytest.mark.usefixtures("events")
def test_the_title_of_a_step_leads_to_its_rules(context) -> None:
    story = ask(why, context, "say dates in full")

    assert (story.rule.text, story.here, story.found.version) == (DATES, False, 1), "the second part, the second rule"
    assert fates(story) == [("reworded", 2), ("stands", 5)]


@pytest.mark.usefixtures("records")
def test_guidance_tells_the_gate_of_its_proposal(context) -> None:
    story = ask(why, context, "shortest answer", "v3")

    assert (story.origin.kind, story.origin.version) == ("slow-proposed", 2)
    assert story.gate.verdict is not None
    assert story.credit.fixed == ("q04",)
    assert fates(story) == [("stands", 3)]


@pytest.mark.usefixtures("events")
def test_words_that_no_rule_ever_had_are_an_error_with_a_hint(context) -> None:
    with pytest.raises(NotFoundError, match="like 'zebra crossing'") as missing:
        ask(why, context, "zebra crossing")
    assert "log --grep" in missing.value.hint
    with pytest.raises(NotFoundError):
        ask(why, context, "((")


@pytest.mark.usefixtures("events")
def test_words_can_be_looked_for_in_one_file(context) -> None:
    assert ask(why, context, "0.3048", path="references/units.md").path == f"{PATH}/references/units.md"
    assert ask(why, context, "0.3048").path == f"{PATH}/references/units.md"


@pytest.mark.usefixtures("events")
def test_a_clone_without_evidence_tells_what_the_commits_tell(context, repo, tmp_path) -> None:
    subprocess.run(["git", "clone", "-q", "--no-local", repo.workdir, tmp_path / "clone"], check=True)
    story = ask(why, replace(context, directory=tmp_path / "clone"), UNITS, "v1")

    assert (story.run, story.absent, story.failures, story.findings) == (RUN, True, (), ())
    assert story.gate.verdict is not None
    assert story.credit.fixed == ("q05", "q06", "q07")
