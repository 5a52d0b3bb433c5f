"""A person commits on a run's branch, restores and forks; real git makes the commits, the offline demo goes on."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from once import copy_folder, once
from program import QUICK, git, new_repository, python, refs, run, skillgit

MORTAL = Path(__file__).with_name("mortal.py")
NEVER = 10**9
TRAIN = ("train", "demo", "--run", "small", "--quiet", *QUICK)
DOCUMENT = "skills/searchqa/SKILL.md"
RULE = "- Say who gave the award only if the question asks for it."
IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")

pytestmark = pytest.mark.slow


def edit(repository: Path, text: str = f"\n{RULE}\n", message: str = "awards by name\n\nAsked for by readers.") -> str:
    """Commit to the run's branch from a work tree of its own, and return the commit."""
    place = repository.with_name(f"{repository.name}-by-hand")
    git("worktree", "add", "-q", place, "run/small", cwd=repository)
    (place / DOCUMENT).write_text((place / DOCUMENT).read_text() + text)
    dated = {"GIT_AUTHOR_DATE": "2026-11-21T12:00:00Z", "GIT_COMMITTER_DATE": "2026-11-21T12:00:00Z"}
    done = run("git", *IDENTITY, "commit", "-qam", message, cwd=place, env=dated)
    assert done.code == 0, done
    commit = git("rev-parse", "HEAD", cwd=place).out.strip()
    git("worktree", "remove", place, cwd=repository)
    return commit


def events(repository: Path, *words: str) -> list[dict[str, object]]:
    rows = json.loads(skillgit("log", *words, "--json", cwd=repository).out)["events"]
    return rows[::-1]


@pytest.fixture(scope="module")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose run stopped at a cap, with an edit of a person after that."""

    def fill(folder: Path) -> None:
        repository = new_repository(folder / "repository")
        skillgit(*TRAIN, "--max-calls", "110", cwd=repository, code=7)
        edit(repository)

    return once(tmp_path_factory, "by-hand", fill) / "repository"


@pytest.fixture
def repository(halfway: Path, tmp_path: Path) -> Path:
    return copy_folder(halfway, tmp_path / "repository")


def test_every_command_knows_an_edit(repository):
    (edited,) = [row for row in events(repository) if row["kind"] == "edited"]
    assert (edited["title"], edited["author"], edited["score"]) == ("awards by name", "Ada", None)
    assert edited["is_head"]
    name = f"small/v{edited['version']}"
    shown = skillgit("show", name, cwd=repository).out
    assert "edited by hand" in shown
    assert f"+{RULE}" in shown
    assert "Asked for by readers." in shown
    assert f"+{RULE}" in skillgit("diff", f"small/v{edited['base']}", name, cwd=repository).out
    assert "no problems" in skillgit("fsck", cwd=repository).out, "its tag comes with the next event"


def test_the_title_of_an_edit_is_not_cut(repository):
    long = f"say who gave the award only if the question asks for it, {'and never guess ' * 9}at all"
    edit(repository, "\nMore.\n", long)
    assert events(repository)[-1]["title"] == long
    assert json.loads(skillgit("show", "head", "--json", cwd=repository).out)["event"]["title"] == long


def test_training_measures_the_edit_and_goes_on_from_it(repository):
    (version,) = [row["version"] for row in events(repository) if row["kind"] == "edited"]

    skillgit(*TRAIN, cwd=repository)

    rows = events(repository)
    (place,) = [number for number, row in enumerate(rows) if row["kind"] == "edited"]
    assert rows[place + 1]["kind"] == "measured"
    assert rows[place]["score"] == rows[place + 1]["score"] is not None
    assert rows[-1]["kind"] == "run-finished"
    later = [row for row in rows if row["base"] == version]
    assert later, "something was tried on the edited text"
    assert RULE in git("show", f"run/small:{DOCUMENT}", cwd=repository).out
    trailers = git("log", "--format=%(trailers:key=Skillgit-Event,valueonly)", "run/small", cwd=repository).out
    assert "measured" in trailers.split()
    assert "edited" not in trailers.split()
    assert "no problems" in skillgit("fsck", "--deep", cwd=repository).out
    git("fsck", "--strict", cwd=repository)


def test_a_measurement_that_is_killed_is_made_again_from_the_ledger(repository, tmp_path):
    other = copy_folder(repository, tmp_path / "other")
    skillgit(*TRAIN, cwd=repository)

    def train(moment: str, number: int) -> int:
        return python(MORTAL, moment, str(number), tmp_path / "log", "-C", other, *TRAIN).code

    assert train("call", 5) == -signal.SIGKILL
    assert train("refs", 1) == -signal.SIGKILL
    assert train("call", NEVER) == 0
    assert refs(other) == refs(repository)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose run has ended."""

    def fill(folder: Path) -> None:
        skillgit(*TRAIN, cwd=new_repository(folder / "repository"))

    return once(tmp_path_factory, "ended", fill) / "repository"


MOVES = {
    "amended": (f"echo '{RULE}' >> {DOCUMENT}", "git commit -q -a --amend --no-edit"),
    "reset behind versions, then an edit": (
        "git reset -q --hard small/v0",
        f"echo more >> {DOCUMENT}",
        "git commit -qam x",
    ),
    "reset behind the beginning": ("git reset -q --hard main",),
    "a commit with trailers picked": ("git cherry-pick --allow-empty -X theirs small/v1",),
    "the skill removed": ("git rm -rq skills", "git commit -qm gone"),
    "deleted": ("git switch -q --detach", "git branch -qD run/small"),
}


