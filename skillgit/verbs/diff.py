"""The difference of two versions, and one event in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from skillgit.app.workspace.request import Arg, MisuseError, OfPast, OfSkill, Opt, refuse_together
from skillgit.errors import ExitCode
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import DOCUMENT, LIST, Answer, Form, Verb, VerbSession
from skillgit.view.surface import Screen

with loaded_on_use():
    from skillgit.app.history import log, plumbing
    from skillgit.app.history import show as showing
    from skillgit.app.history.diff import items, rules, stat, text
    from skillgit.app.workspace import revision_range
    from skillgit.view import diff as diff_view
    from skillgit.view import items as item_view
    from skillgit.view import rules as rule_view
    from skillgit.view import show as show_view

_WAYS = ("word", "side_by_side", "stat", "rules", "items")


@dataclass(frozen=True, kw_only=True)
class DiffRequest(OfSkill, OfPast):
    """Name them as A B or as A..B, of one run or of two. A alone is compared with the version that it was made from.
    PATH is a file of the skill.

    On a pipe the text is what git diff prints, byte for byte, so that git apply takes it. On a terminal the words that
    changed in a line are marked, and lines that moved say where to.

    What differs besides the text, such as the model, is named before any score, and then nothing is tested.
    """

    a: Annotated[str, Arg("A", words="revisions")]
    b: Annotated[str | None, Arg("[B]", words="revisions")] = None
    paths: Annotated[tuple[str, ...], Arg("PATH...", after_dashes=True)] = ()
    word: Annotated[bool, Opt("Mark changed words [-like-]{+this+}, as git diff --word-diff")] = False
    side_by_side: Annotated[bool, Opt("Show the two texts in two columns")] = False
    stat: Annotated[bool, Opt("Show how much changed: lines, rules, items, scores, length")] = False
    rules: Annotated[bool, Opt("Show which rules came and went, and by which step")] = False
    items: Annotated[bool, Opt("Show which items were fixed, which were broken, and which gained or lost")] = False
    lines: Annotated[int | None, Opt("Show N lines around a change", "-U --unified", metavar="N", least=0)] = None
    exit_code: Annotated[bool, Opt("Exit with 1 if there is a difference, with 0 if there is none")] = False


def _diff(session: VerbSession, request: DiffRequest) -> Answer:
    refuse_together(request, *_WAYS)
    refuse_together(request, "items", "paths")  # scores are those of the whole skill
    for way in ("stat", "rules", "items"):
        refuse_together(request, "lines", way)
    if session.tabular and not (request.rules or request.items):
        raise MisuseError("--plain needs --items or --rules")
    if session.form is Form.JSON and request.side_by_side:
        raise MisuseError("--side-by-side is for people; --json has the same lines")
    request = _with_ends(request)
    a, b, screen = request.a, request.b, session.screen
    if request.items:
        by_item = items.items(session.context, a, b)
        lines = item_view.flips(by_item, screen)
        answer = Answer(table=item_view.CHANGES, rows=by_item.rows, result=by_item, lines=lines, pager=True)
        differs = by_item.moved
    elif request.rules:
        by_rule = rules.rule_diff(session.context, a, b, request.paths)
        lines = rule_view.change_lines(by_rule, screen)
        answer = Answer(table=diff_view.RULES, rows=by_rule.rows, result=by_rule, lines=lines, pager=True)
        differs = bool(by_rule.rows)
    elif request.stat:
        sums = stat.stat(session.context, a, b, request.paths)
        answer, differs = Answer("diff-stat/1", sums, diff_view.stat_lines(sums, screen)), bool(sums.text)
    else:
        answer, differs = _text(session, request)
    answer.exit_code = ExitCode.NO if differs and request.exit_code else ExitCode.OK
    return answer


def _with_ends(request: DiffRequest) -> DiffRequest:
    """Return the request with A..B as A and B; ``v3..`` goes on to the newest version of the run, as in log."""
    if request.b is not None or ".." not in request.a:
        return request
    begin, end = revision_range.split_range(request.a) or (request.a, "")
    if not begin:
        raise MisuseError("name two versions, as in v3 v7 or v3..v7")
    run, slash, _ = begin.rpartition("/")
    return replace(request, a=begin, b=end or f"{run}{slash}head")


def _text(session: VerbSession, request: DiffRequest) -> tuple[Answer, bool]:
    screen, is_json = session.screen, session.form is Form.JSON
    git_screen = session.screen_for_diff
    view: Callable[[text.Diffed, Screen], Iterator[str]] | None = None
    if request.side_by_side:
        view = diff_view.side_by_side_lines
    elif not request.word and (screen.terminal or screen.colour) and git_screen is screen:
        # git's own text is for a pipe, and for a pager that colours diffs itself
        view = diff_view.unified_lines
    result = text.diff(
        session.context,
        request.a,
        request.b,
        request.paths,
        lines=request.lines,
        words=request.word,
        colour=request.word and git_screen.colour and not is_json,
        as_data=is_json or view is not None,
    )
    if view is not None:
        return Answer("diff/1", result, view(result, screen), pager=True), bool(result.text)
    is_seen = git_screen.terminal or git_screen.colour
    lines = diff_view.plain(result.text.decode(errors="replace")) if is_seen else [result.text]
    # a version that is named without its run is one of the default run, which may be another than the one meant
    is_silent = not is_json and not result.text and result.a is not None and result.b is not None
    sides = [str(row.address) for row in (result.a, result.b) if row is not None]
    notes = [(f"{' and '.join(sides)} have the same text", "")] if is_silent else ()
    return Answer("diff/1", result, lines, pager=is_seen, notes=notes), bool(result.text)


DIFF = Verb("diff", DiffRequest, _diff, forms=LIST)


@dataclass(frozen=True, kw_only=True)
class ShowRequest(OfSkill, OfPast):
    """Of an event it shows message, scores and diff. REV is the newest version of the default run unless you name one.

    REV:PATH prints a file byte for byte. PATH is in the skill folder, or else in the repository.
    """

    revision: Annotated[str, Arg("[REV[:PATH]]", words="revisions")] = "head"
    stat: Annotated[bool, Opt("Show how much it changed in which file, not the diff")] = False
    settings: Annotated[bool, Opt("Show the settings of its run; each line can be given to train with -o")] = False


def _show(session: VerbSession, request: ShowRequest) -> Answer:
    version, _, path = request.revision.partition(":")
    if version and path and "{" not in version:  # :/TEXT and REV^{/TEXT} are git's names of commits
        if request.stat or request.settings or session.form is Form.JSON:
            raise MisuseError("--stat, --settings and --json cannot be combined with REV:PATH")
        return Answer(lines=[plumbing.cat(session.context, request.revision)])
    if request.settings:
        settings = showing.run_settings(session.context, request.revision)
        return Answer("show-settings/1", settings, show_view.setting_lines(settings, session.screen), pager=True)
    report = showing.show(session.context, request.revision)
    if request.stat:
        texts = log.changes(session.context, [report.row], patch=False, stat=True)
        report = replace(report, diff="".join(change.decode(errors="replace") for _, change in texts))
    lines = show_view.lines(report, session.screen, session.now, session.screen_for_diff)
    return Answer("show/1", report, lines, pager=True)


SHOW = Verb("show", ShowRequest, _show, forms=DOCUMENT)
