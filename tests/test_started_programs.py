"""Every program that is started on this machine: where its environment comes from, and that no data get into it.

What a task, a configuration, a skill or a repository says of variables is set inside a sandbox, never for a program
that makes one.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillgit.errors import ConfigError, SandboxError
from skillgit.sandbox import Job, Mode, Sandbox
from skillgit.sandbox.mechanisms import bubblewrap_program
from skillgit_backends.agent_cli.seal import Seal
from skillgit_backends.agent_cli.workspace import fresh_workspace
from skillgit_envs.harbor import Harbor

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
STARTS = {
    # The user's own variables, and names of ours.
    "backends/skillgit_backends/agent_cli/process.py": "some of the user's, those of the agent's settings by name",
    "envs/skillgit_envs/alfworld/simulator.py": "some of the user's",
    "envs/skillgit_envs/harbor/trial_process.py": "some of the user's, those of env.variables by name",
    "envs/skillgit_envs/swebench/engines.py": "the user's",
    "envs/skillgit_envs/swebench/grading.py": "the user's",
    "envs/skillgit_envs/swebench/repositories.py": "PATH of the user's",
    "skillgit/app/measure/envelope.py": "the user's",
    "skillgit/app/workspace/command_journal.py": "the user's",
    "skillgit/cli/output.py": "the user's",
    "skillgit/executors/pool.py": "the user's",
    "skillgit/testing/rehearsal.py": "the user's",
    "skillgit/store/exchange/transport.py": "the user's, without git's",
    "skillgit/store/git_binary.py": "the user's, without git's",
    "skillgit/tui/screens/dialogs.py": "the user's",
    "skillgit/tui/commands.py": "the user's",
    # None.
    "envs/skillgit_envs/harbor/runner/bubblewrap_environment.py": "none",
    "skillgit/engine/candidate.py": "none",
    "skillgit/sandbox/sandbox.py": "none",
    "skillgit/sandbox/mechanisms.py": "the user's, for a program of ours without data",
    "skillgit/sandbox/job.py": "the user's, for a program of ours without data",
    # Inside a sandbox already.
    "backends/skillgit_backends/agent_cli/doorway.py": "inside",
    "skillgit/app/sources/harvest_check.py": "inside",
    "skillgit/sandbox/launcher/confinement.py": "inside",
}
"""Each file that starts programs, with the environment that they get. A new one is to be looked at, and added."""
_CALLS = {
    *("subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call", "subprocess.check_output"),
    *("subprocess.getoutput", "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    *("os.system", "os.popen", "os.execv", "os.execve", "os.execvp", "os.execvpe", "os.posix_spawn", "os.spawnvpe"),
}


def test_every_start_of_a_program_was_looked_at():
    files = set()
    for package in ("skillgit", "envs/skillgit_envs", "backends/skillgit_backends"):
        for path in (ROOT / package).rglob("*.py"):
            calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
            if any(ast.unparse(call.func) in _CALLS for call in calls):
                files.add(path.relative_to(ROOT).as_posix())
    assert files == STARTS.keys()


def test_every_start_from_asyncio_is_whole():
    """One that a cancellation can cut in half leaves a program behind, and may never return."""
    starts = "asyncio.create_subprocess_exec"
    for package in ("skillgit", "envs/skillgit_envs", "backends/skillgit_backends"):
        for path in (ROOT / package).rglob("*.py"):
            if path.name == "bubblewrap_environment.py":  # Harbor's process, which is killed as a whole
                continue
            calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            whole = [part for call in calls if ast.unparse(call.func) == "whole_start" for part in call.args]
            assert [call for call in calls if ast.unparse(call.func) == starts] == whole, path


NAMES = (
    *("PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV", "IFS", "PYTHONPATH", "PYTHONHOME"),
    *("GIT_DIR", "GIT_SSH_COMMAND", "GIT_EXEC_PATH", "NODE_OPTIONS", "PERL5OPT", "GCONV_PATH", "TMPDIR", "HOME"),
)


class Started:
    """The programs that were started, with their environments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.programs: list[tuple[str, dict[str, str]]] = []
        log = self.programs

        class Recording(subprocess.Popen):
            def __init__(self, args, *rest, **options) -> None:
                environment = options.get("env")
                log.append((args[0], dict(os.environ if environment is None else environment)))
                super().__init__(args, *rest, **options)

        monkeypatch.setattr(subprocess, "Popen", Recording)

    def untouched_by(self, mark: str) -> bool:
        assert self.programs
        return all(
            Path(program).is_absolute() and mark not in " ".join(environment.values())
            for program, environment in self.programs
        )


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, str]:
    """Variables that lead to a folder with programs and libraries of a stranger's, which leave a mark if they run."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "stranger"
    folder.mkdir()
    for name in ("bwrap", "python", Path(sys.executable).name, "sh", "bash", "env", "setpriv"):
        (folder / name).write_text(f'#!/bin/sh\necho $0 >>{tmp_path}/ran\nexec /usr/bin/env bash "$@"\n')
        (folder / name).chmod(0o755)
    return dict.fromkeys(NAMES, str(folder))


@pytest.mark.parametrize("mode", [Mode.BUBBLEWRAP, Mode.LANDLOCK, Mode.NONE], ids=str)
def test_variables_of_a_job_are_set_inside(mode, hostile, monkeypatch, tmp_path):
    try:
        box = Sandbox(mode)
    except SandboxError as error:
        pytest.skip(error.message)
    started = Started(monkeypatch)
    script = "import os; print(sorted(os.environ.items()))"
    harmless = {name: value for name, value in hostile.items() if name != "PYTHONHOME"}
    done = asyncio.run(box.run(Job(command=(box.python, "-c", script), environment=harmless)))
    assert done.ok, done
    assert all(repr((name, value)) in done.stdout for name, value in harmless.items())
    assert started.untouched_by(str(tmp_path))
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def harbors_box(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[object]:
    """The class of Harbor's environment on bubblewrap, over a stand-in for Harbor itself."""
    try:
        Sandbox(Mode.BUBBLEWRAP)
    except SandboxError as error:
        pytest.skip(error.message)
    monkeypatch.syspath_prepend(ROOT / "tests/envs/harbor/standin")
    path = ROOT / "envs/skillgit_envs/harbor/runner/bubblewrap_environment.py"
    specification = importlib.util.spec_from_file_location("bubblewrap_environment", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    (tmp_path / "trial").mkdir()
    yield lambda env: module.BubblewrapEnvironment(
        environment_dir=tmp_path, trial_dir=tmp_path / "trial", session_id="one", env=env, program=bubblewrap_program()
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == "harbor"]:
        del sys.modules[name]


def test_variables_of_a_harbor_task_are_set_inside(harbors_box, hostile, monkeypatch, tmp_path):
    async def main() -> list[object]:
        box = harbors_box({**hostile, "TOKEN": "sg-secret"})
        await box.start(force_build=False)
        try:
            plain = await box.exec(
                'printf \'%s|\' "$LD_PRELOAD" "$BASH_ENV" "$TOKEN" "$GIT_DIR"', env={"PATH": "/usr/bin:/bin"}
            )
            return [plain, await box.exec("echo unreached"), box]
        finally:
            await box.stop(delete=True)

    started = Started(monkeypatch)
    plain, lost, _ = asyncio.run(main())
    folder = hostile["PATH"]
    assert plain.stdout == f"{folder}|{folder}|sg-secret|{folder}|"
    assert lost.return_code != 0, "no bash is on the PATH of the task, inside"
    assert started.untouched_by(str(tmp_path / "stranger"))
    assert [program for program, _ in started.programs] == [bubblewrap_program()] * 2
    assert [environment for _, environment in started.programs] == [{}] * 2
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "value"), [("A=B", "c"), ("", "c"), ("A", "b\0--bind\0/\0/host"), ("A\0--bind\0/\0/host", "b")]
)
def test_a_variable_of_a_harbor_task_is_no_word_for_bubblewrap(harbors_box, name, value):
    async def main() -> None:
        box = harbors_box({name: value})
        await box.start(force_build=False)
        try:
            await box.exec("true")
        finally:
            await box.stop(delete=True)

    with pytest.raises(ValueError, match="is not a variable that a command can have"):
        asyncio.run(main())


