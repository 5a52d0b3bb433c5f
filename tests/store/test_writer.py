from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sample_run import (
    MEMORY,
    PATH,
    RUN,
    START,
    append_run,
    as_json,
    clock_from,
    cost,
    evaluation,
    seed_skill,
    started,
    transitions,
    write_run,
)

from skillgit.domain.event import Event, Inherited, Models
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import PatchCounts
from skillgit.domain.protected_regions import slow_guidance
from skillgit.domain.run_state import fold
from skillgit.errors import ConcurrentWriteError, ConflictError, InvariantError
from skillgit.store import history_reader, refs
from skillgit.store.event_writer import RunWriter
from skillgit.store.evidence import read_evidence
from skillgit.store.repo import Repo
from skillgit.store.work_tree import ATTRIBUTES

if TYPE_CHECKING:
    from skillgit.store.commit_message import Recorded


def skipped(step: int, run: str = RUN) -> Event:
    patch = PatchCounts(merged=0, ranked=0, applied=0, skipped=0, budget=4)
    models = Models(target="offline/a", optimizer="offline/b")
    return Event(
        kind=EventKind.SKIPPED,
        run=run,
        skill=PATH,
        epoch=1,
        step=step,
        title="nothing",
        patch=patch,
        models=models,
        cost=cost(step),
    )


def begun(repo: Repo, run: str = RUN) -> RunWriter:
    writer = RunWriter(repo, run, clock_from(count()))
    first = started(run)
    writer.append(first.event, first.skill, first.evidence)
    return writer


def by_kind(history: list[Recorded]) -> dict[str, list[Recorded]]:
    found: dict[str, list[Recorded]] = {}
    for record in history:
        found.setdefault(record.event.kind, []).append(record)
    return found


def test_the_history_reads_back_as_it_was_written(repo, history) -> None:
    assert [record.event for record in history] == [sample.event for sample in transitions()]
    assert history_reader.read_run(repo, RUN) == history
    assert fold(record.event for record in history).best == 3


def test_each_event_stands_where_its_kind_belongs(repo, history) -> None:
    kinds = by_kind(history)
    first, (one, four) = kinds[EventKind.RUN_STARTED][0], kinds[EventKind.ACCEPTED]
    skip, slow, merge = kinds[EventKind.SKIPPED][0], kinds[EventKind.SLOW_PROPOSED][0], kinds[EventKind.SLOW_MERGED][0]

    assert first.parents == ()
    assert one.parents == (first.commit,)
    assert skip.parents == (one.commit,)
    assert skip.tree == one.tree
    assert slow.parents == (first.commit,)
    assert merge.parents == (skip.commit, slow.commit)
    assert [record.parents for record in kinds[EventKind.REJECTED]] == [(one.commit,), (four.commit,)]
    assert repo.tip(f"refs/heads/run/{RUN}") == kinds[EventKind.RUN_FINISHED][0].commit
    assert repo.tip(f"refs/heads/rejected/{RUN}/0002") == kinds[EventKind.REJECTED][0].commit
    assert repo.tip(f"refs/heads/slow/{RUN}") == slow.commit
    assert repo.tip(f"refs/heads/best/{RUN}") == four.commit
    assert [repo.tip(f"refs/tags/{RUN}/v{version}") for version in range(5)] == [
        first.commit, one.commit, merge.commit, four.commit, None
    ]  # fmt: skip


def test_the_skill_of_each_commit_is_the_one_that_was_handed_over(repo, history) -> None:
    for record, sample in zip(history, transitions(), strict=True):
        if sample.skill is not None:
            assert history_reader.skill_at(repo, record.commit, PATH) == sample.skill


@pytest.mark.usefixtures("repo", "history")
def test_the_tree_holds_skills_and_attributes_only(git) -> None:
    listed = git("ls-tree", "-r", f"{RUN}/v3").splitlines()

    assert [line.split("\t")[1] for line in listed] == [
        ".gitattributes", f"{PATH}/SKILL.md", f"{PATH}/references/units.md", f"{PATH}/scripts/convert.sh"
    ]  # fmt: skip
    assert listed[-1].startswith("100755 ")
    assert git("show", f"{RUN}/v3:.gitattributes").encode() == ATTRIBUTES


@pytest.mark.usefixtures("repo")
def test_guidance_and_memory_stand_in_the_tree_of_the_slow_line(history, git) -> None:
    event = by_kind(history)[EventKind.SLOW_PROPOSED][0].event
    assert event.kind is EventKind.SLOW_PROPOSED

    assert git("show", f"slow/{RUN}:META.md") == MEMORY
    assert slow_guidance(git("show", f"slow/{RUN}:{PATH}/SKILL.md")) == event.guidance
    assert "META.md" not in git("ls-tree", "-r", "--name-only", f"run/{RUN}")


