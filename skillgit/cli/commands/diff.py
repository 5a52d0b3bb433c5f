"""Commands that show what an event, or all between two versions, changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import (
    ClickVerb,
    as_of_option,
    complete_revisions,
    document_form,
    flag,
    forms,
    option,
    skill_option,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.errors import ExitCode
from skillgit.verbs.verb import Form
from skillgit.view.lists import LISTS
from skillgit.view.show import lines, setting_lines
from skillgit.view.surface import Screen

if TYPE_CHECKING:
    from skillgit.app.history.diff.text import Diffed


_PATHS = "skillgit.diff.paths"
_LISTS = frozenset({"items", "rules"})


class _Diff(ClickVerb):
    """A command that takes files behind ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            index = args.index("--")
            args, ctx.meta[_PATHS] = args[:index], tuple(args[index + 1 :])
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- PATH...]"]


@click.command("diff", cls=_Diff)
@click.argument("a", shell_complete=complete_revisions)
@click.argument("b", required=False, shell_complete=complete_revisions)
@flag("--word", "Mark changed words [-like-]{+this+}, as git diff --word-diff")
@flag("--side-by-side", "Show the two texts in two columns")
@flag("--stat", "Show how much changed: lines, rules, items, scores, length")
@flag("--rules", "Show which rules came and went, and by which step")
@flag("--items", "Show which items were fixed, which were broken, and which gained or lost")
@flag("--tui", "Compare the two on the screen: text, rules and items")
@option("-U --unified lines", "Show N lines around a change", type=click.IntRange(min=0), metavar="N")
@flag("--exit-code", "Exit with 1 if there is a difference, with 0 if there is none")
@skill_option
@as_of_option
@forms(Form.JSON, Form.PLAIN, Form.NUL)
@click.pass_obj
def diff_command(
    session: CommandSession, /, a: str, b: str | None, *, lines: int | None, exit_code: bool, **ways: bool
) -> ExitCode:
    """Show the difference of two versions.

    Name them as A B or as A..B, of one run or of two. A alone is compared with the version that it was made from.
    PATH is a file of the skill.

    On a pipe the text is what git diff prints, byte for byte, so that git apply takes it. On a terminal the words that
    changed in a line are marked, and lines that moved say where to.

    What differs besides the text, such as the model, is named before any score, and then nothing is tested.
    """
    ctx = click.get_current_context()
    if b is None and ".." in a:
        a, b = _ends(ctx, a)
    paths: tuple[str, ...] = ctx.meta.get(_PATHS, ())
    names = [way for way, is_chosen in ways.items() if is_chosen]
    if len(names) > 1:
        raise click.UsageError(f"{_option(names[0])} and {_option(names[1])} do not go together", ctx)
    view = "".join(names)  # the one way to show the difference; empty for its text
    _refuse(ctx, view, session.form, lines=lines is not None, exit_code=exit_code, paths=bool(paths))
    if view == "tui":
        return _on_screen(session, a, b)
    if view == "items":
        differs = _items(session, a, b)
    elif view == "rules":
        differs = _rules(session, a, b, paths)
    elif view == "stat":
        differs = _stat(session, a, b, paths)
    else:
        differs = _text(session, a, b, paths, way=view, lines=lines)
    return ExitCode.NO if differs and exit_code else ExitCode.OK


def _option(way: str) -> str:
    return f"--{way.replace('_', '-')}"


def _refuse(ctx: click.Context, view: str, form: Form, *, lines: bool, exit_code: bool, paths: bool) -> None:
    if form in {Form.PLAIN, Form.NUL} and view not in _LISTS:
        raise click.UsageError("--plain and -z go with --items and --rules", ctx)
    if form is Form.JSON and view in {"side_by_side", "tui"}:
        raise click.UsageError(f"{_option(view)} is for people; --json has the same lines", ctx)
    if lines and view in _LISTS | {"stat", "tui"}:
        raise click.UsageError(f"-U goes with the text of a difference, not with {_option(view)}", ctx)
    if view == "items" and paths:
        raise click.UsageError("--items goes without PATH: scores are those of the whole skill", ctx)
    if view == "tui" and paths:
        raise click.UsageError("--tui goes without PATH: it shows the whole skill", ctx)
    if view == "tui" and exit_code:
        raise click.UsageError("--tui and --exit-code do not go together", ctx)


def _on_screen(session: CommandSession, a: str, b: str | None) -> ExitCode:
    from skillgit.app.history.diff.text import diff  # noqa: PLC0415 - see the package
    from skillgit.cli.session import require_terminal  # noqa: PLC0415 - likewise

    require_terminal(session, "diff --tui", instead="skillgit diff")
    result = diff(session.context, a, b)
    from skillgit.tui.app import SkillgitApp  # noqa: PLC0415 - slow to import
    from skillgit.tui.screens.compare import CompareScreen  # noqa: PLC0415 - likewise

    sides = [str(row.address) if row is not None else name for row, name in ((result.a, a), (result.b, b or a))]
    opening = partial(CompareScreen, *sides)
    SkillgitApp(session.context, opening=opening, unicode=session.screen.unicode).run()
    return ExitCode.OK


