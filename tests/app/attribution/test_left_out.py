"""Edits that were chosen and not applied: every surface that lists the edits of an event says which, and why."""

from __future__ import annotations

from itertools import count

import pytest
from asking import ask
from sample_run import RUN, clock_from, transitions
from soaking import sampled

from skillgit.app.attribution.why import why
from skillgit.app.deliver.report import report
from skillgit.app.history.show import event_detail, show
from skillgit.app.recorded.step_evidence import StepEvidence
from skillgit.domain.edit import QUARANTINED, Edit, EditReport, EditStatus, Op, Patch, left_out
from skillgit.engine.evidence_files import patch_file
from skillgit.report.page import page
from skillgit.store.event_writer import RunWriter
from skillgit.store.evidence import write_evidence
from skillgit.tui.screens import event as event_text
from skillgit.view import show as shown_text
from skillgit.view import why as why_text
from skillgit.view.surface import Screen

SKIPPED = [status for status in EditStatus if status is not EditStatus.APPLIED]
TEXT = "- Give the height in yards."
ADDED = Edit(op=Op.APPEND, content="- Answer in the unit the question asks for, and say it.")
SCREEN = Screen(unicode=True)


def reports(*statuses: EditStatus, reason: str) -> list[EditReport]:
    left = [EditReport(edit=Edit(op=Op.APPEND, content=TEXT), status=status, detail=reason) for status in statuses]
    return [EditReport(edit=ADDED, status=EditStatus.APPLIED), *left]


@pytest.fixture
def history(repo, context):
    """Write the sample run, with edits of these statuses besides the applied one; return who looks at it."""

    def write(*statuses: EditStatus, reason: str):
        writer = RunWriter(repo, RUN, clock_from(count()))
        file = patch_file(Patch(title="t", reasoning="r"), reports(*statuses, reason=reason))
        for sample in transitions():
            own = dict(sample.evidence) | (file if "patch.json" in sample.evidence else {})
            writer.append(sample.event, sample.skill, own, start="")
        return context

    return write


def surfaces(context, revision: str) -> dict[str, str]:
    """Return what each surface says of the event."""
    found, story = ask(show, context, revision), ask(why, context, "unit the question asks", revision)
    detail = ask(event_detail, context, found.row.commit)
    return {
        "show": "\n".join(shown_text.lines(found, SCREEN, context.clock(), SCREEN)),
        "why": "\n".join(why_text.lines(story, SCREEN, context.clock())),
        "screen": "\n".join(paragraph.text for paragraph in event_text.edits(detail)),
        "report": page(ask(report, context, RUN)),
    }


@pytest.mark.parametrize("status", sampled(SKIPPED, 3))
def test_every_surface_tells_status_and_reason(status, history):
    context = history(status, reason="for the sake of it")
    for surface, text in surfaces(context, "v1").items():
        assert "append: - Give the height in yards." in text, surface
        assert status.value in text, surface
        assert "for the sake of it" in text, surface


def test_what_quotes_a_secret_is_named_without_its_words(history):
    context = history(EditStatus.INVALID, reason=f"{QUARANTINED}quotes an answer of item q04")
    for surface, text in surfaces(context, "v1").items():
        assert "append SKILL.md" in text, surface
        assert "quotes an answer of item q04" in text, surface
        assert "yards" not in text, surface


def test_all_of_them_are_told_in_their_order(history):
    context = history(*SKIPPED, reason="so")
    assert [left.status for left in ask(show, context, "v1").left_out] == SKIPPED
    assert ask(why, context, "unit the question asks", "v1").gate.left_out == ask(show, context, "v1").left_out


def test_evidence_says_what_the_engine_knew(repo):
    told = reports(*SKIPPED, reason="so")
    tree = write_evidence(repo, patch_file(Patch(), told))
    assert StepEvidence(repo, tree).left_out() == left_out(told)
    assert StepEvidence(repo, "").left_out() == StepEvidence(repo, "0" * 40).left_out() == ()
