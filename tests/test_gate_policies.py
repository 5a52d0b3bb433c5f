"""A gate policy of a user's own, in a file: found by its path, asked at the gate, and named in history."""

from __future__ import annotations

import pytest
from program import git, new_repository, skillgit

POLICY = '''
from skillgit.domain.gate_policies import Policy


class Careful(Policy):
    """Accepts what fixes two items and breaks none."""

    name = "careful"

    def accepts(self, comparison):
        return comparison.fixed >= 2 and comparison.broken == 0

    def reachable(self, best, known, *, thorough):
        return best.fixed >= 2 and best.broken == 0

    def wants(self, terms):
        return "two items fixed and none broken"

    def shortfall(self, p, terms):
        return "it fixes too few items or breaks one"
'''


@pytest.fixture
def repository(tmp_path):
    made = new_repository(tmp_path / "mine")
    (made / "careful.py").write_text(POLICY)
    return made


def test_a_policy_in_a_file_decides_and_is_recorded_by_its_name(repository):
    asked = ("-o", "gate.policy=careful.py:Careful", "-o", "train.num_epochs=1")
    skillgit("train", "searchqa/default", "--run", "one", *asked, cwd=repository)
    gates = git("log", "--all", "--format=%(trailers:key=Skillgit-Gate,valueonly)", cwd=repository).out
    assert "policy=careful" in gates
    assert "policy=strict" not in gates
    skillgit("train", "searchqa/default", "--run", "one", *asked, cwd=repository)
    replayed = skillgit("fsck", "--deep", cwd=repository).out
    assert "without the policy careful" in replayed, "nobody runs a file for a look at history"


def test_an_edited_policy_is_another_configuration(repository):
    asked = ("train", "searchqa/default", "--run", "one", "-o", "gate.policy=careful.py:Careful")
    skillgit(*asked, "--max-calls", "90", cwd=repository, code=7)
    (repository / "careful.py").write_text(POLICY.replace(">= 2", ">= 1"))
    assert "another configuration" in skillgit(*asked, cwd=repository, code=2).err


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ("pairde", "there is no gate policy 'pairde'\nhint: did you mean 'paired'?"),
        ("careful.py:Nobody", "has no class 'Nobody'"),
        ("nowhere.py:Careful", "there is no gate policy file"),
        ("not-worse", "steps have to gain"),
    ],
)
def test_a_policy_that_is_not_there_fails_at_the_start(repository, policy, sentence):
    refused = skillgit("train", "searchqa/default", "-o", f"gate.policy={policy}", cwd=repository, code=2)
    assert sentence in refused.err


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (
            ("return comparison.fixed >= 2 and comparison.broken == 0", 'raise KeyError("fixed")'),
            "broke down: KeyError",
        ),
        (("return comparison.fixed >= 2 and comparison.broken == 0", "raise SystemExit(0)"), "broke down: SystemExit"),
        (("return comparison.fixed >= 2 and comparison.broken == 0", 'return "no"'), "accepts returned 'no'"),
        (('    name = "careful"\n', ""), "made of letters, digits and hyphens"),
        (('name = "careful"', 'name = "careful\\nSkillgit-Gate: x"'), "made of letters, digits and hyphens"),
        (('name = "careful"', 'name = "strict"'), "that of a policy of skillgit"),
        (("class Careful(Policy)", "class Careful"), "inherits from"),
        (('name = "careful"', 'name = "careful"\n    terms = {"luck"}'), "its terms have to be a set of"),
    ],
)
def test_a_policy_that_is_none_or_breaks_down_is_told_in_one_sentence(repository, edit, sentence):
    assert edit[0] in POLICY
    (repository / "careful.py").write_text(POLICY.replace(*edit))
    asked = ("train", "searchqa/default", "--run", "one", "-o", "gate.policy=careful.py:Careful")
    refused = skillgit(*asked, cwd=repository, code=2)
    assert sentence in refused.err
    assert "Traceback" not in refused.err
    gates = git("log", "--all", "--format=%(trailers:key=Skillgit-Gate,valueonly)", cwd=repository).out
    assert not gates.strip()
