"""Owns running jobs without isolation, for those who ask for it: a folder, limits of each process, and nothing else."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillgit.sandbox import mechanism
from skillgit.sandbox.folders import folders
from skillgit.sandbox.interpreter import Interpreter, package_folders
from skillgit.sandbox.mechanism import LAUNCHER, Launch, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.sandbox.job import Job


class Unconfined:
    """No isolation; a job can do what the user can do."""

    kind = Mode.NONE

    def __init__(self) -> None:
        self.interpreter = Interpreter(path=sys.executable, packages=package_folders())

    def explain(self) -> str:
        """Return what it does, as one sentence."""
        return "model-written code runs WITHOUT isolation, with the files and the network of this machine"

    @contextmanager
    def prepare(self, job: Job) -> Iterator[Launch]:
        """Yield the launch of a job; its folder is removed afterwards."""
        with folders(None) as (work, scratch):
            order = mechanism.order(
                job,
                environment=mechanism.environment(job, work, scratch),
                folder=work,
                scratch=(scratch,),
                # The user's other processes would count.
                limits_processes=False,
            )
            yield Launch(argv=mechanism.start(sys.executable, LAUNCHER.parent), order=order)
