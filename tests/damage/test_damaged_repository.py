"""What a disk, a dead process or a careless hand does is found, and mended where it follows from the rest."""

from __future__ import annotations

import sqlite3
import subprocess
from functools import partial
from itertools import count

import pytest
from asking import ask
from forgery import MAKER, flipped, written
from sample_run import PATH, RUN, clock_from, write_run
from soaking import sampled, soak

from skillgit.app.history.log import log
from skillgit.app.history.requests import LogRequest
from skillgit.app.history.run_list import run_list
from skillgit.app.history.status import status
from skillgit.app.upkeep.fsck import fsck
from skillgit.app.workspace.workspace import Workspace, explained
from skillgit.errors import InvariantError, SkillgitError
from skillgit.index.refresh import rebuild
from skillgit.store import notes, refs
from skillgit.store.history import fold
from skillgit.store.history_reader import read_run
from skillgit.store.repo import Repo

FIRST, ONE, TWO, SKIPPED, PROPOSED, MERGED, FOUR, FIVE, LAST = range(9)
SLOW, LINE, BEST, PROOF = (
    make(RUN) for make in (refs.slow_branch, refs.run_branch, refs.best_branch, refs.evidence_ref)
)
DROPPED = refs.dropped_ref(RUN)
REJECTED = [refs.rejected_branch(RUN, step) for step in (2, 5)]


def at(place, damage):
    """Damage: ``damage`` of the object file of the commit of an event."""
    return written(lambda patient: patient.commit(place), damage)


def gone(name):
    return lambda patient: patient.repo.raw.references.delete(name)


def moved(name, place):
    return lambda patient: patient.set_ref(name, patient.commit(place))


def packed(damage):
    def damaged(patient):
        patient.git("repack", "-adq")
        patient.git("pack-refs", "--all")
        for path in (patient.repo.common_dir / "objects" / "pack").iterdir():
            path.chmod(0o644)
            damage(path)

    return damaged


def cut_pack(path):
    if path.suffix == ".pack":
        path.write_bytes(path.read_bytes()[:-300])


def without_index(path):
    if path.suffix == ".idx":
        path.unlink()


def evidence_moved_back(patient):
    patient.set_ref(PROOF, str(patient.repo.raw[patient.repo.tip(PROOF)].parent_ids[0]))


def evidence_of_another(patient):
    write_run(patient.repo, "other", events=3)
    patient.set_ref(PROOF, patient.repo.tip(refs.evidence_ref("other")))


def noted(text):
    def damage(patient):
        blob = patient.repo.raw.create_blob(text)
        tree = patient.repo.raw.TreeBuilder()
        tree.insert(patient.commit(ONE), blob, 0o100644)
        oid = patient.repo.raw.create_commit(None, MAKER, MAKER, "notes", tree.write(), [])
        patient.set_ref(refs.NOTES, str(oid))

    return damage


def attic_of_other_commits(patient):
    patient.set_ref(refs.attic_ref(RUN), patient.commit(TWO))


def attic_cut(patient):
    fold(patient.repo, RUN)
    patient.file(str(patient.repo.raw[patient.repo.tip(refs.attic_ref(RUN))].parent_ids[0])).unlink()


def attic_emptied(patient):
    fold(patient.repo, RUN)
    patient.repo.raw.references.delete(refs.attic_ref(RUN))


def garbage(patient):
    blob = str(patient.repo.raw.create_blob(b"what a process that died was about to write"))
    path = patient.file(blob)
    path.write_bytes(path.read_bytes()[:9])


def left_lock(patient):
    (patient.repo.common_dir / f"{LINE}.lock").write_bytes(b"")


def pack_with_another_bit(path):
    if path.suffix == ".pack":
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)


def copied(patient):
    """On the line, as ``git cherry-pick`` copies it."""
    patient.git("checkout", "-q", f"run/{RUN}")
    patient.git("commit", "-q", "--allow-empty", "-C", patient.commit(ONE))