@pytest.mark.parametrize("move", MOVES)
def test_training_refuses_a_branch_that_lost_events_and_its_hint_brings_all_back(move, tmp_path, ended):
    repository = copy_folder(ended, tmp_path / "repository")
    before, place = refs(repository), repository.with_name("by-hand")
    git("worktree", "add", "-q", place, "run/small", cwd=repository)
    for line in MOVES[move]:
        assert run("sh", "-c", f'git() {{ command git {" ".join(IDENTITY)} "$@"; }}; {line}', cwd=place).code == 0
    git("worktree", "remove", "--force", place, cwd=repository)
    moved = refs(repository).get("refs/heads/run/small")

    for command in (TRAIN, (*TRAIN, "--dry-run")):
        refusal = skillgit(*command, cwd=repository, code=6).err
    hint = refusal.partition("hint: ")[2]
    for words in (("log", "small"), ("show", "small/v1")) if moved is None else ():
        assert skillgit(*words, cwd=repository, code=3).err.partition("hint: ")[2] == hint
    assert "broken" in skillgit("fsck", cwd=repository, code=1).out
    for step in hint.split(", then "):
        words = step.removesuffix(" keeps what is there").removesuffix(" brings it back\n").split()
        git(*words[1:], cwd=repository)

    after = refs(repository)
    assert before.items() <= after.items()
    assert moved is None or moved in after.values(), "what the person made is kept"
    assert "no problems" in skillgit("fsck", cwd=repository).out
    skillgit(*TRAIN, "--dry-run", cwd=repository)


def test_a_commit_of_a_work_tree_that_did_not_follow_is_told_to_take_training_back(tmp_path, ended):
    repository = copy_folder(ended, tmp_path / "repository")
    place = repository.with_name("stale")
    git("worktree", "add", "-q", place, "run/small", cwd=repository)
    git("checkout", "small/v0", "--", "skills", cwd=place)
    (place / DOCUMENT).write_text((place / DOCUMENT).read_text() + "- Mine.\n")
    git(*IDENTITY, "commit", "-qam", "mine", cwd=place)
    git("worktree", "remove", place, cwd=repository)
    version = next(row["version"] for row in events(repository)[::-1] if row["kind"] == "edited")

    words = (*(word for word in TRAIN if word != "--quiet"), "--max-calls", "1")
    said = skillgit(*words, cwd=repository, code=7).err

    assert f"v{version}, committed by hand, takes back all that v1" in said
    (hint,) = [
        line.partition("; ")[2].removesuffix(" brings it back") for line in said.splitlines() if "takes back" in line
    ]
    skillgit(*hint.split()[1:], cwd=repository)
    assert "takes back" not in skillgit(*words, cwd=repository).err, "and no call was needed"


def test_an_edit_after_the_end_leaves_the_run_finished(repository):
    skillgit(*TRAIN, cwd=repository)
    before = len(events(repository))
    edit(repository, text="\n- And say it once.\n", message="once")

    said = skillgit(*TRAIN, cwd=repository).out

    assert "The run had finished before." in said
    rows = events(repository)
    assert [row["kind"] for row in rows[before:]] == ["edited", "measured"]
    assert rows[-2]["score"] == rows[-1]["score"] is not None


def test_a_text_restored_with_a_gate_is_measured_and_a_refused_one_stands_beside_the_line(repository):
    skillgit(*TRAIN, cwd=repository)
    best = next(row for row in events(repository) if row["is_best"])
    head = max(row["version"] for row in events(repository) if row["version"] is not None)

    skillgit("revert", "--to", "v0", cwd=repository)
    passed = json.loads(skillgit("revert", "--to", f"v{best['version']}", "--gate", "--json", "-q", cwd=repository).out)
    refused = json.loads(skillgit("revert", "--to", "v0", "--gate", "--json", "-q", cwd=repository, code=1).out)

    assert (passed["version"], passed["event"]["measured"]) == (head + 2, True)
    assert passed["event"]["score"] == best["score"]
    assert refused["version"] is None
    assert refused["event"]["number"] == 1
    assert any(name.endswith("-restore-1") for name in refs(repository))
    assert "no problems" in skillgit("fsck", "--deep", cwd=repository).out


@pytest.mark.soak
def test_a_fork_is_trained_and_forked_again(repository):
    skillgit(*TRAIN, cwd=repository)
    version = max(row["version"] for row in events(repository, "small") if row["version"] is not None)

    skillgit("fork", f"small/v{version}", "second", cwd=repository)
    skillgit("train", "demo", "--run", "second", "--quiet", *QUICK, cwd=repository)
    skillgit("fork", "second/head", "third", cwd=repository)
    skillgit("train", "demo", "--run", "third", "--quiet", *QUICK, cwd=repository)

    rows = events(repository, "third")
    assert (rows[0]["kind"], rows[0]["title"][:11]) == ("run-started", "fork second")
    assert rows[-1]["kind"] == "run-finished"
    assert RULE in git("show", f"run/third:{DOCUMENT}", cwd=repository).out
    assert "no problems" in skillgit("fsck", "--deep", cwd=repository).out
    skillgit("promote", "third/head", cwd=repository)
    assert RULE in (repository / DOCUMENT).read_text()
