"""What people do with each agent in the tests: a project, what the model answers, and the keys that are typed.

Run as a program, it drives the installed agents and writes what they recorded to ``recordings``, without the vendors'
prompts and listings, with slots in place of the project and of what tests plant.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driven_agents import claude_environment, claude_settings, program, terminal, wait_for
from talking_model import Script, talking

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORDINGS = Path(__file__).with_name("recordings")
SLOTS = ("prompt", "output", "content", "name", "follow", "escaped")
SLOTTED = {slot: f"@{slot}@" for slot in SLOTS}
SKILL_FOLDERS = {
    "claude": ".claude/skills",
    "codex": ".agents/skills",
    "opencode": ".opencode/skills",
    "copilot": ".github/skills",
}
SKILL = "---\nname: totals\ndescription: How to add up invoices and shares\n---\nAdd up with care.\n"
HEADLESS = "Unattended question"
SUBAGENT = "Look around in here"
EPISODES = {
    "claude": {
        "sum the invoice",
        "Round the shares",
        "Collect the invoices and shares",
        "Send the invoice away",
        "count the right way",
        "Write the header",
        "Sum once more, after the fork",
    },
    "codex": {"sum the invoice", "Halve the total"},
    "opencode": {"Please sum the invoice"},
    "copilot": {"Please sum the invoice", "Halve the total"},
}
"""What the requests of the planted episodes begin with."""


def project(folder: Path, agent: str, planted: Mapping[str, str]) -> Path:
    """Make the repository that the agent works in."""
    skill = folder / SKILL_FOLDERS[agent] / "totals"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    content, escaped = planted["content"], planted["escaped"]
    (folder / "app.py").write_text(f'NOTE = """{content}"""\n# "{escaped}"\ndef total(xs):\n    return 0\n')
    (folder / "test_app.py").write_text("from app import total\nassert total([1, 2]) == 3, total([1, 2])\n")
    (folder / "log.txt").write_text(f"{planted['output']}\n")
    (folder / f"notes {planted['name']}.txt").write_text("Nothing.\n")
    (folder / ".gitignore").write_text("__pycache__\n")
    git = ["git", "-c", "user.name=tester", "-c", "user.email=tester@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "base"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


def run(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    subprocess.run(
        command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


def claude_script(folder: Path, planted: Mapping[str, str]) -> Script:
    app, shares = str(folder / "app.py"), str(folder / "shares.py")

    def edit(old: str, new: str) -> tuple[str, dict[str, Any]]:
        return "Edit", {"file_path": app, "old_string": old, "new_string": new}

    def bash(command: str) -> tuple[str, dict[str, Any]]:
        return "Bash", {"command": command, "description": "run"}

    def write(name: str, text: str) -> tuple[str, dict[str, Any]]:
        return "Write", {"file_path": str(folder / name), "content": text}

    notes = str(folder / f"notes {planted['name']}.txt")
    skill = ("Skill", {"skill": "totals"})
    test = bash("python test_app.py")
    first = [("Read", {"file_path": app}), ("Read", {"file_path": notes}), edit("return 0", "return sum(xs) + 1"), test]
    return {
        "sum the invoice": [*first, bash("cat log.txt"), edit("sum(xs) + 1", "sum(xs)"), test, "Summed."],
        "amounts are strings": [edit("sum(xs)", "sum(map(int, xs))"), "Fixed."],
        "Round the shares": [skill, write("shares.py", "SHARES = 3\n"), bash(WAIT), "Never"],
        "Round them down": [write("shares.py", "SHARES = 2\n"), "Down."],
        "Collect the invoices": [write("all.py", "INVOICES = []\n"), "Collected."],
        "A dictionary, by number": [write("all.py", "INVOICES = {}\n"), "By number."],
        "Send the invoice": [skill, bash("git push origin"), "Sent."],
        "Only print it": [bash("cat app.py"), "Printed."],
        "Explore the rest": [
            ("Agent", {"description": "look", "prompt": SUBAGENT, "subagent_type": "general-purpose"}),
            "Explored.",
        ],
        SUBAGENT: [("Read", {"file_path": shares}), "Nothing."],
        "count the wrong way": [write("count.py", "COUNT = -1\n"), "Counted wrongly."],
        "count the right way": [
            write("count.py", "COUNT = 1\n"),
            bash("python -c 'from count import COUNT; assert COUNT == 1'"),
            "Counted.",
        ],
        "Write the header": [skill, write("header.py", "HEADER = 'a'\n"), "Header."],
        "Write the header!": [write("header.py", "HEADER = 'b'\n"), "Header again."],
        HEADLESS: [skill, "Unattended answer."],
        "Sum once more": [
            skill,
            write("more.py", "MORE = 2\n"),
            bash("python -c 'from more import MORE; assert MORE == 2'"),
            "Forked answer.",
        ],
    }


WAIT = 'python -c "import time; time.sleep(600)"'


def claude(base: Path, planted: Mapping[str, str]) -> Path:
    """Have Claude Code keep sessions below ``base``, and return its configuration; the project is ``base/shop``."""
    folder, home, config = project(base / "shop", "claude", planted), base / "home", base / "config"
    home.mkdir()
    claude_settings(config, folder)
    path = program("claude")
    allowed = "Bash(python:*),Bash(cat:*),Skill,Agent"
    flags = ["--permission-mode", "acceptEdits", "--allowedTools", allowed]

    def saved(text: str) -> None:
        folder = config / "projects"
        wait_for(
            lambda: any(text in file.read_text() for file in folder.glob("*/*.jsonl")), lambda: f"{text} is not saved"
        )

    with talking(claude_script(folder, planted)) as model:
        environment = claude_environment(config, model.url, home)
        with terminal([path, *flags], folder, environment, base / "t") as window:
            window.until("accept edits")
            window.type(f"/totals sum the invoice {planted['prompt']}")
            window.until("Summed.")
            window.type(f"No, amounts are strings {planted['follow']}")
            window.until("Fixed.")
            window.type("Round the shares")
            window.until("time.sleep(600)")
            time.sleep(1)
            window.keys("Escape")
            window.until("Interrupted")
            window.type("Round them down")
            window.until("Down.")
            window.type("Collect the invoices and shares")
            window.until("Collected.")
            window.type("A dictionary, by number")
            window.until("By number.")
            window.type("Send the invoice away")
            window.until("Do you want to proceed")
            window.keys("Escape")
            time.sleep(1)
            window.type("Only print it")
            window.until("Printed.")
            window.type("Explore the rest")
            window.until("Explored.")
            time.sleep(1)
            window.type("/totals count the wrong way")
            window.until("Counted wrongly.")
            window.keys("Escape")
            time.sleep(0.3)
            window.keys("Escape")
            window.until("Rewind")
            window.keys("Up")
            time.sleep(0.3)
            window.keys("Enter")
            time.sleep(1)
            window.keys("Enter")
            time.sleep(1)
            window.keys("C-u")
            time.sleep(0.5)
            window.type("/totals count the right way")
            window.until("Counted.")
            window.type("Write the header")
            window.until("Header.")
            window.type("Write the header!")
            window.until("Header again.")
            window.type("/compact")
            window.until("Compacted", "compacted")
            saved("compact_boundary")
        sessions = list((config / "projects").glob("*/*.jsonl"))
        identity = sessions[0].stem
        run([path, "-p", HEADLESS, "--allowedTools", "Skill"], folder, environment)
        run([path, "-p", f"{HEADLESS} resumed", "--resume", identity], folder, environment)
        fork = [path, *flags, "--resume", identity, "--fork-session"]
        with terminal(fork, folder, environment, base / "t") as window:
            window.until("accept edits")
            window.type("Sum once more, after the fork")
            window.until("Forked answer.")
            time.sleep(2)
    return config


def others_script(agent: str, folder: Path) -> Script:
    app = str(folder / "app.py")
    python = "python3" if agent == "codex" else "python"

    def shell(command: str) -> tuple[str, dict[str, Any]]:
        match agent:
            case "codex":
                return "exec_command", {"cmd": command}
            case _:
                return "bash", {"command": command, "description": "run"}

    def edit(old: str, new: str) -> tuple[str, dict[str, Any]]:
        match agent:
            case "codex":
                patch = f"*** Begin Patch\n*** Update File: app.py\n@@\n-    {old}\n+    {new}\n*** End Patch\n"
                return shell(f"apply_patch <<'EOF'\n{patch}EOF")
            case "opencode":
                return "edit", {"filePath": app, "oldString": old, "newString": new}
            case _:
                return "edit", {"path": app, "old_str": old, "new_str": new}

    load: Any = {
        "codex": shell(f"cat {SKILL_FOLDERS['codex']}/totals/SKILL.md"),
        "opencode": ("skill", {"name": "totals"}),
        "copilot": ("skill", {"skill": "totals"}),
    }[agent]
    read: Any = {
        "codex": shell("cat app.py"),
        "opencode": ("read", {"filePath": app}),
        "copilot": ("view", {"path": app}),
    }[agent]
    test = shell(f"{python} test_app.py")
    task = ("task", {"description": "look", "prompt": SUBAGENT, "subagent_type": "general"})
    return {
        "sum the invoice": [
            *(load, read, edit("return 0", "return sum(xs) + 1"), test, shell("cat log.txt")),
            *(edit("return sum(xs) + 1", "return sum(xs)"), test, "Summed."),
        ],
        "amounts are strings": [edit("return sum(xs)", "return sum(map(int, xs))"), "Fixed."],
        "Halve the total": [
            load,
            edit("return sum(map(int, xs))", "return sum(map(int, xs)) / 2"),
            shell(WAIT.replace("python", python)),
            "Never.",
        ],
        "Whole numbers": [edit("return sum(map(int, xs)) / 2", "return sum(map(int, xs)) // 2"), "Whole."],
        HEADLESS: [load, "Unattended answer."],
        "Explore the rest": [task, "Explored."] if agent == "opencode" else ["Explored."],
        SUBAGENT: ["Nothing here."],
    }


def codex(base: Path, planted: Mapping[str, str]) -> Path:
    """Have Codex keep sessions below ``base``, and return its home."""
    folder, home, state = project(base / "shop", "codex", planted), base / "home", base / "codex"
    home.mkdir()
    state.mkdir()
    with talking(others_script("codex", folder)) as model:
        provider = f'[model_providers.loop]\nname="loop"\nbase_url="{model.url}/v1"\nwire_api="responses"\n'
        access = 'approval_policy="never"\nsandbox_mode="danger-full-access"\n'
        trust = f'[projects."{folder}"]\ntrust_level="trusted"\n'
        (state / "config.toml").write_text(f'model="m"\nmodel_provider="loop"\n{access}{provider}{trust}')
        environment = {"HOME": str(home), "CODEX_HOME": str(state), "OPENAI_API_KEY": "sk-0123456789abcdefghij"}
        run([program("codex"), "exec", HEADLESS], folder, environment)
        try:
            with terminal([program("codex")], folder, environment, base / "t") as window:
                window.until("Ask Codex")
                time.sleep(2)
                window.type(f"$totals sum the invoice {planted['prompt']}", then="Escape")
                time.sleep(0.3)
                window.keys("Enter")
                window.until("Summed.")
                window.type(f"No, amounts are strings {planted['follow']}")
                window.until("Fixed.")
                window.type("Halve the total")
                time.sleep(3)
                window.keys("Escape")
                window.until("interrupted", "Interrupted")
                window.keys("C-u")
                window.type("Whole numbers")
                window.until("Whole.")
                time.sleep(1)
        finally:
            daemons = subprocess.run(
                ["pgrep", "-f", str(state / "packages")], capture_output=True, text=True, check=False
            )
            for identity in daemons.stdout.split():
                os.kill(int(identity), 15)
    return state


def opencode(base: Path, planted: Mapping[str, str]) -> Path:
    """Have OpenCode keep sessions below ``base``, and return its database."""
    folder, home = project(base / "shop", "opencode", planted), base / "home"
    home.mkdir()
    with talking(others_script("opencode", folder)) as model:
        limit = {"context": 200_000, "output": 8000}
        options = {"baseURL": f"{model.url}/v1", "apiKey": "k"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "loop", "options": options}
        document = {
            "provider": {"loop": {**provider, "models": {"m": {"name": "m", "limit": limit}}}},
            "model": "loop/m",
            "small_model": "loop/m",
            "share": "disabled",
            "autoupdate": False,
        }
        (base / "opencode.json").write_text(json.dumps(document))
        names = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD")
        environment = {"HOME": str(home), "OPENCODE_CONFIG": str(base / "opencode.json"), **dict.fromkeys(names, "1")}
        run([program("opencode"), "run", HEADLESS], folder, environment)
        with terminal([program("opencode")], folder, environment, base / "t") as window:
            window.until("Ask anything")
            time.sleep(3)
            window.type(f"Please sum the invoice {planted['prompt']}")
            window.until("Summed.")
            window.type(f"No, amounts are strings {planted['follow']}")
            window.until("Fixed.")
            window.type("Explore the rest")
            window.until("Explored.")
            time.sleep(1)
    return home / ".local" / "share" / "opencode" / "opencode.db"


def copilot(base: Path, planted: Mapping[str, str]) -> Path:
    """Have Copilot keep sessions below ``base``, and return its home."""
    folder, home, state = project(base / "shop", "copilot", planted), base / "home", base / "copilot"
    home.mkdir()
    with talking(others_script("copilot", folder)) as model:
        environment = {
            "HOME": str(home),
            "COPILOT_HOME": str(state),
            "COPILOT_OFFLINE": "true",
            "COPILOT_MODEL": "m",
            "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_PROVIDER_WIRE_API": "completions",
            "COPILOT_PROVIDER_BASE_URL": f"{model.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "k",
        }
        run([program("copilot"), "-p", HEADLESS, "--allow-all-tools"], folder, environment)
        with terminal([program("copilot"), "--allow-all-tools"], folder, environment, base / "t") as window:
            window.until("trust", "Trust", "/ commands", "shortcuts")
            time.sleep(2)
            if "trust" in window.screen.lower():
                window.keys("Enter")
                time.sleep(3)
            window.type(f"Please sum the invoice {planted['prompt']}")
            window.until("Summed.")
            window.type(f"No, amounts are strings {planted['follow']}")
            window.until("Fixed.")
            window.type("Halve the total")
            window.until("time.sleep")
            time.sleep(1)
            window.keys("Escape")
            time.sleep(0.5)
            window.keys("Escape")
            window.until("ancel", "nterrupt", "bort")
            time.sleep(1)
            window.type("Whole numbers")
            window.until("Whole.")
            time.sleep(1)
    return state


WORLDS = {"claude": claude, "codex": codex, "opencode": opencode, "copilot": copilot}


KEPT = frozenset(
    {
        *("type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "isSidechain", "isMeta", "isCompactSummary"),
        *(
            "turnCompanion",
            "origin",
            "turnOrigin",
            "promptSource",
            "entrypoint",
            "cwd",
            "version",
            "timestamp",
            "message",
        ),
        *(
            "toolUseResult",
            "toolDenialKind",
            "toolDenialBeforeRun",
            "interruptedMessageId",
            "attributionSkill",
            "attachment",
        ),
        *("trackingPath", "backup"),
    }
)
"""Fields of Claude Code's records that recordings have; the rest is bookkeeping, or its vendor's words."""


def scrubbed(agent: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without what its vendor wrote."""
    match agent:
        case "claude":
            return scrubbed_claude(record)
        case "codex":
            payload = record["payload"]
            is_ours = payload.get("role") != "assistant" and not str(payload.get("type")).startswith(
                ("function", "token")
            )
            if record["type"] in ("world_state", "turn_context", "token_usage_record") or not is_ours:
                return {"type": record["type"], "payload": {"type": payload.get("type")}}
            for name in ("base_instructions", "internal_chat_message_metadata_passthrough", "thread_settings"):
                payload.pop(name, None)
            if payload.get("role") == "developer":
                text = first_line(str(payload["content"][0]["text"]), "- totals")
                payload["content"] = [{"type": "input_text", "text": text}]
            return {"type": record["type"], "timestamp": record["timestamp"], "payload": payload}
        case _:
            data = record["data"]
            if record["type"] == "system.message":
                headless = "running in non-interactive mode"
                record["data"] = {"content": headless if headless in data["content"] else "interactive"}
            elif record["type"].startswith(("session.usage", "session.shut", "assistant.turn", "skill.context")):
                record["data"] = {}
            for name in (
                "toolTelemetry",
                "supportedNativeDocumentMimeTypes",
                "transformedContent",
                "originatingMessageId",
            ):
                data.pop(name, None)
            for name in ("interactionId", "apiCallId", "rte", "messageId", "parentAgentTaskId", "model", "turnId"):
                data.pop(name, None)
            if isinstance(data.get("result"), dict):
                data["result"].pop("detailedContent", None)
            return record


