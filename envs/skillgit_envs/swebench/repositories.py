"""Owns how a checkout of an instance is made from a clone, without anything that came after its commit."""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.errors import ConfigError, EnvironmentFaultError

if TYPE_CHECKING:
    from skillgit_envs.swebench.instances import Instance

_SHOWN = 300
_SETTINGS = Path(__file__).with_name("git.config")
_MAKER = {"NAME": "skillgit", "EMAIL": "skillgit@invalid", "DATE": "2026-01-01T00:00:00Z"}
"""Who commits the repositories that come with skillgit: their commits have to be the same everywhere."""


class Clones:
    """A folder of clones, bare or with files, each called ``owner__name``, ``owner__name.git`` or ``owner/name``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, instances: Iterable[Instance]) -> None:
        """Refuse a project that has no clone here, and a clone that lacks a commit."""
        by_project: dict[str, list[Instance]] = defaultdict(list)
        for instance in instances:
            by_project[instance.text("repo")].append(instance)
        if absent := sorted(project for project, group in by_project.items() if self._clone(group[0]) is None):
            more = f", nor of {len(absent) - 1} more: {', '.join(absent[1:])}" if absent[1:] else ""
            raise ConfigError(
                f"env.repositories has no clone of {absent[0]}{more}",
                hint=f"git clone --bare https://github.com/{absent[0]} {self._folder / absent[0].replace('/', '__')}",
            )
        for project, group in sorted(by_project.items()):
            clone = self._place(group[0])
            names = "".join(f"{instance.text('base_commit')}^{{commit}}\n" for instance in group)
            lines = git(clone, "cat-file", "--batch-check=%(objectname)", stdin=names.encode()).splitlines()
            missing = [line.split("^")[0] for line in lines if line.endswith("missing")]
            if missing:
                raise ConfigError(
                    f"the clone {clone} lacks {len(missing)} commits of {project}, such as {missing[0][:12]}",
                    hint=f"git -C {clone} fetch origin {missing[0]}",
                )

    def _clone(self, instance: Instance) -> Path | None:
        names = (instance.folder, f"{instance.folder}.git", instance.text("repo"))
        return next((path.resolve() for name in names if (path := self._folder / name).is_dir()), None)

    def _place(self, instance: Instance) -> Path:
        if (clone := self._clone(instance)) is None:
            raise EnvironmentFaultError(f"the clone of {instance.text('repo')} is gone", hint="make it again")
        return clone

    def check_out(self, instance: Instance, folder: Path) -> None:
        """Make a repository in ``folder``: the commit of the instance and the one before it, and nothing later."""
        commit = instance.text("base_commit")
        git(folder, "init", "--quiet", "--template=")
        git(folder, "fetch", "--quiet", "--no-tags", "--depth=2", self._place(instance).as_uri(), commit)
        git(folder, "checkout", "--quiet", "--detach", commit)


class Shipped:
    """The repositories that come with skillgit, each a patch that makes all of its files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, instances: Iterable[Instance]) -> None:
        """Do nothing: what they are made of is there, and what is made is compared with the instance."""

    def check_out(self, instance: Instance, folder: Path) -> None:
        git(folder, "init", "--quiet", "--template=", "--initial-branch=main", "--object-format=sha1")
        git(folder, "apply", str(self._folder / f"{instance.folder}.diff"))
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message=Start")
        if (commit := git(folder, "rev-parse", "HEAD").strip()) != instance.text("base_commit"):
            hint = "install skillgit again"
            raise EnvironmentFaultError(f"{instance.folder} is at {commit} and not where its tasks begin", hint=hint)


def git(folder: Path, *words: str, stdin: bytes = b"") -> str:
    """Run git in ``folder`` with no settings but its own; an EnvironmentFaultError if it fails."""
    people = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _MAKER.items()}
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(_SETTINGS),
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    command = ["git", *words]
    try:
        process = subprocess.run(  # noqa: S603 - words of ours and checked ones of a row
            command, cwd=folder, env=environment | people, input=stdin, capture_output=True, check=False, umask=0o022
        )
    except OSError as error:
        raise EnvironmentFaultError(f"git cannot be run: {error.strerror}", hint="install git") from error
    if process.returncode:
        reason = " ".join(process.stderr.decode(errors="replace").split())[-_SHOWN:]
        raise EnvironmentFaultError(f"git {words[0]} failed in {folder}: {reason}", hint="check the clone")
    return process.stdout.decode(errors="replace")
