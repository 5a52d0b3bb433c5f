"""Commits that persons make on a run's branch, made with real git in a work tree of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from sample_run import PATH, RUN, clock_from, evaluation, rows, transitions

from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.event import Event, Inherited
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Decision, decision
from skillgit.domain.proposal import BudgetSource, Change, Origin
from skillgit.domain.run_state import advance, fold
from skillgit.errors import ConcurrentWriteError, InvariantError, TrailerError
from skillgit.store import history_reader, refs
from skillgit.store.event_writer import RunWriter
from skillgit.store.repair import repair_run

MESSAGE = "Say the unit once more\n\nReaders kept asking.\nA lot.\n\nSecond thoughts: none."


@pytest.fixture
def person(git, history, tmp_path):
    """A person with the run's branch in a work tree; committing returns the commit."""
    assert history
    place = tmp_path / "by-hand"
    git("worktree", "add", "-q", str(place), f"run/{RUN}")

    def commit(text="- Say the unit.\n", message=MESSAGE, file=f"{PATH}/SKILL.md"):
        with (place / file).open("a") as document:
            document.write(text)
        git("-C", str(place), "add", "-A")
        git("-C", str(place), "-c", "user.name=Ada\tL", "-c", "user.email=a@b", "commit", "-qm", message)
        return git("-C", str(place), "rev-parse", "HEAD").strip()

    return commit


def test_an_edit_is_a_version_with_the_words_of_its_author(repo, person) -> None:
    commit = person()

    record = history_reader.read_run(repo, RUN)[-1]

    assert record == history_reader.read_commit(repo, commit)
    assert record.commit == commit
    assert record.event == Event(kind=EventKind.EDITED,
        run=RUN, skill=PATH, epoch=3, step=5, version=4, base=3, author="Ada L", title="Say the unit once more",
        why="Readers kept asking. A lot.\n\nSecond thoughts: none.",
        changes=(Change(sign="+", text="- Say the unit."),),
    )  # fmt: skip
    assert (record.at, record.branch, record.evidence) == (4, refs.run_branch(RUN), "")


def test_a_commit_beside_the_skill_is_no_event(repo, history, person) -> None:
    (repo.workdir / "x").write_text("x")
    person(file="NOTES.md")

    assert history_reader.read_run(repo, RUN) == history
    assert check_run(repo, RUN) == []


def test_edits_count_on_from_each_other(repo, person) -> None:
    person()
    person(file="NOTES.md")
    last = person("- Twice.\n")

    events = [record.event for record in history_reader.read_run(repo, RUN)]

    assert [(event.version, event.base) for event in events if event.kind is EventKind.EDITED] == [(4, 3), (5, 4)]
    assert fold(events).version == 5
    assert history_reader.read_commit(repo, last).at == 5


@pytest.mark.parametrize(
    "message",
    ["mend\n\nSkillgit-Event: accepted", "mend\n\nSKILLGIT-FORMAT: 1\n\nSigned-off-by: a", "x\n\nSkillgit-Version: 9"],
)
def test_a_forged_event_is_an_error_and_no_edit(repo, history, person, message) -> None:
    commit = person(message=message)

    with pytest.raises(TrailerError, match=f"commit {commit[:12]}"):
        history_reader.read_run(repo, RUN)
    assert [problem.commit for problem in check_run(repo, RUN)] == [commit, history[-1].commit]


def test_only_new_events_are_read_after_an_edit(repo, history, person) -> None:
    before = repo.tips()
    assert history_reader.read_new(repo, RUN, before) == []
    commit = person()
    assert [record.commit for record in history_reader.read_new(repo, RUN, before)] == [commit]
    between = repo.tips()
    written = revert(repo)
    assert history_reader.read_new(repo, RUN, between) == [written]
    assert (written.at, len(history)) == (5, 9)


def revert(repo, target=1):
    writer = RunWriter(repo, RUN, clock_from(count(600)))
    state = fold(record.event for record in history_reader.read_run(repo, RUN))
    event = Event(kind=EventKind.REVERTED,
        run=RUN, skill=PATH, epoch=state.epoch, step=state.step, version=state.version + 1, base=state.version,
        target=target, evaluation=Inherited(version=target), title=f"back to v{target}",
    )  # fmt: skip
    commit = history_reader.read_run(repo, RUN)[target].commit
    return writer.append(event, history_reader.skill_at(repo, commit, PATH), {})


def test_the_tag_of_an_edit_is_made_by_repair_or_by_the_next_event_and_is_no_problem_before(repo, person) -> None:
    commit = person()
    assert check_run(repo, RUN) == []
    assert len(repair_run(repo, RUN)) == 1
    assert repo.tip(refs.version_tag(RUN, 4)) == commit
    assert check_run(repo, RUN) == []

    second = person("- More.\n")
    revert(repo)
    assert repo.tip(refs.version_tag(RUN, 5)) == second
    assert check_run(repo, RUN) == []
    repo.raw.references.delete(refs.version_tag(RUN, 5))
    (problem,) = check_run(repo, RUN)
    assert problem.repairable
    assert problem.sentence == f"{RUN}/v5 is missing; it belongs to commit {second[:12]}"


