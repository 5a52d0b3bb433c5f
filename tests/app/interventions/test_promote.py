from __future__ import annotations

from dataclasses import replace

import pygit2
import pytest
from asking import ask
from real_git import git
from sample_run import PATH, RUN, seed_skill, write_run
from soaking import sampled_rows

from skillgit.app.history.status import status
from skillgit.app.interventions.promote import promote
from skillgit.app.recorded.evaluation_notes import known_evaluations
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import ConflictError, RevisionNotFoundError, SkillError, UsageError
from skillgit.store import notes, refs
from skillgit.store.history_reader import read_commit
from skillgit.store.repo import Repo
from skillgit.store.trunk import trunk
from skillgit.store.work_tree import add_skill


@pytest.fixture
def home(repo, context):
    """A work tree with ``main`` checked out, whose skill the sample run began with."""
    add_skill(repo, PATH, seed_skill("demo"), time=context.clock())
    (repo.workdir / "README").write_text("mine\n")
    git(repo.workdir, "add", "README")
    git(repo.workdir, "commit", "-qm", "read me")
    write_run(repo)
    return repo.workdir


def test_main_gets_the_version_with_a_merge_commit_and_the_work_tree_follows(context, repo, home):
    tip = repo.tip(trunk(repo))

    result = promote(context, "v3")
    assert ask(status, context).promoted == f"{RUN}/v3"
    assert ask(status, replace(context, as_of="v1")).promoted == "", "at v1 nothing was promoted"

    commit = repo.commit(repo.tip(trunk(repo)))
    version = repo.tip(refs.version_tag(RUN, 3))
    assert [str(parent) for parent in commit.parent_ids] == [tip, version]
    assert str(commit.id) == result.commit
    assert commit.tree[PATH].id == repo.commit(version).tree[PATH].id
    assert commit.tree["README"].id == repo.commit(tip).tree["README"].id
    assert (result.score, result.test, result.held, result.before) == (0.8, 0.7, False, "")
    assert git(home, "status", "--porcelain") == ""
    assert (home / PATH / "SKILL.md").read_bytes() == commit.tree[f"{PATH}/SKILL.md"].data
    assert "selection: hard 0.8000\ntest: hard 0.7000\n" in commit.message
    assert git(home, "log", "-1", "--format=%(trailers:key=Skillgit-Promoted,valueonly)", "main").strip() == f"{RUN}/v3"
    assert git(home, "reflog", "-1", "main").strip().endswith(f"skillgit: promote {RUN}/v3")


@pytest.mark.usefixtures("home")
def test_promoting_twice_does_nothing_and_promoting_another_version_tells_which_one_goes(context, repo):
    promote(context, "v1")
    tip = repo.tip(trunk(repo))
    again = promote(context, "v1")
    assert (again.held, again.commit) == (True, "")
    assert repo.tip(trunk(repo)) == tip
    assert promote(context, "v3").before == f"{RUN}/v1"
    assert promote(context, "v1").before == f"{RUN}/v3"


def test_what_somebody_wrote_on_main_is_not_replaced_unless_forced(context, repo, home):
    promote(context, "v1")
    document = home / PATH / "SKILL.md"
    document.write_text(f"{document.read_text()}\n- Mine.\n")
    git(home, "commit", "-qam", "my own rule")
    tip = repo.tip(trunk(repo))

    with pytest.raises(ConflictError, match=f"changed on main by hand since: {tip[:12]} my own rule") as caught:
        promote(context, "v3")
    assert "--force" in caught.value.hint
    assert repo.tip(trunk(repo)) == tip
    assert promote(context, "v3", force=True).commit == repo.tip(trunk(repo))
    assert "Mine" not in document.read_text()


@pytest.mark.parametrize("staged", [False, True])
def test_changes_in_the_work_tree_are_not_lost(context, repo, home, staged):
    document, tip = home / PATH / "SKILL.md", repo.tip(trunk(repo))
    document.write_text("mine\n")
    if staged:
        git(home, "add", "-A")
    for dry_run in (True, False):
        with pytest.raises(ConflictError, match="changes in it would be lost") as caught:
            promote(context, "v3", dry_run=dry_run)
        assert f"{PATH}/SKILL.md" in caught.value.message
        assert "git stash" in caught.value.hint
    assert (repo.tip(trunk(repo)), document.read_text()) == (tip, "mine\n")


def test_changes_elsewhere_stay_as_with_git_merge(context, repo, home):
    (home / "README").write_text("changed\n")
    (home / "untracked").write_text("new\n")
    promote(context, "v3")
    assert git(home, "status", "--porcelain") == " M README\n?? untracked"
    assert repo.tip(trunk(repo)) == git(home, "rev-parse", "HEAD").strip()