def everything_but_tags_and_evidence_gone(patient):
    for name in (LINE, SLOW, BEST, *REJECTED):
        patient.repo.raw.references.delete(name)


def line_moved_back_and_no_witness(patient):
    """To before the last version, where its tag is all that is left of it."""
    for name in (*REJECTED[1:], PROOF):
        patient.repo.raw.references.delete(name)
    patient.set_ref(LINE, patient.commit(MERGED))


def file_of(name, content):
    """Damage: the file of the ref ``name`` holds ``content`` of the patient."""

    def damage(patient):
        path = patient.repo.common_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content(patient))

    return damage


def stray_evidence(patient):
    tip = patient.repo.raw[patient.repo.tip(PROOF)]
    stray = patient.repo.raw.create_commit(None, MAKER, MAKER, "hello", tip.tree_id, [tip.id])
    patient.set_ref(PROOF, str(stray))


def garbage_among_packed_refs(patient):
    patient.git("pack-refs", "--all")
    with (patient.repo.common_dir / "packed-refs").open("a") as file:
        file.write("garbage\n")


def grafted(patient):
    info = patient.repo.common_dir / "info"
    info.mkdir(exist_ok=True)
    (info / "grafts").write_text(f"{patient.commit(FOUR)} {patient.commit(FIRST)}\n")


def index_row(patient):
    with sqlite3.connect(patient.repo.private_dir / "index.db") as connection:
        connection.execute("UPDATE event SET title = 'forged' WHERE step = 2")
    connection.close()


def dropped(name, text):
    """Damage: the list of dropped evidence is the file ``name`` with ``text``; {four} is the line of FOUR's."""

    def damage(patient):
        record = patient.history[FOUR]
        blob = patient.repo.raw.create_blob(text.format(four=f"{record.evidence} {record.commit}").encode())
        tree = patient.repo.raw.TreeBuilder()
        tree.insert(name, blob, 0o100644)
        oid = patient.repo.raw.create_commit(None, MAKER, MAKER, "dropped", tree.write(), [])
        patient.set_ref(DROPPED, str(oid))

    return damage


def dropped_points_to_no_commit(patient):
    patient.set_ref(DROPPED, patient.blob(ONE))


def dropped_and_gone(patient):
    dropped("trees", "{four}\n")(patient)
    patient.repo.raw.references.delete(PROOF)
    patient.file(patient.history[FOUR].evidence).unlink()


