"""Every recorded verdict follows from git alone: of the demo, of a run whose items fail at first, and of an import."""

from __future__ import annotations

import json

import pytest
from interop.reference_outputs import write_outputs
from once import copy_folder
from program import QUICK, git, new_repository, skillgit
from soaking import soak
from trained_runs import trained_run

FLAKY = '''
from skillgit.errors import EnvironmentFaultError
from skillgit_envs.searchqa import SearchQA


class Flaky(SearchQA):
    """Its selection items fail once, some of them always."""

    async def rollout(self, item, skill, target):
        number = sum(item.id.encode())
        mark = self.root / f"seen-{number}-{len(item.id)}"
        if number % 11 == 0:
            raise EnvironmentFaultError(f"{item.id} never works", hint="")
        if number % 3 == 0 and not mark.exists():
            mark.touch()
            raise EnvironmentFaultError(f"{item.id} works the second time", hint="")
        return await super().rollout(item, skill, target)

    def __init__(self, options, root):
        super().__init__(options, root)
        self.root = root
'''


def check(repository, run) -> None:
    """Ask every gate of ``run`` again, with the evidence of its items."""
    (remade,) = json.loads(skillgit("fsck", run, "--deep", "--json", cwd=repository).out)["remade"]
    events = [json.loads(line) for line in skillgit("log", run, "--jsonl", cwd=repository).out.splitlines()]
    commits = {event["commit"] for event in events}
    gated = git("log", "--all", "--format=%H", "--grep=^Skillgit-Gate:", cwd=repository).out.split()
    assert remade["gates"] == len(commits.intersection(gated)) > 0
    assert remade["lacking"] == []
    skillgit("fsck", "--deep", cwd=repository)


@pytest.mark.parametrize("metric", ["mixed", soak("hard"), soak("soft")])
def test_of_the_demo(metric, tmp_path_factory, tmp_path):
    weight = ("-o", "evaluation.gate_mixed_weight=0.25") if metric == "mixed" else ()
    options = (*QUICK, "-o", f"evaluation.gate_metric={metric}", *weight)
    check(copy_folder(trained_run(tmp_path_factory, f"by-{metric}", *options), tmp_path / "mine"), f"by-{metric}")


@pytest.mark.parametrize(
    ("repeats", "always"),
    [("1", "number % 11 == 0"), soak("1", "False"), soak("0", "number % 11 == 0"), soak("0", "False")],
)
def test_of_a_run_whose_items_fail_at_first(always, repeats, tmp_path):
    repository = new_repository(tmp_path / "mine")
    (repository / "flaky.py").write_text(FLAKY.replace("number % 11 == 0", always))
    asked = ("-o", "env.name=flaky.py:Flaky", "-o", "evaluation.min_coverage=0.3", "-o", f"gate.repeats={repeats}")
    skillgit("train", "demo", "--run", "one", *QUICK, *asked, cwd=repository)
    trees = git("log", "--all", "--format=%(trailers:key=Skillgit-Evidence,valueonly)", cwd=repository).out.split()
    names = [git("ls-tree", "--name-only", tree, cwd=repository).out.split() for tree in trees]
    assert any("base.json" in listed for listed in names), "items of the seed are measured again"
    gates = git("log", "--all", "--format=%(trailers:key=Skillgit-Gate,valueonly)", cwd=repository).out
    assert ("compared=" in gates) == (always != "False"), (
        "verdicts tell how many items were compared where it is not all"
    )
    check(repository, "one")


def test_of_an_imported_run(tmp_path):
    repository = new_repository(tmp_path / "mine")
    outputs = write_outputs(tmp_path / "outputs")
    skillgit("import", str(outputs.path), "--run", "one", cwd=repository)
    (remade,) = json.loads(skillgit("fsck", "one", "--deep", "--json", cwd=repository).out)["remade"]
    assert remade["gates"] > 0
    assert {reason.partition(": ")[2] for reason in remade["lacking"] if "gate" in reason} <= {
        "gate, without its items"
    }
    skillgit("fsck", "--deep", cwd=repository)
