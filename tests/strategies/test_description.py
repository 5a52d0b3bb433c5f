"""The strategy ``description``: a run that rewrites a description, its gate, and what looks at its versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from once import copy_folder
from program import git

from skillgit.cli import main
from skillgit.domain.protected_regions import frontmatter
from skillgit.engine.method_settings import MethodSettings
from skillgit.errors import StrategyError
from skillgit.strategies.description import DescriptionRewrite

ENVIRONMENT = Path(__file__).parents[2] / "envs" / "skillgit_envs" / "trigger"
SPLITS = ("-o", "env.split_mode=split_dir", "-o", "env.split_dir=data")


def text_of(repository: Path, revision: str) -> str:
    return git("show", f"{revision}:skills/invoices/SKILL.md", cwd=repository).out


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    """A repository with two runs: ``free`` under a gate that looks at the mean, ``kept`` under the usual one."""
    path = tmp_path_factory.mktemp("triggers") / "repository"
    copy_folder(ENVIRONMENT / "data", path / "data")
    copy_folder(ENVIRONMENT / "skills" / "trigger", path / "skills" / "invoices")
    document = path / "skills" / "invoices" / "SKILL.md"
    document.write_text(document.read_text().replace("name: trigger", "name: invoices"))
    git("init", "-q", "-b", "main", cwd=path)
    git("config", "user.name", "P", cwd=path)
    git("config", "user.email", "p@example.org", cwd=path)
    git("add", "-A", cwd=path)
    git("commit", "-qm", "seed", cwd=path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        for run, more in (("free", ("-o", "gate.no_regression=none")), ("kept", ("-o", "train.num_epochs=1"))):
            assert main.run(["train", "trigger/default", "--run", run, "--quiet", *SPLITS, *more]) == 0
    return path


@pytest.fixture
def here(repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)

    def run(*arguments: str) -> str:
        code = main.run(list(arguments))
        text = capsys.readouterr().out
        assert code == 0, text
        return text

    return run


def test_a_version_differs_in_its_description_alone(repository):
    before, after = (text_of(repository, f"free/v{version}") for version in (0, 1))
    assert before.removeprefix(frontmatter(before)) == after.removeprefix(frontmatter(after))
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(changed) == 1
    assert changed[0].startswith('description: "Works with invoices. Use it for ')


def test_history_is_whole_and_made_again(here):
    deep = here("fsck", "--deep")
    assert "no problems" in deep
    assert deep.count("all came out as recorded") == 2


def test_a_description_that_no_configuration_allows_is_no_whole_history(repository, monkeypatch):
    monkeypatch.chdir(repository)
    monkeypatch.setattr("skillgit.app.upkeep.run_checks.trains_description", lambda *_: False)
    assert main.run(["fsck", "--deep", "free"]) == 1


def test_lines_are_blamed_and_explained(here):
    lines = json.loads(here("blame", "free/v1", "--json"))
    assert "description: " in json.dumps(lines)
    assert "v1" in here("why", "3", "--rev", "free/v1")
    assert "+description: " in here("diff", "free/v0", "free/v1")


def test_recall_is_not_bought_with_false_positives(here):
    """The version of ``free`` breaks a near miss; pinned near misses keep the same candidates out."""
    scores = json.loads(here("eval", "free/v1", "--against", "free/v0", "--json"))
    new, old = ({share["name"]: share["share"] for share in arm["splits"][0]["shares"]} for arm in scores["arms"])
    assert new["recall"] > old["recall"]
    assert new["false positives"] > old["false positives"]
    assert "pinned" in here("show", "kept/r1")
    versions = {row["version"] for row in json.loads(here("log", "kept", "--json"))["events"]}
    assert versions <= {0, None}


def test_nothing_of_other_splits_is_shown_to_the_optimizer(repository):
    """What a candidate is made of are words of train requests."""
    requests = [json.loads(line)["request"] for part in ("val", "test")
                for line in (ENVIRONMENT / "data" / part / "items.jsonl").read_text().splitlines()]  # fmt: skip
    prompts = git("log", "--all", "--format=%B", cwd=repository).out
    assert not any(request in prompts for request in requests)


def test_it_needs_the_description_among_the_files():
    with pytest.raises(StrategyError, match=r"frontmatter\.description"):
        DescriptionRewrite().check(MethodSettings(), None)
    allowed = MethodSettings.model_validate({"optimizer": {"files": ["frontmatter.description"]}})
    DescriptionRewrite().check(allowed, None)
