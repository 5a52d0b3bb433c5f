from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hosts import Person, first, own
from program import git, refs
from sample_run import RUN

from skillgit.store import notes
from skillgit.store.evidence import kept_trees
from skillgit.store.history_reader import read_run
from skillgit.store.seals import is_own


def theirs(host) -> dict[str, str]:
    return own(host.path)


def events(person: Person) -> list[str]:
    return [record.commit for record in read_run(person.repo, RUN)]


def test_two_people_and_a_host_with_a_password_have_the_same_refs(host, tmp_path):
    ann = first(tmp_path / "ann", 4)
    ann.git("remote", "add", "origin", host.url())
    ann.push("--rejected", "branches", "--evidence")
    assert theirs(host) == ann.own()

    Person(tmp_path)("clone", "--evidence", host.url(), "bob")
    bob = Person(tmp_path / "bob")
    assert bob.own() == ann.own()
    assert git("fsck", "--strict", cwd=bob.path).err == ""

    bob.append(4)
    bob("fork", f"{RUN}/best", "bobs")
    bob.push("--evidence")
    ann("pull", "--evidence")
    assert ann.own() == bob.own() == theirs(host)
    assert ann("fsck").out.endswith("no problems\n")


def test_rejected_candidates_go_in_the_attic_unless_somebody_says_otherwise(host, ann, clone):
    ann.push()
    assert not [name for name in theirs(host) if "/rejected/" in name or "evidence" in name]
    assert f"refs/skillgit/attic/{RUN}" in theirs(host)
    assert f"refs/skillgit/attic/{RUN}" not in ann.own(), "nothing is folded here"
    bob = clone("bob")
    assert bob("fsck").out.endswith("no problems\n")
    assert events(bob) == events(ann)
    assert "r2" in bob("log", RUN).out


@pytest.mark.soak
def test_a_second_push_goes_on_as_the_first_one_began(host, tmp_path):
    ann = first(tmp_path / "ann", 4)
    ann.git("remote", "add", "origin", str(host.path))
    ann.push("--rejected", "branches")
    ann.append(4)
    ann.push()
    assert f"refs/heads/rejected/{RUN}/0005" in theirs(host)
    assert f"refs/skillgit/attic/{RUN}" not in theirs(host)


def test_an_attic_grows_with_the_run(host, tmp_path, clone):
    ann = first(tmp_path / "ann", 4)
    ann.git("remote", "add", "origin", str(host.path))
    ann.push()
    bob = clone("bob")
    ann.append(4)
    ann.push()
    bob("pull")
    assert bob("fsck").out == ann("fsck").out
    assert events(bob) == events(ann)


def test_pushing_twice_sends_nothing(ann):
    ann.push("--evidence")
    rows = json.loads(ann.push("--evidence", "--json").out)
    assert {row["state"] for row in rows["refs"]} == {"up_to_date"}
    assert rows["schema"] == "skillgit.push/1"


def test_a_dry_run_sends_and_writes_nothing(host, ann):
    before = ann.own()
    told = json.loads(ann.push("--dry-run", "--json").out)
    assert told["dry_run"]
    assert {row["state"] for row in told["refs"]} == {"pushed"}
    assert theirs(host) == {}
    assert refs(ann.path) == before


@pytest.mark.soak
def test_only_the_runs_that_are_named_go(host, ann):
    ann("fork", f"{RUN}/best", "other")
    ann.push("origin", "other")
    assert {name for name in theirs(host) if name.startswith("refs/heads/")} == {
        "refs/heads/main",
        "refs/heads/run/other",
        "refs/heads/best/other",
    }


@pytest.mark.soak
def test_what_somebody_else_did_comes_in_and_goes_out(host, tmp_path, clone):
    ann = first(tmp_path / "ann", 4)
    ann.git("remote", "add", "origin", str(host.path))
    ann.push("--rejected", "branches")
    bob = clone("bob")
    bob.append(4)
    bob("fork", f"{RUN}/best", "bobs")
    bob.push()
    told = json.loads(ann("pull", "--json").out)
    assert {row["run"]: row["state"] for row in told["runs"]} == {RUN: "forward", "bobs": "new"}
    own = {name: oid for name, oid in ann.own().items() if "evidence" not in name}
    assert own == {name: oid for name, oid in bob.own().items() if "evidence" not in name} == theirs(host)
    assert ann("fsck").code == 0


