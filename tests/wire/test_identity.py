"""Answers of one server never count for another one of the same names, through the program and over real HTTP."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from program import Done, attempt, git, skillgit
from served import Served, llama_cpp, model_server, ollama

ITEMS = {f"Item {number}: which of the two words fits?": f"word{number}" for number in range(24)}
SHORT = (
    *("-o", "env.data_path=tasks.jsonl", "-o", "train.num_epochs=1", "-o", "train.batch_size=8"),
    *("-o", "optimizer.slow_update_samples=2", "-o", "evaluation.leak_lint=false"),
)
CLEAN = dict.fromkeys(
    ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_COMPATIBLE_BASE_URL", "OPENAI_COMPATIBLE_API_KEY"), ""
)
SKILL = "# Words\n\n- Answer with the one word that fits.\n- Say nothing else.\n"


def right(text: str) -> str:
    word = next((answer for question, answer in ITEMS.items() if question in text), "none")
    return f"<answer>{word}</answer>"


def wrong(_: str) -> str:
    return "<answer>nothing</answer>"


def half(text: str) -> str:
    return right(text) if any(f"Item {number}:" in text for number in range(0, 24, 2)) else wrong(text)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    splits = [*["train"] * 8, *["selection"] * 8, *["test"] * 8]
    rows = [
        {"id": f"i{number}", "question": question, "answer": answer, "split": split}
        for number, ((question, answer), split) in enumerate(zip(ITEMS.items(), splits, strict=True))
    ]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "SKILL.md").write_text(SKILL)
    skillgit("init", "--skill", "SKILL.md", cwd=folder)
    return folder


def at(server: Served | str) -> tuple[str, ...]:
    url = server if isinstance(server, str) else server.url
    keys = ("target_backend=openai_compatible", "target=qwen", f"target_base_url={url}")
    return tuple(word for key in keys for word in ("-o", f"model.{key}"))


def train(repository: Path, run: str, server: Served | str, *options: str, env: dict[str, str] | None = None) -> Done:
    command = ("train", "tasks/default", *SHORT, *at(server), "--run", run, "--json", *options)
    return attempt(*command, cwd=repository, env={**CLEAN, **(env or {})})


def evaluate(repository: Path, revision: str, *options: str) -> Done:
    return attempt("eval", revision, "--json", *options, cwd=repository, env=CLEAN)


def score(done: Done) -> float:
    return json.loads(done.out)["arms"][0]["splits"][0]["overall"]["hard"]


def test_training_with_a_second_server_asks_it(repository):
    with model_server(half) as first, model_server(right) as second:
        begun, other = train(repository, "one", first), train(repository, "two", second)
        assert (begun.code, other.code) == (0, 0), (begun, other)
        assert json.loads(other.out)["report"][0]["selection"] == 1.0
        assert json.loads(begun.out)["report"][0]["selection"] == 0.5
        assert len(second.questions) > 0
        assert json.loads(other.out)["reuse"] == ""


def test_training_again_with_the_same_server_says_whose_answers_it_reuses(repository):
    with model_server(half) as server:
        train(repository, "one", server)
        count = len(server.questions)
        again = train(repository, "two", server)
        assert len(server.questions) == count
        said = json.loads(again.out)["reuse"]
        assert f"openai_compatible qwen at 127.0.0.1:{server.port}" in said, again
        assert "--fresh asks again" in said
        fresh = train(repository, "three", server, "--fresh")
        assert fresh.code == 0, fresh
        assert (json.loads(fresh.out)["reuse"], len(server.questions)) == ("", 2 * count)


def test_a_fresh_run_that_was_stopped_goes_on_without_buying_twice_and_leaves_others_their_answers(repository):
    with model_server(half) as server:
        whole = train(repository, "one", server)
        count = len(server.questions)
        stopped = train(repository, "two", server, "--fresh", "--max-calls", "30")
        assert stopped.code == 7, stopped
        at_the_stop = len(server.questions) - count
        assert 0 < at_the_stop < count
        resumed = train(repository, "two", server)  # it is fresh as it began
        assert resumed.code == 0, resumed
        assert len(server.questions) == 2 * count
        assert json.loads(resumed.out)["report"] == json.loads(whole.out)["report"]
        refused = train(repository, "one", server, "--fresh")
        assert (refused.code, "began without --fresh" in refused.err) == (2, True), refused
        assert train(repository, "three", server).code == 0
        assert len(server.questions) == 2 * count


def test_the_run_records_who_answered_it_and_says_so(repository):
    with model_server(half, says=llama_cpp("q.gguf", created=5)) as server:
        train(repository, "one", server)
    messages = git("log", "--all", "--format=%B", cwd=repository).out
    [line] = [line for line in messages.splitlines() if line.startswith("Skillgit-Served:")]
    assert f"target backend=openai_compatible model=qwen at=http://127.0.0.1:{server.port}/v1" in line
    assert "n_params" in line
    for words in (("show", "one/v0"), ("status",)):
        shown = attempt(*words, cwd=repository, env=CLEAN)
        assert f"target: openai_compatible qwen at 127.0.0.1:{server.port} (" in shown.out, shown


def test_a_credential_in_an_address_is_recorded_nowhere(repository):
    with model_server(half, says={}) as server:
        done = train(repository, "one", f"{server.url}?key=hunter2secret")
        assert done.code == 0, done
    objects = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=repository, capture_output=True, check=True
    ).stdout
    assert f"127.0.0.1:{server.port}".encode() in objects
    assert b"hunter2secret" not in objects
    assert all(b"hunter2secret" not in path.read_bytes() for path in (repository / ".git").rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (llama_cpp("q15.gguf", created=1), llama_cpp("q05.gguf", created=2)),
        (llama_cpp("q.gguf", created=1, size=1), llama_cpp("q.gguf", created=2, size=2)),
        (llama_cpp("q.gguf", created=1), llama_cpp("q.gguf", created=2, build="b7000-ffff")),
        (ollama("aaaa", created=1), ollama("bbbb", created=2)),
        (
            {"/v1/models": {"data": [{"id": "qwen", "root": "/models/checkpoint-1/final", "owned_by": "vllm"}]}},
            {"/v1/models": {"data": [{"id": "qwen", "root": "/models/checkpoint-2/final", "owned_by": "vllm"}]}},
        ),
    ],
    ids=["file", "size", "build", "digest", "root"],
)
def test_a_server_that_shows_other_weights_after_a_restart_is_another_one(repository, before, after):
    with model_server(half, says=before) as server:
        train(repository, "one", server)
        server.says, server.answer = after, right
        measured = evaluate(repository, "one/v0")
        assert score(measured) == 1.0, measured
        assert "server is" in measured.err
        resumed = train(repository, "one", server)
        assert resumed.code == 2, resumed
        assert "was begun with" in resumed.err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (llama_cpp("q.gguf", created=1), llama_cpp("q.gguf", created=2)),
        (ollama("aaaa", created=1), ollama("aaaa", created=2)),
        ({}, {}),
    ],
    ids=["llama.cpp", "ollama", "nothing to say"],
)
def test_a_restart_that_shows_nothing_new_reuses_and_says_so(repository, before, after):
    with model_server(half, says=before) as server:
        train(repository, "one", server)
        server.says, server.answer, count = after, right, len(server.questions)
        measured = evaluate(repository, "one/v0")
        assert (score(measured), len(server.questions)) == (0.5, count), measured
        assert f"8 of 8 rollouts come from answers of openai_compatible qwen at 127.0.0.1:{server.port}" in measured.err


def test_eval_gate_ablate_and_diff_keep_two_servers_apart(repository):
    with model_server(half) as first, model_server(right) as second:
        train(repository, "one", first)
        train(repository, "two", second)
        # eval of the first run's version at the second server
        there = evaluate(repository, "one/v0", *at(second))
        assert score(there) == 1.0, there
        assert "the server is" in there.err
        # ablate at the second server
        ablated = attempt(
            "ablate", "one/v0", "--json", "--config", "tasks/default", *SHORT, *at(second), cwd=repository, env=CLEAN
        )
        assert "score" not in ablated.out or json.loads(ablated.out)["score"] == 1.0, ablated
        # diff between versions of the two runs
        compared = attempt("diff", "one/v0", "two/v0", "--items", "--json", cwd=repository, env=CLEAN)
        assert compared.code == 0, compared
        document = json.loads(compared.out)
        assert "server" in json.dumps(document["differs"]), compared
        assert document["p"] is None


def test_a_gate_does_not_take_another_servers_outcomes(repository):
    with model_server(half) as first, model_server(right) as second:
        train(repository, "one", first)
        git("checkout", "-q", "-b", "topic", "main", cwd=repository)
        [skill] = list(repository.glob("skills/*/SKILL.md"))
        skill.write_text(skill.read_text() + "- Be brief.\n")
        git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qam", "topic", cwd=repository)
        command = ("gate", "--base", "main", "--head", "topic", "--json", "--config", "tasks/default", *SHORT)
        at_first = attempt(*command, *at(first), cwd=repository, env=CLEAN)
        at_second = attempt(*command, *at(second), cwd=repository, env=CLEAN)
        sides = [json.loads(done.out)["skills"][0]["base"] for done in (at_first, at_second)]
        assert [side["score"] for side in sides] == [0.5, 1.0], (at_first, at_second)
        assert [side["recorded"] for side in sides] == [8, 0]


def test_an_address_of_the_environment_belongs_to_the_run(repository):
    with model_server(half) as server, model_server(right) as other:
        variables = {"OPENAI_COMPATIBLE_BASE_URL": server.url, "OPENAI_COMPATIBLE_API_KEY": "sk-local-0123456789abcdef"}
        keys = ("-o", "model.target_backend=openai_compatible", "-o", "model.target=qwen")
        command = ("train", "tasks/default", *SHORT, *keys, "--run", "one")
        begun = attempt(*command, cwd=repository, env=CLEAN | variables)
        assert begun.code == 0, begun
        assert "by=OPENAI_COMPATIBLE_BASE_URL" in git("log", "--all", "--format=%B", cwd=repository).out
        key = {"OPENAI_COMPATIBLE_API_KEY": variables["OPENAI_COMPATIBLE_API_KEY"]}
        for words in (("eval", "one/v0"), command, ("ablate", "one/v0"), ("eval", "one/v0", "--fresh")):
            later = attempt(*words, cwd=repository, env=CLEAN | key)
            assert later.code == 2, later
            assert "OPENAI_COMPATIBLE_BASE_URL" in later.err
            assert f"export OPENAI_COMPATIBLE_BASE_URL={server.url}" in later.err
        moved = attempt(*command, cwd=repository, env=CLEAN | variables | {"OPENAI_COMPATIBLE_BASE_URL": other.url})
        assert moved.code == 2, moved
        assert f"127.0.0.1:{server.port}" in moved.err
        assert f"127.0.0.1:{other.port}" in moved.err
        assert other.questions == []


def test_a_server_that_is_down_gives_what_it_answered_before(repository):
    with model_server(half, says=llama_cpp("q.gguf", created=5)) as server:
        train(repository, "one", server)
    measured = evaluate(repository, "one/v0")
    assert score(measured) == 0.5, measured
