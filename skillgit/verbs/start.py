"""Where work begins: a repository with a skill, and runs that were made elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from skillgit.app.workspace.request import Arg, DryRun, Opt
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import Answer, Effect, Form, Verb, VerbSession
from skillgit.view.numbers import short

if TYPE_CHECKING:
    from skillgit.app.train.starting_point import Initialised

with loaded_on_use():
    from skillgit.app.sources.skillopt import outputs
    from skillgit.app.train import starting_point
    from skillgit.view import deliveries

_NAMED = 5  # files that one sentence names


@dataclass(frozen=True, kw_only=True)
class InitRequest:
    """The seed skill is committed to the branch that you are on. A skill folder in the repository is trained where it
    is; a seed from elsewhere is copied to skills/. Your own files are left alone.
    """

    directory: Annotated[Path | None, Arg("[DIRECTORY]")] = None
    seed: Annotated[
        Path | None,
        Opt(
            "Train the skill in this folder, or take the seed from a SKILL.md or a Markdown file",
            "--skill",
            metavar="PATH",
        ),
    ] = None
    environment: Annotated[
        str | None, Opt("Take the seed of environment NAME", "--env", metavar="NAME", words="environments")
    ] = None


def _init(session: VerbSession, request: InitRequest) -> Answer[object]:
    result = starting_point.init(session.context, request.directory, request.seed, environment=request.environment)
    path, branch = result.skill_path, result.branch
    seed = f"seed {path} on {branch}" if result.added else f"{path} was already on {branch}"
    summary = session.screen.dotted(
        (f"{'created' if result.created else 'prepared'} {result.path}, {seed}", short(result.commit))
    )
    notes = [(text, "") for text in _remarks(result)] if session.form is not Form.JSON else []
    return Answer("init/1", result, [summary, f"next: {result.following}"], notes=notes)


def _remarks(result: Initialised) -> Iterator[str]:
    if result.entries:
        yield "made a git repository here and committed only the skill"
    if result.source:
        yield f"{result.source} was copied to {result.skill_path}; runs change the copy"
    if result.left_out:
        more = f" and {len(result.left_out) - _NAMED} more" if result.left_out[_NAMED:] else ""
        yield f"left out, ignored by git or credentials: {', '.join(result.left_out[:_NAMED])}{more}"
    if result.differs:
        file = quote(f"{result.skill_path}/SKILL.md")
        yield f"yours lacks the frontmatter or the line ends of the committed one: git restore {file} takes that"


INIT = Verb("init", InitRequest, _init, Effect.HISTORY)


@dataclass(frozen=True, kw_only=True)
class ImportRequest:
    """OUTPUTS holds config.json, history.json and skills/. Its steps become versions and rejected candidates, its slow
    updates merges, and its results evidence; times are those of its files. Missing values stay missing; contradictions
    are reported. Importing a directory again brings only what is new in it.
    """

    outputs: Annotated[Path, Arg("OUTPUTS")]
    run: Annotated[str | None, Opt("Name of the run; default: environment and date", metavar="NAME")] = None
    dry_run: DryRun = False


def _import(session: VerbSession, request: ImportRequest) -> Answer[object]:
    result = outputs.import_outputs(session.context, request.outputs, request.run, dry_run=request.dry_run)
    notes = [(sentence, "") for sentence in result.remarks] if session.form is not Form.JSON else []
    return Answer("import/1", result, deliveries.lines(result, session.screen), notes=notes)


IMPORT = Verb("import", ImportRequest, _import, Effect.HISTORY)
