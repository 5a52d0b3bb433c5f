"""Run ``skillgit`` and die by SIGKILL at a chosen moment.

``mortal.py MOMENT COUNT LOG ARGUMENT...``: at the COUNT-th time that MOMENT comes, the process kills itself. Every
model call adds a line to LOG, which outlives the process.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pygit2.transaction import ReferenceTransaction

import skillgit.app.proposals.propose as proposing
import skillgit.app.proposals.usefulness as judging
import skillgit.app.train.train as training
import skillgit.store.event_writer as writing
from skillgit.app.proposals.proposal import ProposalPin
from skillgit.app.proposals.pull_request import Publication
from skillgit.calls.ledger import Ledger
from skillgit.cli.main import main
from skillgit_backends.offline import OfflineBackend

MOMENT, COUNT, LOG = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
came = 0


def now(moment: str) -> None:
    """Die if it is time."""
    global came  # noqa: PLW0603 - the one counter of a process that is about to die
    if moment == MOMENT:
        came += 1
        if came == COUNT:
            os.kill(os.getpid(), signal.SIGKILL)


complete, record, update_refs = OfflineBackend.complete, Ledger.record_reply, writing.update_refs


async def logged_call(self, request):
    now("call")
    with LOG.open("a") as log:  # noqa: ASYNC230 - it must be on disk before the call
        log.write(f"{request.model}\n")
    return await complete(self, request)


def recorded(self, paid):
    kept = record(self, paid)
    now("recorded")
    return kept


def moved(*arguments, **options):
    now("objects")
    update_refs(*arguments, **options)
    now("refs")


def around(owner, name, moment):
    """Let the moments ``before-MOMENT`` and ``after-MOMENT`` come around each call of a function."""
    function = getattr(owner, name)

    def surrounded(*arguments, **options):
        now(f"before-{moment}")
        answer = function(*arguments, **options)
        now(f"after-{moment}")
        return answer

    setattr(owner, name, surrounded)


around(ReferenceTransaction, "commit", "transaction")
around(ProposalPin, "write", "pin")
around(proposing, "move_proposal", "branch")
around(judging, "move_proposal", "branch")
around(Publication, "push", "push")
around(Publication, "open", "request")
OfflineBackend.complete = logged_call
Ledger.record_reply = recorded
writing.update_refs = moved
assert training.train is not None
sys.argv = ["skillgit", *sys.argv[4:]]
main()
