"""Commands that measure versions, and that say whether a score holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from skillgit.app.measure.requests import (
    ALL,
    AblateRequest,
    ClaimRequest,
    EvalRequest,
    GateRequest,
    VerifyRequest,
)
from skillgit.app.skill_format.atomic_write import write_output
from skillgit.app.workspace.request import MisuseError, refuse_together, refuse_without
from skillgit.errors import ExitCode
from skillgit.lazy import loaded_on_use
from skillgit.verbs.measuring import measured
from skillgit.verbs.output_file import STDOUT, clear_outputs, refuse_two_answers
from skillgit.verbs.verb import Answer, Effect, TerminalSession, Verb, VerbSession
from skillgit.view.surface import Screen

with loaded_on_use():
    from skillgit.app.interventions import ablate
    from skillgit.app.measure import (
        claim,
        claim_check,
        envelope,
        judge_agreement,
        pull_request_gate,
        pull_request_verdicts,
        retest,
        verify,
    )
    from skillgit.app.measure import eval as evaluation
    from skillgit.view import gate, judges, measurements, rules


def _eval(session: TerminalSession, request: EvalRequest) -> Answer[object]:
    for option in ("repeats", "items", "other_judge", "labels"):
        refuse_without(request, "judge", option)
    for option in ("fresh", "model", "against", "note"):
        refuse_together(request, "judge", option)
    for option in ("fresh", "model"):
        refuse_together(request, option, "against")
        if getattr(request, option) and request.split == ALL:
            raise MisuseError(f"--{option} cannot be combined with --split all")
    for option in ("fresh", "model", "judge", "dry_run"):
        refuse_together(request, option, "junit")
    refuse_without(request, "fresh", "sample")
    refuse_without(request, "sample", "seed")
    refuse_together(request, "sample", "model")
    names = (name for names in request.against for name in names.split(","))
    request = replace(request, against=tuple(filter(None, names)))
    if (request.judge or request.sample) and len(request.revisions) > 1:
        raise MisuseError(f"{'--judge' if request.judge else '--sample'} takes one version")
    if request.judge:
        agreement, lines = judge_agreement.judge_agreement, judges.judge_lines
        return measured(session, agreement, request, "judge-agreement/1", lines, ends_with=lambda it: it.exit_code)
    if not request.revisions:
        raise MisuseError("name a version to measure")
    if request.sample:
        return measured(
            session,
            verify.verify,
            request,
            "verify/2",
            measurements.verify_lines,
            ends_with=lambda it: ExitCode.OK if it.verdict.word == "consistent" else ExitCode.NO,
        )
    if request.fresh or request.model is not None:
        lines_of = measurements.retest_lines
        return measured(session, retest.retest, request, "retest/2", lines_of, ends_with=lambda it: it.exit_code)
    clear_outputs(session, junit=request.junit)
    lines_of_eval = measurements.eval_lines
    return measured(session, evaluation.evaluate, request, "eval/1", lines_of_eval, ends_with=lambda it: it.exit_code)


EVAL = Verb("eval", EvalRequest, _eval, Effect.PAYS)


def _claim(session: VerbSession, request: ClaimRequest) -> Answer[object]:
    refuse_two_answers(session, request.output)
    result = claim.claim(session.context, request)
    if request.output == STDOUT:
        return Answer(lines=[envelope.document_bytes(result.envelope)])
    return Answer("claim/1", result, measurements.claim_lines(result, session.screen))


CLAIM = Verb(
    "claim",
    ClaimRequest,
    _claim,
    lambda request: (
        Effect.HISTORY if request.note else Effect.READS if request.output in {"", STDOUT} else Effect.FILES
    ),
)


def _verify(session: TerminalSession, request: VerifyRequest) -> Answer[object]:
    refuse_without(request, "sample", "seed")
    lines = measurements.checked_lines
    return measured(
        session, claim_check.check_claim, request, "verify-claim/1", lines, ends_with=lambda it: it.exit_code
    )


VERIFY = Verb("verify", VerifyRequest, _verify, lambda request: Effect.PAYS if request.sample else Effect.READS)


def _gate(session: TerminalSession, request: GateRequest) -> Answer[object]:
    if request.dry_run and (request.output or request.junit):
        raise MisuseError("a dry run has no verdict to write")
    refuse_two_answers(session, request.output)
    clear_outputs(session, junit=request.junit, output=request.output)

    def lines(report: pull_request_verdicts.GateReport, screen: Screen) -> Iterable[str]:
        return gate.markdown(report) if request.output == STDOUT else gate.lines(report, screen)

    answer = measured(session, pull_request_gate.gate, request, "gate/2", lines, ends_with=lambda it: it.exit_code)
    if request.output not in {"", STDOUT}:
        report = cast("pull_request_verdicts.GateReport", answer.result)  # no dry run writes a file
        text = "".join(f"{line}\n" for line in map(Screen().shown, gate.markdown(report)))
        write_output(session.context.directory / request.output, text.encode())
    return answer


def _gate_effect(request: GateRequest) -> Effect:
    if not request.recorded_only:
        return Effect.PAYS
    return Effect.READS if request.output in {"", STDOUT} and not request.junit else Effect.FILES


GATE = Verb("gate", GateRequest, _gate, _gate_effect)


def _ablate(session: TerminalSession, request: AblateRequest) -> Answer[object]:
    return measured(session, ablate.ablate, request, "ablate/1", rules.ablated, ends_with=lambda it: it.exit_code)


ABLATE = Verb("ablate", AblateRequest, _ablate, Effect.PAYS)
