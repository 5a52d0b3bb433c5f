"""The table in docs/sharing.md: what each command starts and writes on a stranger's repository, cell by cell."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from documents import DOCS
from hosts import Person, knowing
from once import copy_folder
from program import git, new_repository, python

from skillgit.cli.main import cli

DOC = DOCS / "sharing.md"
AUDITED = Path(__file__).with_name("audited.py")
RUN = "demo"
COMMIT = ("-c", "user.name=mallory", "-c", "user.email=mallory@localhost", "commit")
APART = {
    "init",
    "tasks",
    "doctor",
    "config",
    "plugins",
    "completion",
    "help",
    "uninstall",
}
"""Commands that look at no run."""
WORDS = {
    "status": "status",
    "runs": "runs",
    "log": f"log {RUN} --stat",
    "why": "why twice --rev demo/v1",
    "items": f"items {RUN}",
    "cost": f"cost {RUN}",
    "log --jsonl": f"log {RUN} --jsonl",
    "rev-parse": f"rev-parse {RUN}/v1",
    "sql": "sql SELECT+1",
    "tui": "tui",
    "serve": "serve --tokens",
    "mcp": "mcp",
    "lint --secrets": "lint --secrets",
    "show": f"show {RUN}/v1",
    "diff": f"diff {RUN}/v0 {RUN}/v1",
    "blame": f"blame {RUN}/v1",
    "fsck": "fsck --deep",
    "report": f"report {RUN} --output named.html",
    "lint": "lint",
    "use": f"use {RUN}",
    "note": f"note {RUN}/v1 hello",
    "fork": f"fork {RUN}/v0 mine",
    "revert --to": f"revert --to {RUN}/v0",
    "gc": "gc --fold",
    "checkout": f"checkout {RUN}/v1",
    "promote": f"promote {RUN}/v1",
    "install": f"install {RUN}/v1 --to named",
    "export": f"export {RUN}/v1 named",
    "export --as plugin": f"export {RUN}/v1 named --as plugin",
    "eval": f"eval {RUN}/v0",
    "eval --judge": f"eval {RUN}/v0 --judge",
    "eval --fresh --sample": f"eval {RUN}/v0 --fresh --sample 20",
    "verify": f"verify {RUN}/v0",
    "claim": f"claim {RUN}/v0 --key ../key --output named",
    "install --list": "install --list skills",
    "gate": f"gate --base main --head {RUN}/v1",
    "ablate": f"ablate {RUN}/v1",
    "shorten": f"shorten {RUN}",
    "shorten --words": f"shorten {RUN} --words",
    "cherry-pick": f"cherry-pick {RUN}/v1 --run {RUN}",
    "revert": f"revert {RUN}/v1",
    "merge": f"merge {RUN} {RUN}/v0",
    "cherry-pick --rejected": f"cherry-pick --rejected --run {RUN}",
    "train": f"train demo --from {RUN}/v1 --run mine -o train.num_epochs=1 -o evaluation.sel_env_num=8 "
    "-o evaluation.test_env_num=4 -o optimizer.use_slow_update=false",
    "propose": "propose searchqa --config demo -o train.num_epochs=1 -o evaluation.sel_env_num=8 "
    "-o evaluation.test_env_num=4 -o optimizer.use_slow_update=false",
    "clone": "clone ../host.git ../victim/again --evidence",
    "pull": "pull --evidence",
    "push": "push --no-verify --dry-run",
    "import": "import ../theirs --run theirs",
}
"""A way to use each command on the run."""
REFUSES = {
    "eval",
    "eval --judge",
    "eval --fresh --sample",
    "gate",
    "ablate",
    "shorten",
    "shorten --words",
    "cherry-pick",
    "revert",
}
"""Commands that measure, and so ask for a configuration of the user's own."""
WRITES = {
    "index": r"\.git/skillgit/(index\.db.*|live.*|terminal.*)",
    "refs": r"\.git/(refs/.*|logs/.*|packed-refs|objects/.*|HEAD|ORIG_HEAD|FETCH_HEAD|index"
    r"|skillgit/(own/.*|run-[\w-]+\.\w+|lock|.*\.lock))",
    "ledger": r"\.git/skillgit/(ledger\.db.*|run-[\w-]+\.progress|proposals/.*|shortcuts/.*|fresh/.*)",
    "git's configuration": r"\.git/config",
    "work tree": r"(?!\.git/).*",
    "the page that you name": r"named\.html",
    "the place that you name": r"named(/.*)?|\.git/skillgit/adopted/.*",
    "nothing": r"(?!)",
}
"""What a word of the column *writes* allows, as a pattern of paths in the repository."""
STARTS = {"nothing": set(), "git": {"git"}, "`ssh-keygen`": {"ssh-keygen"}}
"""What a word of the column *starts* allows."""
SIGNS = {command for command in WORDS if "claim" in command}


