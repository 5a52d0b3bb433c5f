"""Commands that begin: a repository, imported runs, and data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import (
    complete_environments,
    document_form,
    flag,
    option,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.verbs.verb import Form
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
