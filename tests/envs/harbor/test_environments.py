"""A rollout in each kind of environment that a machine may have, with the real package and a model that is served."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from desk_models import RULE, DeskModels
from harbor_trials import HERE

from skillgit.domain.evaluation import Split
from skillgit.domain.skill import Skill
from skillgit.endpoint.server import MeteredEndpoint
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Reply, Request, ToolCall, Usage
from skillgit_envs.harbor import Harbor

ROOT = Path(os.environ.get("SKILLGIT_HARBOR_ROOT", "/nonexistent"))
WRITE = "grep quantity /app/order.txt >/app/slip.txt; echo counted twice >>/app/slip.txt"
IMAGE = "localhost/skillgit-slips:1"
SKILL = Skill("slips", {"SKILL.md": f"---\nname: slips\ndescription: Slips.\n---\n\n{RULE}\n".encode()})


class Clerk:
    """A target that serves the clerk, who uses a tool for commands where there is one."""

    def __init__(self, endpoint: MeteredEndpoint) -> None:
        self.endpoint = endpoint

    @asynccontextmanager
    async def serve(self):
        async def ask(question, _provider, _draw):
            if "Bash" not in {tool.name for tool in question.tools}:
                return await DeskModels({}).complete(Request(model="clerk", messages=question.messages))
            usage = Usage(tokens_in=10, tokens_out=2)
            if any(message.role == "tool" for message in question.messages):
                return Reply(text="The slip is written.", usage=usage)
            asked = "".join(message.text for message in question.messages)
            command = WRITE if "/app/order.txt" in asked and "slips" in asked else "false"
            call = ToolCall(id="toolu_1", name="Bash", arguments=json.dumps({"command": command, "description": "x"}))
            return Reply(text="I write it.", usage=usage, tool_calls=(call,))

        async with self.endpoint.lease(ask) as lease:
            yield lease


def outcomes(python: str, *names: str, tasks: Path = HERE / "tasks", **options) -> list:
    """Return trajectory, score and feedback of a rollout of each task, or its error."""
    modules = {"modules": str(HERE / "agents"), "agent": "desk_agent:DeskAgent", "python": python}
    environment = Harbor({"data_path": str(tasks), "split_ratio": "1:1:1", **modules, **options}, Path())
    items = {item.id: item for split in Split for item in environment.items(split)}

    async def one(item, endpoint):
        trajectory = await environment.rollout(item, SKILL, Clerk(endpoint))
        return trajectory, *await environment.score(item, trajectory, None)

    async def whole():
        endpoint = MeteredEndpoint()
        try:
            await environment.open()
            return await asyncio.gather(*(one(items[name], endpoint) for name in names), return_exceptions=True)
        finally:
            await environment.close()
            await endpoint.aclose()

    return asyncio.run(whole())


def solved(python: str, **options) -> None:
    [(trajectory, scored, feedback)] = outcomes(python, "green-tea", **options)
    assert scored.hard == 1, feedback
    assert [turn.role for turn in trajectory.turns] == ["user", "assistant", "user", "assistant"]
    assert trajectory.answer == "The slip is written."


@pytest.mark.slow
def test_bubblewrap(real_python):
    solved(real_python, environment="bubblewrap")


REFUSED = {
    "FROM a\nRUN apt-get install cowsay\n": "more than FROM, WORKDIR and COPY: 'RUN apt-get install cowsay'",
    "FROM a\nFROM b\n": "more than FROM, WORKDIR and COPY: 'FROM b'",
    "FROM a\nWORKDIR /app\nCOPY order.txt /usr/share/\n": "keeps the root file system as it is",
    "FROM a\nCOPY ../tests/test.sh /app/\n": "copies files of the task only",
}


@pytest.mark.slow
def test_bubblewrap_refuses_what_it_cannot_do(real_python, tmp_path):
    names = [f"task-{number}" for number in range(len(REFUSED))]
    for name, dockerfile in zip(names, REFUSED, strict=True):
        task(tmp_path / name, dockerfile)
    errors = outcomes(real_python, *names, tasks=tmp_path, environment="bubblewrap")
    for error, message in zip(errors, REFUSED.values(), strict=True):
        assert isinstance(error, EnvironmentFaultError)
        assert message in error.message


def task(folder: Path, dockerfile: str, tests: str = "exit 1\n", instruction: str = "Do it.") -> None:
    (folder / "environment").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "task.toml").write_text("")
    (folder / "instruction.md").write_text(f"{instruction} {folder.name}\n")
    (folder / "tests" / "test.sh").write_text(tests)
    (folder / "environment" / "order.txt").write_text("order\n")
    (folder / "environment" / "Dockerfile").write_text(dockerfile)


@pytest.mark.slow
def test_variables_of_a_task_never_reach_the_program_that_makes_its_sandbox(real_python, tmp_path):
    theirs = tmp_path / "tasks" / "task-0" / "environment"
    tests = 'echo "$LD_PRELOAD"; PATH=/usr/bin:/bin; echo 1 >/logs/verifier/reward.txt\n'
    for number in range(3):
        task(tmp_path / "tasks" / f"task-{number}", "FROM a\n", tests)
    for name in ("bwrap", "bash", "sh"):
        (theirs / name).write_text(f'#!/bin/sh\ntouch {tmp_path}/ran\nexec /usr/bin/{name} "$@"\n')
        (theirs / name).chmod(0o755)
    lines = [f'PATH = "{theirs}:/usr/bin:/bin"', f'LD_PRELOAD = "{theirs}/none.so"', f'BASH_ENV = "{theirs}/sh"']
    (theirs.parent / "task.toml").write_text("\n".join(["[environment.env]", *lines, ""]))
    [(_, scored, feedback)] = outcomes(real_python, "task-0", tasks=tmp_path / "tasks", environment="bubblewrap")
    assert scored.hard == 1
    assert f"{theirs}/none.so" in feedback
    assert not (tmp_path / "ran").exists()


SAID = {
    "a link for a test": "ln -sf OUTSIDE /tests/test.sh",
    "links in logs": "cd /logs; ln -s OUTSIDE verifier/link; ln -s OUTSIDE agent/link; mkfifo agent/pipe",
    "a look at this machine": "ls /home/* /root /work /var /etc/shadow OUTSIDE; env",
}


@pytest.mark.slow
def test_what_an_agent_leaves_in_bubblewrap_leads_nowhere(real_python, tmp_path, monkeypatch):
    outside = tmp_path / "outside.txt"
    outside.write_text("the words outside\n")
    tests = "echo fine; echo 1 >/logs/verifier/reward.txt\n"
    for number, name in enumerate(SAID):
        task(tmp_path / "tasks" / f"task-{number}", "FROM a\n", tests, name)

    def clerk(_, request):
        text = request.messages[-1].text
        if text.startswith("output: "):
            return "Done."
        command = next(command for name, command in SAID.items() if name in text)
        return f"```sh\n{command.replace('OUTSIDE', str(outside))}\n```"

    monkeypatch.setattr(DeskModels, "clerk", clerk)
    monkeypatch.setenv("PROVIDER_API_KEY", "key-of-the-user")
    names = [f"task-{number}" for number in range(len(SAID))]
    rollouts = outcomes(real_python, *names, tasks=tmp_path / "tasks", environment="bubblewrap")
    assert not [rollout for rollout in rollouts if isinstance(rollout, Exception)]
    for trajectory, scored, feedback in rollouts:
        assert scored.hard == 1
        assert feedback == "reward 1\nfine"
        everything = "\n".join(turn.content for turn in trajectory.turns)
        assert "the words outside" not in everything
        assert "key-of-the-user" not in everything
    assert outside.read_text() == "the words outside\n"


def has_image() -> bool:
    try:
        found = subprocess.run(["podman", "image", "exists", IMAGE], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return found.returncode == 0


@pytest.mark.soak
@pytest.mark.parametrize("killed", [False, True])
def test_podman(real_python, monkeypatch, tmp_path, killed):
    if not has_image():
        pytest.skip(f"podman has no image {IMAGE}: tests/envs/harbor/make_image.sh makes it")
    monkeypatch.setattr(DeskModels, "questions", 0)
    monkeypatch.setenv("KILL_RUNNER", "1" if killed else "0")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    solved(real_python, environment="podman")
    assert DeskModels.questions >= 2 + killed
    listed = subprocess.run(
        ["podman", "ps", "--all", "--format={{.Names}}"], capture_output=True, text=True, check=True
    )
    assert "skillgit-harbor" not in listed.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.soak
def test_claude_code_in_a_root_file_system(real_python):
    if not (ROOT / "usr" / "local" / "bin" / "claude").exists():
        pytest.skip(
            "SKILLGIT_HARBOR_ROOT names no root file system with claude: tests/envs/harbor/make_image.sh makes it"
        )
    options = {"agent": "claude-code", "root_filesystem": str(ROOT), "environment": "bubblewrap"}
    [(trajectory, scored, feedback)] = outcomes(real_python, "green-tea", **options)
    assert scored.hard == 1, feedback
    assert [turn.role for turn in trajectory.turns][-3:] == ["assistant", "tool", "assistant"]
    assert trajectory.turns[-3].tool_calls[0].name == "Bash"