BROKEN = {
    "a commit that is gone": (at(ONE, lambda _: None), "there is no commit"),
    "a tree that is gone": (
        written(lambda patient: patient.history[FOUR].tree, lambda _: None),
        "its tree",
    ),
    "a file that is gone": (
        written(lambda patient: patient.blob(ONE), lambda _: None),
        "the file 'SKILL.md' of its skill is missing",
    ),
    "an evidence tree that is gone": (
        written(lambda patient: patient.history[ONE].evidence, lambda _: None),
        "its evidence is lost",
    ),
    "an evidence file that is gone": (
        written(lambda patient: patient.evidence_blob(ONE, "patch.json"), lambda _: None),
        "its evidence lacks 'patch.json'",
    ),
    "an empty commit file": (at(ONE, lambda _: b""), "is damaged: its file is empty"),
    "a commit file cut short": (at(ONE, lambda data: data[: len(data) // 2]), "is damaged: its file is cut short"),
    "a commit file of zeros": (at(ONE, lambda data: bytes(len(data))), "its file cannot be decompressed"),
    "a commit with another bit": (at(ONE, flipped), "its content is not what its name says"),
    "a skill file cut short": (
        written(lambda patient: patient.blob(ONE), lambda data: data[:10]),
        "is damaged: its file is cut short",
    ),
    "a pack cut short": (packed(cut_pack), "is cut short or is not its index's"),
    "a pack without index": (packed(without_index), "has no index"),
    "a pack with another bit": (packed(pack_with_another_bit), "is not what its end says"),
    "a branch copied under another name": (
        lambda patient: patient.git("branch", "run/copy", f"run/{RUN}"),
        f"an event of run {RUN} is on run copy",
    ),
    "a version that git copied": (copied, "accepted after the run has finished"),
    "all branches deleted": (everything_but_tags_and_evidence_gone, f"its branch run/{RUN} is gone"),
    "a branch that points to a tree": (
        file_of(REJECTED[0], lambda patient: f"{patient.history[ONE].tree}\n"),
        "is not a commit but a tree",
    ),
    "notes that are a file": (
        file_of(refs.NOTES, lambda patient: f"{patient.blob(ONE)}\n"),
        "notes/skillgit/evals cannot be read",
    ),
    "a commit that is no evidence": (stray_evidence, "names no event, so it is not evidence"),
    "a commit that git replaces": (
        lambda patient: patient.git("replace", patient.commit(FOUR), patient.commit(ONE)),
        "shows git another object than the history has",
    ),
    "grafts": (grafted, "info/grafts gives commits other parents than they have"),
    "the line moved back behind a version": (
        line_moved_back_and_no_witness,
        "does not go on from v3",
    ),
    "a rejected branch moved": (
        moved(REJECTED[1], TWO),
        f"rejected/{RUN}/0005 holds the candidate of rejected/{RUN}/0002",
    ),
    "a rejected branch on the line": (moved(REJECTED[1], ONE), f"holds the candidate of run/{RUN}"),
    "the slow branch moved": (moved(SLOW, FIRST), "a slow merge has the run and the slow line as parents"),
    "the slow branch deleted": (gone(SLOW), "a slow merge without accepted guidance"),
    "the line moved back": (moved(LINE, SKIPPED), f"run/{RUN} does not lead to it any more"),
    "the line deleted": (gone(LINE), f"its branch run/{RUN} is gone"),
    "a note that is not JSON": (
        noted(b"so I told them\n"),
        "a line of its note is not a JSON object: 'so I told them'",
    ),
    "a note that is a list": (noted(b"[1, 2]\n"), "a line of its note is not a JSON object: '[1, 2]'"),
    "an attic that holds something else": (attic_of_other_commits, "of the attic folds no candidate"),
    "an attic cut off": (attic_cut, "there is no commit"),
    "dropped evidence of the last version": (
        dropped("trees", "{four}\n"),
        "that of the first, the best and the last version is never dropped",
    ),
    "lost evidence of the last version that is said to be dropped": (
        dropped_and_gone,
        "that of the first, the best and the last version is never dropped",
    ),
    "a list of dropped evidence of another name": (dropped("files", ""), "leads to no commit with the file 'trees'"),
    "a list of dropped evidence of other lines": (dropped("trees", "all\n"), "a line that names no evidence: 'all'"),
    "a list of dropped evidence that is no commit": (
        dropped_points_to_no_commit,
        "leads to no commit with the file 'trees', which says what evidence was dropped",
    ),
}

MENDED = {
    "a tag moved": (moved(refs.version_tag(RUN, 1), FIRST), f"{RUN}/v1 points to commit", f"moved {RUN}/v1 to"),
    "a tag deleted": (gone(refs.version_tag(RUN, 1)), f"{RUN}/v1 is missing", f"moved {RUN}/v1 to"),
    "a tag too many": (
        moved(refs.version_tag(RUN, 9), FIRST),
        f"{RUN}/v9 is a version that the run does not have",
        f"removed {RUN}/v9",
    ),
    "a tag whose file is empty": (
        file_of(refs.version_tag(RUN, 1), lambda _: ""),
        f"{RUN}/v1 is missing",
        f"removed the file of {RUN}/v1",
    ),
    "a tag that points to itself": (
        file_of(refs.version_tag(RUN, 1), lambda _: f"ref: {refs.version_tag(RUN, 1)}\n"),
        f"{RUN}/v1 is missing",
        f"moved {RUN}/v1 to",
    ),
    "best moved": (moved(BEST, FIRST), f"best/{RUN} points to commit", f"moved best/{RUN} to"),
    "best deleted": (gone(BEST), f"best/{RUN} is missing", f"moved best/{RUN} to"),
    "evidence moved back": (evidence_moved_back, "its evidence is not kept by", "keeps the evidence of 1 more event"),
    "evidence deleted": (gone(PROOF), "its evidence is not kept by", "keeps the evidence of 8 more events"),
    "evidence of another run": (evidence_of_another, "keeps evidence of run other", "no longer keeps what is not of"),
    "garbage cut short": (garbage, "is damaged: its file is cut short", "set aside as"),
    "garbage among packed refs": (
        garbage_among_packed_refs,
        "packed-refs has 1 line that git cannot read",
        "kept the others and set the file aside as",
    ),
    "a rejected branch deleted": (
        gone(REJECTED[0]),
        f"git branch rejected/{RUN}/0002",
        f"brought rejected/{RUN}/0002 back, at commit",
    ),
    "the last rejected branch deleted": (
        gone(REJECTED[1]),
        "names step 5 after step 4",
        f"brought rejected/{RUN}/0005 back, at commit",
    ),
    "an attic deleted": (attic_emptied, "step 3 follows step 1", f"brought rejected/{RUN}/0002 back, at commit"),
    "a lock file": (left_lock, f"{LINE}.lock was left by a process that died", f"removed {LINE}.lock"),
    "an index that was changed": (
        index_row,
        "the index differs from what git holds",
        "rebuilt the index, which was stale",
    ),
}


@pytest.mark.parametrize("name", sampled(BROKEN, 4))
def test_what_is_lost_is_named_and_stays_named(name, patient, context):
    damage, said = BROKEN[name]
    assert fsck(context, None).problems == ()
    damage(patient)
    told = [problem.sentence for problem in fsck(context, None, deep=True).problems]
    assert any(said in sentence for sentence in told), told
    before = Repo.discover(context.directory).tips()
    assert fsck(context, None, deep=True, repair=True).problems
    assert Repo.discover(context.directory).tips() == before, "a repair takes nothing away"


# libgit2 waits for ever for what is missing of a file that was cut short
@pytest.mark.parametrize("name", sampled([name for name in BROKEN if "cut short" not in name], 6))
def test_no_damage_is_an_internal_error(name, patient, context):
    BROKEN[name][0](patient)
    questions = (partial(ask, run_list), partial(ask, status), partial(ask, log), partial(fsck, run=RUN, deep=True))
    for question in questions:
        try:
            question(context)
        except Exception as error:
            if not isinstance(error, SkillgitError) and explained(error, None) is None:
                raise


@pytest.mark.parametrize("name", sampled(MENDED, 4))
def test_what_follows_from_the_rest_is_named_and_mended(name, patient, context):
    damage, said, done = MENDED[name]
    assert fsck(context, None).problems == ()
    before = patient.repo.tips()
    damage(patient)
    found = fsck(context, None, deep=True).problems
    assert any(said in problem.sentence for problem in found), found
    assert any(problem.repairable for problem in found)
    repaired = fsck(context, None, deep=True, repair=True)
    assert any(done in told for told in repaired.mended), repaired.mended
    assert repaired.problems == ()
    assert fsck(context, None, deep=True, repair=True).mended == ()
    after = Repo.discover(context.directory).tips()
    assert {name: after[name] for name in before} == before


ENDS = {
    "the newest commit": lambda patient: [patient.commit(LAST)],
    "the newest commit of the evidence": lambda patient: [patient.repo.tip(PROOF)],
    "a file of the newest evidence": lambda patient: [
        str(next(iter(patient.repo.raw[patient.history[LAST].evidence])).id)
    ],
    "the newest evidence": lambda patient: [patient.history[LAST].evidence],
    "two events": lambda patient: [patient.commit(FIVE), patient.commit(LAST)],
    "the skill of the last version": lambda patient: [
        *(patient.commit(place) for place in (FIVE, LAST)),
        patient.blob(FOUR),
    ],
}


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), lambda path: path.unlink()])
@pytest.mark.parametrize("name", sampled(ENDS, 6))
def test_a_run_steps_back_to_its_last_whole_event_and_no_further(name, damage, patient, context):
    lost = ENDS[name](patient)
    for oid in lost:
        damage(patient.file(oid))
    assert any(one.repairable for one in fsck(context, None).problems)
    repaired = fsck(context, None, deep=True, repair=True)
    assert repaired.problems == (), repaired
    assert any("stepped back to the last whole event" in told for told in repaired.mended), repaired.mended
    kept = [record.commit for record in read_run(Repo.discover(context.directory), RUN)]
    assert kept == [record.commit for record in patient.history[: len(kept)]]
    assert len(patient.history) - len(kept) <= len(lost)
    assert fsck(context, None, deep=True, repair=True).mended == ()


