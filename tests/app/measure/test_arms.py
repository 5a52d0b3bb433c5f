from __future__ import annotations

import pytest
from sample_run import RUN, seed_skill, write_run

from skillgit.app.measure.arms import NONE, read_arms, resolve_all
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import RevisionNotFoundError, SkillError, UsageError


def arms(context, revisions, against=()):
    with Workspace(context) as workspace:
        return read_arms(workspace, resolve_all(workspace, revisions, against), "demo")


@pytest.mark.usefixtures("records")
def test_each_commit_is_one_arm_under_its_short_name(context):
    found = arms(context, ["v0", "best", "r2", "v3"], ["v0", "none", "v1"])
    assert [arm.name for arm in found.every] == ["v0", "v3", "r2", "none", "v1"]
    assert [arm.name for arm in found.subjects] == ["v0", "v3", "r2"]
    assert [arm.name for arm in found.against] == ["v0", "none", "v1"]


@pytest.mark.usefixtures("records")
def test_versions_of_several_runs_bear_their_names(context, repo):
    write_run(repo, "other", events=2)
    assert [arm.name for arm in arms(context, [f"{RUN}/v1", "other/v1"]).subjects] == [f"{RUN}/v1", "other/v1"]


@pytest.mark.usefixtures("records")
def test_no_skill_is_the_frontmatter_alone(context):
    none = arms(context, ["v0"], [NONE]).every[1]
    assert (none.name, none.commit, none.row) == (NONE, "", None)
    assert list(none.skill.files) == ["SKILL.md"]
    assert none.skill.document == "---\nname: demo\ndescription: Answer questions about short texts.\n---\n"
    assert none.skill.name == seed_skill().name


@pytest.mark.usefixtures("records")
def test_what_names_nothing_is_refused(context):
    with pytest.raises(RevisionNotFoundError):
        arms(context, ["v9"])
    with pytest.raises(UsageError, match="name a version"):
        arms(context, [])
    with pytest.raises(SkillError, match="there is no skill in commit"):
        arms(context, ["v0", f"refs/skillgit/evidence/{RUN}"])


def test_names_that_are_alike_are_told_apart_by_their_commits(context, repo, records):
    repo.raw.references.create("refs/heads/none", records[1].commit)
    repo.raw.references.create("refs/heads/other", records[1].commit)
    tip = repo.commit(records[1].commit)
    plain = str(repo.raw.create_commit(None, tip.author, tip.author, "plain\n", tip.tree_id, []))
    repo.raw.references.create("refs/heads/none", plain, force=True)
    found = arms(context, ["none", "other"], [NONE])
    assert [arm.name for arm in found.every] == [f"none ({plain[:12]})", "v1", "none"]
    assert [arm.key for arm in found.every] == [plain, records[1].commit, NONE]
