"""``--skill NAME`` with ``--from WORKTREE``: the text of the work tree is trained on the tasks of that skill."""

from __future__ import annotations

import json

import pytest
from program import git, skillgit

IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")


@pytest.mark.parametrize("names", [("units",), ("units", "years")])
def test_a_named_skill_begins_at_the_work_tree(tmp_path, names):
    git("init", "-q", "-b", "main", cwd=tmp_path)
    (tmp_path / "tasks").mkdir()
    for name in names:
        folder = tmp_path / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: answers\n---\n# Rules\n\n- One word.\n")
        rows = [json.dumps({"id": f"t{i}", "prompt": f"Say word{i}.", "answer": f"word{i}"}) for i in range(12)]
        (tmp_path / "tasks" / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    git("add", "-A", cwd=tmp_path)
    git(*IDENTITY, "commit", "-qm", "skills", cwd=tmp_path)
    with (tmp_path / "skills" / "units" / "SKILL.md").open("a") as document:
        document.write("- By hand.\n")

    begin = ("train", "--skill", "units", "--from", "WORKTREE", "--run", "mine", "-o", "train.num_epochs=1")
    assert "skills/units/SKILL.md of the work tree" in skillgit(*begin, "--dry-run", cwd=tmp_path).out
    skillgit(*begin, "-q", cwd=tmp_path)
    assert "- By hand." in skillgit("show", "mine/v0:SKILL.md", cwd=tmp_path).out
    skillgit(*begin, "-q", cwd=tmp_path)  # it goes on, and has finished