def test_the_next_guidance_follows_the_one_before(repo) -> None:
    writer = begun(repo)
    events = [
        Event(kind=EventKind.SLOW_PROPOSED,
            run=RUN, skill=PATH, epoch=epoch, step=0, base=0, guidance=guidance, memory=memory,
            models=Models(target="a/b", optimizer="c/d"), cost=cost(1),
        )
        for epoch, guidance, memory in ((2, "First.", "Note."), (3, "", ""))
    ]  # fmt: skip

    first, second = (writer.append(event, None, {}) for event in events)

    assert second.parents == (first.commit,)
    assert [record.event for record in history_reader.read_run(repo, RUN)[1:]] == events


def test_reverting_makes_a_version_with_the_older_text(repo) -> None:
    history = write_run(repo, events=7)
    writer = RunWriter(repo, RUN, clock_from(count()))
    event = Event(
        kind=EventKind.REVERTED,
        run=RUN,
        skill=PATH,
        epoch=3,
        step=4,
        version=4,
        base=3,
        target=1,
        evaluation=Inherited(version=1),
    )

    recorded = writer.append(event, history_reader.skill_at(repo, history[1].commit, PATH), {})

    assert recorded.tree == history[1].tree
    assert repo.tip(refs.version_tag(RUN, 4)) == recorded.commit
    assert repo.tip(refs.best_branch(RUN)) == history[6].commit
    assert fold(record.event for record in history_reader.read_run(repo, RUN)).version == 4


def test_everything_else_in_the_repository_is_carried_unchanged(repo, git) -> None:
    (repo.workdir / "bin").mkdir()
    (repo.workdir / "bin" / "tool").write_text("#!/bin/sh\n")
    (repo.workdir / "bin" / "tool").chmod(0o755)
    (repo.workdir / "skills" / "demo").mkdir(parents=True)
    (repo.workdir / "skills" / "demo" / "link").symlink_to("../../bin/tool")
    (repo.workdir / "skills" / "demo" / "old.md").write_text("goes\n")
    (repo.workdir / "skills" / "other").mkdir()
    (repo.workdir / "skills" / "other" / "SKILL.md").write_text("---\nname: other\n---\n")
    git("add", "-A")
    git("-c", "user.name=n", "-c", "user.email=e@localhost", "commit", "-qm", "work")
    base = git("rev-parse", "HEAD").strip()

    history = write_run(repo, start=base)

    assert history[0].parents == (base,)
    changed = git("diff", "--name-status", base, f"run/{RUN}").split()
    assert set(changed[1::2]) == {
        f"{PATH}/SKILL.md", f"{PATH}/references/units.md", f"{PATH}/scripts/convert.sh", f"{PATH}/old.md"
    }  # fmt: skip
    listed = git("ls-tree", "-r", f"run/{RUN}")
    assert f"120000 blob {git('hash-object', '--stdin', stdin='../../bin/tool').strip()}\t{PATH}/link" in listed
    assert "100755" in listed.split("\tbin/tool")[0].splitlines()[-1]
    assert ".gitattributes" not in listed


def test_training_touches_neither_work_tree_nor_index(repo, git) -> None:
    (repo.workdir / "notes.txt").write_text("mine\n")
    git("add", "notes.txt")
    (repo.workdir / "notes.txt").write_text("mine, edited\n")

    def state() -> tuple[object, ...]:
        return git("status", "--porcelain"), (repo.common_dir / "index").read_bytes(), sorted(repo.workdir.iterdir())

    before = state()

    write_run(repo)

    assert state() == before


@pytest.mark.usefixtures("repo", "history")
def test_git_finds_nothing_to_complain_about(git) -> None:
    assert "error" not in git("fsck", "--strict", "--no-dangling")
    graph = git("log", "--graph", "--format=%s", "--branches")
    assert "slow: merge guidance of epoch 2 (v2, +0.1000)" in graph
    assert "|\\" in graph
    assert git("diff", "--stat", f"{RUN}/v1", f"{RUN}/v3").splitlines()[-1].startswith(" 1 file changed")


def test_equal_clocks_give_equal_commits(tmp_path) -> None:
    one, two = (write_run(Repo.init(tmp_path / name)) for name in ("one", "two"))

    assert [record.commit for record in one] == [record.commit for record in two]


def test_commits_are_signed_as_git_is_configured(repo, git) -> None:
    git("config", "user.name", "Ada <L>")
    git("config", "user.email", "ada@localhost")
    write_run(repo, events=1)

    assert git("log", "-1", "--format=%an %ae %cn %aI", f"run/{RUN}").strip() == (
        "Ada L ada@localhost Ada L 2026-11-21T09:00:00+00:00"
    )


