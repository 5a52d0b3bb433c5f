"""``skillgit completion``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from skillgit.cli.options import COMPLETION_VARIABLE, PROGRAM
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from skillgit.cli.session import Session


@verb("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_obj
def command(session: Session, shell: str) -> None:
    """Print a script that completes commands in your shell.

    \b
    bash  eval "$(skillgit completion bash)"         in ~/.bashrc
    zsh   eval "$(skillgit completion zsh)"          in ~/.zshrc
    fish  skillgit completion fish | source          in ~/.config/fish/config.fish
    """  # noqa: D301 - click reads the mark
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"there is no completion for {shell}", click.get_current_context())
    maker = found(click.get_current_context().find_root().command, {}, PROGRAM, COMPLETION_VARIABLE)
    # Not source(): for bash that runs bash to look at its version, and this only has to print.
    session.output.text((maker.source_template % maker.source_vars()).strip("\n").split("\n"))