def scrubbed_claude(record: dict[str, Any]) -> dict[str, Any]:
    attachment = record.get("attachment") or {}
    kind = str(attachment.get("type"))
    if record["type"] not in ("user", "assistant", "attachment", "system", "file-history-delta"):
        return {"type": record["type"]}
    record = {name: value for name, value in record.items() if name in KEPT}
    if kind == "skill_listing":
        record["attachment"] = {"type": kind, "content": first_line(attachment["content"], "- totals")}
    elif attachment and kind != "session_context":
        record = {name: record[name] for name in ("type", "uuid", "parentUuid", "isSidechain") if name in record}
        record["attachment"] = {"type": kind}
    elif record.get("isCompactSummary"):
        record["message"] = {"role": "user", "content": "A summary."}
    elif record.get("origin", {}).get("kind") == "task-notification":
        record["message"] = {"role": "user", "content": "<task-notification></task-notification>"}
    elif record["type"] == "assistant":
        record["message"] = {name: record["message"][name] for name in ("role", "content")}
    elif isinstance(record.get("toolUseResult"), dict) and "agentId" in record["toolUseResult"]:
        record["toolUseResult"] = {}
        record["message"]["content"][0]["content"] = "Launched."
    return record


def slim(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of OpenCode's database without what repeats the rest of it."""
    if "data" in row:
        data = json.loads(row["data"])
        for name in ("tokens", "summary", "cost", "modelID", "providerID", "mode"):
            data.pop(name, None)
        for name in ("diff", "filediff", "output", "preview", "display", "diagnostics"):
            data.get("state", {}).get("metadata", {}).pop(name, None)
        row["data"] = json.dumps(data)
    return row


def first_line(text: str, beginning: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(beginning)), "")


