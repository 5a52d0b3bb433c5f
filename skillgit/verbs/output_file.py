"""Files that an answer is written to."""

from __future__ import annotations

from skillgit.app.workspace.request import MisuseError
from skillgit.verbs.verb import Form, VerbSession

STDOUT = "-"
"""The FILE of ``--output`` that is stdout: what would be written there replaces the answer."""


def refuse_two_answers(session: VerbSession, output: str) -> None:
    """Refuse to write to stdout both what ``--output`` writes and a document."""
    if output == STDOUT and session.form is not Form.TEXT:
        raise MisuseError(f"--output {STDOUT} cannot be combined with --{session.form.value}")