@pytest.mark.parametrize("content", ["garbage\n", soak(""), soak("0" * 40)])
@pytest.mark.parametrize("name", [LINE, SLOW, *REJECTED, BEST, refs.version_tag(RUN, 1)])
def test_the_file_of_a_ref_that_a_disk_lost_is_made_again(name, content, patient, context):
    before = patient.repo.tips()
    file_of(name, lambda _: content)(patient)
    assert fsck(context, None).problems
    assert fsck(context, None, deep=True, repair=True).problems == ()
    assert Repo.discover(context.directory).tips() == before


def test_a_run_steps_back_over_what_a_remote_has_and_says_so(patient, context):
    patient.set_ref(f"refs/remotes/origin/run/{RUN}", patient.commit(LAST))
    patient.file(patient.commit(LAST)).write_bytes(b"")
    repaired = fsck(context, None, repair=True)
    assert repaired.problems == ()
    assert any("skillgit pull origin" in told for told in repaired.mended), repaired.mended
    assert f"refs/remotes/origin/run/{RUN}" not in Repo.discover(context.directory).tips(), "a fetch would skip it"


@pytest.mark.parametrize("content", [b"", b"garbage" * 999, b"SQLite format 3\0" + b"\0" * 200])
def test_an_index_that_cannot_be_used_is_no_problem_for_anyone(content, patient, context):
    fsck(context, None)
    (patient.repo.private_dir / "index.db").write_bytes(content)
    assert fsck(context, None, deep=True).problems == ()


