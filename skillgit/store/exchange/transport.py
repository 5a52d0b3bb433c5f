"""The git binary on a connection: its answers, its progress, and its refusals in words that say what to do."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import IO

from skillgit.domain.untrusted.file_names import shown
from skillgit.errors import NotFoundError, RemoteError
from skillgit.store import refs
from skillgit.store.git_binary import GitResult, at_home, command, git, place_of
from skillgit.store.repo import Repo
from skillgit.store.trunk import trunk


@dataclass(frozen=True, slots=True)
class _Case:
    signs: str  # a pattern of what git says, in any case
    sentence: str
    hint: str
    nameless: str = ""
    missing: bool = False
    pushes: bool | None = None  # whether it is about what is sent, or about what is fetched; None for both


_FORBIDDEN = r"error: 403|Permission to \S+ denied|Write access to repository not granted|not allowed to push|read-only"


_CASES = (
    _Case(
        r"terminal prompts disabled|could not read (?:Username|Password)|no askpass|No such device or address",
        "{remote} asks for a name and a password, and there is no terminal to type them",
        "let git remember them: git help credentials; or use an ssh address: git remote set-url {remote} URL",
        nameless="let git remember them: git help credentials; or use an ssh address",
    ),
    _Case(
        r"Authentication failed|Invalid username or (?:password|token)|HTTP Basic: Access denied|error: 401",
        "{remote} refused the name, the password or the token",
        "correct what git remembers (git help credentials); many hosts take a token in place of the password",
    ),
    _Case(
        r"Permission denied \(|Host key verification failed|no matching host key",
        "{remote} refused the ssh key, or this machine does not know the host's key",
        "try it by hand: ssh -T HOST",
    ),
    _Case(
        _FORBIDDEN,
        "{remote} lets you read, but not write",
        "ask its owner for the right to push, or push to a repository of your own: git remote add NAME URL",
        pushes=True,
    ),
    _Case(
        _FORBIDDEN,
        "{remote} does not let you read it",
        "ask its owner for access, or correct the name and password that git remembers: git help credentials",
        pushes=False,
    ),
    _Case(
        r"Repository not found|repository '[^']*' (?:not found|does not exist)|does not appear to be a git repository"
        r"|error: 404|invalid gitfile format|project you were looking for could not be found",
        "there is no repository at {remote}, or you may not see it",
        "create it first, without any file in it, or correct the address: git remote set-url {remote} URL",
        nameless="correct the address, or ask its owner to let you see it",
        missing=True,
    ),
    _Case(
        r"SSL certificate|certificate (?:verify failed|verification)|server certificate|TLS|SSL_",
        "the certificate of {remote} cannot be trusted",
        "git help config explains http.sslCAInfo",
    ),
    _Case(
        r"hung up unexpectedly|unexpected disconnect|early EOF|RPC failed|Connection reset|Broken pipe|Empty reply"
        r"|Recv failure|transfer closed|invalid index-pack output|error: 5\d\d",
        "the connection to {remote} broke",
        "run it again: what has arrived stays, and what has not is sent again",
    ),
    _Case(
        r"Could not resolve|Failed to connect|Couldn't connect|Connection refused|Connection timed out|No route to host"
        r"|Network is unreachable|Name or service not known|unable to look up",
        "{remote} cannot be reached",
        "check the network and the address: git remote -v",
        nameless="check the network and the address",
    ),
)
_UNSOUND = re.compile(r"^(?:fatal|error): object (?P<oid>[0-9a-f]{12})[0-9a-f]*: \w+: (?P<what>.+)$", re.MULTILINE)
"""What git says of an object that it does not let in."""
_UNWRITABLE = re.compile(
    r"^(?:error|fatal): (?:unable to (?:create|write) (?:file|symlink) |cannot (?:stat|create directory at) )"
    r"'?(?P<name>[^\n]+?)'?(?:: (?P<why>[^:\n]+))?$",
    re.MULTILINE,
)
"""What git says of a file that it cannot check out."""
_FINAL = re.compile(r"^(?:fatal|error): (?P<said>.+)$", re.MULTILINE)


def refusal(remote: str, words: str, *, has_name: bool = True, pushes: bool = False) -> RemoteError:
    """Return the error for git's last words on the connection to ``remote``, which is a name or an address."""
    if unsound := _UNSOUND.search(words):
        return RemoteError(
            f"{remote} has an object that is not let in: {unsound['oid']} {unsound['what']}",
            hint="nothing came in; its owner has to repair the history, which could harm a checkout",
        )
    if file := _UNWRITABLE.search(words):
        why = f": {file['why'].lower()}" if file["why"] else ""
        return RemoteError(
            f"{remote} has a file that cannot be checked out here, {shown(file['name'])}{why}",
            hint="git clone --no-checkout URL DIR brings the history alone; skillgit pull in DIR then makes its runs",
        )
    for case in _CASES:
        if case.pushes in {None, pushes} and re.search(case.signs, words, re.IGNORECASE):
            advice = case.hint if has_name else case.nameless or case.hint
            hint = advice.format(remote=quote(remote))
            return RemoteError(case.sentence.format(remote=remote), hint=hint, missing=case.missing)
    last = [match["said"] for match in _FINAL.finditer(words)]
    message = " ".join((last[-1] if last else words.strip().rpartition("\n")[2] or "git said nothing").split())
    return RemoteError(
        f"git cannot talk to {remote}: {message}", hint="git remote -v" if has_name else "check the address"
    )


