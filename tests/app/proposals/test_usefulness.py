"""``propose --model``: planted models on which a skill helps, makes no difference and harms, and what is proposed."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import planted_models
import pytest
from once import copy_folder, once
from program import attempt, git, python, refs, skillgit
from soaking import soak
from town_host import make_host
from wire import wire_server
from wire.training import ENVIRONMENT

MORTAL = Path(__file__).parents[2] / "mortal.py"
BACKEND = ("-o", f"model.target_backend={planted_models.__file__}:Models")
TESTS = 160
DOCUMENT = f"# Chronicle of the town\n\nAnswer from the text.\n\n{planted_models.RULE}\n"


def fill(folder: Path) -> None:
    """Make a repository with a skill and so many test items that the number of them is planned and not given."""
    (folder / "town.md").write_text(DOCUMENT)
    repository = folder / "repository"
    skillgit("init", repository, "--skill", folder / "town.md", cwd=folder)
    (repository / "tasks").mkdir(exist_ok=True)
    splits = ["train"] * 4 + ["selection"] * 4 + ["test"] * TESTS
    rows = (
        {
            "question": f"Entry {n}: the mill burnt in {1700 + n}.\n\nWhen was it?",
            "answer": f"{1700 + n}",
            "split": part,
        }
        for n, part in enumerate(splits)
    )
    (repository / "tasks" / "town.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for words in (("config", "user.name", "P"), ("config", "user.email", "p@example.org")):
        git(*words, cwd=repository)
    git("add", "tasks", cwd=repository)
    git("commit", "-qm", "Add tasks", cwd=repository)


@pytest.fixture(scope="session")
def filled(tmp_path_factory) -> Path:
    return once(tmp_path_factory, "usefulness", fill) / "repository"


@pytest.fixture
def town(filled, tmp_path) -> Path:
    return copy_folder(filled, tmp_path / "repository")


def asked(repository: Path, *words: str | Path, code: int, **env: str) -> dict:
    words = ("propose", *words, *(() if "new" in words else BACKEND), "--json", "-q")
    return json.loads(skillgit(*words, cwd=repository, env=env, code=code).out)


def test_it_says_on_which_model_the_skill_helps_at_the_items_that_it_plans(town):
    models = ("obeys", "knows", "misled", "lost")
    words = tuple(word for model in models for word in ("--model", model))
    plan = asked(town, *words, "--dry-run", code=0)
    assert plan["facts"]["town on obeys"] == "155 of 160 test"
    assert plan["total"]["calls"] == 2 * 155 * len(models)
    before = refs(town)
    report = asked(town, *words, code=1)
    answers = [(entry["model"], entry["answer"], entry["action"]) for entry in report["skills"]]
    assert answers == [
        ("obeys", "helps", "keep"),
        ("knows", "no difference", "retire"),
        ("misled", "harms", "retire"),
        ("lost", "no difference", "retrain"),
    ]
    assert report["cost"]["calls"] == plan["total"]["calls"]
    for entry in report["skills"]:
        low, high = entry["compared"]["interval"]
        assert low <= entry["compared"]["delta"] <= high
        assert entry["compared"]["delta"] == pytest.approx(entry["score"] - entry["without"])
        assert (entry["items"], entry["of"], entry["compared"]["n"], entry["noted"]) == (155, 160, 155, 1)
    assert report["skills"][3]["hint"] == f"skillgit propose town {BACKEND[0]} {BACKEND[1]} -o model.target=lost"
    after = refs(town)
    assert {name for name in after if after[name] != before.get(name)} == {
        "refs/heads/retire/town", "refs/notes/skillgit/evals",
    }  # fmt: skip
    assert git("diff", "--name-status", "main...retire/town", cwd=town).out == "D\tskills/town/SKILL.md\n"
    message = git("log", "-1", "--format=%B", "retire/town", cwd=town).out.splitlines()
    assert (message[0], "Skillgit-Retired: skills/town" in message) == ("retire town: no difference on knows", True)
    notes = git("notes", "--ref", "skillgit/evals", "show", "main", cwd=town).out
    assert [json.loads(line)["without"]["answer"] for line in notes.splitlines()] == [
        answer for _, answer, _ in answers
    ]
    # it is all recorded: said again for nothing, and no second commit is made
    again = asked(town, *words, code=1)
    assert (again["cost"]["calls"], refs(town)) == (0, after)
    assert [entry["compared"] for entry in again["skills"]] == [entry["compared"] for entry in report["skills"]]
    text = skillgit("propose", "--model", "knows", *BACKEND, "-q", cwd=town, code=1).out
    assert "skills/town  knows  no difference: retire\na gain of 0.1 is ruled out at 0.05; " in text


def test_few_items_propose_nothing_and_say_how_many_would_do(town):
    file = town / "tasks" / "town.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:28]))
    (entry,) = asked(town, "--model", "knows", code=21)["skills"]
    assert (entry["answer"], entry["action"], entry["branch"]) == ("cannot tell", "keep", "")
    assert entry["sentence"] == "a gain of 0.1 is neither found nor ruled out; 155 items would do"
    assert asked(town, "--model", "obeys", code=0)["skills"][0]["answer"] == "helps"


def test_the_best_version_is_meant_until_one_is_promoted(two_skills, tmp_path):
    repository = copy_folder(two_skills, tmp_path / "repository")
    skillgit("propose", "town", "-q", cwd=repository)
    words = ("propose", "town", "--model", "reader", "--json", "-q")
    entry = json.loads(skillgit(*words, cwd=repository).out)["skills"][0]
    assert "town-propose-" in entry["text"]
    assert (entry["answer"], entry["score"], entry["without"]) == ("helps", 1.0, 0.0)
    git("merge", "-q", "propose/town", cwd=repository)
    entry = json.loads(skillgit(*words, cwd=repository).out)["skills"][0]
    assert entry["text"].startswith("skills/town/SKILL.md of main")
    assert entry["score"] == 1.0


def test_a_branch_with_work_of_a_persons_stays(town):
    git("branch", "retire/town", cwd=town)
    before = refs(town)
    (entry,) = asked(town, "--model", "knows", code=4)["skills"]
    assert "has work of someone's" in entry["sentence"]
    assert refs(town)["refs/heads/retire/town"] == before["refs/heads/retire/town"]


def publish(repository: Path, host: Path, moment: str = "never", **env: str) -> int:
    env["PATH"] = f"{host / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env["PLANTED_LOG"] = str(host / "planted")
    words = ("-C", repository, "propose", "--model", "knows", "--pull-request", "-q", *BACKEND)
    done = python(MORTAL, moment, "1", host / "calls", *words, env=env)
    assert done.code in {1, -signal.SIGKILL}, done
    return done.code


def end(repository: Path, host: Path) -> tuple[object, ...]:
    """Return all that counts in the end: refs here and there, what was bought, and what the host was asked to do."""
    return refs(repository), refs(host / "origin.git"), (host / "planted").read_text(), (host / "log").read_text()


@pytest.fixture(scope="module")
def unbroken(filled, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    repository = copy_folder(filled, folder / "repository")
    host = make_host(repository, folder)
    assert publish(repository, host) == 1
    here, there, bought, done = end(repository, host)
    assert here["refs/heads/retire/town"] == there["refs/heads/retire/town"]
    assert (bought.count("\n"), done) == (2 * 155, "created retire/town\n")
    return here, there, bought, done


DEATHS = ("1", "17", "200", "before-branch", "after-branch", "after-push", "before-request", "after-request")


@pytest.mark.parametrize("death", [death if n in {1, 4, 7} else soak(death) for n, death in enumerate(DEATHS)])
def test_killed_at_any_moment_it_is_followed_by_one_that_buys_no_call_twice(death, filled, unbroken, tmp_path):
    repository = copy_folder(filled, tmp_path / "repository")
    host = make_host(repository, tmp_path)
    at_call = {"PLANTED_DEATH": death} if death.isdigit() else {}
    assert publish(repository, host, "never" if at_call else death, **at_call) == -signal.SIGKILL
    assert publish(repository, host) == 1
    assert end(repository, host) == unbroken


def test_models_that_a_server_newly_lists_are_judged_once_and_what_it_listed_at_first_is_known(town):
    """The wire's reader knows nothing of the town: with the skill and without it all is wrong."""
    with wire_server() as wire:
        keys = ("target_backend=openai_chat", "target=wire-reader", f"openai_chat_base_url={wire.url}/v1",
                "openai_chat_api_key_env=OPENAI_API_KEY")  # fmt: skip
        settings = (word for key in keys for word in ("-o", f"model.{key}"))
        words = ("propose", "--model", "new", "--json", "-q", *settings)

        def asked_new(*more: str, code: int = 0) -> dict:
            done = attempt(*words, *more, cwd=town, env=ENVIRONMENT)
            assert done.code == code, done
            return json.loads(done.out)

        first = asked_new()
        assert [(each["known"], each["new"]) for each in first["listed"]] == [(5, [])]
        assert (first["skills"], first["cost"]["calls"]) == ([], 0)
        wire.change(listed=("reader-2", "two\nlines", "text-embedding"))
        plan = asked_new("--dry-run")
        assert plan["total"]["calls"] == 2 * (2 * 155 + 1)  # one asks whether the model answers
        stopped = asked_new("--max-calls", "200", code=7)  # nothing is known by that; the same command goes on
        assert stopped["skills"][0]["error"] == 7
        report = asked_new(code=5)
        answers = [(entry["model"], entry["answer"], entry["action"]) for entry in report["skills"]]
        assert answers == [
            ("openai_chat/reader-2", "no difference", "retrain"),
            ("openai_chat/text-embedding", "failed", "keep"),
        ]
        paid = [entry.digest for entry in wire.log() if entry.delivered]
        assert len(paid) == len({*paid}) == 2 * 155 + 1
        count = len(wire.log())
        again = asked_new()
        assert (again["skills"], again["listed"][0]["new"], again["cost"]["calls"]) == ([], [], 0)
        assert all("models" in entry.path for entry in wire.log()[count:])


def test_a_backend_that_lists_no_models_says_so(town):
    (entry,) = asked(town, "--model", "new", code=2)["skills"]
    assert (entry["model"], entry["hint"]) == ("new", "name one: skillgit propose --model MODEL")
