"""What the real Claude Code and Codex list of a library is what the forecast says, letter by letter.

``UPDATE_LISTINGS=1`` records the lengths anew in ``tests/domain/listings.json``.
"""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from listed_libraries import library, place
from loopback_model import loopback, words

from skillgit.domain.skill_listing import LibrarySkill, ListingAgent, listing

CLAUDE = os.environ.get("SKILLGIT_CLAUDE") or shutil.which("claude") or ""
CODEX = os.environ.get("SKILLGIT_CODEX") or shutil.which("codex") or ""
MEASURED = {ListingAgent.CLAUDE_CODE: "2.1.332", ListingAgent.CODEX: "0.171.0"}
"""The versions whose own skills the forecast counts in."""
CASES = [
    (ListingAgent.CLAUDE_CODE, 3, 0, 200_000),
    (ListingAgent.CLAUDE_CODE, 50, 0, 200_000),
    (ListingAgent.CLAUDE_CODE, 120, 0, 200_000),
    (ListingAgent.CLAUDE_CODE, 40, 10, 1_000_000),
    (ListingAgent.CODEX, 3, 0, 272_000),
    (ListingAgent.CODEX, 50, 0, 100_000),
    (ListingAgent.CODEX, 120, 0, 100_000),
    (ListingAgent.CODEX, 60, 10, 60_000),
    (ListingAgent.CODEX, 120, 0, 20_000),
]
pytestmark = pytest.mark.soak


def claude_lists(root: Path, window: int) -> tuple[str, list[str]]:
    async def asked() -> str:
        async with loopback(words("ok")) as model:
            environ = {
                "PATH": os.environ["PATH"],
                "HOME": str(root / "home"),
                "ANTHROPIC_BASE_URL": model.url,
                "ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
            }
            name = "claude-opus-4-6[1m]" if window == 1_000_000 else "claude-sonnet-4-5"
            command = [CLAUDE, "-p", "--model", name, "--no-session-persistence"]
            process = await asyncio.create_subprocess_exec(
                *command, cwd=root / "work", env=environ, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            await process.communicate(b"hello")
            return json.dumps(model.requests[0][1], ensure_ascii=False)

    texts = re.findall(r'"((?:[^"\\]|\\.)*skills are available for use(?:[^"\\]|\\.)*)"', asyncio.run(asked()))
    return html.unescape(json.loads(f'"{texts[0]}"')), []


def codex_lists(root: Path, window: int) -> tuple[str, list[str]]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "CODEX_HOME": str(root / "home" / ".codex")}
    command = [CODEX, "-c", f"model_context_window={window}", "debug", "prompt-input", "hello"]
    done = subprocess.run(command, cwd=root / "work", env=environ, capture_output=True, text=True, check=True)
    texts = [part["text"] for item in json.loads(done.stdout) for part in item.get("content") or () if "text" in part]
    (text,) = (text for text in texts if "<skills_instructions>" in text)
    return re.sub(r"file: r\d/", "file: r/", text), re.findall(r"`r\d` = `(.*)`", text)


def shown_by(agent: ListingAgent, root: Path, skills: list[LibrarySkill], window: int) -> tuple[list[str], list[str]]:
    """Return the lines of our skills that the program lists, and the folders that it names."""
    program = CLAUDE if agent is ListingAgent.CLAUDE_CODE else CODEX
    if not program:
        pytest.skip(f"{agent} is not installed (npm install -g, or SKILLGIT_CLAUDE, SKILLGIT_CODEX)")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if MEASURED[agent] not in version:
        pytest.skip(f"the forecast is of {MEASURED[agent]}, and here is {version.strip()}")
    (root / "home" / ".codex").mkdir(parents=True)
    (root / "work" / ".git").mkdir(parents=True)
    folders = (".claude", ".claude") if agent is ListingAgent.CLAUDE_CODE else (".agents", ".codex")
    place(root / "work" / folders[0] / "skills", (skill for skill in skills if not skill.is_users))
    place(root / "home" / folders[1] / "skills", (skill for skill in skills if skill.is_users))
    text, roots = (claude_lists if agent is ListingAgent.CLAUDE_CODE else codex_lists)(root, window)
    return [line for line in text.split("\n") if re.match(r"- s\d{6}-", line)], roots


@pytest.mark.parametrize(("agent", "project", "users", "window"), CASES)
def test_the_forecast_is_what_the_program_lists(agent, project, users, window, tmp_path):
    skills = library(project, users)
    lines, roots = shown_by(agent, tmp_path, skills, window)
    forecast = listing(agent, skills, window, roots)
    assert [re.sub(r"file: r\d/", "file: r/", line) for line in forecast.text.split("\n")] == lines
    if os.environ.get("UPDATE_LISTINGS"):
        path = Path(__file__).parents[2] / "domain" / "listings.json"
        rows = json.loads(path.read_text("utf-8")) if path.is_file() else []
        row = [
            agent.value,
            project,
            users,
            window,
            [len(root) for root in roots],
            [len(entry.text) for entry in forecast.entries],
        ]
        rows = [*(each for each in rows if each[:4] != row[:4]), row]
        path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", "utf-8")