def test_a_damaged_object_that_is_written_again_is_whole_again(patient, context):
    path = patient.file(patient.blob(ONE))
    text = patient.repo.raw[patient.blob(ONE)].data
    path.write_bytes(path.read_bytes()[:12])
    repaired = fsck(context, None, repair=True)
    assert "set aside" in repaired.mended[0]
    assert "the file 'SKILL.md' of its skill is missing" in {problem.sentence for problem in repaired.problems}
    fresh = Repo.discover(context.directory)
    fresh.raw.create_blob(text)
    assert fsck(context, None, deep=True).problems == ()
    assert str(fresh.commit(patient.commit(ONE)).tree[f"{PATH}/SKILL.md"].id) == patient.blob(ONE)


def test_a_lock_that_git_may_hold_stays(patient, context):
    """Git locks a ref, and waits for what it is told next."""
    told = f"start\nupdate {LINE} {patient.commit(FIRST)}\nprepare\n"
    with subprocess.Popen(
        ["git", "update-ref", "--stdin"], cwd=patient.repo.workdir, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        holder.stdin.write(told.encode())
        holder.stdin.flush()
        assert holder.stdout.readline() + holder.stdout.readline() == b"start: ok\nprepare: ok\n"
        repaired = fsck(context, None, repair=True)
        assert (repaired.problems, repaired.mended) == ((), ())
        assert holder.communicate(b"abort\n")[0] == b"abort: ok\n"
    assert holder.returncode == 0


def test_a_rejected_branch_that_was_deleted_is_named_with_what_brings_it_back(patient, context):
    gone(REJECTED[0])(patient)
    (told,) = [one.sentence for one in fsck(context, None).problems if "brings it back" in one.sentence]
    command = told.partition("; git ")[2].removesuffix(" brings it back")
    patient.git(*command.split())
    assert fsck(context, None).problems == ()


def test_one_broken_run_does_not_hide_the_others(patient, context):
    write_run(patient.repo, "other", events=2)
    patient.set_ref(refs.version_tag("other", 1), patient.commit(FIRST))
    patient.file(patient.commit(SKIPPED)).unlink()
    found = fsck(context, None).problems
    assert {problem.run for problem in found} == {RUN, "other"}
    assert [problem.run for problem in fsck(context, "other").problems] == ["other"]


def unreadable(context):
    with Workspace(context) as workspace:
        return dict(workspace.index.broken)


def test_a_run_that_cannot_be_read_is_told_and_hides_no_other(patient, context):
    write_run(patient.repo, "other", events=2)
    ask(log, context)
    copied(patient)
    assert [row.name for row in ask(run_list, context).rows] == ["other"]
    ((run, error),) = unreadable(context).items()
    assert (run, str(error)) == (RUN, f"run {RUN} makes v1 twice")
    assert ask(log, context, LogRequest(words=("other",))).rows
    with pytest.raises(InvariantError, match="makes v1 twice"):
        ask(log, context, LogRequest(words=(RUN,)))
    rebuild(patient.repo).close()
    assert unreadable(context).keys() == {RUN}
    patient.git("reset", "-q", "--hard", "HEAD~1")
    assert unreadable(context) == {}


def test_a_note_on_a_commit_that_never_came_here_is_no_problem(patient, context):
    """``gate`` leaves them on the heads of pull requests, and notes travel without their commits."""
    notes.append(patient.repo, {"1" * 40: [{"kind": "evaluation"}]}, time=clock_from(count())())
    assert fsck(context, None, deep=True).problems == ()


@pytest.mark.parametrize("name", REJECTED)
@pytest.mark.parametrize("witness", ["reflog", "evidence"])
def test_a_refused_candidate_whose_branch_vanished_comes_back(name, witness, patient, context):
    tips = patient.repo.tips()
    (patient.repo.common_dir / name).unlink()
    if witness == "evidence":
        (patient.repo.common_dir / "logs" / name).unlink()
    assert any(problem.repairable for problem in fsck(context, None).problems)

    mended = fsck(context, None, repair=True)

    assert f"{RUN}: brought {refs.short(name)} back, at commit {tips[name][:12]}" in mended.mended
    assert mended.problems == ()
    assert Repo.discover(context.directory).tips() == tips


def test_a_refused_candidate_that_was_folded_is_not_lost(patient, context):
    fold(patient.repo, RUN)
    assert fsck(context, None, repair=True).mended == ()


@pytest.mark.parametrize("cut", [1, 30, 41, 60, 130, 300, 500, 700])
def test_packed_refs_that_were_cut_or_overwritten_come_back_as_far_as_the_rest_tells(cut, patient, context):
    """Branches have reflogs, tags follow from the history; what follows from nothing else is said to be lost."""
    tips = patient.repo.tips()
    patient.git("pack-refs", "--all")
    path = patient.repo.common_dir / "packed-refs"
    for damaged in (path.read_bytes()[:-cut], path.read_bytes()[:-cut] + b"\0garbage\n"):
        whole = path.read_bytes()
        path.write_bytes(damaged)
        found = fsck(context, None)
        assert not found.sound

        mended = fsck(context, None, repair=True)

        assert mended.mended
        now = Repo.discover(context.directory).tips()
        branches = {name: oid for name, oid in tips.items() if name.startswith(("refs/heads/", "refs/tags/"))}
        assert now.items() >= branches.items()
        patient.git("for-each-ref")
        path.write_bytes(whole)
