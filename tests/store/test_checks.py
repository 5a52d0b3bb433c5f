from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from sample_run import PATH, RUN, as_json, clock_from, transitions, with_file, write_run

from skillgit.app.upkeep.run_checks import check_run
from skillgit.errors import RevisionNotFoundError
from skillgit.store import history_reader, refs, tree
from skillgit.store.event_writer import RunWriter
from skillgit.store.repair import repair_run
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Callable

    import pygit2

    from skillgit.domain.finding import Finding
    from skillgit.store.commit_message import Recorded


def rewrite(
    repo: Repo,
    history: list[Recorded],
    place: int,
    *,
    message: Callable[[str], str] = str,
    content: Callable[[pygit2.Tree], pygit2.Tree] = lambda found: found,
    parents: Callable[[list[str]], list[str]] = list,
) -> str:
    """Change the commit of one event as a forger would: all that follows and all refs are made anew to fit."""
    new: dict[str, str] = {}
    for index, record in enumerate(history):
        commit = repo.commit(record.commit)
        text, root, above = commit.message, commit.tree, [new.get(parent, parent) for parent in record.parents]
        if index == place:
            text, root, above = message(text), content(root), parents(above)
        made = repo.raw.create_commit(None, commit.author, commit.committer, text, root.id, above)
        new[record.commit] = str(made)
    for name, oid in repo.tips().items():
        if oid in new:
            repo.raw.references[name].set_target(new[oid])
    return new[history[place].commit]


def sentences(problems: list[Finding], commit: str) -> list[str]:
    return [problem.sentence for problem in problems if problem.commit == commit]


def found(repo: Repo, commit: str) -> list[str]:
    """Return what is said of ``commit``, evidence refs aside, which a forger leaves behind."""
    return [told for told in sentences(check_run(repo, RUN), commit) if "not kept by" not in told]


@pytest.mark.usefixtures("history")
def test_the_sample_run_is_sound(repo) -> None:
    assert check_run(repo, RUN) == []


@pytest.mark.parametrize("events", range(1, 9))
def test_unfinished_runs_are_sound(repo, events) -> None:
    write_run(repo, events=events)

    assert check_run(repo, RUN) == []


@pytest.mark.parametrize(
    ("place", "forged", "said"),
    [
        (1, ("score=0.6 ", "score=0.7 "), "the gate compared score=0.7, and the evaluation says 0.6"),
        (1, ("current=0.4 ", "current=0.3 "), "the gate compared current=0.3, and the evaluation says 0.4"),
        (6, ("best=0.7 ", "best=0.5 "), "the gate compared best=0.5, and the evaluation says 0.7"),
        (1, ("p=0.3125", "p=0.01"), "the gate says p=0.01, which does not follow from fixed=3 broken=1"),
        (1, ("fixed: q05, q06", "fixed: q01, q05, q06"), "the gate counts other items as fixed or broken"),
        (7, ("Gate: reject ", "Gate: accept "), "the decision accept does not follow from its numbers"),
        (1, ("Gate: accept_new_best", "Gate: reject"), "the decision reject does not follow from its numbers"),
        (
            1,
            ("hard=0.6 soft=0.7 ", "hard=0.6 soft=0.9 "),
            "the evaluation says n=10 scored=10 hard=0.6 soft=0.9, and its",
        ),
        (6, ("Skillgit-Version: 3", "Skillgit-Version: 4"), "v4 follows v2"),
        (6, ("Skillgit-Base: 2", "Skillgit-Base: 1"), "its other parents are not these"),
        (3, ("Skillgit-Step: 3", "Skillgit-Step: 2"), "step 2 follows step 2"),
        (3, (f"Skillgit-Run: {RUN}", "Skillgit-Run: other"), f"an event of run other is on run {RUN}"),
        (8, (f"Skillgit-Skill: {PATH}", "Skillgit-Skill: skills/b"), "changes skills/b, not skills/demo"),
        (1, ("anchor=0da5122a", "anchor=00000000"), "the edits in the evidence are not those of the commit"),
    ],
)
def test_a_forged_number_is_found(repo, history, place, forged, said) -> None:
    old, new = forged
    assert old in history_reader.message(repo, history[place].commit)

    commit = rewrite(repo, history, place, message=lambda text: text.replace(old, new, 1))

    assert any(said in told for told in found(repo, commit)), found(repo, commit)


def test_a_better_score_all_through_the_trailers_still_contradicts_its_items(repo, history) -> None:
    def better(text: str) -> str:
        return text.replace("hard=0.6 ", "hard=0.8 ").replace("score=0.6 ", "score=0.8 ")

    commit = rewrite(repo, history, 1, message=better)

    assert found(repo, commit) == [
        "the evaluation says n=10 scored=10 hard=0.8 soft=0.7, and its items say n=10 scored=10 hard=0.6 soft=0.7"
    ]


def test_a_text_that_is_not_what_the_patch_gives_is_found(repo, history) -> None:
    def other(root: pygit2.Tree) -> pygit2.Tree:
        return with_file(repo, root, f"{PATH}/references/units.md", b"smuggled\n")

    commit = rewrite(repo, history, 2, content=other)

    assert found(repo, commit) == ["the patch in the evidence, applied to v1, does not give the committed skill"]


def test_changes_outside_the_skill_are_found(repo, history) -> None:
    def other(root: pygit2.Tree) -> pygit2.Tree:
        return with_file(repo, root, "bin/tool", b"smuggled\n")

    commit = rewrite(repo, history, 1, content=other)

    assert found(repo, commit) == ["the commit changes 'bin/tool', which is not part of skills/demo"]