@pytest.mark.usefixtures("repo")
def test_without_configuration_skillgit_signs(history, git) -> None:
    assert git("log", "-1", "--format=%an <%ae>", f"run/{RUN}").strip() == "skillgit <skillgit@localhost>"
    assert history[0].time == datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def test_evidence_is_kept_alive_by_its_ref(repo, history, git) -> None:
    git("gc", "-q", "--prune=now")

    for record, sample in zip(history, transitions(), strict=True):
        assert (read_evidence(repo, record.evidence) or {}) == sample.evidence
    assert len(git("rev-list", refs.evidence_ref(RUN)).split()) == sum(
        bool(sample.evidence) for sample in transitions()
    )


def test_an_event_that_the_check_refuses_is_never_visible(repo) -> None:
    writer = begun(repo)
    before = repo.tips()

    def refuse(event: object) -> None:
        raise InvariantError(f"no {event.kind}")

    with pytest.raises(InvariantError, match="no skipped"):
        writer.append(skipped(1), None, {"a.json": b"{}"}, check=refuse)

    assert repo.tips() == before
    writer.append(skipped(1), None, {})


def test_the_check_sees_the_event_as_readers_will(repo) -> None:
    writer = begun(repo)
    seen: list[object] = []
    patch = PatchCounts(merged=0, ranked=0, applied=0, skipped=0, budget=4)
    event = Event(kind=EventKind.SKIPPED,
        run=RUN, skill=PATH, epoch=1, step=1, title="a\x1b[31m  b", patch=patch, cost=cost(0),
        models=Models(target="", optimizer="x"),
    )  # fmt: skip

    recorded = writer.append(event, None, {}, check=seen.append)

    assert seen == [recorded.event] == [event]


def test_half_a_surrogate_pair_is_replaced_and_read_back_alike(repo) -> None:
    writer = begun(repo)
    event = Event(kind=EventKind.SLOW_PROPOSED,
        run=RUN, skill=PATH, epoch=1, step=0, base=0, title="a\ud800b", why="\udfff", guidance="c\ud83d",
        memory="\ud83d", models=Models(target="\ud800", optimizer="x"), cost=cost(0),
    )  # fmt: skip

    recorded = writer.append(event, None, {})

    assert recorded.event.kind is EventKind.SLOW_PROPOSED
    assert (recorded.event.title, recorded.event.guidance, recorded.event.memory) == ("a\ufffdb", "c\ufffd", "\ufffd")
    assert history_reader.read_run(repo, RUN)[-1] == recorded


def test_a_run_that_moved_behind_the_writers_back_is_not_overwritten(repo) -> None:
    begun(repo)
    slow, fast = (RunWriter(repo, RUN, clock_from(count(9))) for _ in range(2))
    fast.append(skipped(1), None, {})
    before = repo.tips()

    with pytest.raises(ConcurrentWriteError):
        slow.append(skipped(1), None, {})

    assert repo.tips() == before


def test_a_rejected_candidate_watches_the_accepted_line_too(repo) -> None:
    write_run(repo, events=2)
    slow, fast = (RunWriter(repo, RUN, clock_from(count(9))) for _ in range(2))
    fast.append(skipped(2), None, {})
    rejected = transitions()[2]

    with pytest.raises(ConcurrentWriteError):
        slow.append(rejected.event, rejected.skill, rejected.evidence)

    assert repo.tip(refs.rejected_branch(RUN, 2)) is None


@pytest.mark.parametrize(
    "late",
    [skipped(1), skipped(2), transitions()[1].event, transitions()[0].event],
    ids=["same step", "earlier step", "older base", "start"],
)
def test_an_event_computed_from_an_older_state_is_refused(repo, late) -> None:
    write_run(repo, events=4)
    writer = RunWriter(repo, RUN, clock_from(count()))
    before = repo.tips()

    with pytest.raises(ConflictError):
        writer.append(late, seed_skill(), {})

    assert repo.tips() == before


def test_events_of_another_run_or_before_the_start_are_refused(repo) -> None:
    writer = RunWriter(repo, RUN, clock_from(count()))

    with pytest.raises(InvariantError, match="which has not started"):
        writer.append(skipped(1), None, {})
    with pytest.raises(InvariantError, match="written to run"):
        writer.append(skipped(1, "another"), None, {})


def test_an_accepted_step_without_its_skill_is_refused(repo) -> None:
    writer = begun(repo)

    with pytest.raises(InvariantError, match="has no skill"):
        writer.append(transitions()[1].event, None, {})


def test_a_branch_in_the_way_is_named(repo, git) -> None:
    write_run(repo, "first")
    git("branch", "-m", "run/first", "elsewhere")
    git("branch", "run", "elsewhere")
    before = repo.tips()

    with pytest.raises(ConflictError, match=f"run/{RUN} cannot exist next to run") as refused:
        begun(repo)

    assert "git branch -m run" in refused.value.hint
    assert repo.tips() == before


