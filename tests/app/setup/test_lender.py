"""Which run says how a skill is measured, where neither a configuration nor a revision does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sample_run import START, started
from soaking import sampled_rows

from skillgit.app.setup.basis import Lender, find_lender
from skillgit.app.workspace.revision import DEFAULT_RUN
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.event import Models
from skillgit.errors import RevisionNotFoundError
from skillgit.store.event_writer import RunWriter

REAL = Models(target="openai_chat/m", optimizer="openai_chat/m")
HALF = Models(target="openai_chat/m", optimizer="offline/analyst")
OFFLINE = Models(target="offline/reader", optimizer="offline/analyst")
WRONG_JUDGE = Models(target="openai_chat/m", optimizer="openai_chat/m", judge="offline/judge@1f")
MINE, OTHER = "skills/mine", "skills/other"


def begin(repo, *runs: tuple[str, str, Models]) -> None:
    """Begin runs, each a minute after the one before: name, skill and models."""
    for minute, (run, skill, models) in enumerate(runs):
        writer = RunWriter(repo, run, lambda minute=minute: START + timedelta(minutes=minute))
        sample = started(run, skill)
        writer.append(replace(sample.event, models=models), sample.skill, sample.evidence)


def found(context, skill: str = MINE) -> Lender | None:
    with Workspace(context) as workspace:
        return find_lender(workspace, skill)


@pytest.mark.parametrize(
    ("runs", "chosen", "lender"),
    sampled_rows(
        [
            ([("a", MINE, REAL)], "", ("a", "the only run of this skill")),
            ([("a", MINE, OFFLINE)], "", ("a", "the only run of this skill")),
            ([("a", MINE, REAL), ("b", MINE, REAL)], "", ("b", "the newest run of this skill")),
            ([("a", MINE, REAL), ("b", MINE, REAL)], "a", ("a", "the default run")),
            ([("a", MINE, OFFLINE), ("b", MINE, REAL)], "a", ("a", "the default run")),
            (
                [("a", MINE, REAL), ("b", MINE, OFFLINE)],
                "",
                ("a", "the newest run of this skill; newer ones are rehearsals"),
            ),
            (
                [("a", MINE, HALF), ("b", MINE, WRONG_JUDGE)],
                "",
                ("a", "the newest run of this skill; newer ones are rehearsals"),
            ),
            ([("a", MINE, OFFLINE), ("b", MINE, OFFLINE)], "", ("b", "the newest run of this skill")),
            (
                [("a", MINE, REAL), ("b", OTHER, REAL)],
                "b",
                ("a", "the only run of this skill; the default run trains another skill"),
            ),
            (
                [("a", MINE, REAL), ("b", MINE, REAL), ("c", OTHER, REAL)],
                "c",
                ("b", "the newest run of this skill; the default run trains another skill"),
            ),
            ([("a", OTHER, REAL)], "a", None),
            ([("a", OTHER, REAL)], "", None),
            ([], "", None),
        ],
        4,
    ),
)
def test_the_default_run_goes_first_then_the_newest_with_language_models_then_the_newest(
    runs, chosen, lender, context, repo
):
    begin(repo, *runs)
    if chosen:
        repo.set_config(DEFAULT_RUN, chosen)
    assert found(context) == (None if lender is None else Lender(run=lender[0], reason=lender[1]))


def test_a_default_run_that_is_gone_is_an_error_and_no_reason_for_another_one(context, repo):
    begin(repo, ("a", MINE, REAL))
    repo.set_config(DEFAULT_RUN, "gone")
    with pytest.raises(RevisionNotFoundError, match="the default run 'gone' does not exist"):
        found(context)
