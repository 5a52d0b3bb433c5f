"""What people read of a training over real HTTP: who answers at which address, what is a rehearsal, what is unknown."""

from __future__ import annotations

import json
import re

import pytest
from program import new_repository, skillgit

from wire import wire_server
from wire.training import ENVIRONMENT

QUICK = (
    *("-o", "train.num_epochs=1", "-o", "train.batch_size=4"),
    *("-o", "evaluation.sel_env_num=4", "-o", "evaluation.test_env_num=4", "-o", "optimizer.use_slow_update=false"),
)
ZERO = re.compile(r"\$0\.00|at least \$0")


def options(url: str, *roles: str) -> tuple[str, ...]:
    names = {"target": "reader", "optimizer": "analyst"}
    keys = [f"{role}_backend=openai_chat" for role in roles] + [f"{role}={names[role]}" for role in roles]
    keys += [f"openai_chat_base_url={url}/v1", "openai_chat_api_key_env=OPENAI_API_KEY"]
    return tuple(word for key in keys for word in ("-o", f"model.{key}"))


@pytest.mark.slow
def test_a_forgotten_optimizer_is_a_warning_before_the_first_call_and_the_score_is_called_a_rehearsal(tmp_path):
    repository = new_repository(tmp_path / "repository")
    with wire_server() as wire:
        place = wire.url.removeprefix("http://")
        words = ("train", "demo", "--run", "one", *options(wire.url, "target"), *QUICK)
        plan = skillgit(*words, "--dry-run", cwd=repository, env=ENVIRONMENT)
        assert [entry for entry in wire.log() if entry.dialect != "models"] == []
        done = skillgit(*words, "--max-calls", "12", cwd=repository, env=ENVIRONMENT, code=7)
        shown = [skillgit(word, cwd=repository, env=ENVIRONMENT).out for word in ("runs", "status")]
        cost = skillgit("cost", "one", "--json", cwd=repository, env=ENVIRONMENT)
        report = repository / "report.html"
        skillgit("report", "one", "--output", report, cwd=repository, env=ENVIRONMENT)
    warning = (
        "warning: calls of the target openai_chat/reader are spent on a rehearsal: the optimizer is offline/analyst"
    )
    assert warning in " ".join(plan.out.split())
    assert f"openai_chat reader at {place}" in plan.out
    lines = done.err.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("run one") and "," not in line)
    assert any(line.startswith(warning) for line in lines[:first])
    assert any(f"target openai_chat reader at {place}, optimizer offline analyst" in line for line in lines[:first])
    for text in (done.err, *shown):
        assert "rehearsal" in text
        assert not ZERO.search(text), text
    assert "unknown price" in done.err
    assert json.loads(cost.out)["total"]["usd"] is None
    page = report.read_text()
    assert "rehearsal" in page
    assert not ZERO.search(page)


@pytest.mark.slow
def test_with_two_language_models_nothing_is_called_a_rehearsal(tmp_path):
    repository = new_repository(tmp_path / "repository")
    with wire_server() as wire:
        words = ("train", "demo", "--run", "one", *options(wire.url, "target", "optimizer"), *QUICK)
        done = skillgit(*words, "--max-calls", "12", cwd=repository, env=ENVIRONMENT, code=7)
        shown = [skillgit(word, cwd=repository, env=ENVIRONMENT).out for word in ("runs", "status")]
    for text in (done.err, *shown):
        assert "rehearsal" not in text
        assert "warning" not in text