def test_the_branch_that_is_checked_out_gets_it_and_others_stay(context, repo, home):
    main = repo.tip("refs/heads/main")
    git(home, "switch", "-qc", "work")
    result = promote(context, "v3")
    assert (result.branch, result.commit) == ("work", git(home, "rev-parse", "work").strip())
    assert repo.tip("refs/heads/main") == main
    assert git(home, "status", "--porcelain") == ""


def test_from_a_linked_work_tree_its_branch_gets_it_and_the_others_stay(context, repo, home, tmp_path):
    git(home, "switch", "-qc", "work")
    work = repo.tip("refs/heads/work")
    linked = tmp_path / "a linked one"
    git(home, "worktree", "add", "-q", str(linked), "main")
    promote(replace(context, directory=linked), "v3")
    assert git(linked, "status", "--porcelain") == git(home, "status", "--porcelain") == ""
    main = repo.tip("refs/heads/main")
    assert (linked / PATH / "SKILL.md").read_bytes() == repo.commit(main).tree[f"{PATH}/SKILL.md"].data
    assert repo.tip("refs/heads/work") == work


def test_a_bare_repository_is_fine(context, home, tmp_path):
    bare = tmp_path / "bare.git"
    git(home, "clone", "-q", "--mirror", str(home), str(bare))
    result = promote(replace(context, directory=bare), "v3")
    assert Repo(pygit2.Repository(str(bare))).tip("refs/heads/main") == result.commit


@pytest.mark.usefixtures("records")
def test_a_repository_without_main_has_nothing_to_promote_to(context):
    with pytest.raises(RevisionNotFoundError, match="no branch main"):
        promote(context, "v3")


@pytest.mark.usefixtures("home")
def test_only_versions_are_promoted_and_a_dry_run_moves_nothing(context, repo):
    tip = repo.tip(trunk(repo))
    with pytest.raises(UsageError, match="r2 is not a version"):
        promote(context, "r2")
    assert promote(context, "v3", dry_run=True).commit == ""
    assert repo.tip(trunk(repo)) == tip


@pytest.mark.usefixtures("home")
def test_the_status_tells_what_main_has(context, home):
    assert ask(status, context).promoted == ""
    promote(context, "v3")
    assert ask(status, context).promoted == f"{RUN}/v3"
    (home / PATH / "SKILL.md").write_text("---\nname: demo\ndescription: Mine.\n---\n")
    git(home, "commit", "-qam", "mine")
    assert ask(status, context).promoted == ""


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_link_out_of_the_skill_is_not_brought_to_main(context, repo, home, tmp_path, dry_run):
    git(home, "worktree", "add", "-q", tmp_path / "line", f"run/{RUN}")
    (tmp_path / "line" / PATH / "notes.md").symlink_to("../../../../.ssh/id_ed25519")
    git(tmp_path / "line", "add", "-A")
    git(tmp_path / "line", "commit", "-qm", "Notes")
    before = repo.tip(trunk(repo))
    with pytest.raises(SkillError, match=r"notes\.md.* of the version is a link out of the skill"):
        promote(context, "head", dry_run=dry_run)
    assert repo.tip(trunk(repo)) == before


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("change", "counts"),
    sampled_rows(
        [
            ({}, True),
            ({"target": "openai_compatible/gpt-5-mini"}, False),
            ({"environment": "another"}, False),
            ({"item_set": "0123456789ab"}, False),
            ({"judge": "claude_chat/judge"}, False),
            ({"scored": 0, "hard": 0.0}, False),
        ],
        3,
    ),
    ids=lambda change: ", ".join(change) if isinstance(change, dict) else "",
)
def test_a_note_measured_otherwise_than_the_run_is_no_score_of_the_version(context, repo, change, counts):
    with Workspace(context) as workspace:
        row = event_in(workspace, "v3")
        (final,) = (entry for entry in known_evaluations(workspace, row.commit, row) if entry.split == "test")
        start = read_commit(repo, repo.tip(refs.version_tag(RUN, 0))).event
    line = {
        "kind": "evaluation",
        "split": "test",
        "item_set": final.item_set,
        "n": final.n,
        "scored": final.scored,
        "hard": 0.9,
        "soft": 0.9,
        "seed": 0,
        "target": start.models.target,
        "environment": start.environment,
        "time": "2026-12-01T00:00:00Z",
    }
    notes.append(repo, {row.commit: [line | change]}, time=context.clock())
    score = 0.9 if counts else 0.7
    with Workspace(context) as workspace:
        noted = known_evaluations(workspace, row.commit, row)[-1]
    assert bool(noted.differs) == (not counts and change.get("scored") != 0)
    assert promote(context, "v3", dry_run=True).test == score
    assert f"test: hard {score:.4f}\n" in repo.commit(promote(context, "v3").commit).message
