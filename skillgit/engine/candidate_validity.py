"""Whether a candidate's files hold together, found out before it costs a rollout.

Scripts and data that a candidate changes have to parse; nothing of them is executed for that. What a skill checks of
itself (``optimizer.check``) is executed in the sandbox and nowhere else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
import warnings
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast

from skillgit.domain.ids import digest
from skillgit.engine.candidate_guards import Refusal
from skillgit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillgit.domain.skill import Skill
    from skillgit.engine.session import Session
    from skillgit.sandbox import Result

CHECK_SECONDS = 60.0  # what a self-check may take
_BASH_SECONDS = 10.0
_SAID = 600


async def invalid(session: Session, skill: Skill, candidate: Skill) -> Refusal | None:
    """Return why ``candidate``, made of ``skill``, is broken; None if nothing speaks against trying it.

    Raises:
        EnvironmentFaultError: The sandbox failed, which says nothing of the candidate.
        SandboxError: There is a self-check, and this machine has no sandbox.
    """
    for path, content in candidate.files.items():
        if skill.files.get(path) != content and (fault := fault_in(path, content)):
            return Refusal(title=f"invalid: {path} does not parse", why=f"{path} does not parse: {fault}.")
    complaint = await self_check(session, candidate)
    return None if not complaint else Refusal(title="invalid: the skill fails its self-check", why=complaint)


async def check_seed(session: Session, skill: Skill) -> None:
    """Refuse to train a skill that fails its own self-check, for no candidate could pass it.

    Raises:
        SandboxError: There is a self-check, and this machine has no sandbox.
    """
    if complaint := await self_check(session, skill):
        raise ConfigError(
            f"the skill that training starts from fails optimizer.check: {' '.join(complaint.split())}",
            hint="mend the skill or the command; every candidate would fail it too",
        )


async def self_check(session: Session, skill: Skill) -> str:
    """Return what is wrong with ``skill`` by its self-check; empty if there is none, or it passes.

    The result is kept in the ledger as outcomes are: the same text is checked once.
    """
    command = session.settings.optimizer.check_command
    if not command:
        return ""

    async def produce() -> tuple[object, bool]:
        return {"said": await _checked(command, skill)}, True

    key = digest(["self-check", skill.digest, list(command)])
    row = cast("Mapping[str, object]", await session.calls.rollout(key, produce))
    return str(row["said"])


async def _checked(command: tuple[str, ...], skill: Skill) -> str:
    from skillgit.sandbox import Job, Limits, Sandbox  # noqa: PLC0415 - most runs have no self-check

    sandbox = Sandbox()
    limits = Limits(wall_s=CHECK_SECONDS)
    like = sandbox.python_job("", limits=limits)
    program, *arguments = command
    python = program in {"python", "python3"}
    job = Job(
        command=(sandbox.python if python else program, *arguments),
        files=skill.files,
        environment=like.environment if python else {},
        limits=limits,
        collect=(),
    )
    result = await sandbox.run(job)
    return "" if result.ok else _told(command, result)


def _told(command: tuple[str, ...], result: Result) -> str:
    how = {"exit": f"ended with exit code {result.exit_code}", "timeout": f"took longer than {CHECK_SECONDS:g} seconds"}
    output = f"{result.stdout.rstrip()}\n{result.stderr.rstrip()}".strip()[-_SAID:]
    sentence = f"{' '.join(command)} {how.get(result.ended, f'was ended by the sandbox: {result.ended}')}"
    return f"{sentence}: {output}" if output else f"{sentence}."


def fault_in(path: str, content: bytes) -> str:
    """Return why the script or data file at ``path`` does not parse, as a clause; empty if it does or is neither."""
    parse = _PARSERS.get(PurePosixPath(path).suffix.casefold()) or _by_first_line(content)
    if parse is None:
        return ""
    try:
        return parse(content)
    except (ValueError, SyntaxError, RecursionError, MemoryError, OverflowError) as error:
        return _clause(error)


def _clause(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.msg} (line {error.lineno})"
    return " ".join(str(error).split()) or type(error).__name__


def _by_first_line(content: bytes) -> Callable[[bytes], str] | None:
    first = content.partition(b"\n")[0]
    if not first.startswith(b"#!"):
        return None
    names = {PurePosixPath(word).name.rstrip("0123456789.") for word in first[2:].decode(errors="replace").split()}
    return _python if "python" in names else _shell if names & {"sh", "bash"} else None


def _python(content: bytes) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(content, "script", "exec", dont_inherit=True)
    return ""


def _shell(content: bytes) -> str:
    bash = shutil.which("bash")
    if bash is None:
        raise ConfigError("a shell script of the skill cannot be checked: bash is not installed", hint="install bash")
    try:
        # -n reads the commands and executes none.
        process = subprocess.run(  # noqa: S603 - a fixed program; the script is its input
            [bash, "--norc", "-n"],
            input=content,
            capture_output=True,
            env={"LC_ALL": "C"},
            timeout=_BASH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"bash did not read it to its end in {_BASH_SECONDS:g} seconds"
    lines = process.stderr.decode(errors="replace").splitlines()
    return "" if process.returncode == 0 else (lines[0].removeprefix(f"{bash}: ") if lines else "bash refuses it")


def _json(content: bytes) -> str:
    json.loads(content)
    return ""


def _toml(content: bytes) -> str:
    tomllib.loads(content.decode())
    return ""


def _yaml(content: bytes) -> str:
    import yaml  # noqa: PLC0415 - few skills hold such files

    try:
        for _ in yaml.compose_all(content, Loader=yaml.SafeLoader):
            pass
    except yaml.YAMLError as error:
        return " ".join(str(error).split())
    return ""


_PARSERS: Mapping[str, Callable[[bytes], str]] = {
    ".py": _python,
    ".sh": _shell,
    ".bash": _shell,
    ".json": _json,
    ".toml": _toml,
    ".yaml": _yaml,
    ".yml": _yaml,
}
