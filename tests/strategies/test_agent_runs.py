"""Whole runs of the strategy agent: killed at any moment they end in the same commits, and their history is whole."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from agent_program import program
from once import once
from program import git, new_repository, python, refs, skillgit
from soaking import soak

from skillgit.errors import ExitCode
from skillgit_backends.agent_cli.seal import seal_problem

MORTAL = Path(__file__).parents[1] / "mortal.py"
NEVER = 10**9
CONFIG = """\
_base_: demo
train: {{strategy: agent, num_epochs: 2, batch_size: 40, preflight: false}}
model:
  optimizer_backend: claude_code_exec
  optimizer: agent
  claude_code_exec_path: {program}
  claude_code_exec_allow_root: true
  claude_code_exec_model_backend: {model}
optimizer: {{files: [SKILL.md, scripts/*.py], use_slow_update: false, use_meta_skill: false}}
evaluation: {{sel_env_num: 12, test_env_num: 4}}
"""
WORK = """
steps = len(list(Path("history").glob("0*.json")))
RULES = [
    "Answer with the shortest span that names the answer; leave out the clause or description that follows it.",
    "When the question asks for a year or a date, give the year alone, in four digits.",
]
skill.write_text(skill.read_text() + "\\n- " + (RULES + ["Be quick."])[min(steps, 2)] + "\\n")
Path("skill/scripts").mkdir(exist_ok=True)
script = Path(f"skill/scripts/x{steps}.py")
script.write_text(f"print({steps})\\n")
script.chmod(0o755 if steps else 0o644)
if steps == 2:
    Path("skill/scripts/x1.py").unlink()
Path("notes.md").write_text(f"# Rule {steps}\\n\\nThe target says too much.\\n")
"""


@pytest.fixture(scope="module")
def seal() -> None:
    if problem := seal_problem():
        pytest.skip(f"no seal here: {problem}")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return once(tmp_path_factory, "agent-program", lambda folder: program(folder, WORK)) / "agent"


def prepared(place: Path, agent: Path, model: str = "offline") -> Path:
    repository = new_repository(place)
    (repository / "agent.yaml").write_text(CONFIG.format(program=agent, model=model), encoding="utf-8")
    return repository


def train(repository: Path, moment: str, count: int, log: Path) -> int:
    words = ("-C", repository, "train", "agent.yaml", "--run", "small", "--quiet")
    done = python(MORTAL, moment, str(count), log, *words)
    assert done.code in {0, -signal.SIGKILL}, done
    return done.code


def calls(log: Path) -> list[str]:
    return log.read_text().splitlines()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory, agent: Path, seal: None) -> tuple[Path, list[str]]:
    del seal

    def fill(folder: Path) -> None:
        assert train(prepared(folder / "repository", agent), "call", NEVER, folder / "log") == 0

    folder = once(tmp_path_factory, "agent-run", fill)
    return folder / "repository", calls(folder / "log")


def events(repository: Path) -> list[dict[str, object]]:
    rows = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    return [row for row in reversed(rows) if row["kind"] in {"accepted", "rejected"}]


def test_its_history_is_whole_whichever_form_its_patches_have(unbroken):
    repository, _ = unbroken
    git("fsck", "--strict", cwd=repository)
    skillgit("fsck", "--deep", cwd=repository)
    assert [(row["title"], row["kind"]) for row in events(repository)] == [
        ("Rule 0", "rejected"),
        ("Rule 1", "accepted"),
        ("Rule 2", "rejected"),
        ("Rule 3", "rejected"),
    ]
    tree = git("ls-tree", "-r", "run/small", cwd=repository).out
    assert "100755" in next(line for line in tree.splitlines() if "scripts/x1.py" in line)
    third = sorted(name for name in refs(repository) if "/rejected/small/" in name)[1]
    assert "x1.py" not in git("ls-tree", "-r", "--name-only", third, cwd=repository).out


MOMENTS = [
    soak("recorded", 53),  # what the agent asked
    ("recorded", 54),  # what it did
    *(soak("call", count) for count in (53, 60, 84)),
    *(soak("recorded", count) for count in (40, 60)),
    *(soak("objects", count) for count in (2, 3)),
    soak("refs", 2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "count"), MOMENTS)
def test_killed_anywhere_it_ends_in_the_same_commits_and_repeats_no_call(moment, count, unbroken, agent, tmp_path):
    whole, log = unbroken
    repository = prepared(tmp_path / "repository", agent)
    assert train(repository, moment, count, tmp_path / "log") == -signal.SIGKILL
    assert train(repository, "call", NEVER, tmp_path / "log") == 0
    assert refs(repository) == refs(whole)
    assert len(calls(tmp_path / "log")) == len(log)
    skillgit("fsck", "--deep", cwd=repository)


def test_another_optimizer_is_refused_before_anything_is_asked(agent, tmp_path):
    repository = prepared(tmp_path / "repository", agent)
    words = ("train", "agent.yaml", "-o", "model.optimizer_backend=offline", "-o", "model.optimizer=analyst")
    composed = ("-o", "train.strategy=compose", "-o", "train.strategies=[skillopt,agent]")
    for more in ((), ("--dry-run",), composed):
        done = skillgit(*words, *more, cwd=repository, code=ExitCode.USAGE)
        assert "the strategy agent needs a coding agent as optimizer, and offline is none" in done.err
    assert not [name for name in refs(repository) if "run/" in name]
