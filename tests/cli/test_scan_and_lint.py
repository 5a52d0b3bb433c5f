"""``scan``, ``lint`` and releases as a user types them, on a run of the demo."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from once import copy_folder
from program import attempt, git, new_repository, refs, skillgit
from skills_ref.validator import validate
from soaking import soak
from trained_runs import RUN, small_run

from skillgit.app.setup.config.load import load_config
from skillgit.app.sources.data_check import item_facts
from skillgit.app.workspace.context import Context
from skillgit.domain.evaluation import Split
from skillgit.plugin.registry import load_environment

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", ROOT.parent / "shared" / "data")) / "skills"
FOLDERS = sorted(path.parent for path in DATA.glob("*/SKILL.md"))
AWS = "AKIA" + "IOSFODNN7ABCDEFG"
DOCUMENT = "skills/searchqa/SKILL.md"
EXPLAINED = {
    "skill-creator": {"body-tokens", "mention-missing"},
    "webapp-testing": {"mention-missing"},
}
"""Findings in published skills whose large or executable files are not part of the data here, and a long text."""


@pytest.fixture
def repository(tmp_path, tmp_path_factory):
    """A finished run whose newest version is checked out."""
    copy = copy_folder(small_run(tmp_path_factory), tmp_path / "repository")
    git("checkout", "-q", f"run/{RUN}", cwd=copy)
    return copy


def by_hand(repository: Path, message: str, line: str) -> str:
    path = repository / DOCUMENT
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")
    git("-c", "user.name=n", "-c", "user.email=n@localhost", "commit", "-qam", message, cwd=repository)
    return git("rev-parse", "HEAD", cwd=repository).out.strip()


def test_a_trained_repository_publishes_nothing_that_must_not_leave(repository):
    assert "nothing found" in skillgit("lint", "--secrets", cwd=repository).out
    found = json.loads(skillgit("lint", "--secrets", "--evidence", "--json", cwd=repository).out)
    assert (found["schema"], found["findings"], found["unchecked"]) == ("skillgit.scan/1", [], [])
    assert found["files"] > 50


def test_every_commit_of_a_trained_run_passes_lint_and_keeps_the_frontmatter(repository):
    heads = set()
    for ref in refs(repository):
        if "/evidence/" in ref or "/notes/" in ref:
            continue
        for commit in git("rev-list", ref, cwd=repository).out.split():
            heads.add(git("show", f"{commit}:{DOCUMENT}", cwd=repository).out.partition("\n---\n")[0])
    assert len(heads) == 1
    told_of = json.loads(skillgit("lint", "main", "best", f"{RUN}/head", f"slow/{RUN}", "--json", cwd=repository).out)
    assert (told_of["errors"], told_of["warnings"], len(told_of["skills"])) == (0, 0, 4)


def test_a_planted_secret_and_a_leaked_item_are_named_with_commit_and_path(repository):
    secret = by_hand(repository, "a key", f"- The key is {AWS}.")
    question = selection_question(repository)
    leak = by_hand(repository, "an example", f"- For example: {question}")
    done = skillgit("lint", "--secrets", cwd=repository, code=1)
    lines = done.out.splitlines()
    assert [
        line
        for line in lines
        if line.startswith(f"{secret[:7]}  {DOCUMENT}:") and ": stop: " in line and "AWS token" in line
    ]
    assert [
        line
        for line in lines
        if line.startswith(f"{leak[:7]}  {DOCUMENT}:") and ": stop: " in line and "quotes" in line
    ]
    assert AWS not in done.out
    rows = json.loads(skillgit("lint", "--secrets", f"{secret}..{leak}", "--json", cwd=repository, code=1).out)[
        "findings"
    ]
    assert [(row["rule"], row["commit"], row["path"]) for row in rows] == [("leak", leak, DOCUMENT)]
    assert question not in json.dumps(rows)


def selection_question(repository: Path) -> str:
    context = Context.from_process(repository)
    config = load_config(context, "demo", ())
    environment = load_environment(config.values.env.name, config.root)(config.options, config.root)
    rows = item_facts(environment, {Split.SELECTION: environment.items(Split.SELECTION)})
    return max((row.secrets.inputs[0] for row in rows), key=len)


def test_items_that_cannot_be_read_are_told_and_stop_nothing(repository):
    other = git("for-each-ref", "--format=%(refname)", "refs/skillgit/evidence", cwd=repository).out.strip()
    git("update-ref", "-d", other, cwd=repository)
    git("-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now", cwd=repository)
    shutil.rmtree(repository / ".git" / "skillgit", ignore_errors=True)
    done = skillgit("lint", "--secrets", cwd=repository)
    assert f"leaked items of run {RUN} were not looked for" in done.err


def test_what_scan_and_lint_cannot_do_is_told(repository):
    assert "no revision 'nothing'" in skillgit("lint", "--secrets", "nothing", cwd=repository, code=3).err
    assert "--evidence" in skillgit("lint", "--secrets", "v1", "--evidence", cwd=repository, code=2).err
    assert "neither a path nor a revision" in skillgit("lint", "nothing", cwd=repository, code=3).err


def test_lint_counts_warnings_as_errors_only_if_asked_to(tmp_path):
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: demo\ndescription: Use \x1b it.\nlicense: 1.0\n---\n\nBriefly.\n")
    refused = skillgit("lint", "demo", cwd=tmp_path, code=1)
    assert "demo/SKILL.md:2: error: the frontmatter of SKILL.md is not YAML" in refused.out
    assert "\x1b" not in refused.out
    (folder / "SKILL.md").write_text("---\nname: demo\ndescription: Use it.\nlicense: 1.0\n---\n\nBriefly.\n")
    assert "value-unquoted" in skillgit("lint", cwd=tmp_path).out
    assert skillgit("lint", "--strict", cwd=tmp_path, code=1).out.endswith("checked 1 skill: 1 warning\n")


def test_a_release_is_made_and_passes_the_reference_validator(repository):
    done = skillgit("promote", f"{RUN}/best", "--release", "1.0.0", cwd=repository)
    assert "released as searchqa/v1.0.0" in done.out
    git("checkout", "-q", "searchqa/v1.0.0", cwd=repository)
    assert (repository / DOCUMENT).read_text(encoding="utf-8").count('\nmetadata:\n  version: "1.0.0"\n---\n') == 1
    assert validate(repository / "skills" / "searchqa") == []
    assert "already" in skillgit("promote", f"{RUN}/best", "--release", "1.0.0", cwd=repository).out
    assert "semantic" in skillgit("promote", f"{RUN}/best", "--release", "1", cwd=repository, code=2).err


@pytest.mark.skipif(not FOLDERS, reason=f"no real skills at {DATA}; SKILLGIT_REAL_DATA names the folder above it")
@pytest.mark.parametrize("folder", [*FOLDERS[:1], *(soak(path) for path in FOLDERS[1:])], ids=lambda path: path.name)
def test_a_real_skill_is_the_seed_of_a_run_whose_versions_pass_lint(folder, tmp_path):
    name = folder.name.partition("__")[2]
    copy_folder(folder, tmp_path / name)
    skillgit("init", "repository", "--skill", name, cwd=tmp_path)
    options = ("-o", "train.num_epochs=1", "-o", "train.batch_size=60", "-o", "evaluation.sel_env_num=10")
    skillgit("train", "demo", "--run", "real", "-q", *options, cwd=tmp_path / "repository")
    found = json.loads(skillgit("lint", "real/head", "--json", cwd=tmp_path / "repository").out)
    assert found["errors"] == 0
    skillgit("promote", "real/head", "--release", "0.1.0", cwd=tmp_path / "repository")


@pytest.mark.skipif(not FOLDERS, reason=f"no real skills at {DATA}; SKILLGIT_REAL_DATA names the folder above it")
def test_real_skills_pass_lint_or_are_explained_one_by_one(tmp_path):
    for folder in FOLDERS:
        name = folder.name.partition("__")[2]
        copy_folder(folder, tmp_path / "skills" / name)
    done = attempt("lint", "skills", "--json", cwd=tmp_path)
    found = {skill["name"]: skill["faults"] for skill in json.loads(done.out)["skills"]}
    assert len(found) == len(FOLDERS)
    for name, faults in found.items():
        assert {fault["rule"] for fault in faults} <= EXPLAINED.get(name, set()), (name, faults)


def test_a_seed_with_an_error_is_refused_with_the_sentence_of_lint(tmp_path):
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: demo\ndescription: Use it.\nname: other\n---\n\nBriefly.\n")
    sentence = "the frontmatter of SKILL.md has 'name' twice"
    assert sentence in skillgit("lint", "demo", cwd=tmp_path, code=1).out
    assert sentence in skillgit("init", "repository", "--skill", "demo", cwd=tmp_path, code=2).err


def test_a_fresh_repository_of_an_environment_passes(tmp_path):
    repository = new_repository(tmp_path / "repository")
    assert "no problems" in skillgit("lint", cwd=repository).out


def test_a_library_is_printed_as_a_table_for_each_agent(skillgit, tmp_path):
    for name, mark in (("one", "."), ("two", "!")):
        path = tmp_path / "lib" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: {name}\ndescription: Reads invoices of hotels{mark}\n---\n\nDo it.\n")
    library = str(tmp_path / "lib")
    text = skillgit("lint", "--library", library).text
    assert text.index("Claude Code  ") < text.index("Codex  ") < text.index("[listing-alike]")
    strict = skillgit("lint", "--library", library, "--strict", "--json")
    assert strict.code == 1
    assert json.loads(strict.text)["listings"][0]["entries"][0]["state"] == "whole"
    assert skillgit("lint", library, "--window", "9").code == 2
