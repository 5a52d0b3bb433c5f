"""``propose --model``: planted models on which a skill helps, makes no difference and harms, and what is proposed."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from math import comb
from pathlib import Path
from random import Random

import planted_models
import pytest
from junit_rules import kinds, read, read_elsewhere
from once import copy_folder, once
from program import SKILLGIT, attempt, git, refs, skillgit, surroundings
from soaking import soak
from town_host import end, fill, make_host, propose, undisturbed
from wire import wire_server
from wire.training import ENVIRONMENT, over, paid_twice, questions

BACKEND = ("-o", f"model.target_backend={planted_models.__file__}:Models")
TESTS = 160
SPLITS = ["train"] * 4 + ["selection"] * 4 + ["test"] * TESTS
ENTRIES = [
    {"question": f"Entry {n}: the mill burnt in {1700 + n}.\n\nWhen was it?", "answer": f"{1700 + n}", "split": part}
    for n, part in enumerate(SPLITS)
]
"""So many test items that the number of them is planned and not given."""


def fill_town(folder: Path) -> None:
    fill(folder, ("town",), f"- {planted_models.RULE}", "".join(f"{json.dumps(row)}\n" for row in ENTRIES))


@pytest.fixture(scope="session")
def filled(tmp_path_factory) -> Path:
    return once(tmp_path_factory, "usefulness", fill_town) / "repository"


@pytest.fixture
def town(filled, tmp_path) -> Path:
    return copy_folder(filled, tmp_path / "repository")


RANDOM = Random(44)  # noqa: S311 - no secret


def coins(heads: int, count: int) -> float:
    """Return how often so many coins show so many heads or more."""
    return sum(comb(count, up) for up in range(heads, count + 1)) / 2**count


def asked(repository: Path, *words: str | Path, code: int, **env: str) -> dict:
    words = ("propose", *words, *(() if "new" in words else BACKEND), "--json", "-q")
    return json.loads(skillgit(*words, cwd=repository, env=env, code=code).out)


def test_it_says_on_which_model_the_skill_helps_at_the_items_that_it_plans(town):
    models = ("obeys", "knows", "misled", "lost")
    words = tuple(word for model in models for word in ("--model", model))
    plan = asked(town, *words, "--dry-run", code=0)
    assert plan["facts"]["town on obeys"].splitlines()[0] == "155 of 160 test"
    assert plan["total"]["calls"] == 2 * 155 * len(models)
    before = refs(town)
    report = asked(town, *words, "--junit", "models.xml", code=1)
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
        # by hand: the exact sign test of McNemar, in whole numbers, and no formula of the program's
        fixed, broken = len(entry["compared"]["fixed"]), len(entry["compared"]["broken"])
        assert entry["compared"]["delta"] == pytest.approx((fixed - broken) / 155)
        assert entry["compared"]["p"] == pytest.approx(coins(fixed, fixed + broken))
        assert entry["p_worse"] == pytest.approx(coins(broken, fixed + broken))
        means = sorted(sum(RANDOM.choices((1, -1, 0), (fixed, broken, 155 - fixed - broken), k=155)) / 155
                       for _ in range(4000))  # fmt: skip
        if fixed + broken:
            assert (low, high) == (pytest.approx(means[100], abs=0.03), pytest.approx(means[-101], abs=0.03))
    written = (town / "models.xml").read_bytes()
    cases = {f"town on {model}": "passed" if action == "keep" else "failure" for model, _, action in answers}
    assert {suite.get("name"): kinds(suite)["verdict"] for suite in read(written)} == cases
    assert read_elsewhere(written) == {(suite, "verdict"): kind for suite, kind in cases.items()}
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
    # what it says to type trains the text for the model, of the trunk or of the run that lends its configuration
    for start in ("propose town", "train --from town-propose-"):
        (entry,) = asked(town, "--model", "lost", code=1)["skills"]
        assert entry["hint"].startswith(f"skillgit {start}")
        runs = {name for name in refs(town) if name.startswith("refs/heads/run/")}
        done = attempt(*shlex.split(entry["hint"])[1:], cwd=town)
        assert done.code in {0, 1}, done
        (run,) = {name for name in refs(town) if name.startswith("refs/heads/run/")} - runs
        shown = json.loads(skillgit("show", f"{run.removeprefix('refs/heads/run/')}/v0", "--json", cwd=town).out)
        assert "lost" in json.dumps(shown["event"]["models"])
        assert git("diff", "--stat", "main", run, "--", "skills", cwd=town).out == ""
    text = skillgit("propose", "--model", "knows", *BACKEND, "-q", cwd=town, code=1).out
    assert "skills/town  knows  no difference: retire\na gain of 0.1 is ruled out at 0.05; " in text


def test_few_items_propose_nothing_and_say_how_many_would_do(town):
    file = town / "tasks" / "town.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:28]))
    (entry,) = asked(town, "--model", "knows", code=21)["skills"]
    assert (entry["answer"], entry["action"], entry["branch"]) == ("cannot tell", "keep", "")
    assert entry["sentence"] == "no gain was found, but one of 0.1 is not ruled out; that takes 155 items"
    (entry,) = asked(town, "--model", "knows", "-o", "gate.worth=.5", "--junit", "few.xml", code=1)["skills"]
    assert (entry["answer"], entry["worth"], entry["needed"]) == ("no difference", 0.5, 16)
    assert entry["items"] == 16
    asked(town, "--model", "knows", "--junit", "few.xml", code=21)
    assert [kinds(suite) for suite in read((town / "few.xml").read_bytes())] == [{"verdict": "skipped"}]
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
    # a skill that only runs have is measured at its best version, and to be trained it has to be promoted
    git("rm", "-q", "-r", "skills/town", cwd=repository)
    git("commit", "-q", "-m", "Remove", "--", "skills/town", cwd=repository)
    entry = json.loads(skillgit(*words, cwd=repository).out)["skills"][0]
    assert ("town-propose-" in entry["text"], entry["score"]) == (True, 1.0)
    lacking = attempt("propose", "town", "-q", cwd=repository)
    assert (lacking.code, "main has no skills/town, which run town-propose-" in lacking.err) == (3, True)
    assert "hint: skillgit promote town-propose-" in lacking.err


def test_a_branch_with_work_of_a_persons_stays(town):
    git("branch", "retire/town", cwd=town)
    before = refs(town)
    (entry,) = asked(town, "--model", "knows", code=4)["skills"]
    assert "has work of someone's" in entry["sentence"]
    assert refs(town)["refs/heads/retire/town"] == before["refs/heads/retire/town"]


KNOWS = ("--model", "knows", *BACKEND)


@pytest.fixture(scope="module")
def unbroken(filled, tmp_path_factory):
    here, there, bought, asked = undisturbed(filled, tmp_path_factory.mktemp("unbroken"), *KNOWS, codes=(1,))
    assert here["refs/heads/retire/town"] == there["refs/heads/retire/town"]
    assert (bought, asked) == (2 * 155, ["created retire/town"])
    return here, there, bought, asked


DEATHS = [
    soak("planted", 1), soak("planted", 17), soak("planted", 200), soak("before-branch", 1), ("after-branch", 1),
    soak("after-push", 1), soak("before-request", 1), soak("after-request", 1),
]  # fmt: skip


@pytest.mark.parametrize(("moment", "count"), DEATHS)
def test_killed_at_any_moment_it_is_followed_by_one_that_buys_no_call_twice(moment, count, filled, unbroken, tmp_path):
    repository = copy_folder(filled, tmp_path / "repository")
    host = make_host(repository, tmp_path)
    assert propose(repository, host, *KNOWS, moment=moment, count=count) == -signal.SIGKILL
    assert propose(repository, host, *KNOWS, codes=(1,)) == 1
    assert end(repository, host) == unbroken


def test_models_that_a_server_newly_lists_are_judged_once_and_what_it_listed_at_first_is_known(town):
    with wire_server() as wire:
        words = ("propose", "--model", "new", "--json", "-q", *over(wire, "chat"))

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
            ("openai_chat/reader-2", "helps", "keep"),
            ("openai_chat/text-embedding", "failed", "keep"),
        ]
        paid = [entry.digest for entry in wire.log() if entry.delivered]
        assert len(paid) == len({*paid}) == 2 * 155 + 1
        count = len(wire.log())
        again = asked_new()
        assert (again["skills"], again["listed"][0]["new"], again["cost"]["calls"]) == ([], [], 0)
        assert all("models" in entry.path for entry in wire.log()[count:])


IN_FLIGHT = 8


def test_killed_with_calls_in_flight_over_http_it_asks_no_answered_question_again(town):
    with wire_server(process=True) as wire:
        words = ("propose", "--model", "reader-2", *over(wire, "chat"), "-o", f"calls.concurrency={IN_FLIGHT}")
        for answered in (1, 90, 200):
            wire.change(answers=answered)  # the server keeps the questions after these, and they stay in flight
            with subprocess.Popen((*SKILLGIT, *words, "-q"), cwd=town, env=surroundings(**ENVIRONMENT)) as process:
                assert wire.wait(answered + IN_FLIGHT, 60) == answered + IN_FLIGHT
                process.kill()
            assert process.returncode == -signal.SIGKILL
        wire.change(answers=0)
        report = json.loads(skillgit(*words, "--json", "-q", cwd=town, env=ENVIRONMENT).out)
        log = questions(wire)
        assert paid_twice(log) == []
        assert len({entry.digest for entry in log if entry.delivered}) == 2 * 155 + 1  # one asks whether it answers
        (entry,) = report["skills"]
        assert entry["cost"]["calls"] < 2 * 155 - 150
        wire.clear()
        (town / ".git/skillgit/ledger.db").unlink()  # as one that was never killed
        (again,) = json.loads(skillgit(*words, "--json", "-q", cwd=town, env=ENVIRONMENT).out)["skills"]
        assert len(questions(wire)) == 2 * 155 + 1
        of_process = dict.fromkeys(("cost", "noted", "warnings"))
        assert again | of_process == entry | of_process
        assert (entry["answer"], entry["action"]) == ("helps", "keep")


def test_a_backend_that_lists_no_models_says_so(town):
    (entry,) = asked(town, "--model", "new", code=2)["skills"]
    assert (entry["model"], entry["hint"]) == ("new", "name one: skillgit propose --model MODEL")


@pytest.mark.parametrize(
    ("model", "words"), [("gpt-6", "its backend is offline"), ("no/x", "there is no backend 'no'")]
)
def test_a_dry_run_ends_with_the_error_that_the_run_would_end_with(model, words, town):
    plan, run = (
        json.loads(skillgit("propose", "--model", model, *more, "--json", "-q", cwd=town, code=2).out)
        for more in (("--dry-run",), ())
    )
    assert plan["exit_code"] == run["exit_code"] == 2
    (entry,) = run["skills"]
    assert words in entry["sentence"]
    assert plan["facts"] == {f"town on {model}": f"{entry['sentence']}\nhint: {entry['hint']}"}
