"""GitHub's command line program, for the one thing that git cannot do: creating a repository there."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from skillgit.errors import RemoteError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def create_repository(name: str, directory: Path, environ: Mapping[str, str]) -> None:
    """Create the private repository ``name``.

    Raises:
        RemoteError: It could not be created.
    """
    done = subprocess.run(  # noqa: S603 - a list
        ["gh", "repo", "create", name, "--private"],  # noqa: S607 - the one on the PATH
        cwd=directory,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        said = " ".join(done.stderr.decode(errors="replace").split())
        raise RemoteError(f"gh could not create {name}: {said or 'it does not say why'}", hint="gh auth status")
