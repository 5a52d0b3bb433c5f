"""A host that tests push to, and the people who do so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from program import attempt, git, new_repository, refs, surroundings
from sample_run import clock_from, transitions, write_run

from skillgit.store.event_writer import RunWriter
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from program import Done

SERVER = Path(__file__).with_name("git_server.py")
NAME, PASSWORD = "someone", "open-sesame"


class Host:
    """Bare repositories in a folder, served over HTTP by a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SERVER, str(self.folder), NAME, PASSWORD],
            env=surroundings(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        """End the server and everything that it started, without a word."""
        assert self.process is not None
        assert self.process.stdout is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process = None

    def url(self, name: str = "skills") -> str:
        """Return the address of a repository, whose server begins with the first question for it."""
        if self.process is None:
            self.start()
        return f"http://127.0.0.1:{self.port}/{name}.git"

    @property
    def path(self) -> Path:
        """Where the repository ``skills`` is for people on the same machine, which is quicker than its address."""
        return self.folder / "skills.git"

    def make(self, name: str = "skills") -> Path:
        """Make an empty repository that may be pushed to."""
        path = self.folder / f"{name}.git"
        git("init", "-q", "--bare", "--initial-branch=main", str(path), cwd=self.folder)
        git("config", "http.receivepack", "true", cwd=path)
        return path

    def hook(self, name: str, script: str) -> None:
        """Let the repository ask ``script`` about what is pushed."""
        path = self.path / "hooks" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)


def own(path: Path) -> dict[str, str]:
    """Return the refs of a repository that are neither tracking copies nor plans of runs, which a push makes."""
    others = "/remotes/", "refs/skillgit/plan/"
    return {name: oid for name, oid in refs(path).items() if not any(part in name for part in others)}


def knowing(password: str | None = PASSWORD) -> dict[str, str]:
    """Return the surroundings of somebody who knows a password, or none."""
    answer = f"printf 'username={NAME}\\npassword={password}\\n'"
    helper = f'!f() {{ test "$1" = get && {answer}; }}; f' if password is not None else ""
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "credential.helper",
        "GIT_CONFIG_VALUE_0": helper,
        "no_proxy": "127.0.0.1",
    }


class Person:
    """Somebody with a repository."""

    def __init__(self, path: Path, password: str | None = PASSWORD) -> None:
        self.path = path
        self.env = knowing(password)

    def __call__(self, *words: str | Path, code: int = 0, **env: str) -> Done:
        done = attempt(*words, cwd=self.path, env=self.env | env)
        assert done.code == code, done
        assert "Traceback" not in done.err, done
        assert PASSWORD not in done.out + done.err
        return done

    def push(self, *words: str, code: int = 0) -> Done:
        """Push without a look for secrets, which takes longer than everything else."""
        return self("push", "--no-verify", *words, code=code)

    def git(self, *words: str) -> str:
        return git(*words, cwd=self.path).out

    @property
    def repo(self) -> Repo:
        return Repo.discover(self.path)

    def own(self) -> dict[str, str]:
        """Return this repository's own refs, but for the plans of runs, which a push makes."""
        return own(self.path)

    def append(self, begin: int, end: int | None = None, *, minute: int | None = None) -> None:
        """Write the events of the sample run from ``begin`` to ``end``, the first at ``minute``."""
        writer = RunWriter(
            self.repo, transitions()[0].event.run, clock_from(count(begin if minute is None else minute))
        )
        for sample in transitions()[begin:end]:
            writer.append(sample.event, sample.skill, sample.evidence)


def first(path: Path, events: int | None = None) -> Person:
    """Return somebody who has written the first ``events`` of the sample run, or all."""
    repository = new_repository(path)
    write_run(Repo.discover(repository), **({} if events is None else {"events": events}))
    return Person(repository)
