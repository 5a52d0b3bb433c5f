from __future__ import annotations

import re

import pytest
from documents import page as document

from skillgit import errors
from skillgit.app.train.run_report import MEANINGS, UNFINISHED, exit_code, outcome_of
from skillgit.domain.event import RunOutcome
from skillgit.errors import ExitCode, SkillgitError
from skillgit.report import page


def test_the_document_lists_every_outcome_with_its_meaning_and_its_codes():
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \| (\d+) \| (\d+) \|$", document("scripting.md"), re.MULTILINE)
    assert [(name, meaning, int(usual), int(strict)) for name, meaning, usual, strict in rows] == [
        (
            outcome.value,
            MEANINGS[outcome],
            exit_code(outcome, strict=False),
            exit_code(outcome, strict=True),
        )
        for outcome in RunOutcome
    ]


def test_every_surface_has_a_word_for_every_outcome():
    assert set(MEANINGS) == set(RunOutcome)
    assert page._OUTCOMES.keys() == {*map(str, RunOutcome), ""}


def test_every_outcome_has_a_code_of_its_own_for_those_who_ask():
    assert len({exit_code(outcome, strict=True) for outcome in RunOutcome}) == len(RunOutcome)
    finished = set(RunOutcome) - UNFINISHED.keys()
    assert {exit_code(outcome, strict=False) for outcome in finished} == {ExitCode.OK}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("BudgetError", RunOutcome.BUDGET),
        ("StoppedError", RunOutcome.STOPPED),
        ("ProviderFailureError", RunOutcome.PROVIDER_FAILURE),
        ("FatalBackendError", RunOutcome.PROVIDER_FAILURE),
        ("EnvironmentFaultError", RunOutcome.PROVIDER_FAILURE),
        ("HandoffError", RunOutcome.STOPPED),
        ("ConfigError", None),
        ("RunLockedError", None),
        ("InvariantError", None),
    ],
)
def test_an_error_that_ends_a_process_has_the_outcome_whose_code_it_exits_with(error, outcome):
    raised = getattr(errors, error)("it is so", hint="do that")
    assert isinstance(raised, SkillgitError)
    assert outcome_of(raised) is outcome
    if outcome is not None and error != "HandoffError":  # it has a code of its own: it waits for answers
        assert UNFINISHED[outcome] is raised.exit_code
