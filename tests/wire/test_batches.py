"""A training in batches: killed while it waits, it goes on by the same command, and is the run that live calls make."""

from __future__ import annotations

import pytest
from program import new_repository, refs, skillgit
from soaking import soak

from wire import BatchSettings, wire_server
from wire.test_killed import begun
from wire.training import ENVIRONMENT, over, paid_twice, questions, train

SHORT = (
    *("-o", "train.num_epochs=1", "-o", "train.batch_size=60", "-o", "gate.early_stop=false"),
    *("-o", "evaluation.eval_test=false"),
)
BATCHED = ("-o", "model.target_batch=true", "-o", "model.optimizer_batch=true")
SECOND_NEVER_ENDS = BatchSettings(stuck=2)


@pytest.mark.parametrize("dialect", [soak("chat"), soak("responses"), soak("messages")])
def test_a_training_in_batches_is_the_one_that_live_calls_make_even_if_it_is_killed_while_it_waits(dialect, tmp_path):
    live, batched = (new_repository(tmp_path / name) for name in ("live", "batched"))
    with wire_server(process=True, batches=SECOND_NEVER_ENDS) as wire:
        options = (*over(wire, dialect), *SHORT)
        train(live, *options)
        expected = {entry.digest for entry in questions(wire)}
        wire.clear()
        with begun(batched, (*options, *BATCHED)) as process:
            count = 2 + 40 + 60  # do the models answer, the baseline, and the rollouts of the first step
            while wire.wait(count, 1.0) < count and process.poll() is None:
                pass
            process.kill()
        assert process.returncode == -9
        assert "waits for a batch of 60 calls" in skillgit("status", cwd=batched, env=ENVIRONMENT).out
        wire.change(batches=BatchSettings())
        train(batched, *options, *BATCHED)
        log = questions(wire)
    assert refs(batched) == refs(live)
    assert {entry.digest for entry in log} == expected
    assert paid_twice(log) == []
    assert sum(not entry.batched for entry in log) == 2, "only the two that ask whether the models answer"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("model.optimizer_batch=true",), "model.optimizer_batch is true, and the backend offline has no batches"),
        (
            ("model.target_batch=true", "model.target_backend=openai_chat", "model.target=m", "env.max_turns=3"),
            "model.target_batch is true, and searchqa may ask the target several times for an item",
        ),
    ],
)
def test_what_cannot_be_batched_is_refused_in_one_sentence(options, sentence, tmp_path):
    words = [word for option in options for word in ("-o", option)]
    done = skillgit("train", "demo", "--dry-run", *words, cwd=new_repository(tmp_path / "repository"), code=2)
    assert sentence in done.err
    assert "batch=false" in done.err


def test_a_plan_says_what_batches_cost_and_how_long_they_may_take(tmp_path):
    keys = ("target=gpt-4o-mini", "target_backend=openai_chat")
    words = [word for key in keys for word in ("-o", f"model.{key}")]
    repository = new_repository(tmp_path / "repository")
    live = skillgit("train", "demo", "--dry-run", *words, cwd=repository, env=ENVIRONMENT)
    batched = skillgit(
        "train", "demo", "--dry-run", *words, "-o", "model.target_batch=true", cwd=repository, env=ENVIRONMENT
    )
    assert "a batch may take up to 24 hours" in batched.out
    assert "batches" in batched.out
    assert "batches" not in live.out
    assert price(batched.out) == pytest.approx(price(live.out) / 2, rel=0.05)


def price(out: str) -> float:
    [line] = [line for line in out.splitlines() if line.startswith("target") and "baseline" in line]
    return float(line.partition("$")[2].split()[0])