def test_the_program_that_seals_agents_is_named_by_its_path():
    try:
        path = bubblewrap_program()
    except SandboxError as error:
        pytest.skip(error.message)
    with fresh_workspace() as workspace:
        seal = Seal(workspace=workspace, port=1, socket=workspace.outside / "socket")
        words = seal.around([sys.executable, "--version"], {"PATH": os.environ["PATH"]})
    assert words[0] == path
    assert Path(path).is_absolute()


@pytest.mark.parametrize("word", ["", ".", "bin", "./bin", "../bin"])
def test_a_relative_folder_of_path_lends_no_bubblewrap(word, tmp_path, monkeypatch):
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "bwrap").write_text("#!/bin/sh\n")
        (folder / "bwrap").chmod(0o755)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path if not word.startswith("..") else tmp_path / "here")
    monkeypatch.setenv("PATH", os.pathsep.join((word, "/usr/bin")))
    try:
        assert not Path(bubblewrap_program()).is_relative_to(tmp_path)
    except SandboxError:
        assert shutil.which("bwrap", path="/usr/bin") is None


def test_bubblewrap_is_found_wherever_path_says(tmp_path, monkeypatch):
    (tmp_path / "bwrap").write_text("#!/bin/sh\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
    assert bubblewrap_program() == str(tmp_path / "bwrap")


def test_harbor_without_bubblewrap_is_refused_before_its_first_trial(monkeypatch, tmp_path):
    def absent(_: Mode) -> None:
        raise SandboxError("bubblewrap is not installed", hint="install it")

    monkeypatch.setattr("skillgit_envs.harbor.Sandbox", absent)
    with pytest.raises(ConfigError, match=r"env\.environment is 'bubblewrap', and bubblewrap is not installed"):
        Harbor({"environment": "bubblewrap", "data_path": str(tmp_path)}, tmp_path)
    Harbor({"environment": "docker", "data_path": str(tmp_path)}, tmp_path)
