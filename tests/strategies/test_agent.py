"""The strategy agent: what a program changes in its folder becomes a candidate, and it sees and reaches nothing else."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toy import SEED, History, ToyBackend, run_to_end, trainer

from skillgit.calls.client import Route
from skillgit.domain.cost import Caps
from skillgit.domain.event import Accepted, Rejected, Skipped
from skillgit.domain.skill import Skill
from skillgit.errors import BudgetError, StrategyError
from skillgit.plugin.backend import Price, Reply, Usage
from skillgit.plugin.work_folder import FolderChanges, WorkFolder, changes_in
from skillgit.strategies.agent import Agent
from skillgit_backends.agent_cli.seal import seal_problem
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Request

sealed = pytest.mark.skipif(bool(seal_problem()), reason=f"no seal here: {seal_problem()}")
HEAD = '''#!{python} -I
import http.client, json, os, sys
from pathlib import Path
from urllib.parse import urlsplit


def ask(text):
    place = urlsplit(os.environ["ANTHROPIC_BASE_URL"])
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=20)
    body = {{"model": "m", "max_tokens": 99, "messages": [{{"role": "user", "content": text}}]}}
    headers = {{"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}}
    connection.request("POST", "/v1/messages", json.dumps(body), headers)
    answer = connection.getresponse()
    document = json.loads(answer.read())
    if answer.status != 200:
        print(json.dumps({{"type": "result", "subtype": "error", "is_error": True, "result": json.dumps(document)}}))
        sys.exit(1)
    return document["content"][0]["text"]


skill = Path("skill/SKILL.md")
words = []
if Path("TASK.md").exists():
    rows = json.loads(Path("evidence/index.json").read_text())
    failed = [Path("evidence", row["file"]) for row in rows if row["passed"] is False]
    words = sorted({{json.loads(path.read_text())["feedback"].split()[1] for path in failed}})
    ask(f"What do {{words}} have in common?")
'''
WORK = """
skill.write_text(skill.read_text() + f"- {words[0]}\\n")
Path("skill/scripts").mkdir(exist_ok=True)
script = Path("skill/scripts/x.py")
script.write_text(f"print({len(words)})\\n")
script.chmod(0o755)
Path("notes.md").write_text(f"# Name {words[0]}\\n\\nThe target lacked it.\\n\\nSo it is named.\\n")
"""
TAIL = """
print(json.dumps({"type": "result", "subtype": "success", "result": "Done.", "stop_reason": "end_turn"}))
"""
FILES = ("SKILL.md", "scripts/*.py")


class Model(ToyBackend):
    """The toy's target, and what answers an agent."""

    def _optimizer(self, messages: object) -> Reply:  # type: ignore[override]
        del messages
        return Reply(text="They are words.", usage=Usage(tokens_in=100, tokens_out=10))


def program(folder: Path, work: str) -> Path:
    path = folder / "agent"
    python = Path(sys.executable).resolve()
    path.write_text(HEAD.format(python=python) + work + TAIL, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def route(path: Path, model: Model) -> Route:
    backend = ClaudeCodeExecBackend({"path": str(path), "allow_root": True})
    price = Price(usd_in=1, usd_out=1)
    behind = Route(backend=model, backend_name="toy", model="behind", price=price)  # type: ignore[arg-type]
    return Route(backend=backend, backend_name="claude_code_exec", model="m", behind=behind)


def trained(
    folder: Path, work: str, *, caps: Caps | None = None, files: tuple[str, ...] = FILES, **sections: Mapping[str, object]
) -> tuple[History, Model]:
    model, history = Model(), History()
    options: dict[str, Mapping[str, object]] = {"train": {"num_epochs": 1, "batch_size": 4, "seed": 1}, **sections}
    options["optimizer"] = {"files": list(files), **options.get("optimizer", {})}
    made = trainer(
        model, history, strategy=Agent(), agent=route(program(folder, work), model), caps=caps, **options
    )

    async def whole() -> None:
        try:
            await run_to_end(made, history)
        finally:
            await made.session.aclose()

    asyncio.run(whole())
    return history, model


def first_step(history: History) -> tuple[object, Mapping[str, bytes]]:
    return history[1].event, history[1].evidence


@sealed
def test_a_folder_becomes_a_version_with_its_script(tmp_path):
    history, model = trained(tmp_path, WORK)
    event, evidence = first_step(history)
    assert isinstance(event, Accepted)
    assert event.title == "Name amber"
    assert "The target lacked it." in event.why
    skill = history[1].skill
    assert skill is not None
    assert skill.document == SEED.document + "- amber\n"
    assert skill.executable == {"scripts/x.py"}
    patch = json.loads(evidence["patch.json"])
    assert patch["lines"] is True, "an executable file comes of no edit"
    assert {edit["file"] for edit in patch["edits"]} == set(FILES[:1]) | {"scripts/x.py"}
    assert sum(request.model == "behind" for request in model.requests) == 2
