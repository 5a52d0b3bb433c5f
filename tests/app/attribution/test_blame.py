from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from asking import ask
from rule_run import DATES_EXACTLY, PERSON, READ, TABLES, UNITS, write_rule_run
from sample_run import PATH, RUN

from skillgit.app.attribution.provenance import blame
from skillgit.errors import NotFoundError, RevisionNotFoundError, UsageError


@pytest.fixture
def events(repo):
    return write_rule_run(repo)


def by_text(result) -> dict[str, object]:
    return {row.text.removeprefix("- "): row for row in result.lines}


def test_each_rule_has_the_version_and_the_step_that_brought_it(context, events) -> None:
    result = ask(blame, context)
    rows = by_text(result)

    assert (result.run, result.version, result.path, result.absent) == (RUN, 5, f"{PATH}/SKILL.md", False)
    assert (rows[UNITS].version, rows[UNITS].step, rows[UNITS].kind) == (1, 1, "accepted")
    assert (rows[DATES_EXACTLY].version, rows[DATES_EXACTLY].step) == (2, 3)
    assert rows[UNITS].commit == events[1].commit
    assert rows[UNITS].delta == pytest.approx(0.2)
    assert rows["# Demo"].source == "seed"


@pytest.mark.usefixtures("events")
def test_each_of_several_edits_of_a_step_gets_its_own_credit(context) -> None:
    rows = by_text(ask(blame, context, "v1"))
    units, dates = rows[UNITS], rows["Give dates as day, month and year, in this order."]

    assert (units.source, units.support, units.items) == ("failure", 2, ("t1", "t2"))
    assert (dates.source, dates.support, dates.items) == ("success", 1, ("t3",))
    assert units.fixed == dates.fixed == ("q05", "q06", "q07")
    assert units.broken == ("q04",)


def test_what_a_revert_brought_back_keeps_its_origin(context, events) -> None:
    row = by_text(ask(blame, context))[READ]

    assert (row.source, row.restored) == ("seed", 4)
    assert row.commit == events[0].commit


@pytest.mark.usefixtures("events")
def test_a_persons_line_names_the_person(context) -> None:
    row = by_text(ask(blame, context))[TABLES]

    assert (row.source, row.author) == ("human", PERSON)
    assert row.support is None
    assert row.version == 5


@pytest.mark.usefixtures("records")
def test_slow_guidance_belongs_to_the_version_that_it_was_merged_into(context) -> None:
    row = by_text(ask(blame, context, "v3"))["Prefer the shortest answer"]

    assert (row.source, row.version, row.step, row.epoch, row.kind) == ("slow", 2, 3, 2, "slow-proposed")
    assert row.fixed == ("q04",)


@pytest.mark.usefixtures("events")
def test_a_rejected_candidate_can_be_blamed(context) -> None:
    row = by_text(ask(blame, context, "r2"))["Give dates as day, month and year."]

    assert (row.kind, row.version, row.step, row.fixed, row.broken) == ("rejected", None, 2, (), ("q06", "q07"))


@pytest.mark.usefixtures("events")
def test_a_word_is_a_revision_or_a_file(context) -> None:
    assert ask(blame, context, "references/units.md").path == f"{PATH}/references/units.md"
    assert ask(blame, context, "v1", "references/units.md").version == 1
    assert ask(blame, context, "v1", f"{PATH}/SKILL.md").lines == ask(blame, context, "v1").lines
    with pytest.raises(NotFoundError, match=r"neither a revision nor a file 'SKIL\.md'") as wrong:
        ask(blame, context, "SKIL.md")
    assert wrong.value.hint == "did you mean 'SKILL.md'?"
    with pytest.raises(RevisionNotFoundError, match="has no v9"):
        ask(blame, context, "v9")
    with pytest.raises(NotFoundError, match="no file 'units'"):
        ask(blame, context, "v1", "units")


@pytest.mark.usefixtures("events")
def test_only_the_lines_that_were_asked_for_are_told(context) -> None:
    everything = ask(blame, context).lines

    assert ask(blame, context, lines=[(7, 8)]).lines == everything[6:8]
    assert ask(blame, context, lines=[(7, None)]).lines == everything[6:]
    assert ask(blame, context, lines=[(7, 900)]).lines == everything[6:]
    assert ask(blame, context, lines=[(7, 8), (2, 3)]).lines == everything[1:3] + everything[6:8]
    assert ask(blame, context, lines=[(2, 4), (3, 5)]).lines == everything[1:5]
    with pytest.raises(UsageError, match="none at 900"):
        ask(blame, context, lines=[(1, 2), (900, None)])


@pytest.mark.usefixtures("events")
def test_a_clone_without_evidence_tells_what_the_commits_tell(context, repo, tmp_path) -> None:
    subprocess.run(["git", "clone", "-q", "--no-local", repo.workdir, tmp_path / "clone"], check=True)
    elsewhere = replace(context, directory=tmp_path / "clone")
    result = ask(blame, elsewhere, "v1")
    rows = by_text(result)

    assert result.absent
    assert (rows[UNITS].version, rows[UNITS].items, rows[UNITS].support) == (1, (), None)
    assert rows[UNITS].source == "mixed", "its two edits have different sources, and nothing tells which is which"
    assert rows[UNITS].fixed == ("q05", "q06", "q07"), "the message names them"
    assert by_text(ask(blame, elsewhere, "v2"))[DATES_EXACTLY].source == "failure"


def test_damaged_evidence_is_no_error(context, repo) -> None:
    from sample_run import candidate, clock_from, evaluation, seed_skill, started  # noqa: PLC0415 - of this test

    from skillgit.domain.edit import Edit, Op  # noqa: PLC0415 - of this test
    from skillgit.store.event_writer import RunWriter  # noqa: PLC0415 - of this test

    writer = RunWriter(repo, RUN, clock_from(iter(range(9))))
    first = started()
    writer.append(first.event, first.skill, first.evidence)
    edit = Edit(op=Op.APPEND, content="- A rule.", support=3)
    made = candidate(
        seed_skill(), (edit,), step=1, epoch=1, base=0, measured=evaluation("1 2 3 4 5"),
        current=evaluation("1 2 3 4"), best=0.4, title="a rule",
    )  # fmt: skip
    writer.append(made.event, made.skill, {"patch.json": b'{"edits": [1, {"status": "applied", "items": 3}]}'})

    row = by_text(ask(blame, context))["A rule."]

    assert (row.version, row.items) == (1, ())


def test_without_a_run_the_file_can_be_named(context, repo) -> None:
    person = ["-c", "user.name=A", "-c", "user.email=a@b"]
    (repo.workdir / "notes.md").write_text("one\ntwo\n")
    subprocess.run(["git", "add", "-A"], cwd=repo.workdir, check=True)
    subprocess.run(["git", *person, "commit", "-q", "-m", "x"], cwd=repo.workdir, check=True)

    assert [(row.text, row.source, row.author) for row in ask(blame, context, "HEAD", "notes.md").lines] == [
        ("one", "human", "A"),
        ("two", "human", "A"),
    ]