_DURABLE = "core.fsync=objects"
"""What arrives is on the disk before a ref leads to it; git leaves loose objects to the kernel otherwise."""
_HARMLESS = (
    *("badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "missingNameBeforeEmail"),
    *("missingSpaceBeforeDate", "missingSpaceBeforeEmail", "multipleAuthors", "nulInCommit", "zeroPaddedDate"),
    *("zeroPaddedFilemode", "badFilemode", "badTagName", "missingTaggerEntry", "extraHeaderEntry"),
)
"""What old programs wrote wrongly about authors, times and modes; histories of every age have it, and it is harmless.

What a tree or a ``.gitmodules`` says stays an error: names that lead elsewhere, doubled or unsorted entries, lost ids.
"""
CHECKED = tuple(
    word
    for setting in (
        "fetch.fsckObjects=true",
        "transfer.fsckObjects=true",
        *(f"fetch.fsck.{flaw}=warn" for flaw in _HARMLESS),
    )
    for word in ("-c", setting)
)
"""Settings under which git checks objects before it lets them in."""
_OWN_WORDS = re.compile(r"(?:fatal|error|hint|warning): |To |From | [ !*+=-] \[| {3}[0-9a-f]{7,}\.\.")
"""How lines begin that are reported in words of our own, or not at all."""
_HOST = "remote: "
"""How lines begin that the host says."""
_KEPT = 64_000
"""Characters of the end of git's output that are kept, to see why it failed."""


def unheard(text: str, end: str) -> None:
    del text, end


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteConnection:
    environ: Mapping[str, str]
    asks: bool = False  # whether someone is there whom git may ask for a password
    shows: bool = False
    # is given each line that git prints, with the sign that ends it; a carriage return for one to be replaced
    tell: Callable[[str, str], None] = field(default=unheard)


def ask(repo: Repo, line: RemoteConnection, remote: str, *arguments: str) -> GitResult:
    """Run git on the connection to ``remote``; a RemoteError if the other side could not be reached, or refused."""
    answer = talk(repo, line, *arguments)
    if answer.code != 0:
        raise refusal(remote, answer.error)
    return answer


def talk(repo: Repo, line: RemoteConnection, *arguments: str, hooks: bool = False) -> GitResult:
    """Run git in ``repo`` and return how it ended, also with an error; ``hooks`` says whether it may run any."""
    folder, ssh = repo.workdir or repo.common_dir, repo.config("core.sshCommand")
    return run(line, folder, *place_of(repo), *arguments, ssh=ssh, hooks=hooks)


def run(line: RemoteConnection, folder: Path, *arguments: str, ssh: str = "", hooks: bool = False) -> GitResult:
    try:
        process = subprocess.Popen(  # noqa: S603 - a list
            command("-C", str(folder), "-c", _DURABLE, *arguments, hooks=hooks),
            env=_surroundings(line, ssh),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except FileNotFoundError as error:
        raise NotFoundError("there is no git on the PATH", hint="install git") from error
    with process:
        if process.stdout is None or process.stderr is None:
            raise AssertionError("both are pipes")
        lines: list[str] = []
        listening = threading.Thread(target=_listen, args=(process.stderr, line, lines), daemon=True)
        listening.start()
        out = process.stdout.read()
        listening.join()
    return GitResult(code=process.returncode, out=out, error="\n".join(lines)[-_KEPT:])


def _listen(stream: IO[bytes], line: RemoteConnection, lines: list[str]) -> None:
    for text, end in _pieces(stream):
        if end == "\n":
            lines.append(text)
        if text.startswith(_HOST) or (text and line.shows and not _OWN_WORDS.match(text)):
            line.tell(text, end)


def _pieces(stream: IO[bytes]) -> Iterator[tuple[str, str]]:
    """Yield what comes between line ends, each with its end, as soon as it is there."""
    waiting = b""
    while data := os.read(stream.fileno(), 65536):
        *whole, waiting = re.split(rb"(?<=[\r\n])", waiting + data)
        for piece in whole:
            yield piece[:-1].decode(errors="replace"), piece[-1:].decode()
    if waiting:
        yield waiting.decode(errors="replace"), "\n"


def _surroundings(line: RemoteConnection, ssh: str) -> dict[str, str]:
    """Return git's environment: messages in English, which are parsed, and no prompts."""
    env = {name: value for name, value in at_home(line.environ).items() if name != "LANGUAGE"}
    env["LC_ALL"] = "C"
    if not line.asks:
        env["GIT_TERMINAL_PROMPT"] = "0"
        if not ssh and not {"GIT_SSH", "GIT_SSH_COMMAND"} & env.keys():
            env["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"
    return env


def clone(line: RemoteConnection, folder: Path, url: str, target: Path, name: str) -> None:
    """Clone ``url``, relative to ``folder``, to a new or empty ``target``; unwritable files leave the history there."""
    # Files that are copied from a folder of this machine would come in unchecked.
    options = (*(("--progress",) if line.shows else ()), "--no-local", "--no-recurse-submodules", "--origin", "origin")
    answer = run(line, folder, *CHECKED, "clone", *options, "--", url, str(target), hooks=True)
    if answer.code != 0:
        raise refusal(name, answer.error, has_name=False)


def check_out_trunk(repo: Repo, name: str) -> None:
    """Check the trunk out where git did not, because the host's HEAD names a branch that it does not have."""
    _, commit = repo.head()
    branch = trunk(repo)
    if not commit and repo.workdir is not None and repo.tip(branch) is not None:
        answer = git(repo, "checkout", "-q", refs.short(branch), hooks=True)
        if answer.code != 0:
            raise refusal(name, answer.error, has_name=False)


def create_repository(name: str, directory: Path, environ: Mapping[str, str]) -> None:
    answer = gh(directory, environ, "repo", "create", name, "--private")
    if answer.code != 0:
        message = " ".join(answer.error.split())
        raise RemoteError(f"gh could not create {name}: {message or 'it does not say why'}", hint="gh auth status")


def gh(directory: Path, environ: Mapping[str, str], *words: str, text: str = "") -> GitResult:
    """Run GitHub's command line program, the one on the PATH, in ``directory``, with ``text`` on its stdin."""
    process = subprocess.run(  # noqa: S603 - a list
        ["gh", *words],  # noqa: S607 - see above
        cwd=directory,
        env=dict(environ),
        input=text.encode(),
        capture_output=True,
        check=False,
    )
    return GitResult(code=process.returncode, out=process.stdout, error=process.stderr.decode(errors="replace"))
