"""Publishing a proposal: its branch goes to a remote by compare and swap, and a pull request is opened by ``gh``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from skillgit.app.exchange.connection import Listener, line_for
from skillgit.app.exchange.push_check import check, scan_commits
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import NotFoundError, RemoteError, UsageError
from skillgit.store import refs
from skillgit.store.exchange.remotes import Remote, fetch_branch, find_remote
from skillgit.store.exchange.sending import RefState, RefusalCause, SentRef, advertised, send_leased
from skillgit.store.exchange.transport import RemoteConnection, gh
from skillgit.store.repo import Repo
from skillgit.store.trunk import trunk

_MOST = 50
"""Pull requests of one branch that are looked at, the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Where proposals of one request are published."""

    context: Context
    remote: Remote
    line: RemoteConnection
    base: str  # the branch that pull requests are for, as the remote calls it

    @classmethod
    def to(cls, context: Context, repo: Repo, base: str) -> Publication:
        """Return where to publish; a UsageError if a pull request cannot be for ``base``."""
        remote = find_remote(repo, None)
        prefix = f"{remote.name}/"
        name = base.removeprefix(prefix)
        ref = refs.tracking(remote.name, f"refs/heads/{name}") if name != base else f"refs/heads/{name}"
        if repo.tip(ref) is None:
            raise UsageError(
                f"a pull request is for a branch, and '{base}' is none", hint=f"--base {quote(refs.short(trunk(repo)))}"
            )
        return cls(context=context, remote=remote, line=line_for(context, Listener()), base=name)

    def tip(self, repo: Repo, branch: str) -> str:
        """Return what the remote has as ``branch``, with its objects here; empty if it has none."""
        there = advertised(repo, self.line, self.remote.name).get(branch, "")
        if there and not repo.has_object(there):
            fetch_branch(repo, self.line, self.remote.name, branch)
        return there

    def check(self, branch: str) -> None:
        """Raise a NotFoundError with what to type instead if no pull request can be opened from here."""
        short, remote = quote(refs.short(branch)), quote(self.remote.name)
        hint = f"git push {remote} {short}, then gh pr create --head {short} --base {quote(self.base)} --fill"
        if shutil.which("gh", path=self.context.environ.get("PATH")) is None:
            raise NotFoundError("nothing was pushed, for gh, which opens pull requests, is not on the PATH", hint=hint)
        if gh(self.context.directory, self.context.environ, "auth", "status").code != 0:
            raise NotFoundError("nothing was pushed, for gh is not signed in", hint=f"gh auth login; or {hint}")

    def push(self, workspace: Workspace, branch: str, commit: str, old: str) -> bool:
        """Send ``commit`` as ``branch`` if the remote has it at ``old``; False if it has moved.

        A SkillgitError if the commit holds what must not leave, and a RemoteError if the host refuses it.
        """
        there = advertised(workspace.repo, self.line, self.remote.name)
        check(scan_commits(workspace, [commit], there.values()))
        update = SentRef(ref=branch, state=RefState.PUSHED, old=old, new=commit)
        result = send_leased(workspace.repo, self.line, self.remote.name, update)
        if result.state is not RefState.REJECTED:
            return True
        if result.cause is RefusalCause.MOVED:
            return False
        raise RemoteError(
            f"{self.remote.name} refused {refs.short(branch)}: {result.reason}", hint="its host has rules of its own"
        )

    def open(self, branch: str, commit: str, title: str, body: str) -> str:
        """Return the address of the branch's pull request, after it was opened, or updated with the new commit.

        One that was closed or merged with this very commit stays what it is.
        """
        head, mark = refs.short(branch), f"<!-- skillgit propose {commit} -->"
        fields = "url,state,headRefOid,body,isCrossRepository"
        listing = self._asked("pr", "list", "--head", head, "--state", "all", "--limit", str(_MOST), "--json", fields)
        requests = _requests(listing)
        current = next((request for request in requests if request.get("state") == "OPEN"), None)
        over = next((request for request in requests if request.get("headRefOid") == commit), None)
        if current is not None:
            url = current.get("url", "")
            if mark not in current.get("body", ""):
                self._asked("pr", "edit", url, "--title", title, "--body-file", "-", text=f"{body}\n{mark}\n")
            return url
        if over is not None:
            return over.get("url", "")
        words = ("pr", "create", "--head", head, "--base", self.base, "--title", title, "--body-file", "-")
        return self._asked(*words, text=f"{body}\n{mark}\n").strip().rpartition("\n")[2]

    def _asked(self, *words: str, text: str = "") -> str:
        answer = gh(self.context.directory, self.context.environ, *words, text=text)
        if answer.code != 0:
            reason = " ".join(answer.error.split()) or "it does not say why"
            raise RemoteError(f"gh {' '.join(words[:2])} failed: {reason}", hint="gh auth status; then propose again")
        return answer.out.decode(errors="replace")


def _requests(text: str) -> Sequence[Mapping[str, str]]:
    """Return the pull requests that ``gh`` lists, the newest first; a RemoteError if it lists something else.

    A fork may have a branch of the same name, and anyone can open a pull request from there: those are left out.
    """
    try:
        rows = json.loads(text or "[]")
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RemoteError("gh lists pull requests in a form that is not known", hint="gh --version")
    own = (row for row in rows if not row.get("isCrossRepository"))
    return [{str(key): str(value or "") for key, value in row.items()} for row in own]
