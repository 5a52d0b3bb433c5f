"""The git binary on a connection: its answer is read, and what it tells on the way is passed on as it comes."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from skillgit.errors import NotFoundError
from skillgit.store.binary import Answer, command, place_of
from skillgit.store.exchange.refusals import refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from skillgit.store.repo import Repo

_PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX")
"""What git sets for hooks; it would send git to another repository."""
_DURABLE = "core.fsync=objects"
"""What arrives is on the disk before a ref leads to it; git leaves loose objects to the kernel otherwise."""
_HARMLESS = (
    *("badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "missingNameBeforeEmail"),
    *("missingSpaceBeforeDate", "missingSpaceBeforeEmail", "multipleAuthors", "nulInCommit", "zeroPaddedDate"),
    *("zeroPaddedFilemode", "badFilemode", "badTagName", "missingTaggerEntry", "extraHeaderEntry"),
)
"""What old programs wrote wrongly about authors, times and modes; histories of every age have it, and it hurts nobody.

What a tree or a ``.gitmodules`` says stays an error: names that lead elsewhere, doubled or unsorted entries, lost ids.
"""
CHECKED = tuple(
    word
    for setting in (
        "fetch.fsckObjects=true",
        "transfer.fsckObjects=true",
        *(f"fetch.fsck.{one}=warn" for one in _HARMLESS),
    )
    for word in ("-c", setting)
)
"""Settings under which git checks objects before it lets them in."""
_OWN_WORDS = re.compile(r"(?:fatal|error|hint|warning): |To |From | [ !*+=-] \[| {3}[0-9a-f]{7,}\.\.")
"""How lines begin that are told in words of our own, or not at all."""
_HOST = "remote: "
"""How lines begin that the host says."""
_KEPT = 64_000
"""Characters of the end of what git told that are kept, to see why it failed."""


def unheard(text: str, end: str) -> None:
    """Tell nobody."""
    del text, end


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The connection to other repositories.

    Attributes:
        environ: Environment variables.
        asks: Whether somebody is there whom git may ask for a password.
        shows: Whether git shall report progress.
        tell: Is given each line that git tells, with the sign that ends it; a carriage return for one to be replaced.
    """

    environ: Mapping[str, str]
    asks: bool = False
    shows: bool = False
    tell: Callable[[str, str], None] = field(default=unheard)


def ask(repo: Repo, line: Line, remote: str, *arguments: str) -> Answer:
    """Run git on the connection to ``remote``.

    Raises:
        NotFoundError: There is no git on this machine.
        RemoteError: The other side could not be reached, or refused.
    """
    answer = talk(repo, line, *arguments)
    if answer.code != 0:
        raise refusal(remote, answer.error)
    return answer


def talk(repo: Repo, line: Line, *arguments: str, hooks: bool = False) -> Answer:
    """Run git in ``repo`` and return how it ended, whatever that is; ``hooks`` says whether it may run any.

    Raises:
        NotFoundError: There is no git on this machine.
    """
    folder, ssh = repo.workdir or repo.common_dir, repo.config("core.sshCommand")
    return run(line, folder, *place_of(repo), *arguments, ssh=ssh, hooks=hooks)


def run(line: Line, folder: Path, *arguments: str, ssh: str = "", hooks: bool = False) -> Answer:
    """Run git in ``folder`` and return how it ended.

    Raises:
        NotFoundError: There is no git on this machine.
    """
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
        told: list[str] = []
        listening = threading.Thread(target=_listen, args=(process.stderr, line, told), daemon=True)
        listening.start()
        out = process.stdout.read()
        listening.join()
    return Answer(code=process.returncode, out=out, error="\n".join(told)[-_KEPT:])


def _listen(stream: IO[bytes], line: Line, told: list[str]) -> None:
    for text, end in _pieces(stream):
        if end == "\n":
            told.append(text)
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


def _surroundings(line: Line, ssh: str) -> dict[str, str]:
    """Return git's environment: messages in English, which are read here, and no question that nobody can answer."""
    kept = {name: value for name, value in line.environ.items() if name not in _PLACES and name != "LANGUAGE"}
    kept["LC_ALL"] = "C"
    if not line.asks:
        kept["GIT_TERMINAL_PROMPT"] = "0"
        if not ssh and not {"GIT_SSH", "GIT_SSH_COMMAND"} & kept.keys():
            kept["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"
    return kept
