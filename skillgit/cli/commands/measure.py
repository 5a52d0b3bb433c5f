"""Commands that measure versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from skillgit.cli import options
from skillgit.cli.options import (
    carried_out,
    complete_revisions,
    config_option,
    document_form,
    flag,
    measured,
    note_option,
    option,
    override_option,
    quiet_option,
    skill_option,
    spending_options,
    split_option,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.domain.gate_policies import POLICIES
from skillgit.errors import ExitCode
from skillgit.verbs.verb import Form
from skillgit.view.measurements import checked_lines, claim_lines, eval_lines, retest_lines, verify_lines

_SAMPLE = 20
SPLITS = ("train", "selection", "test", "all")


@verb("eval")
@click.argument("revisions", metavar="REV...", nargs=-1, shell_complete=complete_revisions)
@config_option
@override_option
@split_option(SPLITS)
@option(
    "--against",
    "Compare with these versions, item by item; none is no skill",
    multiple=True,
    metavar="REV,...",
    shell_complete=complete_revisions,
)
@flag("--fresh", "Draw every item afresh, and compare with what the run recorded")
@option(
    "--model",
    "Measure under another target, BACKEND/MODEL or a model of the run's backend",
    metavar="M",
    shell_complete=options.complete_models,
)
@flag("--judge", "Grade the recorded results of REV again, and say how far the judge agrees with itself")
@option("--repeats", "With --judge: grade each result N times  [default: 3]", type=click.IntRange(min=1), metavar="N")
@option("--items", "With --judge: draw N items  [default: 40]", type=click.IntRange(min=1), metavar="N")
@option(
    "--with other_judge",
    "With --judge: compare with another judge, BACKEND/MODEL, a model of its backend, or that of a CONFIG.yaml",
    metavar="M",
    shell_complete=options.complete_models,
)
@option(
    "--labels",
    "With --judge: compare with the labels of results in FILE, one JSON object a line",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
)
@note_option()
@spending_options
@quiet_option
@skill_option
@document_form
@click.pass_obj
def eval_command(
    session: CommandSession,
    /,
    *,
    revisions: tuple[str, ...],
    against: tuple[str, ...],
    fresh: bool,
    model: str | None,
    judge: bool,
    **terms: Any,  # noqa: ANN401 - the options that all ways to measure share
) -> int:
    """Measure versions side by side and note the scores on their commits.

    They are measured as the run of the first one was: same items, same model, same seed. Commits that belong to no run
    are measured as the default run was if it trains the skill, else as the newest run of the skill with language
    models, else as its newest run. WORKTREE is the text of the work tree, committed or not. What was measured before
    costs nothing. Exits with 5 if too few items could be evaluated.

    With --fresh every item is drawn anew, so that drift and noise show, and with --model under another target. Each
    version is then paired with what its run recorded; under another model nothing is tested.

    With --judge no target is asked. Recorded results of one version, or those in the file of --labels, are graded
    several times: how often a verdict flips, Krippendorff's alpha, kappa against another judge and against labels, what
    place does to comparisons, and what grading alone does to a score. Exits with 1 if alpha is below .667. A run that
    asks the same judge by the same criteria says so before its first call.

    The test split is for the end. Each evaluation on it is counted, and show says how many a version has had.
    """
    from skillgit.app.measure.eval import EvalRequest, evaluate  # noqa: PLC0415 - see the package
    from skillgit.app.measure.retest import RetestRequest, retest  # noqa: PLC0415 - as above

    names = tuple(name for names in against for name in names.split(",") if name)
    of_judge = {name: value for name in _OF_JUDGE if (value := terms.pop(name)) is not None}
    if judge:
        modes = {
            "--fresh": fresh,
            "--model": model is not None,
            "--against": names,
            "--no-note": not terms.pop("note"),
        }
        if conflicts := [name for name, is_given in modes.items() if is_given]:
            raise click.UsageError(f"--judge cannot be combined with {conflicts[0]}", click.get_current_context())
        return _judge_agreement(session, revisions, of_judge | terms)
    if not revisions:
        raise click.UsageError("name a version to measure", click.get_current_context())
    if of_judge:
        raise click.UsageError(f"{_OF_JUDGE[next(iter(of_judge))]} needs --judge", click.get_current_context())
    if fresh or model is not None:
        if names or terms["split"] == "all":
            lacks = "--against" if names else "--split all"
            raise click.UsageError(f"{lacks} goes without --fresh and --model", click.get_current_context())
        again = RetestRequest(revisions=revisions, model=model, **terms)
        repetition = measured(session, retest, again, "retest/2", retest_lines)
        return int(repetition.exit_code) if repetition else ExitCode.OK
    request = EvalRequest(revisions=revisions, against=names, **terms)
    result = measured(session, evaluate, request, "eval/1", eval_lines)
    return int(result.exit_code) if result else ExitCode.OK


_OF_JUDGE = {"repeats": "--repeats", "items": "--items", "other_judge": "--with", "labels": "--labels"}


def _judge_agreement(session: CommandSession, revisions: tuple[str, ...], terms: dict[str, Any]) -> int:
    from skillgit.app.measure.judge_agreement import JudgeRequest, judge_agreement  # noqa: PLC0415 - see the package
    from skillgit.view.judges import judge_lines  # noqa: PLC0415 - as above

    if len(revisions) > 1:
        raise click.UsageError("--judge takes the results of one version", click.get_current_context())
    request = JudgeRequest(revision=next(iter(revisions), None), **terms)
    result = measured(session, judge_agreement, request, "judge-agreement/1", judge_lines)
    return int(result.exit_code) if result else ExitCode.OK


@verb("claim")
@click.argument("revision", metavar="REV", shell_complete=complete_revisions)
@split_option(("selection", "test"), "Which score to claim")
@option("--key", "Sign with this SSH key, not with git's", metavar="FILE", type=click.Path(dir_okay=False))
@option("--output", "Write the claim to FILE too", metavar="FILE", type=click.Path(dir_okay=False))
@flag("--evidence public", "Say that the evidence is published: skillgit push --evidence")
@flag("--salt with_salt", "Hide which items they are behind a salt, which is printed and not kept")
@note_option("the commit")
@skill_option
@document_form
@click.pass_obj
def claim_command(session: CommandSession, /, **choices: Any) -> None:  # noqa: ANN401 - they bear the names of the request's fields
    """Sign what history says of a version's score, for people who do not know you.

    The claim is an in-toto statement: which bytes, items, models, scorer and gate, and what came of them, with digests
    that anyone with the history can make again. It is signed with the SSH key that git signs with, offline, and is left
    as a note on the version's commit. It holds no path, no name of a person and no price. skillgit verify --claim
    checks it.
    """
    from skillgit.app.measure.claim import ClaimRequest, claim  # noqa: PLC0415 - see the package

    result = claim(session.context, ClaimRequest(**choices))
    session.show("claim/1", result, claim_lines(result, session.screen))


@verb("verify")
@click.argument("revision", metavar="[REV]", required=False, shell_complete=complete_revisions)
@option("--claim", "Check a signed claim: a file, or a version with a claim in its note", metavar="FILE|REV")
@option("--signers", "With --claim: whose keys count, as ssh-keygen's ALLOWED SIGNERS", metavar="FILE")
@option("--skill", "With --claim: the folder of a skill to compare with it", metavar="DIR", type=click.Path())
@option("--salt", "With --claim: what opens its digests of items", metavar="HEX")
@option("--sample", "How many items to draw  [default: 20; with --claim none]", type=click.IntRange(min=1), metavar="N")
@option(
    "--seed", "Decides which items are drawn", type=click.IntRange(min=0), default=0, show_default=True, metavar="S"
)
@split_option(("selection", "test"), "Which items to draw from")
@config_option
@override_option
@note_option("the commit")
@spending_options
@quiet_option
@document_form
@click.pass_obj
def verify_command(
    session: CommandSession,
    /,
    *,
    revision: str | None,
    claim: str | None,
    sample: int | None,
    split: str,
    **terms: Any,  # noqa: ANN401 - the options that both ways to verify share
) -> ExitCode:
    """Measure a version again and say whether its score, or a claim of it, holds.

    A sample of the items is drawn and measured afresh, and compared item by item with what was recorded. The answer is
    consistent, lower, higher or not comparable; the last if items, environment or target are not those of the run, and
    then nothing is spent. Exits with 1 unless it is consistent.

    With --claim no model is asked, unless --sample says so. Three answers are told apart: by whom it is signed; whether
    the history and evidence here come to the same values; and whether a sample of the items does again. Exits with 1 if
    one of them is no, and with 21 if the key is not known from --signers and not every value could be made again.
    """
    from skillgit.app.measure.verify import VerifyRequest, verify  # noqa: PLC0415 - see the package

    aside = {name: terms.pop(name) for name in ("signers", "skill", "salt")}
    if (revision is None) == (claim is None):
        raise click.UsageError("give either REV or --claim", click.get_current_context())
    if claim is not None:
        if click.get_current_context().get_parameter_source("split") is ParameterSource.COMMANDLINE:
            raise click.UsageError("a claim names its split itself", click.get_current_context())
        from skillgit.app.measure.claim_check import ClaimCheckRequest, check_claim  # noqa: PLC0415 - see the package

        again = None if sample is None else VerifyRequest(revision="", split="", sample=sample, **terms)
        settings = {name: terms[name] for name in ("config", "overrides")}
        claim_request = ClaimCheckRequest(claim=claim, folder=aside.pop("skill"), again=again, **settings, **aside)
        report = measured(session, check_claim, claim_request, "verify-claim/1", checked_lines)
        return ExitCode.OK if report is None else report.exit_code
    if names := [f"--{name}" for name, value in aside.items() if value is not None]:
        raise click.UsageError(f"{names[0]} goes with --claim", click.get_current_context())
    request = VerifyRequest(revision=revision or "", sample=sample or _SAMPLE, split=split, **terms)
    result = measured(session, verify, request, "verify/2", verify_lines)
    return ExitCode.OK if result is None or result.verdict.word == "consistent" else ExitCode.NO


@verb("gate")
@option("--base", "What the head would replace", metavar="REV", required=True, shell_complete=complete_revisions)
@option("--head", "What to judge", metavar="REV", default="HEAD", show_default=True, shell_complete=complete_revisions)
@option(
    "--config configs",
    "Measure SKILL as CONFIG says, not as its run did",
    multiple=True,
    metavar="[SKILL=]CONFIG",
    shell_complete=options.complete_configs,
)
@override_option
@split_option(("selection", "test"))
@option("--rule", "How to compare; without it as the configuration says", type=click.Choice(tuple(POLICIES)))
@option(
    "--library",
    "Judge without a model what agents show of the skills in DIR",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
)
@flag("--recorded-only", "Measure nothing; say which outcomes are not recorded")
@note_option()
@spending_options
@quiet_option
@flag("--markdown", "Print Markdown, for a comment on a pull request")
@option(
    "--output",
    "Write Markdown, or with --json the document, to FILE",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
)
@skill_option
@document_form
@click.pass_obj
def gate_command(
    session: CommandSession,
    /,
    *,
    rule: str | None,
    library: Path | None,
    dry_run: bool,
    markdown: bool,
    output: Path | None,
    **options: object,
) -> int:
    """Judge the skills that a pull request changes by their scores.

    Every skill that the head changed since it left the base is compared with what is at the base.
    Outcomes that runs and notes tell of the same text are taken from there; only the others are measured, and noted.
    Without --config a skill is measured as the default run was if it trains the skill, else as the newest run of the
    skill with language models, else as its newest run. WORKTREE is the text of the work tree, committed or not.

    Exits with 0 if every changed skill passes or none is changed, with 1 if one does not pass, with 5 if too few items
    could be evaluated, and with 21 if it cannot be told: outcomes are not recorded, no configuration is known, or the
    items are too few for the rule.

    With --library nothing is measured: the head is refused if it shadows another skill of the library, because agents
    show less of that one, or because name or description are nearly the same.
    """
    from skillgit.app.measure.library_gate import library_gate  # noqa: PLC0415 - see the package
    from skillgit.app.measure.pull_request_gate import GateRequest, gate  # noqa: PLC0415 - see the package
    from skillgit.cli.output import output_to  # noqa: PLC0415 - see the package
    from skillgit.view.gate import library_lines, lines  # noqa: PLC0415 - as above
    from skillgit.view.gate import markdown as as_markdown  # noqa: PLC0415 - as above

    if library is not None:
        if dry_run or markdown or output is not None or options["configs"]:
            raise click.UsageError("--library measures nothing and prints a few lines", click.get_current_context())
        verdict = library_gate(session.context, str(options["base"]), str(options["head"]), library)
        session.show("library-gate/1", verdict, library_lines(verdict, session.screen))
        return int(verdict.exit_code)
    if dry_run and (markdown or output is not None):
        raise click.UsageError("a dry run has no verdict to write", click.get_current_context())
    if markdown and session.form is Form.JSON:
        raise click.UsageError("choose one output format", click.get_current_context())
    # The other options bear the names of what is asked for.
    request = GateRequest(rule=rule, dry_run=dry_run, **options)  # type: ignore[arg-type]
    report = carried_out(session, gate, request)
    if report is None:
        return ExitCode.OK
    if output is not None:
        with output_to(session.context.directory / output) as file:
            replace(session, output=file).show("gate/2", report, as_markdown(report))
        session.output.text(lines(report, session.screen))
    else:
        session.show("gate/2", report, as_markdown(report) if markdown else lines(report, session.screen))
    return int(report.exit_code)
