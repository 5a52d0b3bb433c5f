"""The difference of two versions, and one event in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, TypeAlias

from skillgit.app.workspace.request import Arg, MisuseError, OfPast, OfSkill, Opt, refuse_together
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import ExitCode
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import DOCUMENT, LIST, Answer, Form, Verb, VerbSession
from skillgit.view.surface import Screen

with loaded_on_use():
    from skillgit.app.history import item, log, plumbing
    from skillgit.app.history import show as showing
    from skillgit.app.history.diff import items, rules, stat, text
    from skillgit.app.recorded import evaluation_notes
    from skillgit.app.workspace import revision_range
    from skillgit.view import diff as diff_view
    from skillgit.view import items as item_view
    from skillgit.view import rules as rule_view
    from skillgit.view import show as show_view

Diffed: TypeAlias = "text.Diffed"
Change: TypeAlias = "items.Change"
ItemChange: TypeAlias = "items.ItemChange"
ItemDiff: TypeAlias = "items.ItemDiff"
RulesDiffed: TypeAlias = "rules.RulesDiffed"
Shown: TypeAlias = "showing.Shown"
EventDetail: TypeAlias = "showing.EventDetail"
RunSetting: TypeAlias = "showing.RunSetting"
KnownEvaluation: TypeAlias = "evaluation_notes.KnownEvaluation"
_WAYS = ("word", "side_by_side", "stat", "rules", "items")


@dataclass(frozen=True, kw_only=True)
class DiffRequest(OfSkill, OfPast):
    """Name them as A B or as A..B, of one run or of two. A alone is compared with the version that it was made from.
    PATH is a file of the skill.

    On a pipe the text is what git diff prints, byte for byte, so that git apply takes it. On a terminal the words that
    changed in a line are marked, and lines that moved say where to.

    What differs besides the text, such as the model, is named before any score, and then nothing is tested.
    """

    a: Annotated[str, Arg("A", words="revisions", tool="a")]
    b: Annotated[str | None, Arg("[B]", words="revisions", tool="b")] = None
    paths: Annotated[tuple[str, ...], Arg("PATH...", after_dashes=True)] = ()
    word: Annotated[bool, Opt("Mark changed words [-like-]{+this+}, as git diff --word-diff")] = False
    side_by_side: Annotated[bool, Opt("Show the two texts in two columns")] = False
    stat: Annotated[bool, Opt("Show how much changed: lines, rules, items, scores, length")] = False
    rules: Annotated[bool, Opt("Show which rules came and went, and by which step", tool="rules")] = False
    items: Annotated[
        bool, Opt("Show which items were fixed, which were broken, and which gained or lost", tool="items")
    ] = False
    lines: Annotated[int | None, Opt("Show N lines around a change", "-U --unified", metavar="N", least=0)] = None
    exit_code: Annotated[bool, Opt("Exit with 1 if there is a difference, with 0 if there is none")] = False


def _diff(session: VerbSession, request: DiffRequest) -> Answer[Diffed | ItemDiff | RulesDiffed | stat.DiffStat]:
    refuse_together(request, *_WAYS)
    refuse_together(request, "items", "paths")  # scores are those of the whole skill
    for way in ("stat", "rules", "items"):
        refuse_together(request, "lines", way)
    if session.tabular and not (request.rules or request.items):
        raise MisuseError("--plain needs --items or --rules")
    if session.form is Form.JSON and request.side_by_side:
        raise MisuseError("--side-by-side is for people; --json has the same lines")
    if request.items:
        return _by_item(session, request)
    if request.rules:
        return _by_rule(session, request)
    if request.stat:
        a, b = _ends(request)
        sums = stat.stat(session.workspace, a, b, request.paths)
        lines = diff_view.stat_lines(sums, session.screen)
        return Answer("diff-stat/1", sums, lines, exit_code=_exit_code(request, differs=bool(sums.text)))
    return _text(session, request)


def _exit_code(request: DiffRequest, *, differs: bool) -> ExitCode:
    return ExitCode.NO if differs and request.exit_code else ExitCode.OK


def _by_item(session: VerbSession, request: DiffRequest) -> Answer[ItemDiff]:
    result = items.items(session.workspace, *_ends(request))
    return Answer(
        table=item_view.CHANGES,
        rows=result.rows,
        result=result,
        lines=item_view.flips(
            result, session.screen, partial(sayings, session.workspace, [result.a.commit, result.b.commit])
        ),
        pager=True,
        exit_code=_exit_code(request, differs=result.moved),
    )


def sayings(workspace: Workspace, revisions: Sequence[str], items: Sequence[str], screen: Screen) -> dict[str, str]:
    """Return on one line what each of ``items`` asks, and what ``revisions`` answered."""
    return item_view.said(item.item_words(workspace, revisions, items), screen)


def _by_rule(session: VerbSession, request: DiffRequest) -> Answer[RulesDiffed]:
    a, b = _ends(request)
    result = rules.rule_diff(session.workspace, a, b, request.paths)
    return Answer(
        table=diff_view.RULES,
        rows=result.rows,
        result=result,
        lines=rule_view.change_lines(result, session.screen),
        pager=True,
        exit_code=_exit_code(request, differs=bool(result.rows)),
    )


def _ends(request: DiffRequest) -> tuple[str, str | None]:
    """Return the two sides, those of A..B too; ``v3..`` goes on to the newest version of the run, as in log."""
    if request.b is not None or ".." not in request.a:
        return request.a, request.b
    begin, end = revision_range.split_range(request.a) or (request.a, "")
    if not begin:
        raise MisuseError("name two versions, as in v3 v7 or v3..v7")
    run, slash, _ = begin.rpartition("/")
    return begin, end or f"{run}{slash}head"


def _text(session: VerbSession, request: DiffRequest) -> Answer[Diffed]:
    screen, is_data = session.screen, session.form is not Form.TEXT
    git_screen = session.screen_for_diff
    view: Callable[[text.Diffed, Screen], Iterator[str]] | None = None
    if request.side_by_side:
        view = diff_view.side_by_side_lines
    elif not request.word and (screen.terminal or screen.colour) and git_screen is screen:
        # git's own text is for a pipe, and for a pager that colours diffs itself
        view = diff_view.unified_lines
    a, b = _ends(request)
    result = text.diff(
        session.workspace,
        a,
        b,
        request.paths,
        lines=request.lines,
        words=request.word,
        colour=request.word and git_screen.colour and not is_data,
        as_data=is_data or view is not None,
    )
    exit_code = _exit_code(request, differs=bool(result.text))
    if view is not None:
        return Answer("diff/1", result, view(result, screen), pager=True, exit_code=exit_code)
    is_seen = git_screen.terminal or git_screen.colour
    lines = diff_view.plain(result.text.decode(errors="replace")) if is_seen else [result.text]
    # a version that is named without its run is one of the default run, which may be another than the one meant
    is_silent = not is_data and not result.text and result.a is not None and result.b is not None
    sides = [str(row.address) for row in (result.a, result.b) if row is not None]
    notes = [(f"{' and '.join(sides)} have the same text", "")] if is_silent else ()
    return Answer("diff/1", result, lines, pager=is_seen, notes=notes, exit_code=exit_code)


DIFF = Verb("diff", DiffRequest, _diff, forms=LIST)
TEXT_DIFF = Verb("diff", DiffRequest, _text)
ITEM_DIFF = Verb("diff", DiffRequest, _by_item)
RULE_DIFF = Verb("diff", DiffRequest, _by_rule)


@dataclass(frozen=True, kw_only=True)
class ShowRequest(OfSkill, OfPast):
    """Of an event it shows message, scores and diff. REV is the newest version of the default run unless you name one.

    REV:PATH prints a file byte for byte. PATH is in the skill folder, or else in the repository.
    """

    revision: Annotated[str, Arg("[REV[:PATH]]", words="revisions", tool="revision")] = "head"
    stat: Annotated[bool, Opt("Show how much it changed in which file, not the diff")] = False
    settings: Annotated[bool, Opt("Show the settings of its run; each line can be given to train with -o")] = False


def _show(session: VerbSession, request: ShowRequest) -> Answer[Shown | showing.RunSettings | bytes]:
    version, _, path = request.revision.partition(":")
    if version and path and "{" not in version:  # :/TEXT and REV^{/TEXT} are git's names of commits
        if request.stat or request.settings or session.form is Form.JSON:
            raise MisuseError("--stat, --settings and --json cannot be combined with REV:PATH")
        return _file(session, request)
    return _settings(session, request) if request.settings else _event(session, request)


def _file(session: VerbSession, request: ShowRequest) -> Answer[bytes]:
    content = plumbing.cat(session.workspace, request.revision)
    return Answer(result=content, lines=[content])


def _settings(session: VerbSession, request: ShowRequest) -> Answer[showing.RunSettings]:
    result = showing.run_settings(session.workspace, request.revision)
    return Answer("show-settings/1", result, show_view.setting_lines(result, session.screen), pager=True)


def _event(session: VerbSession, request: ShowRequest) -> Answer[Shown]:
    report = showing.show(session.workspace, request.revision)
    if request.stat:
        texts = log.changes(session.workspace, [report.row], patch=False, stat=True)
        report = replace(report, diff="".join(change.decode(errors="replace") for _, change in texts))
    lines = show_view.lines(report, session.screen, session.now, session.screen_for_diff)
    return Answer("show/1", report, lines, pager=True)


def _detail(session: VerbSession, request: ShowRequest) -> Answer[EventDetail]:
    return Answer(result=showing.event_detail(session.workspace, request.revision))


SHOW = Verb("show", ShowRequest, _show, forms=DOCUMENT)
SHOWN_FILE = Verb("show", ShowRequest, _file)
SHOWN_SETTINGS = Verb("show", ShowRequest, _settings)
SHOWN_EVENT = Verb("show", ShowRequest, _event)
EVENT_DETAIL = Verb("show", ShowRequest, _detail)
"""An event with more than is printed: its difference as data, its neighbours, and what its evidence says."""
