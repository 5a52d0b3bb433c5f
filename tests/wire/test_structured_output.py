"""Training with schemas for replies: the same decisions at the same cost, whether the server takes them or not."""

from __future__ import annotations

import json

import pytest
from decisions import decisions
from once import copy_folder
from program import QUICK, new_repository, skillgit
from soaking import soak
from trained_runs import trained_run

from wire import wire_server
from wire.schemas import schema_of
from wire.training import course, over, paid_twice, questions, train

ONE_BY_ONE = ("-o", "gradient.analyst_workers=1")
AUTO = ("-o", "optimizer.structured_output=auto")


def counts(repository):
    """Return calls and tokens of the run."""
    total = json.loads(skillgit("cost", "demo", "--json", cwd=repository).out)["total"]
    return {name: total[name] for name in ("calls", "tokens_in", "tokens_out")}


def trained(folder, dialect, *options, **settings):
    """Train the demo; return the repository and what its models were asked."""
    repository = new_repository(folder)
    with wire_server(keep=True, **settings) as wire:
        train(repository, *QUICK, *ONE_BY_ONE, *over(wire, dialect), *options)
        return repository, questions(wire)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", [soak("chat"), soak("responses"), soak("messages")])
def test_a_training_is_the_same_with_schemas_without_and_where_they_are_refused(tmp_path, dialect):
    plain, without = trained(tmp_path / "plain", dialect)
    taken, asked = trained(tmp_path / "taken", dialect, *AUTO)
    refused, tried = trained(tmp_path / "refused", dialect, *AUTO, no_schema="response_format is not supported")
    assert course(plain) == course(taken) == course(refused)
    assert counts(plain) == counts(taken) == counts(refused)
    assert not any(schema_of(entry.document) for entry in without), "the demo is set up as the reference"
    with_schema = [entry for entry in asked if schema_of(entry.document)]
    assert {entry.role for entry in with_schema} == {"optimizer"}
    assert len([entry for entry in asked if entry.role == "optimizer"]) - len(with_schema) == 1, "the preflight"
    assert [entry.status for entry in tried if schema_of(entry.document)] == [400], "it is learnt at the first"
    assert paid_twice(asked) == paid_twice(tried) == []


@pytest.mark.soak
def test_offline_models_learn_the_same_and_a_record_without_schemas_is_replayed_with_them(tmp_path, tmp_path_factory):
    plain = copy_folder(trained_run(tmp_path_factory, "demo", *QUICK), tmp_path / "plain")
    taken, replayed = (new_repository(tmp_path / name) for name in ("taken", "replayed"))
    ledger = plain / ".git" / "skillgit" / "ledger.db"
    replay = ("-o", "model.backend=replay", "-o", f"model.replay_path={ledger}")
    train(taken, *QUICK, *AUTO)
    train(replayed, *QUICK, *AUTO, *replay)
    assert course(plain) == course(taken)
    assert decisions(plain, "demo") == decisions(replayed, "demo")
