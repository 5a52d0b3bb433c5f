"""Commands that begin: a repository, imported runs, and data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from skillgit.cli.options import (
    ClickVerb,
    complete_configs,
    complete_environments,
    document_form,
    flag,
    option,
    override_option,
    quiet_option,
    skill_option,
    verb,
    verbs,
)
from skillgit.cli.session import CommandSession
from skillgit.verbs.verb import Form
from skillgit.view import setup as render
from skillgit.view.numbers import plural, short

if TYPE_CHECKING:
    from skillgit.app.train.starting_point import Initialised


_NAMED = 5  # files that one sentence names


@verb("init")
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@option(
    "--skill",
    "Train the skill in this folder, or take the seed from a SKILL.md or a Markdown file",
    type=click.Path(path_type=Path),
    metavar="PATH",
)
@option(
    "--env environment",
    "Take the seed that environment NAME brings",
    metavar="NAME",
    shell_complete=complete_environments,
)
@document_form
@click.pass_obj
def init_command(session: CommandSession, directory: Path | None, skill: Path | None, environment: str | None) -> None:
    """Create a repository for skills, or prepare an existing one.

    The seed skill is committed to the branch that you are on. A skill folder in the repository is trained where it is;
    a seed from elsewhere is copied to skills/. Files of your own are left alone.
    """
    from skillgit.app.train.starting_point import init  # noqa: PLC0415 - see the package

    result = init(session.context, directory, skill, environment=environment)
    seed = f"{'seed' if result.added else 'skill there before'} {result.skill_path} on {result.branch}"
    summary = session.screen.dotted(
        (f"{'created' if result.created else 'prepared'} {result.path}, {seed}", short(result.commit))
    )
    session.show("init/1", result, [summary, f"next: {result.following}"])
    if session.form is not Form.JSON:
        session.diagnostics.note(*_remarks(result))


def _remarks(result: Initialised) -> Iterator[str]:
    if result.entries:
        yield f"the folder was no git repository; its {plural(result.entries, 'entry', 'entries')} stay uncommitted"
    if result.source:
        yield f"{result.source} was copied to {result.skill_path}; runs change the copy"
    if result.left_out:
        more = f" and {len(result.left_out) - _NAMED} more" if result.left_out[_NAMED:] else ""
        yield f"left out, ignored by git or credentials: {', '.join(result.left_out[:_NAMED])}{more}"
    if result.differs:
        file = quote(f"{result.skill_path}/SKILL.md")
        yield f"yours lacks the frontmatter or the line ends of the committed one: git restore {file} takes that"


@verb("import")
@click.argument("outputs", metavar="OUTPUTS", type=click.Path(path_type=Path))
@option("--run", "What to call the run; by default, environment and date", metavar="NAME")
@flag("-n --dry-run", "Say what would be done, and do nothing")
@document_form
@click.pass_obj
def import_command(session: CommandSession, *, outputs: Path, run: str | None, dry_run: bool) -> None:
    """Turn the output directory of a SkillOpt run into a run.

    OUTPUTS holds config.json, history.json and skills/. Its steps become versions and rejected candidates, its slow
    updates merges, and its results evidence; times are those of its files. What it does not say stays absent, and what
    it says in two ways is told. A directory that was imported before only brings what is new in it.
    """
    from skillgit.app.sources.skillopt.outputs import import_outputs  # noqa: PLC0415 - see the package
    from skillgit.view.deliveries import lines  # noqa: PLC0415 - see the package

    result = import_outputs(session.context, outputs, run, dry_run=dry_run)
    session.show("import/1", result, lines(result, session.screen))
    if session.form is not Form.JSON:
        session.diagnostics.note(*result.remarks)


@verbs("data")
def data_command() -> None:
    """Check the items of CONFIG, or fetch public ones."""


@data_command.command(
    cls=ClickVerb, name="check", short_help="Load every item of CONFIG and look for what spoils a measurement"
)
@click.argument("config", shell_complete=complete_configs)
@override_option
@skill_option
@quiet_option
@document_form
@click.pass_obj
def check_command(session: CommandSession, config: str, overrides: tuple[str, ...]) -> int:
    """Load every item of CONFIG and look for what spoils a measurement.

    It tells all faults of the files and not the first one only, ids and contents that repeat, items that are almost the
    same, answers of selection and test items in the seed skill or beside train items, and the gain that a split of such
    a size can show. Where CONFIG names no data, they are the tasks of the skill. No model is asked. Long phases are
    reported on stderr. Exits with 1 if there is a fault; warnings leave it at 0.
    """
    from skillgit.app.sources.data_check import check_data  # noqa: PLC0415 - see the package
    from skillgit.cli.watchers import Heartbeat  # noqa: PLC0415 - see the package

    with Heartbeat(session) as watch:
        check = check_data(session.context, config, overrides, watch)
    session.show("data-check/1", render.data_document(check), render.checked(check, session.screen))
    return int(check.exit_code)


@data_command.command(cls=ClickVerb, name="fetch", short_help="Write the public data of environment NAME to a folder")
@click.argument("name", shell_complete=complete_environments)
@option("--to", "The new folder; data/NAME if not given", metavar="DIR", type=click.Path(path_type=Path))
@option(
    "--subset", "Fetch other data of NAME than its main ones; docs/data.md lists them", metavar="SUBSET", default=""
)
@option("--revision", "Take another commit of the public data than the pinned one", metavar="REV", default="")
@option(
    "--ids",
    "Take only the items of this manifest, divided as it says: a folder, or reference for the reference's own split",
    metavar="MANIFEST",
    default="",
)
@quiet_option
@document_form
@click.pass_obj
def fetch_command(
    session: CommandSession,
    /,
    *,
    name: str,
    to: Path | None,
    **selection: Any,  # noqa: ANN401 - options as click gives them
) -> None:
    """Write the public data of environment NAME to a folder.

    They are those of a pinned commit where one is known, so that everybody gets the same ones; SOURCE.md in the folder
    names it. Revision, size and licence are said before anything is fetched, and an interrupted fetch goes on where it
    stopped when you type the same command again. It needs a network and, for data on the Hugging Face hub, the extra
    'data' of skillgit. Where data cannot be fetched, it says what to place where. Exits with 2 without the extra, with
    3 if there is no such data or no access to them, and with 5 if the host cannot be reached.
    """
    from skillgit.app.sources.data_fetch import DataSelection, fetch  # noqa: PLC0415 - see the package
    from skillgit.cli.watchers import LiveFetchWatcher, watching  # noqa: PLC0415 - see the package

    listener = replace(session, quiet=session.quiet or session.form is Form.JSON)
    with watching(listener, LiveFetchWatcher) as watcher:
        dataset = fetch(
            session.context, name, DataSelection(**selection), to=to, remark=watcher.remark, watch=watcher.progress
        )
    session.show("data-fetch/1", dataset, render.fetched(dataset, session.screen))