def table() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return command to what the table says that it starts and writes."""
    rows = re.findall(r"^\| (`[^|]*`) \| [^|]* \| ([^|]*) \| ([^|]*) \|$", DOC.read_text(), re.MULTILINE)
    return {
        command: (starts, tuple(writes.split(", ")))
        for commands, starts, writes in rows
        if starts in STARTS
        for command in re.findall(r"`([^`]*)`", commands)
    }


TABLE = table()


def test_the_table_names_every_command_that_looks_at_runs():
    every = set(cli.list_commands(click.Context(cli)))
    assert TABLE.keys() == WORDS.keys()
    assert {command.split()[0] for command in WORDS} == every - APART
    assert {word for _, writes in TABLE.values() for word in writes} <= WRITES.keys()


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clone of a repository that would run, read and write what its maker likes; beside it lies the secret."""
    folder = tmp_path_factory.mktemp("strangers")
    path = new_repository(folder / "mallory")
    secret, mark = folder / "secret", folder / "mark"
    secret.write_text("a secret of the victim's\n")
    check = {"type": "command", "command": ["sh", "-c", f"touch {mark}"]}
    rows = (
        {"id": f"t{number}", "prompt": f"Say {number}.", "check": check, "split": split}
        for number, split in enumerate(["train", "selection", "test"] * 4)
    )
    (path / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    git("add", "tasks.jsonl", cwd=path)
    git(*COMMIT, "-qm", "tasks", cwd=path)
    short = ("train.num_epochs=1", "optimizer.use_slow_update=false", "env.limit=4")
    own = ("env.data_path=tasks.jsonl", "env.sandbox=none")
    Person(path)("train", "tasks/default", "--run", RUN, *(word for one in (*short, *own) for word in ("-o", one)))
    assert mark.exists(), "its own maker runs it"
    mark.unlink()
    git("checkout", "-q", f"run/{RUN}", cwd=path)
    (document,) = path.glob("skills/*/SKILL.md")
    document.write_text(f"{document.read_text()}\nSay it twice.\n\n- [more](link)\n")
    document.with_name("link").symlink_to(secret)
    document.with_name("folder").symlink_to(folder)
    (document.parent / "scripts").mkdir()
    program = document.parent / "scripts" / "run.sh"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    (path / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    git("add", "-A", cwd=path)
    git(*COMMIT, "-qm", "by hand", cwd=path)
    git("checkout", "-q", "main", cwd=path)
    if shutil.which("ssh-keygen"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
        Person(path)("claim", f"{RUN}/v0", "--key", folder / "key")
    Person(path)("export", f"{RUN}/v0", folder / "theirs", "--as", "skillopt")
    git("init", "-q", "--bare", "--initial-branch=main", folder / "host.git", cwd=folder)
    git("remote", "add", "origin", folder / "host.git", cwd=path)
    Person(path).push("--evidence", "--no-verify")
    shutil.rmtree(path)
    Person(folder)("clone", "--evidence", folder / "host.git", "victim")
    return folder / "victim"


@pytest.mark.parametrize("command", WORDS)
def test_a_command_starts_and_writes_what_the_table_says(victim: Path, tmp_path: Path, command: str):
    if command in SIGNS and not shutil.which("ssh-keygen"):
        pytest.skip("there is no ssh-keygen (openssh-client)")
    folder, place, log = victim.parent, victim.parent / f"at-{command}", tmp_path / "log"
    copy_folder(victim, place)
    before, beside = _files(place), _files(folder, but=place)
    words = [word.replace("+", " ").replace("../victim/", "") for word in WORDS[command].split()]
    done = python(AUDITED, log, *words, cwd=place, env=knowing() | {"TMPDIR": str(tmp_path)})
    assert "Traceback" not in done.err, done
    if command in REFUSES:
        assert done.code == 2, done
        assert f"run {RUN} was trained elsewhere, and its configuration sets env.data_path, env.sandbox" in done.err
    starts, writes = TABLE[command]
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert {row[1] for row in rows if row[0] == "start"} <= STARTS[starts]
    assert command not in SIGNS or ["start", "ssh-keygen"] in rows, done
    assert [row for row in rows if row[0] == "connect"] == []
    assert [row for row in rows if row[0] == "open" and row[1].startswith(f"{folder}/secret")] == []
    assert "a secret of" not in done.out + done.err
    assert not (folder / "mark").exists()
    changed = _changed(before, _files(place))
    allowed = "|".join(f"(?:{WRITES[word]})" for word in writes)
    assert [path for path in changed if not re.fullmatch(allowed, path)] == []
    assert _changed(beside, _files(folder, but=place)) == []
    assert not any("a secret of" in path.read_text(errors="replace") for path in place.rglob("*") if _is_file(path))
    shutil.rmtree(place)


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _files(folder: Path, but: Path | None = None) -> dict[str, tuple[int, int, int] | str]:
    """Return every file and link below ``folder`` with what changes when it is written."""
    found: dict[str, tuple[int, int, int] | str] = {}
    for path in folder.rglob("*"):
        if but is not None and path.is_relative_to(but):
            continue
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            status = path.stat()
            found[name] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return found


def _changed(before: dict[str, tuple[int, int, int] | str], after: dict[str, tuple[int, int, int] | str]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
