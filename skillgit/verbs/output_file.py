"""Files that an answer is written to."""

from __future__ import annotations

from skillgit.app.skill_format.atomic_write import clear_output
from skillgit.app.workspace.request import MisuseError
from skillgit.verbs.verb import Form, VerbSession

STDOUT = "-"
"""The FILE of ``--output`` that is stdout: what would be written there replaces the answer."""


def clear_outputs(session: VerbSession, **files: str) -> None:
    """Refuse options whose files cannot be written, and take away what earlier commands left there.

    For before the work: it may cost money, and where it ends early nothing old may pass for its result.
    """
    if files.get("junit") == STDOUT:
        raise MisuseError("--junit needs a file")
    paths = [session.context.directory / name for name in files.values() if name not in {"", STDOUT}]
    if len({path.resolve() for path in paths}) < len(paths):
        raise MisuseError(f"{' and '.join(f'--{option}' for option in files)} name the same file")
    for path in paths:
        clear_output(path)


def refuse_two_answers(session: VerbSession, output: str) -> None:
    """Refuse to write to stdout both what ``--output`` writes and a document."""
    if output == STDOUT and session.form is not Form.TEXT:
        raise MisuseError(f"--output {STDOUT} cannot be combined with --{session.form.value}")