def test_a_writer_whose_branch_a_person_moved_writes_nothing(repo, person) -> None:
    writer = RunWriter(repo, RUN, clock_from(count(600)))
    commit = person()
    event = Event(
        kind=EventKind.REVERTED,
        run=RUN,
        skill=PATH,
        epoch=3,
        step=5,
        version=4,
        base=3,
        target=1,
        evaluation=Inherited(version=1),
    )

    with pytest.raises(ConcurrentWriteError):
        writer.append(event, history_reader.skill_at(repo, commit, PATH), {})
    assert repo.tip(refs.run_branch(RUN)) == commit


def test_no_writer_writes_an_edit(repo, history) -> None:
    event = Event(kind=EventKind.EDITED, run=RUN, skill=PATH, epoch=3, step=5, version=4, base=3)
    with pytest.raises(InvariantError, match="only its author can commit"):
        RunWriter(repo, RUN, clock_from(count(600))).append(event, None, {})
    assert history_reader.read_run(repo, RUN) == history


def test_a_measured_edit_may_become_the_best_version(repo, person) -> None:
    commit = person()
    state = fold(record.event for record in history_reader.read_run(repo, RUN))
    accepted = transitions()[6].event
    verdict = replace(accepted.verdict, score=1.0, current=0.8, best=0.8, fixed=0, broken=0, p=1.0, gated=False)
    solved = evaluation(" ".join(map(str, range(1, 11))))
    event = Event(kind=EventKind.MEASURED,
        run=RUN, skill=PATH, epoch=3, step=5, version=4, evaluation=solved.summary(),
        verdict=replace(verdict, decision=decision(verdict)), models=accepted.models, cost=accepted.cost,
    )  # fmt: skip

    writer = RunWriter(repo, RUN, clock_from(count(600)))
    record = writer.append(event, None, {"selection.json": rows(solved)}, check=lambda e: advance(state, e))

    assert event.verdict.decision is Decision.ACCEPT_NEW_BEST
    assert record.event == event
    assert repo.tip(refs.best_branch(RUN)) == commit
    assert repo.commit(record.commit).tree_id == repo.commit(commit).tree_id
    assert check_run(repo, RUN) == []


def refused(number=1, **changes):
    rejected = transitions()[7].event
    told = {"origin": Origin.PRUNE, "number": number, "of": f"{RUN}/v3", "step": 5, "epoch": 3, "base": 3}
    patch = replace(rejected.patch, budget=None, by=BudgetSource.NONE)
    return replace(rejected, **(told | {"patch": patch} | changes))


def test_a_refused_intervention_has_a_branch_of_its_own(repo, history) -> None:
    writer = RunWriter(repo, RUN, clock_from(count(600)))
    skill = transitions()[7].skill
    first, second = (writer.append(refused(number), skill, transitions()[7].evidence) for number in (1, 2))

    assert first.branch == f"refs/heads/rejected/{RUN}/0005-prune-1"
    assert repo.tip(f"refs/heads/rejected/{RUN}/0005-prune-2") == second.commit
    assert history_reader.read_run(repo, RUN) == [*history, first, second]
    assert check_run(repo, RUN) == []
    with pytest.raises(ConcurrentWriteError):
        writer.append(refused(2, title="again"), skill, transitions()[7].evidence)


def test_a_gap_in_the_numbers_of_interventions_is_found(repo, history) -> None:
    writer = RunWriter(repo, RUN, clock_from(count(600)))
    writer.append(refused(2), transitions()[7].skill, transitions()[7].evidence)

    (problem,) = check_run(repo, RUN)
    assert problem.sentence == "the prune with number 2 follows intervention 0"
    assert history


def test_a_merged_line_is_the_second_parent(repo, history) -> None:
    accepted = transitions()[6].event
    verdict = replace(accepted.verdict, score=0.9, current=0.8, best=0.8)
    solved = evaluation("1 2 3 4 5 6 7 8 9")
    event = replace(
        refused(),
        kind=EventKind.ACCEPTED,
        version=4,
        at=None,
        origin=Origin.MERGE,
        evaluation=solved.summary(),
        verdict=verdict,
        fixed=accepted.fixed,
        broken=accepted.broken,
    )
    writer, other = RunWriter(repo, RUN, clock_from(count(600))), history[7].commit

    evidence = {**transitions()[7].evidence, "selection.json": rows(solved)}
    record = writer.append(event, transitions()[7].skill, evidence, merge_parent=other)

    assert record.parents == (history[-1].commit, other)
    assert check_run(repo, RUN) == []
    plain = replace(event, version=5, base=4, number=2, verdict=replace(verdict, score=1.0, current=0.9, best=0.9),
                    evaluation=replace(event.evaluation, hard=1.0))  # fmt: skip
    writer.append(plain, transitions()[7].skill, transitions()[7].evidence)
    assert "a merge of another line has two parents" in check_run(repo, RUN)[0].sentence
