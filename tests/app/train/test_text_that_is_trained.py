"""The text that is trained is that of HEAD, or the line says which other one, at which commit, and what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from contexts import context_in
from program import git

from skillgit.app.setup.plan import Plan
from skillgit.app.train.requests import TrainRequest
from skillgit.app.train.run_report import Trained
from skillgit.app.train.train import plan_train, train
from skillgit.errors import RevisionNotFoundError, SkillError, StoppedError
from skillgit.store.history_reader import read_run, skill_at
from skillgit.store.repo import Repo
from skillgit.view.progress import SilentWatcher

WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
TOWN = "skills/town/SKILL.md"
HEAD = "---\nname: town\ndescription: Answer questions about a town.\n---\n\n"
BOTH_WAYS = "work tree differs: commit it, or --from WORKTREE"


class Remarks(SilentWatcher):
    def __init__(self) -> None:
        self.remarks: list[str] = []

    def remark(self, text: str) -> None:
        self.remarks.append(text)


class Stop(Remarks):
    """Interrupts at the first event, as Ctrl-C pressed twice does."""

    def happened(self, *_) -> None:
        raise KeyboardInterrupt


def text(rule: str) -> str:
    return f"{HEAD}# Rules\n\n- {rule}\n"


def write(folder: Path, rule: str, path: str = TOWN) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text(rule))


def commit(folder: Path, message: str = "a change") -> str:
    git("add", "-A", cwd=folder)
    git(*WHO, "commit", "-qm", message, cwd=folder)
    return git("rev-parse", "HEAD", cwd=folder).out.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository on ``main`` with one skill and tasks of one's own."""
    place = tmp_path / "mine"
    place.mkdir()
    git("init", "-q", "-b", "main", cwd=place)
    rows = [{"question": f"Mill {n} burned down in {1800 + n}. When?", "answer": str(1800 + n)} for n in range(12)]
    (place / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    write(place, "Of main.")
    commit(place)
    return place


def request(run: str | None = None, start: str | None = None, *more: str) -> TrainRequest:
    overrides = ("env.data_path=tasks.jsonl", "train.num_epochs=1", "evaluation.eval_test=false", *more)
    return TrainRequest(config="tasks/default", overrides=overrides, run=run, start=start)


def planned(folder: Path, start: str | None = None, *more: str) -> str:
    plan = plan_train(context_in(folder), request(None, start, *more))
    assert isinstance(plan, Plan)
    return plan.facts["text"]


def trained(folder: Path, run: str, start: str | None = None) -> tuple[str, Remarks, Trained]:
    """Train, and return the text of version 0."""
    watcher = Remarks()
    result = train(context_in(folder), request(run, start), watcher)
    repo = Repo.discover(folder)
    first = read_run(repo, run)[0]
    return skill_at(repo, first.commit, "skills/town").document, watcher, result


def on_topic(folder: Path) -> str:
    git("checkout", "-qb", "topic", cwd=folder)
    write(folder, "Of topic.")
    return commit(folder)


def detached(folder: Path) -> str:
    oid = on_topic(folder)
    git("checkout", "-q", "--detach", cwd=folder)
    git("branch", "-D", "topic", "-q", cwd=folder)
    return oid


def main_only(folder: Path) -> str:
    return git("rev-parse", "HEAD", cwd=folder).out.strip()


@pytest.mark.parametrize(
    ("stand", "name", "rule"),
    [(main_only, "main", "Of main."), (on_topic, "topic", "Of topic."), (detached, "HEAD", "Of topic.")],
)
def test_the_text_is_that_of_head_and_the_line_says_so(folder, stand, name, rule):
    oid = stand(folder)
    line = f"{TOWN} of {name} ({oid[:7]})"
    assert planned(folder) == line
    document, watcher, result = trained(folder, "first")
    assert document == text(rule)
    assert watcher.remarks[0] == f"text: {line}"
    assert result.facts["text"] == line
    assert git("rev-parse", "first/v0^", cwd=folder).out.strip() == oid


def edited(folder: Path) -> None:
    write(folder, "By hand.")


def staged(folder: Path) -> None:
    edited(folder)
    git("add", "-A", cwd=folder)


def with_a_new_file(folder: Path) -> None:
    (folder / "skills/town/notes.md").write_text("# Notes\n")


def without_a_file(folder: Path) -> None:
    (folder / "skills/town/extra.md").write_text("# More\n")
    commit(folder)
    (folder / "skills/town/extra.md").unlink()


def executable(folder: Path) -> None:
    (folder / TOWN).chmod(0o755)


@pytest.mark.parametrize("change", [edited, staged, with_a_new_file, without_a_file, executable])
def test_a_work_tree_that_differs_is_said_with_both_ways_out(folder, change):
    change(folder)
    assert planned(folder).endswith(BOTH_WAYS)
    assert BOTH_WAYS in planned(folder)
    commit(folder)
    assert "differs" not in planned(folder), "the first way out"


@pytest.mark.parametrize("change", [edited, staged, with_a_new_file, without_a_file])
def test_the_text_of_the_work_tree_is_trained_and_recorded_as_that(folder, change):
    change(folder)
    before = {path.name: path.read_text() for path in (folder / "skills/town").iterdir()}
    head = git("rev-parse", "HEAD", cwd=folder).out.strip()
    _, watcher, _ = trained(folder, "first", "WORKTREE")
    repo = Repo.discover(folder)
    first = read_run(repo, "first")[0]
    assert {path: body.decode() for path, body in skill_at(repo, first.commit, "skills/town").files.items()} == before
    assert first.parents == (head,)
    source = f"{TOWN} of the work tree, which differs from main ({head[:7]})"
    assert watcher.remarks[0] == f"text: {source}"
    assert source in " ".join(first.event.why.split())
    assert {path.name: path.read_text() for path in (folder / "skills/town").iterdir()} == before


def test_what_git_ignores_is_neither_a_difference_nor_trained(folder):
    (folder / ".gitignore").write_text(".env\n")
    commit(folder)
    (folder / "skills/town/.env").write_text("TOKEN=x\n")
    assert "differs" not in planned(folder)
    edited(folder)
    trained(folder, "first", "WORKTREE")
    assert ".env" not in git("ls-tree", "-r", "--name-only", "first/v0", cwd=folder).out


def test_line_ends_that_git_converts_are_no_difference(folder):
    git("config", "core.autocrlf", "true", cwd=folder)
    git("rm", "-q", "--cached", TOWN, cwd=folder)
    git("reset", "-q", "--hard", cwd=folder)
    assert "differs" not in planned(folder)


def test_an_unchanged_work_tree_is_its_commit(folder):
    assert planned(folder, "WORKTREE") == planned(folder)


def test_a_resume_takes_the_text_that_the_run_began_with_and_says_so(folder):
    edited(folder)

    with pytest.raises(StoppedError) as stopped:
        train(context_in(folder), request("first", "WORKTREE"), Stop())
    assert "--from WORKTREE" in stopped.value.hint, "typed before anything was recorded, it takes the same text"
    write(folder, "Changed meanwhile.")
    document, watcher, _ = trained(folder, "first", "WORKTREE")
    assert document == text("By hand.")
    assert watcher.remarks[0].startswith("run first goes on at step 1 of ")
    assert watcher.remarks[1].startswith(f"text: {TOWN} as run first began with it (v0, ")
    assert "a new run, --run NAME, takes" in watcher.remarks[1]
    assert planned_run(folder, "first") == watcher.remarks[1].removeprefix("text: ")


def planned_run(folder: Path, run: str) -> str:
    plan = plan_train(context_in(folder), request(run, "WORKTREE"))
    return plan.facts["text"]


def test_a_broken_run_resumes_to_the_commits_of_an_unbroken_one(folder, tmp_path):
    git("clone", "-q", folder, tmp_path / "other", cwd=tmp_path)
    (tmp_path / "other/tasks.jsonl").write_text((folder / "tasks.jsonl").read_text())

    for place in (folder, tmp_path / "other"):
        edited(place)
    with pytest.raises(StoppedError):
        train(context_in(folder), request("first", "WORKTREE"), Stop())
    git("checkout", "-q", "--", ".", cwd=folder)
    trees = []
    for place in (folder, tmp_path / "other"):
        trained(place, "first", "WORKTREE")
        trees.append(git("log", "--format=%T", "run/first", cwd=place).out)
    assert trees[0] == trees[1]


@pytest.mark.parametrize("end", ["first/v0", "run/first"])
@pytest.mark.parametrize("detach", [True, False])
def test_where_head_stands_at_a_run_a_new_one_is_a_fork_of_the_version_that_is_there(folder, end, detach):
    on_topic(folder)
    trained(folder, "first")
    git("checkout", "-q", *(("--detach",) if detach or end != "run/first" else ()), end, cwd=folder)
    line = planned(folder)
    assert "first/v" in line
    document, watcher, _ = trained(folder, "second")
    assert watcher.remarks[0] == f"text: {line}"
    event = read_run(Repo.discover(folder), "second")[0].event
    assert event.fork_of.startswith("first/v")
    assert document == text("Of topic.")


def test_a_branch_without_the_skill_gives_way_to_main_and_the_line_names_it(folder):
    oid = git("rev-parse", "HEAD", cwd=folder).out.strip()
    git("checkout", "-q", "--orphan", "pages", cwd=folder)
    git("rm", "-rqf", "skills", cwd=folder)
    commit(folder, "pages")
    assert planned(folder) == f"{TOWN} of main ({oid[:7]})"


def test_an_unborn_head_gives_way_to_main(folder):
    oid = git("rev-parse", "HEAD", cwd=folder).out.strip()
    git("checkout", "-q", "--orphan", "new", cwd=folder)
    assert planned(folder).startswith(f"{TOWN} of main ({oid[:7]})")


def test_a_repository_without_commits_is_an_error_with_a_way_out(tmp_path):
    git("init", "-q", "-b", "main", tmp_path / "empty", cwd=tmp_path)
    with pytest.raises(RevisionNotFoundError, match="no commit to start from") as refused:
        plan_train(context_in(tmp_path / "empty"), TrainRequest(config="demo"))
    assert refused.value.hint == "skillgit init"


def test_a_seed_file_is_named_with_the_commit_that_it_is_trained_on(folder):
    (folder / "seed.md").write_text(text("Of a file."))
    oid = commit(folder)
    line = planned(folder, None, "env.skill_init=seed.md")
    assert line.endswith(f"seed.md (env.skill_init), on main ({oid[:7]})")


def test_a_work_tree_without_a_skill_is_an_error(folder):
    git("rm", "-rqf", "skills", cwd=folder)
    with pytest.raises(SkillError, match="the work tree holds no skill"):
        planned(folder, "WORKTREE")
