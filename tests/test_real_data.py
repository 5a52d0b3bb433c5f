"""Real benchmark rows and real skills go through the whole program."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from program import git, skillgit
from soaking import soak

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", ROOT.parent / "shared" / "data"))
CHECKPOINTS = sorted((DATA / "skills/skillopt_ckpt").glob("*_skill.md"))
FOLDERS = sorted(path.parent for path in (DATA / "skills").glob("*/SKILL.md"))

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no real data at {DATA}; SKILLGIT_REAL_DATA names its folder"
)


@pytest.mark.parametrize(
    "path", [*CHECKPOINTS[:2], *(soak(path) for path in CHECKPOINTS[2:])], ids=lambda path: path.stem
)
def test_a_pretrained_skill_is_imported_trained_and_committed(path, tmp_path):
    skillgit("init", "repository", "--skill", path, cwd=tmp_path)
    repository = tmp_path / "repository"
    name = git("ls-tree", "--name-only", "main", "skills/", cwd=repository).out.strip()
    seed = git("show", f"main:{name}/SKILL.md", cwd=repository).out
    assert seed.startswith(f"---\nname: {name.removeprefix('skills/')}\ndescription: ")
    assert "SLOW_UPDATE" not in seed
    options = ("-o", "train.num_epochs=2", "-o", "train.batch_size=30")
    skillgit("train", "searchqa/default", "--run", "real", *options, cwd=repository)
    skillgit("fsck", "--deep", cwd=repository)
    last = git("show", f"run/real:{name}/SKILL.md", cwd=repository).out
    assert last.partition("\n---\n")[0] == seed.partition("\n---\n")[0], "frontmatter belongs to people"


def test_a_candidate_of_a_real_skill_differs_by_its_edits_only(tmp_path):
    path = next(path for path in CHECKPOINTS if path.stem.startswith("searchqa"))
    skillgit("init", "repository", "--skill", path, cwd=tmp_path)
    repository = tmp_path / "repository"
    skillgit("train", "demo", "--run", "real", "-o", "train.num_epochs=1", cwd=repository)
    events = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    judged = [row["commit"] for row in events if row["kind"] in {"accepted", "rejected"}]
    assert judged
    for commit in judged:
        changed = git("diff", "--numstat", f"{commit}^", commit, cwd=repository).out.split()
        assert changed[2::3] == [f"skills/{repository_skill(repository)}/SKILL.md"]
        assert int(changed[0]) <= 8, "a step adds a few lines"


def repository_skill(repository: Path) -> str:
    return git("ls-tree", "--name-only", "main", "skills/", cwd=repository).out.strip().removeprefix("skills/")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_real_skill_folder_is_a_seed_or_is_explained(folder, tmp_path):
    name = folder.name.partition("__")[2]
    copy = tmp_path / name
    copy.symlink_to(folder)
    skillgit("init", "repository", "--skill", copy, cwd=tmp_path)
    listed = git("ls-tree", "-r", "--name-only", "main", f"skills/{name}", cwd=tmp_path / "repository").out.splitlines()
    assert len(listed) == sum(path.is_file() for path in folder.rglob("*"))


@pytest.mark.parametrize(
    "source", ["skillopt_split_format/items.json", "mrqa_format/SearchQA.dev.dummy.jsonl", "hf_datasets_dummy"]
)
def test_real_rows_are_rolled_out_and_scored(source, tmp_path):
    place = tmp_path / "data"
    rows = _rows(DATA / "searchqa" / source)
    for number, split in enumerate(("train", "val", "test")):
        (place / split).mkdir(parents=True)
        mine = rows[number::3] or [{**rows[0], "id": split, "question": f"{rows[0]['question']} ({split})"}]
        (place / split / "items.json").write_text(json.dumps(mine))
    skillgit("init", "repository", "--env", "searchqa", cwd=tmp_path)
    options = ("-o", "env.split_mode=split_dir", "-o", f"env.split_dir={place}", "-o", "train.num_epochs=1")
    skillgit("train", "searchqa/default", "--run", "rows", *options, cwd=tmp_path / "repository")
    first = git(
        "log", "--format=%(trailers:key=Skillgit-Eval,valueonly)", "-1", "rows/v0", cwd=tmp_path / "repository"
    ).out
    count = len(rows[1::3]) or 1
    assert f"n={count} scored={count}" in first


def _rows(source: Path) -> list[dict[str, object]]:
    if source.is_dir():
        found = [json.loads(path.read_text()) for path in sorted(source.glob("*.json"))]
        return found + [json.loads(path.read_text()) for path in sorted((source / "train").glob("*.json"))]
    if source.suffix == ".jsonl":
        paragraph = json.loads(source.read_text().splitlines()[1])
        answers = paragraph["qas"]
        return [
            {
                "id": found["qid"],
                "question": found["question"],
                "context": paragraph["context"],
                "answers": found["answers"],
            }
            for found in answers
        ]
    rows: list[dict[str, object]] = json.loads(source.read_text())
    return rows