@pytest.mark.parametrize("place", [3, 8])
def test_changes_by_events_that_change_nothing_are_found(repo, history, place) -> None:
    def other(root: pygit2.Tree) -> pygit2.Tree:
        return with_file(repo, root, f"{PATH}/SKILL.md", b"smuggled\n")

    commit = rewrite(repo, history, place, content=other)

    assert "the commit changes files, though its event changes nothing" in found(repo, commit)


def test_a_merge_that_says_something_else_than_the_guidance_is_found(repo, history) -> None:
    def other(root: pygit2.Tree) -> pygit2.Tree:
        document = (tree.read_file(repo, root, f"{PATH}/SKILL.md") or b"").replace(b"shortest", b"longest")
        return with_file(repo, root, f"{PATH}/SKILL.md", document)

    commit = rewrite(repo, history, 5, content=other)

    assert found(repo, commit) == ["the skill is not that of its first parent with the guidance of the second"]


@pytest.mark.parametrize(
    ("place", "said"),
    [(2, "its parent is not the commit of v1"), (5, "has others"), (4, "neither the guidance before it nor v0")],
)
def test_parents_of_another_place_are_found(repo, history, place, said) -> None:
    elsewhere = {2: [history[0].commit], 5: [history[3].commit], 4: [history[1].commit, history[0].commit]}
    commit = rewrite(
        repo, history, place, parents=lambda above: [above[0], above[0]] if place == 5 else elsewhere[place]
    )

    assert any(said in told for told in found(repo, commit)), check_run(repo, RUN)


def test_a_version_that_is_missing_is_found(repo, history) -> None:
    rewrite(repo, history, 3, parents=lambda _: [history[0].commit])

    problems = check_run(repo, RUN)

    assert "step 3 follows step 0" in [problem.sentence for problem in problems]


def test_tags_and_best_that_moved_are_found_and_mended(repo, history, git) -> None:
    git("tag", "-f", f"{RUN}/v1", history[0].commit)
    git("tag", "-d", f"{RUN}/v2")
    git("tag", f"{RUN}/v7", history[0].commit)
    git("branch", "-f", f"best/{RUN}", history[1].commit)

    problems = check_run(repo, RUN)

    short = [record.commit[:12] for record in history]
    assert {problem.sentence for problem in problems} == {
        f"{RUN}/v1 points to commit {short[0]}, not to {short[1]}",
        f"{RUN}/v2 is missing; it belongs to commit {short[5]}",
        f"{RUN}/v7 is a version that the run does not have",
        f"best/{RUN} points to commit {short[1]}, not to {short[6]}",
    }
    assert all(problem.repairable for problem in problems)
    assert len(repair_run(repo, RUN)) == 4
    assert check_run(repo, RUN) == []
    assert repair_run(repo, RUN) == []


@pytest.mark.usefixtures("history")
def test_a_commit_with_trailers_out_of_place_is_named(repo, git) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=e@localhost")
    told = "fix typo\n\nSkillgit-Format: 1\n\nSigned-off-by: n"
    stranger = git(*identity, "commit-tree", f"run/{RUN}^{{tree}}", "-p", f"run/{RUN}", "-m", told).strip()
    git("update-ref", refs.run_branch(RUN), stranger)

    problems = check_run(repo, RUN)

    assert [problem.commit for problem in problems] == [stranger]
    assert "no skillgit trailers" in problems[0].sentence


def test_every_commit_that_cannot_be_read_is_named(repo, history) -> None:
    rewrite(repo, history, 6, message=lambda text: text.replace("score=0.8", "score=?"))
    problems = check_run(repo, RUN)

    assert len({problem.commit for problem in problems if problem.commit}) == 1
    assert not any(problem.repairable for problem in problems)


@pytest.mark.usefixtures("history")
def test_a_budget_that_is_not_the_schedules_is_found(repo) -> None:
    assert check_run(repo, RUN, budget=lambda step: 3 if step == 3 else 4) == []

    problems = check_run(repo, RUN, budget=lambda _: 4)

    assert [problem.sentence for problem in problems] == ["step 3 had an edit budget of 3, and the schedule says 4"]


def test_evidence_that_is_lost_or_not_kept_is_found(repo, history, git) -> None:
    chain = refs.evidence_ref(RUN)
    git("update-ref", chain, f"{chain}~1")
    loose = check_run(repo, RUN)
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")

    assert [problem.commit for problem in loose] == [history[-1].commit]
    assert "git gc will drop it" in loose[0].sentence
    problems = check_run(Repo.discover(repo.workdir), RUN)
    assert [problem.sentence for problem in problems] == ["its evidence is lost"]


@pytest.mark.usefixtures("history")
def test_a_repository_without_evidence_is_sound(repo, git) -> None:
    git("update-ref", "-d", refs.evidence_ref(RUN))
    git("gc", "-q", "--prune=now")

    assert check_run(Repo.discover(repo.workdir), RUN) == []


@pytest.mark.parametrize("files", [{"patch.json": b"{half"}, {"patch.json": b"[]"}, {"selection.json": as_json([1])}])
def test_damaged_evidence_is_found(repo, files) -> None:
    write_run(repo, events=1)
    writer = RunWriter(repo, RUN, clock_from(count(1)))
    sample = transitions()[1]
    recorded = writer.append(sample.event, sample.skill, {**sample.evidence, **files})

    assert [told for told in found(repo, recorded.commit) if "cannot be read" in told]


def test_a_run_that_is_not_there(repo) -> None:
    with pytest.raises(RevisionNotFoundError):
        check_run(repo, "x")
