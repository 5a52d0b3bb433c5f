"""``skillgit tui``: the screens on a terminal, or served to a browser."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import click

from skillgit.cli.browser import opened_privately
from skillgit.cli.options import complete_runs, flag, option, skill_option, verb
from skillgit.cli.session import CommandSession, require_terminal


def served(
    session: CommandSession, run: str, *, ascii_only: bool, mouse: bool, host: str | None, port: int, opens: bool
) -> None:
    from skillgit.app.history.status import runs  # noqa: PLC0415 - see the package
    from skillgit.tui.web import DRIVER, require_extra  # noqa: PLC0415 - see the package

    require_extra()
    from skillgit.tui.web.server import LOOPBACK, listen, serve  # noqa: PLC0415 - it needs the extra

    # an error that concerns all screens is told before there are any
    runs(session.context)
    site = listen(host or LOOPBACK, port)
    tell = session.diagnostics
    if not site.local:
        tell.note(f"warning: other machines reach {site.host}, and what goes there can be read and changed on its way")
        tell.hint(f"better: ssh -L {site.port}:{LOOPBACK}:{site.port} HOST, and skillgit tui --web --port {site.port}")

    until_end = ExitStack()

    def ready(link: str) -> None:
        session.output.text([link])
        session.output.flush()
        tell.note("the link works once; Ctrl-C ends the server and its screens")
        if opens and not until_end.enter_context(opened_privately(link)):
            tell.note("there is no browser to open it in")

    with until_end:
        serve(
            site,
            tuple(_words(session, run, ascii_only=ascii_only, mouse=mouse)),
            {**session.context.environ, "TEXTUAL_DRIVER": DRIVER, "TEXTUAL_COLOR_SYSTEM": "truecolor"},
            title=f"skillgit {session.context.directory.name}",
            entropy=session.context.entropy,
            ready=ready,
            on_entry=lambda page: tell.note(f"the link was used; that browser finds the screens at {page}"),
        )


def _words(session: CommandSession, run: str, *, ascii_only: bool, mouse: bool) -> Iterator[str]:
    yield from (sys.executable, "-m", "skillgit", "-C", str(session.context.directory), "tui")
    yield from ["--ascii"] if ascii_only else []
    yield from [] if mouse else ["--no-mouse"]
    yield from ["--", run] if run else []


@verb("tui")
@click.argument("run", required=False, default="", shell_complete=complete_runs)
@flag("--ascii ascii_only", "Draw with ASCII signs only")
@option("--mouse/--no-mouse", "Take clicks, or leave them to the terminal", default=True, show_default=True)
@flag("--web web", "Show the screens in a browser, which a link lets in once")
@option("--port", "With --web: the port; a free one unless given", type=click.IntRange(0, 65_535), metavar="N")
@option("--host", "With --web: listen on another address than 127.0.0.1", metavar="H")
@flag("--open opens", "With --web: open the link in the browser")
@skill_option
@click.pass_obj
def tui_command(
    session: CommandSession,
    *,
    run: str,
    ascii_only: bool,
    mouse: bool,
    web: bool,
    port: int | None,
    host: str | None,
    opens: bool,
) -> None:
    """Browse runs and their history on the screen.

    Begins with RUN, else with the default run. ? lists the keys; git config skillgit.tui.keymap.ID changes one, and
    git config skillgit.tui.theme says dark or light.

    With --web a browser shows the screens. The server runs until Ctrl-C and only this machine reaches it. The link that
    it prints works once.
    """
    if web:
        return served(session, run, ascii_only=ascii_only, mouse=mouse, host=host, port=port or 0, opens=opens)
    if port is not None or host is not None or opens:
        raise click.UsageError("--port, --host and --open go with --web", click.get_current_context())
    from skillgit.tui.web import DRIVER  # noqa: PLC0415 - see the package

    in_browser = session.context.environ.get("TEXTUAL_DRIVER") == DRIVER
    if not in_browser:
        require_terminal(session, "tui", instead="skillgit log")
    from skillgit.tui.start import reading_ahead  # noqa: PLC0415 - see the package

    # nothing that is loaded from here on is garbage; skillgit.tui.theme looks for some once the first screen stands
    gc.disable()
    with reading_ahead(session.context, run) as reading:
        from skillgit.tui.app import SkillgitApp  # noqa: PLC0415 - slow to import

        # an error that concerns all screens is told before there are any
        start = reading()
    unicode = (in_browser or session.screen.unicode) and not ascii_only
    return SkillgitApp(session.context, run, start=start, unicode=unicode).run(mouse=mouse)