def record(agent: str, base: Path, state: Path) -> dict[str, list[str]]:
    """Return the lines of the session files of an agent by their paths, with slots for project and commit."""
    folder = base / "shop"
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()
    files: dict[str, list[str]] = {}
    if agent == "opencode":
        with closing(sqlite3.connect(f"{state.as_uri()}?mode=ro", uri=True)) as database:
            for table in ("session", "message", "part"):
                rows = database.execute(f"SELECT * FROM {table} ORDER BY time_created, id")  # noqa: S608 - three names
                names = [column[0] for column in rows.description]
                kept = [slim(dict(zip(names, row, strict=True))) for row in rows]
                files[f"{table}.jsonl"] = [json.dumps({k: v for k, v in row.items() if v is not None}) for row in kept]
    else:
        for file in sorted(state.rglob("*.jsonl")):
            if agent == "copilot" or {"projects", "sessions"} & set(file.relative_to(state).parts):
                name = str(file.relative_to(state)).replace(re.sub(r"[^A-Za-z0-9]", "-", str(folder)), "@encoded@")
                records = [scrubbed(agent, json.loads(line)) for line in file.read_text().splitlines()]
                files[name] = [json.dumps(kept, ensure_ascii=False) for kept in records]
    slots = {
        str(folder): "@project@",
        re.sub(r"[^A-Za-z0-9]", "-", str(folder)): "@encoded@",
        commit: "@commit@",
        commit[:7]: "@short@",
    }
    for name, lines in files.items():
        text = "\n".join(lines)
        for value, slot in slots.items():
            text = text.replace(value, slot)
        files[name] = re.sub(r'("snapshot"|\\"snapshot\\"): ?(\\?")[0-9a-f]{40}', r"\1: \2@tree@", text).split("\n")
    return files


def main() -> None:
    for agent in sys.argv[1:] or WORLDS:
        base = Path(tempfile.mkdtemp(prefix="sessions-"))
        try:
            files = record(agent, base, WORLDS[agent](base, SLOTTED))
        finally:
            shutil.rmtree(base, ignore_errors=True)
        (RECORDINGS / f"{agent}.json").write_text(json.dumps(files, ensure_ascii=False, indent=0))


if __name__ == "__main__":
    main()
