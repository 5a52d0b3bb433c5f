"""The folded commands: every use of an old one has one of the new, and what does not fit together is refused."""

from __future__ import annotations

import pytest

from skillgit.errors import ExitCode, UsageError
from skillgit.verbs.command_line import read_words
from skillgit.verbs.verb import Effect
from skillgit.view.catalogue import ELSEWHERE, ENTRIES

FOLDED = {"restore": "revert", "retry": "cherry-pick", "prune": "shorten", "compress": "shorten"}


@pytest.mark.parametrize("old", FOLDED)
def test_an_old_name_leads_to_a_command_line_that_is_understood(old):
    assert old not in ENTRIES
    verb, request = read_words([*ELSEWHERE[old].split(), *(["v1"] if ELSEWHERE[old].endswith("--to") else [])])
    assert verb.name == FOLDED[old]
    assert verb.words(request)[0] == FOLDED[old]


@pytest.mark.parametrize(
    ("words", "effect"),
    [
        (["revert", "v1"], Effect.PAYS),
        (["revert", "--to", "v1"], Effect.HISTORY),
        (["revert", "--to", "v1", "--gate"], Effect.PAYS),
        (["revert", "--to", "v1", "-n"], Effect.READS),
        (["cherry-pick", "--rejected"], Effect.PAYS),
        (["shorten", "--words", "-n"], Effect.READS),
        (["note", "--list"], Effect.READS),
        (["note", "v1", "shorter"], Effect.HISTORY),
        (["promote", "best", "-n"], Effect.READS),
        (["fork", "v1"], Effect.HISTORY),
        (["blame"], Effect.READS),
        (["why", "3"], Effect.READS),
        (["propose", "-n"], Effect.READS),
    ],
)
def test_what_a_change_changes_is_known_before(words, effect):
    verb, request = read_words(words)
    assert verb.effect_of(request) is effect
    assert bool(verb.question(request)) is (effect is not Effect.READS)


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (["revert"], "name the version to take back", "revert --help"),
        (["revert", "v1", "--to", "v2"], "REV cannot be combined with --to", "revert --help"),
        (["revert", "v1", "--gate"], "revert always asks the gate", "skillgit revert --to v1 --gate"),
        (["cherry-pick"], "name the version or candidate", "cherry-pick --help"),
        (["cherry-pick", "v1", "--rejected"], "cannot be combined", "cherry-pick --help"),
        (["cherry-pick", "v1", "--keep"], "--keep needs --rejected", "cherry-pick --help"),
        (["cherry-pick", "v1", "--limit", "3"], "--limit needs --rejected", "cherry-pick --help"),
        (["blame", "-L", "5,2"], "-L 5,2 names no lines", "blame --help"),
    ],
)
def test_what_does_not_fit_together_is_refused_before_anything_is_read(words, sentence, hint):
    verb, request = read_words(words)
    with pytest.raises(UsageError) as refusal:
        verb.run(None, request)
    assert sentence in refusal.value.message
    assert hint in (refusal.value.hint or f"skillgit {verb.name} --help")
    assert refusal.value.exit_code is ExitCode.USAGE
