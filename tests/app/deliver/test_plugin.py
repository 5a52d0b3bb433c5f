from __future__ import annotations

import json
import re

import pytest
from asking import ask
from sample_run import RUN

from skillgit.app.deliver.plugin import MARK, build_plugin
from skillgit.app.skill_format.folder_contents import EntryKind, entries_of, fingerprint, read_entries
from skillgit.app.workspace.revision import skill_named
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import ConflictError, NotFoundError, SkillError, UsageError


@pytest.fixture(autouse=True)
def _run(records):
    assert records


def built(context, path="plugin", *revisions, **options):
    return ask(build_plugin, context, revisions or ("best",), path, **options)


def test_the_same_content_gives_the_same_bytes(context):
    first, second = (built(context, name) for name in ("one", "two"))
    assert first.state == second.state == "written"
    assert fingerprint(read_entries(context.directory / "one")) == fingerprint(read_entries(context.directory / "two"))
    assert built(context, "one").state == "unchanged"


def test_another_content_has_another_version(context):
    versions = [
        built(context, f"p{number}", *revisions, name=name).version
        for number, (revisions, name) in enumerate([((), ""), (("v0",), ""), (("v1",), ""), ((), "other")])
    ]
    assert len(set(versions)) == len(versions) - (versions[0] in versions[1:])
    manifest = json.loads(next(context.directory.glob("p1/*/.claude-plugin/plugin.json")).read_text())
    catalogue = json.loads((context.directory / "p1/.claude-plugin/marketplace.json").read_text())
    assert manifest["version"] == catalogue["plugins"][0]["version"] == versions[1]


def test_it_holds_the_version_that_it_names_byte_for_byte(context, repo):
    result = built(context, "plugin", "v1")
    (skill,) = result.skills
    folder = context.directory / "plugin" / result.name
    with Workspace(context) as workspace:
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
    by_revision = built(context, "a")
    by_name = built(context, "b", by_revision.skills[0].name)
    assert by_name.skills == by_revision.skills
    with pytest.raises(NotFoundError, match="there is no skill 'nope'"):
        built(context, "c", "nope")


@pytest.mark.parametrize(
    "what", ["a file of mine", "a changed file", "a file more", "a file less", "a link", "a false mark"]
)
def test_a_folder_that_someone_else_made_or_changed_is_left_alone(what, context):
    folder = context.directory / "plugin"
    if what != "a file of mine":
        built(context)
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
        built(context, "plugin", "v0")
    assert refusal.value.hint
    assert fingerprint(read_entries(folder)) == before


def test_its_own_folder_is_replaced_and_check_only_looks(context):
    built(context)
    before = fingerprint(read_entries(context.directory / "plugin"))
    looked = built(context, "plugin", "v0", check=True)
    assert looked.state == "differs"
    assert looked.changes
    assert fingerprint(read_entries(context.directory / "plugin")) == before
    assert built(context, "plugin", "v0").state == "written"
    assert built(context, "plugin", "v0", check=True).state == "unchanged"


AUTHOR = {"name", "email", "url"}
FIELDS = {
    "$schema": str,
    **dict.fromkeys(["name", "version", "description", "homepage", "repository", "license"], str),
    "author": dict,
    "keywords": list,
    "extensions": dict,
}


@pytest.mark.parametrize(("revisions", "name"), [(("best",), ""), (("v0",), "x" * 64), (("v1",), "a-1")])
def test_it_is_an_agent_plugin_too(revisions, name, context):
    """Hold both files against the rules of Agent Plugins 1.0.0, whose manifest and servers are closed shapes."""
    result = built(context, "plugin", *revisions, name=name)
    folder = context.directory / "plugin" / result.name
    documents = {path: json.loads((folder / path).read_text()) for path in ("plugin.json", "mcp.json", ".mcp.json")}
    manifest, servers, own = documents.values()
    for document, path in ((manifest, "plugin"), (servers, "mcp")):
        assert document["$schema"] == f"https://agent-plugins.org/schemas/1.0.0/{path}.schema.json"
    assert all(isinstance(value, FIELDS[field]) for field, value in manifest.items())
    assert re.fullmatch(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?", manifest["name"])
    assert manifest["author"].keys() <= AUTHOR
    claude = json.loads((folder / ".claude-plugin/plugin.json").read_text())
    assert {**claude, "$schema": manifest["$schema"]} == manifest
    assert servers.keys() == {"$schema", "mcpServers"}
    for server, entry in servers["mcpServers"].items():
        assert entry.keys() <= {"type", "command", "args", "env", "cwd"}
        assert entry["type"] == "stdio"
        assert "/" not in entry["command"]
        assert own["mcpServers"][server] == {field: entry[field] for field in ("command", "args")}
    assert all((folder / "skills" / skill.name / "SKILL.md").is_file() for skill in result.skills)


def test_what_names_no_plugin_is_refused(context):
    with pytest.raises(UsageError, match="named twice"):
        built(context, "plugin", "v0", "v1")
    with pytest.raises(SkillError, match="not a valid name of a plug-in"):
        built(context, name="../x")
    with pytest.raises(SkillError, match="not a valid name of a plug-in"):
        built(context, name="x" * 65)


def test_a_credential_is_not_published(context):
    row = {"id": "one", "prompt": "Use sk-ant-0123456789abcdef0123456789 here.", "rubric": "x"}
    (context.directory / "tasks.jsonl").write_text(json.dumps(row))
    with pytest.raises(SkillError, match=r"evals/one/prompt\.md holds what looks like a credential"):
        built(context, evals="tasks.jsonl")
    assert not (context.directory / "plugin").exists()
