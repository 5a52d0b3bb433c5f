"""Pruning and compressing: shorter texts that score no lower."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest
from asking import ask
from program import SKILLGIT, git, refs, skillgit, surroundings

from skillgit.app.interventions.ablate import ablate
from skillgit.app.interventions.requests import ShortenRequest
from skillgit.app.interventions.shorten import compress, prune
from skillgit.app.measure.requests import AblateRequest
from skillgit.errors import SkillgitError, UsageError


def pruned(user, repository, eyes, revision="one"):
    return ask(prune, user(repository), ShortenRequest(revision=revision), eyes)


def compressed(user, repository, eyes, revision="one"):
    return ask(compress, user(repository), ShortenRequest(revision=revision), eyes)


def test_rules_without_effect_go_and_the_score_stays(user, repository, eyes, document):
    found = pruned(user, repository, eyes)
    decided = found.decided
    assert decided.accepted
    assert decided.verdict.policy == "not-worse"
    assert decided.verdict.score >= decided.verdict.current
    assert decided.tokens_after < decided.tokens_before
    before, after = (document(repository, name) for name in ("run/one^", "run/one"))
    assert {one.text for one in found.rules}
    for one in found.rules:
        assert one.text in " ".join(before.split())
        assert one.text not in " ".join(after.split())


def test_the_commits_tell_what_made_them_shorter(repository, trailers, evidence, sound):
    skillgit("shorten", "one", "-q", cwd=repository)
    told = trailers(repository, "run/one")
    assert told["Skillgit-Origin"].startswith("prune number=1 of=one/v")
    assert "policy=not-worse" in told["Skillgit-Gate"]
    skillgit("shorten", "two", "--words", "-q", cwd=repository)
    assert trailers(repository, "run/two")["Skillgit-Origin"].startswith("compress number=1 of=two/v")
    assert evidence(repository, "run/two", "rewrite.json")["body"].strip()
    sound(repository)


def test_notes_of_ablate_are_used_and_what_they_do_not_tell_is_measured_and_noted(user, repository, eyes):
    every = ask(ablate, user(repository), AblateRequest(revision="one"), eyes)
    assert pruned(user, repository, eyes).measured == 0
    body = sum(row.ablation.region == "body" for row in every.rules)
    git("update-ref", "-d", "refs/notes/skillgit/evals", cwd=repository)
    newest = git("describe", "--tags", "--abbrev=0", "--match", "two/v*", "run/two", cwd=repository).out.strip()
    assert pruned(user, repository, eyes, "two").measured > 0
    assert body > 0
    assert git("notes", "--ref=skillgit/evals", "show", newest, cwd=repository).out.count('"kind":"ablation"') == 1


def test_pruning_ends_and_then_writes_nothing(user, repository, eyes):
    before: dict[str, str] = {}
    with pytest.raises(SkillgitError, match=r"no rule of one/v\d can go"):  # noqa: PT012 - it takes some times
        for _ in range(8):
            before = refs(repository)
            # What another rule made up for has no effect of its own, and may have one when that rule is gone.
            pruned(user, repository, eyes)
    after = refs(repository)
    assert {name for name in after if after[name] != before.get(name)} <= {"refs/notes/skillgit/evals"}


def test_two_rules_that_say_the_same_do_not_both_go(user, repository, eyes, document, by_hand):
    rule = next(line for line in document(repository, "run/one").splitlines() if "the year" in line)
    twin = "- If the clue asks for a year or a date, answer with the year alone, in four digits."
    text = document(repository, "run/one").replace(rule, f"{rule}\n{twin}")
    by_hand(repository, "one", text)
    found = pruned(user, repository, eyes)
    assert found.decided.accepted
    left = [line for line in document(repository, "run/one").splitlines() if "the year" in line]
    assert len(left) == 1
    assert len(found.needed) == 1


def test_only_the_newest_version_can_be_made_shorter(user, repository, eyes):
    for command in (pruned, compressed):
        with pytest.raises(UsageError, match="one/v1 is not the newest version of its run"):
            command(user, repository, eyes, "one/v1")
        with pytest.raises(UsageError, match="one/r1 is not a version"):
            command(user, repository, eyes, "one/r1")


def test_the_optimizer_says_the_same_in_fewer_words(user, repository, eyes, document):
    decided = compressed(user, repository, eyes)
    assert decided.accepted
    assert decided.tokens_after < decided.tokens_before
    before, after = (document(repository, name) for name in ("run/one^", "run/one"))
    for text in (before, after):
        assert text.startswith("---\nname: searchqa\n")
    assert slow(before) == slow(after)
    assert decided.cost.calls >= 1


def slow(text: str) -> str:
    return text.partition("<!-- skillgit:slow -->")[2].partition("<!-- /skillgit:slow -->")[0]


def test_a_text_that_cannot_be_shorter_is_told_and_nothing_is_written(user, repository, eyes):
    compressed(user, repository, eyes)
    before = refs(repository)
    assert eyes.costs == [], "a result tells its cost itself"
    with pytest.raises(SkillgitError, match="offline/analyst found no shorter text"):
        compressed(user, repository, eyes)
    assert refs(repository) == before
    (cost,) = eyes.costs
    assert cost.calls >= 1, "what brought nothing is told all the same"


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_measures_loses_nothing(repository):
    before = refs(repository)
    ledger = repository / ".git" / "skillgit" / "ledger.db-wal"
    at_first = ledger.stat().st_size if ledger.exists() else 0
    process = subprocess.Popen(
        [*SKILLGIT, "shorten", "one", "-q"], cwd=repository, env=surroundings(), start_new_session=True
    )
    while process.poll() is None and not (ledger.exists() and ledger.stat().st_size > at_first + 20_000):
        time.sleep(0.002)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
    skillgit("fsck", "--deep", cwd=repository)
    changed = {name for name, oid in refs(repository).items() if before.get(name) != oid}
    if "refs/heads/run/one" not in changed:
        skillgit("shorten", "one", "-q", cwd=repository)
    assert git("rev-list", "--count", f"{before['refs/heads/run/one']}..run/one", cwd=repository).out.strip() == "1"
    skillgit("fsck", "--deep", cwd=repository)


def test_the_commands_say_what_went_and_what_to_type_next(repository):
    done = skillgit("shorten", "one", cwd=repository)
    assert "dropped" in done.out
    assert "not-worse asks for a score that is not lower" in done.out
    assert "skillgit diff one/v" in done.out
    told = json.loads(skillgit("shorten", "two", "--words", "--json", "-q", cwd=repository).out)
    assert (told["schema"], told["accepted"]) == ("skillgit.compress/1", True)
    older = skillgit("shorten", "one/v1", "--json", "-q", cwd=repository, code=2)
    assert "hint:" in older.err
