"""What the tests of SWE-bench share: the items that come with skillgit, a row to change, and a tool call."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillgit.domain.evaluation import Split
from skillgit.errors import SandboxError
from skillgit.plugin.backend import Reply, ToolCall, Usage
from skillgit_envs.swebench import SWEBench
from skillgit_envs.swebench.grading import package_version
from skillgit_envs.swebench.repositories import Shipped, git

if TYPE_CHECKING:
    from skillgit.domain.trajectory import Item

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "envs" / "skillgit_envs" / "swebench"
PYTHON = os.environ.get("SKILLGIT_SWEBENCH_PYTHON", "")
needs_package = pytest.mark.skipif(
    not package_version(PYTHON), reason="swebench is not installed; SKILLGIT_SWEBENCH_PYTHON names a Python that has it"
)
LOGS = Path(os.environ.get("SKILLGIT_REAL_DATA", ROOT.parent / "shared" / "data")) / "swebench_grading"
needs_logs = pytest.mark.skipif(
    not LOGS.is_dir(), reason=f"no real rows and logs at {LOGS}; SKILLGIT_REAL_DATA names the folder that holds them"
)
DONE = Reply(text="Done.", usage=Usage(tokens_in=1, tokens_out=1))


def row(**fields: object) -> dict[str, object]:
    """Return a row as it is published, of a project that does not exist."""
    return {
        "repo": "acme/tool",
        "instance_id": "acme__tool-12",
        "base_commit": "0" * 40,
        "version": "1.2",
        "problem_statement": "It is broken.",
        "hints_text": "HINT-5f0c",
        "patch": "GOLD-5f0c",
        "test_patch": "CHECK-5f0c",
        "FAIL_TO_PASS": '["tests/test_a.py::test_x"]',
        "PASS_TO_PASS": "[]",
        "image": "example/tool:latest",
        "eval_script": "#!/bin/bash\nset -uxo pipefail\ncd /testbed\n",
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        **fields,
    }


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))
    return path


def own_items() -> dict[int, Item]:
    """Return the items that come with skillgit by their numbers; a machine without a sandbox skips the test."""
    environment = SWEBench({}, Path())
    try:
        items = [item for split in Split for item in environment.items(split)]
    except SandboxError as error:
        pytest.skip(error.message)
    return {int(item.id.rpartition("-")[2]): item for item in items}


def gold(item: Item) -> str:
    return f"{item.content['patch']}\n"


def bash(command: str) -> Reply:
    call = ToolCall(id="1", name="bash", arguments=json.dumps({"command": command}))
    return Reply(text="", usage=Usage(tokens_in=1, tokens_out=1), finish_reason="tool_calls", tool_calls=(call,))


def clone(folder: Path, name: str = "hearthside__larder") -> tuple[Path, str]:
    """Make a clone of the project that comes with skillgit, with a later commit, and return it with that commit."""
    place = folder / name
    place.mkdir(parents=True)
    (item,) = (item for number, item in own_items().items() if number == 1)
    from skillgit_envs.swebench.instances import Instance  # noqa: PLC0415 - only here

    Shipped(SCRIPTS / "data" / "repositories").check_out(Instance(item), place)
    (place / "larder" / "fixed.py").write_text("THE_FIX = True\n")
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--message=Later")
    return place, git(place, "rev-parse", "HEAD").strip()


def ran(script: str, testbed: Path, box: Path, **files: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run a script of the environment on a checkout, without a sandbox; ``files`` have _ for a dot."""
    (box / "out").mkdir(parents=True)
    for name, content in files.items():
        (box / name.replace("_", ".")).write_bytes(content)
    (box / "limit").write_text("60")
    return subprocess.run(
        ["bash", str(SCRIPTS / f"{script}.sh")],
        env={**os.environ, "TESTBED": str(testbed), "BOX": str(box), "GIT_CONFIG_GLOBAL": str(SCRIPTS / "git.config")},
        capture_output=True,
        check=False,
    )
