"""What a default push brings is enough for a clone to gate, verify and eval, and no hint leads in a circle."""

from __future__ import annotations

import json
import re
import shlex
import shutil

import pytest
from hosts import Person
from program import attempt, git
from trained_runs import RUN, small_run

SETUP = f"refs/skillgit/setup/{RUN}"
EVIDENCE = f"refs/skillgit/evidence/{RUN}"


@pytest.fixture
def owner(tmp_path_factory, tmp_path, host):
    """Somebody with a trained run who has pushed it by default."""
    person = Person(shutil.copytree(small_run(tmp_path_factory), tmp_path / "owner"))
    person.git("remote", "add", "origin", str(host.path))
    assert "setup" in person("push").out
    return person


@pytest.mark.slow
def test_a_clone_without_evidence_can_gate_verify_and_eval(owner, host, clone):
    assert EVIDENCE not in git("for-each-ref", cwd=host.path).out
    cal = clone("cal")
    settings = cal("show", "v0", "--settings").out
    assert settings == owner("show", "v0", "--settings").out
    verified = json.loads(cal("verify", "best", "--json").out)
    assert verified["verdict"]["word"] == "consistent"
    assert "no problems" in cal("fsck").out
    versions = [json.loads(person("eval", "v0", "best", "--json").out)["arms"] for person in (cal, owner)]
    assert versions[0] == versions[1]
    assert "passes" in cal("gate", "--base", f"{RUN}/v0", "--head", f"{RUN}/best").out


@pytest.mark.slow
@pytest.mark.usefixtures("owner")
def test_texts_of_items_and_answers_stay(host):
    listed = git("ls-tree", "-r", "--name-only", SETUP, cwd=host.path).out.split()
    assert listed == ["config.json", "environment.json", "splits.json", "tree"]
    splits = json.loads(git("show", f"{SETUP}:splits.json", cwd=host.path).out)
    assert {key for rows in splits.values() for row in rows for key in row} == {"id", "digest"}


@pytest.mark.slow
@pytest.mark.usefixtures("owner")
def test_a_setup_that_is_not_the_recorded_one_is_not_read(host, tmp_path, clone):
    work = tmp_path / "forger"
    git("clone", "-q", str(host.path), str(work), cwd=tmp_path)
    git("fetch", "-q", "origin", f"{SETUP}:{SETUP}", cwd=work)
    git("switch", "-q", "--detach", SETUP, cwd=work)
    config = work / "config.json"
    config.write_text(config.read_text().replace('"seed": 42', '"seed": 43'))
    message = git("log", "-1", "--format=%B", cwd=work).out
    identity = ("-c", "user.name=Mal", "-c", "user.email=mal@localhost")
    git(*identity, "commit", "-qam", message, cwd=work)
    git("push", "-q", "-f", "origin", f"HEAD:{SETUP}", cwd=work)
    refused = clone("cal")("show", "v0", "--settings", code=2)
    assert f"the configuration of run {RUN} is not here" in refused.err


HINTS = (
    ("show", "v0", "--settings"),
    ("verify", "best"),
    ("gate", "--base", f"{RUN}/v0", "--head", f"{RUN}/best"),
    ("eval", "v0"),
    ("items",),
    ("why", "1"),
    ("diff", "v0", "best", "--items"),
    ("report", "--output", "report.html"),
)
_COMMAND = re.compile(r"skillgit (?:[a-z-]+)(?: --?[a-z-]+)*")


@pytest.mark.slow
@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize("command", HINTS, ids=lambda words: words[0])
@pytest.mark.parametrize("push", ["default", "old"])
def test_no_hint_leads_in_a_circle(host, clone, command, push):
    """Type what a refusal says: it helps, or says whose turn it is."""
    if push == "old":
        git("update-ref", "-d", SETUP, cwd=host.path)
    cal = clone("cal")
    done = attempt(*command, cwd=cal.path)
    if push == "default" and command[0] in {"show", "verify", "gate", "eval", "why", "report"}:
        assert done.code == 0, done
    hints = [words for line in done.err.splitlines() if line.startswith("hint") for words in _COMMAND.findall(line)]
    assert (done.code == 0) != bool(hints), done
    for words in hints:
        assert words == "skillgit pull --evidence"
        followed = attempt(*shlex.split(words)[1:], cwd=cal.path)
        assert "who trained it sends with skillgit push --evidence" in followed.out


@pytest.mark.slow
def test_status_and_a_fork_of_a_clone_know_what_the_run_was(owner, clone):
    cal = clone("cal")
    steps = [json.loads(person("status", "--json").out)["run"]["total_steps"] for person in (owner, cal)]
    assert steps[0] == steps[1] > 0
    cal("fork", f"{RUN}/best", "mine")
    assert cal("show", "mine/v0", "--settings").out == owner("show", "v0", "--settings").out
    assert "no problems" in cal("fsck").out
