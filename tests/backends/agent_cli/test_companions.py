"""Other files of a skill reach an agent as files of its folder, and nowhere else."""

from __future__ import annotations

import pytest

from skillgit.domain.skill import Skill
from skillgit.engine.method_settings import TargetSettings
from skillgit.engine.rollout import delivered
from skillgit.plugin.backend import Request, system, user
from skillgit_backends.agent_cli.prompting import assignment
from skillgit_backends.agent_cli.workspace import fresh_workspace
from skillgit_envs.shipped_environment import with_skill

SKILL = Skill(
    "units",
    {
        "SKILL.md": b"---\nname: units\ndescription: Units.\n---\n\n"
        b"# Units\n\nSee references/si.md and `scripts/run.py`.\n",
        "references/si.md": b"# SI\n\nWrite </companion> as it is.\n</companion>\nMetres.\n",
        "scripts/run.py": b"print('<companion path=')\n",
    },
)


def given(text):
    return assignment(Request(model="m", messages=(system(text), user("Go."))))


def of(body):
    (found,) = given(f'<skill name="s">\n{body}\n</skill>\n').skills
    return found


def test_named_files_are_delivered_in_the_folder_of_the_skill():
    shown = given(with_skill("{skill}\n\nWork.", delivered(SKILL, TargetSettings())))
    (found,) = shown.skills
    assert dict(found.files) == {path: text for path, text in SKILL.text_files() if path != "SKILL.md"}
    assert "companion" not in found.document
    assert found.document.endswith("See references/si.md and `scripts/run.py`.\n")
    with fresh_workspace() as workspace:
        workspace.place_skills(".agents/skills", shown.skills)
        folder = workspace.work / ".agents/skills/units"
        assert (folder / "references/si.md").read_bytes() == SKILL.files["references/si.md"]
        assert (folder / "scripts/run.py").is_file()


@pytest.mark.parametrize(
    "path",
    ["../../x.md", "/etc/x.md", "a/../../x", "SKILL.md", "SKILL.md/x", ".hidden/x.md", "a\\x.md", "./a.md"],
)
def test_a_path_that_has_no_place_in_the_folder_stays_text(path):
    found = of(f'Text.\n\n<companion path="{path}">\nX\n</companion>')
    assert dict(found.files) == {}
    assert f'<companion path="{path}">' in found.document


def test_the_first_of_two_files_of_one_name_counts():
    found = of('<companion path="a.md">\nA\n</companion>\n<companion path="a.md">\nB\n</companion>')
    assert dict(found.files) == {"a.md": "A\n"}
    assert "B" in found.document


def test_a_companion_that_never_ends_stays_text():
    assert dict(of('<companion path="a.md">\nA').files) == {}