def _ends(ctx: click.Context, text: str) -> tuple[str, str]:
    """Return both ends of a range; ``v3..`` goes on to the newest version of the run, as in log."""
    from skillgit.app.workspace.revision_range import split_range  # noqa: PLC0415 - see the package

    begin, end = split_range(text) or (text, "")
    if not begin:
        raise click.UsageError("name two versions, as in v3 v7 or v3..v7", ctx)
    run, slash, _ = begin.rpartition("/")
    return begin, end or f"{run}{slash}head"


def _text(
    session: CommandSession, a: str, b: str | None, paths: tuple[str, ...], *, way: str, lines: int | None
) -> bool:
    from skillgit.app.history.diff.text import diff  # noqa: PLC0415 - see the package

    screen, by_word = session.screen_for_diff, way == "word"
    view, is_json = _view(session, way), session.form is Form.JSON
    result = diff(
        session.context,
        a,
        b,
        paths,
        lines=lines,
        words=by_word,
        colour=by_word and screen.colour and not is_json,
        as_data=is_json or view is not None,
    )
    if is_json or view is not None:
        session.show("diff/1", result, view(result, session.screen) if view is not None else (), pager=True)
    elif screen.terminal or screen.colour:
        from skillgit.view import diff as text_diff  # noqa: PLC0415 - a pipe does not need it

        session.page(text_diff.plain(result.text.decode(errors="replace")))
    else:
        session.output.raw(result.text)
    is_silent = not result.text and not is_json and view is None
    if is_silent and result.a is not None and result.b is not None:
        # a version that is named without its run is one of the default run, which may be another than the one meant
        session.diagnostics.note(f"{result.a.address} and {result.b.address} have the same text")
    return bool(result.text)


def _view(session: CommandSession, way: str) -> Callable[[Diffed, Screen], Iterator[str]] | None:
    """Return what shows the text to a person; None where git's own text is wanted: by a pipe, by a pager like delta."""
    screen = session.screen
    if way == "side_by_side":
        from skillgit.view.diff import side_by_side_lines as paired  # noqa: PLC0415 - a pipe does not need it

        return paired
    if way == "word" or not (screen.terminal or screen.colour) or session.screen_for_diff is not screen:
        return None
    from skillgit.view.diff import unified_lines as unified  # noqa: PLC0415 - a pipe does not need it

    return unified


def _stat(session: CommandSession, a: str, b: str | None, paths: tuple[str, ...]) -> bool:
    from skillgit.app.history.diff.items import stat  # noqa: PLC0415 - see the package
    from skillgit.view.diff import stat_lines  # noqa: PLC0415 - as above

    result = stat(session.context, a, b, paths)
    session.show("diff-stat/1", result, stat_lines(result, session.screen))
    return bool(result.text)


def _rules(session: CommandSession, a: str, b: str | None, paths: tuple[str, ...]) -> bool:
    from skillgit.app.history.diff.rules import rule_diff  # noqa: PLC0415 - see the package
    from skillgit.view.rules import change_lines  # noqa: PLC0415 - as above

    result = rule_diff(session.context, a, b, paths)
    session.listing(LISTS["diff --rules"], result.rows, change_lines(result, session.screen), head=result, pager=True)
    return bool(result.rows)


def _items(session: CommandSession, a: str, b: str | None) -> bool:
    from skillgit.app.history.diff.items import items  # noqa: PLC0415 - see the package
    from skillgit.view.items import CHANGES, flips  # noqa: PLC0415 - as above

    result = items(session.context, a, b)
    session.listing(CHANGES, result.rows, flips(result, session.screen), head=result, pager=True)
    return result.moved


@verb("show")
@click.argument("revision", metavar="REV[:PATH]", default="head", shell_complete=complete_revisions)
@flag("--stat", "Show how much it changed in which file, not the diff")
@flag("--settings", "Show the settings of its run; each line can be given to train with -o")
@skill_option
@as_of_option
@document_form
@click.pass_obj
def show_command(session: CommandSession, revision: str, *, stat: bool, settings: bool) -> None:
    """Show one event, or a file of a version.

    Of an event it shows message, scores and diff. REV is the newest version of the default run unless you name one.

    REV:PATH prints a file byte for byte. PATH lies in the skill folder, or else in the repository.
    """
    version, _, path = revision.partition(":")
    if version and path and "{" not in version:  # :/TEXT and REV^{/TEXT} are git's names of commits
        if stat or settings or session.form is Form.JSON:
            raise click.UsageError("--stat, --settings and --json do not go with REV:PATH", click.get_current_context())
        from skillgit.app.history.plumbing import cat  # noqa: PLC0415 - see the package

        return session.output.raw(cat(session.context, revision))
    if settings:
        from skillgit.app.history.show import run_settings  # noqa: PLC0415 - see the package

        configuration = run_settings(session.context, revision)
        return session.show("show-settings/1", configuration, setting_lines(configuration, session.screen), pager=True)
    from skillgit.app.history.show import show  # noqa: PLC0415 - see the package

    report = show(session.context, revision)
    if stat:
        from skillgit.app.history.log import changes  # noqa: PLC0415 - see the package

        texts = changes(session.context, [report.row], patch=False, stat=True)
        report = replace(report, diff="".join(text.decode(errors="replace") for _, text in texts))
    text = lines(report, session.screen, session.now, session.screen_for_diff)
    return session.show("show/1", report, text, pager=True)