def test_a_fork_begins_on_a_version_of_another_run(repo) -> None:
    origin = write_run(repo)
    first = started("forked")
    event = replace(first.event, fork_of=f"{RUN}/v1")

    writer = RunWriter(repo, "forked", clock_from(count()))
    recorded = writer.append(event, history_reader.skill_at(repo, origin[1].commit, PATH), {}, start=origin[1].commit)
    writer.append(skipped(1, "forked"), None, {})

    assert recorded.parents == (origin[1].commit,)
    assert recorded.tree == origin[1].tree
    assert [record.event.run for record in history_reader.read_run(repo, "forked")] == ["forked", "forked"]
    assert history_reader.runs(repo) == [RUN, "forked"]


def test_derived_refs_are_mended_by_the_next_event(repo, git) -> None:
    history = write_run(repo, events=6)
    git("tag", "-d", f"{RUN}/v1")
    git("tag", "-f", f"{RUN}/v2", history[0].commit)
    git("tag", f"{RUN}/v9", history[0].commit)
    git("branch", "-f", f"best/{RUN}", history[0].commit)

    RunWriter(repo, RUN, clock_from(count())).append(skipped(4), None, {})

    assert repo.tip(refs.version_tag(RUN, 1)) == history[1].commit
    assert repo.tip(refs.version_tag(RUN, 2)) == history[5].commit
    assert repo.tip(refs.version_tag(RUN, 9)) is None
    assert repo.tip(refs.best_branch(RUN)) == history[5].commit


def test_packed_refs_are_as_good_as_loose_ones(repo, git) -> None:
    write_run(repo, events=4)
    git("pack-refs", "--all")
    git("tag", f"{RUN}/v9", f"run/{RUN}")
    git("pack-refs", "--all")

    writer = RunWriter(repo, RUN, clock_from(count(50)))
    for sample in transitions()[4:]:
        writer.append(sample.event, sample.skill, sample.evidence)

    assert [record.event for record in history_reader.read_run(repo, RUN)] == [sample.event for sample in transitions()]
    assert repo.tip(refs.version_tag(RUN, 9)) is None


def test_a_bare_repository_will_do(tmp_path) -> None:
    import pygit2  # noqa: PLC0415 - only tests of the store make repositories by hand

    pygit2.init_repository(str(tmp_path / "bare.git"), bare=True)
    repo = Repo.discover(tmp_path / "bare.git")

    history = write_run(repo)

    assert repo.workdir is None
    assert history_reader.read_run(repo, RUN) == history


def test_a_linked_work_tree_writes_to_the_same_history(repo, git, tmp_path) -> None:
    write_run(repo, events=4)
    git("worktree", "add", "-q", "--detach", str(tmp_path / "linked"), f"run/{RUN}")
    linked = Repo.discover(tmp_path / "linked")

    RunWriter(linked, RUN, clock_from(count(50))).append(transitions()[4].event, None, {})

    assert linked.common_dir == repo.common_dir
    assert linked.private_dir == repo.private_dir
    assert len(history_reader.read_run(repo, RUN)) == 5


def contend(path: str, steps: int) -> int:
    """Append skipped steps to one run beside other processes, each on the step that it sees next."""
    repo, conflicts = Repo.discover(Path(path)), 0
    for _ in range(steps):
        while True:
            last = history_reader.read_run(repo, RUN)[-1].event
            step = 0 if last.kind is EventKind.RUN_STARTED else last.step
            try:
                writer = RunWriter(repo, RUN, lambda: START)
                writer.append(skipped(step + 1), None, {"pid.json": as_json([os.getpid(), step])})
                break
            except ConcurrentWriteError:
                conflicts += 1
    return conflicts


def test_two_writers_at_once_lose_nothing(repo) -> None:
    begun(repo)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(contend, [str(repo.workdir)] * 2, [20, 20]))

    history = history_reader.read_run(repo, RUN)

    assert [getattr(record.event, "step", 0) for record in history] == list(range(41))
    assert all(after.parents == (before.commit,) for before, after in pairwise(history))
    assert all(before.order < after.order for before, after in pairwise(history))
    assert all(read_evidence(repo, record.evidence) for record in history)


def run_alone(path: str, run: str) -> list[str]:
    return [record.commit for record in append_run(Repo.discover(Path(path)), run)]


def test_runs_beside_each_other_do_not_meet(repo) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        written = list(pool.map(run_alone, [str(repo.workdir)] * 4, ["a", "b", "c", "d"]))

    assert [[record.commit for record in history_reader.read_run(repo, run)] for run in "abcd"] == written


def test_a_tie_is_a_rejection(history) -> None:
    last = by_kind(history)[EventKind.REJECTED][-1].event
    assert last.kind is EventKind.REJECTED

    assert last.verdict.score == last.verdict.current == evaluation("1 2 3 4 5 6 7 8").summary().hard
