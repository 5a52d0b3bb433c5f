from __future__ import annotations

import json
from dataclasses import replace

import pytest
from sample_run import RUN

from skillgit.app.deliver.plugin import MARK, PluginRequest, build_plugin
from skillgit.app.skill_format.folder_contents import EntryKind, entries_of, fingerprint, read_entries
from skillgit.app.workspace.revision import skill_named
from skillgit.app.workspace.workspace import open_workspace
from skillgit.errors import ConflictError, NotFoundError, SkillError, UsageError

REQUEST = PluginRequest(folder="plugin")


@pytest.fixture(autouse=True)
def _run(records):
    assert records


def test_the_same_content_gives_the_same_bytes(context):
    first, second = (build_plugin(context, replace(REQUEST, folder=name)) for name in ("one", "two"))
    assert first.state == second.state == "written"
    assert fingerprint(read_entries(context.directory / "one")) == fingerprint(read_entries(context.directory / "two"))
    assert build_plugin(context, replace(REQUEST, folder="one")).state == "unchanged"


def test_another_content_has_another_version(context):
    versions = [
        build_plugin(context, replace(REQUEST, folder=f"p{number}", **more)).version
        for number, more in enumerate([{}, {"skills": ("v0",)}, {"skills": ("v1",)}, {"name": "other"}])
    ]
    assert len(set(versions)) == len(versions) - (versions[0] in versions[1:])
    manifest = json.loads(next(context.directory.glob("p1/*/.claude-plugin/plugin.json")).read_text())
    catalogue = json.loads((context.directory / "p1/.claude-plugin/marketplace.json").read_text())
    assert manifest["version"] == catalogue["plugins"][0]["version"] == versions[1]


def test_it_holds_the_version_that_it_names_byte_for_byte(context, repo):
    result = build_plugin(context, replace(REQUEST, skills=("v1",)))
    (skill,) = result.skills
    folder = context.directory / "plugin" / result.name
    with open_workspace(context) as workspace:
        source = skill_named(workspace, "v1")
        path = workspace.index.skill_path(RUN)
    assert fingerprint(read_entries(folder / "skills" / skill.name)) == fingerprint(entries_of(source.skill))
    assert skill.tree == str(repo.commit(skill.commit).tree[path].id)
    mark = json.loads((folder / MARK).read_text())
    assert mark["skills"] == [
        {"name": skill.name, "run": RUN, "version": 1, "commit": source.commit, "tree": skill.tree}
    ]
    assert all(entry.kind is not EntryKind.LINK for entry in read_entries(folder).values())


def test_a_skill_is_named_by_its_name(context):
    by_revision = build_plugin(context, replace(REQUEST, folder="a", skills=("best",)))
    by_name = build_plugin(context, replace(REQUEST, folder="b", skills=(by_revision.skills[0].name,)))
    assert by_name.skills == by_revision.skills
    with pytest.raises(NotFoundError, match="there is no skill 'nope'"):
        build_plugin(context, replace(REQUEST, folder="c", skills=("nope",)))


@pytest.mark.parametrize(
    "what", ["a file of mine", "a changed file", "a file more", "a file less", "a link", "a false mark"]
)
def test_a_folder_that_someone_else_made_or_changed_is_left_alone(what, context):
    folder = context.directory / "plugin"
    if what != "a file of mine":
        build_plugin(context, REQUEST)
    else:
        folder.mkdir()
    own = next(folder.glob("*/README.md"), folder / "mine.txt")
    match what:
        case "a file of mine" | "a changed file":
            own.write_text("mine")
        case "a file more":
            (folder / "more.txt").write_text("mine")
        case "a file less":
            own.unlink()
        case "a link":
            own.unlink()
            own.symlink_to("/etc/passwd")
        case "a false mark":
            next(folder.glob(f"*/{MARK}")).write_text("[" * 100_000)
    before = fingerprint(read_entries(folder))
    with pytest.raises(ConflictError) as refusal:
        build_plugin(context, replace(REQUEST, skills=("v0",)))
    assert refusal.value.hint
    assert fingerprint(read_entries(folder)) == before


def test_its_own_folder_is_replaced_and_check_only_looks(context):
    build_plugin(context, REQUEST)
    before = fingerprint(read_entries(context.directory / "plugin"))
    request = replace(REQUEST, skills=("v0",))
    looked = build_plugin(context, replace(request, check=True))
    assert looked.state == "differs"
    assert looked.changes
    assert fingerprint(read_entries(context.directory / "plugin")) == before
    assert build_plugin(context, request).state == "written"
    assert build_plugin(context, replace(request, check=True)).state == "unchanged"


def test_what_names_no_plugin_is_refused(context):
    with pytest.raises(UsageError, match="named twice"):
        build_plugin(context, replace(REQUEST, skills=("v0", "v1")))
    with pytest.raises(SkillError, match="no name of a plug-in"):
        build_plugin(context, replace(REQUEST, name="../x"))


def test_a_credential_is_not_published(context):
    row = {"id": "one", "prompt": "Use sk-ant-0123456789abcdef0123456789 here.", "rubric": "x"}
    (context.directory / "tasks.jsonl").write_text(json.dumps(row))
    with pytest.raises(SkillError, match=r"evals/one/prompt\.md holds what looks like a credential"):
        build_plugin(context, replace(REQUEST, evals="tasks.jsonl"))
    assert not (context.directory / "plugin").exists()