def test_notes_of_both_sides_are_put_together(host, ann, clone):
    tip = ann.own()[f"refs/tags/{RUN}/v1"]
    ann.push()
    bob = clone("bob")
    for person, fact in ((ann, 1), (bob, 2)):
        notes.append(person.repo, {tip: [{"fact": fact}]}, time=datetime(2026, 11, 22, tzinfo=UTC))
    ann.push()
    bob.push()
    ann("pull")
    assert notes.read(ann.repo, tip) == notes.read(bob.repo, tip) == [{"fact": 1}, {"fact": 2}]
    assert theirs(host)["refs/notes/skillgit/evals"] == ann.own()["refs/notes/skillgit/evals"]


def test_a_stranger_can_look_at_a_clone_and_its_configuration_is_not_trusted(ann, clone):
    ann.push()
    bob = clone("bob")
    assert events(bob) == events(ann)
    assert "quote the span" in bob("show", f"{RUN}/v3").out
    for words in (("diff", f"{RUN}/v0", f"{RUN}/v3"), ("blame", f"{RUN}/v3")):
        assert bob(*words).out == ann(*words).out
    assert bob.git("diff", f"{RUN}/v0", f"{RUN}/v3") == ann.git("diff", f"{RUN}/v0", f"{RUN}/v3")
    assert not is_own(bob.repo, start=bob.git("rev-parse", f"{RUN}/v0"))
    bob("fork", f"{RUN}/best", "mine")
    assert not is_own(bob.repo, start=bob.git("rev-parse", "mine/v0"))


def test_a_run_without_its_rejected_candidates_can_be_read_and_says_what_it_lacks(host, ann):
    ann.push("--rejected", "none")
    told = Person(host.folder)("clone", host.path, "../bob").out
    assert "rejected candidates are missing: it can be read, not continued or forked" in told
    bob = Person(host.folder.parent / "bob")
    assert bob("diff", f"{RUN}/v0", f"{RUN}/v3").out == ann("diff", f"{RUN}/v0", f"{RUN}/v3").out


def test_main_comes_forward_with_the_work_tree(ann, clone):
    ann.push()
    bob = clone("bob")
    ann("promote", f"{RUN}/best")
    ann.push()
    bob("pull")
    assert bob.own()["refs/heads/main"] == ann.own()["refs/heads/main"]
    assert bob.git("status", "--porcelain") == ""
    assert (bob.path / "skills/demo/SKILL.md").read_bytes() == (ann.path / "skills/demo/SKILL.md").read_bytes()


@pytest.mark.soak
def test_work_that_is_not_committed_keeps_main_where_it_is(ann, clone):
    ann.push()
    bob = clone("bob")
    ann("promote", f"{RUN}/best")
    ann.push()
    (bob.path / "skills/demo").mkdir(parents=True)
    (bob.path / "skills/demo/SKILL.md").write_text("mine\n")
    done = bob("pull", code=4)
    assert "main was left as it is" in done.err
    assert (bob.path / "skills/demo/SKILL.md").read_text() == "mine\n"


def test_status_tells_what_is_not_pushed(ann):
    assert f"{RUN} (new), not at origin: skillgit push" in ann("status").out
    ann.push()
    assert "unpushed" not in ann("status").out


def test_evidence_of_both_is_put_together_where_the_first_half_never_left_its_repository(host, tmp_path, clone):
    ann = first(tmp_path / "ann", 4)
    ann.git("remote", "add", "origin", str(host.path))
    ann.push("--rejected", "branches")
    bob = clone("bob", "--evidence")
    bob.append(4)
    bob.push("--evidence")
    ann("pull")

    told = ann("pull", "--evidence")

    assert "went forward" in told.out
    assert ann("fsck", "--deep").out.endswith("no problems\n")
    assert kept_trees(bob.repo, RUN) < kept_trees(ann.repo, RUN)
    ann.push("--evidence")
    bob("pull", "--evidence")
    assert bob.own() == ann.own() == theirs(host)
    assert bob("fsck", "--deep").out.endswith("no problems\n")
