"""Secrets of many kinds, put together here so that no scanner takes this file for a leak, and recorded sessions."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import worlds

if TYPE_CHECKING:
    from pathlib import Path

BODY = "Q7mX2kR9vL4pT8wZ1cN6bH3jF5gD0sAe"


def secrets() -> dict[str, str]:
    """Return a value for every kind that must not be written down."""
    return {
        "anthropic": f"sk-{'ant'}-api03-{BODY}",
        "openai": f"sk-{'proj'}-{BODY}",
        "aws-id": f"{'AKIA'}Q7MX2KR9VL4PT8WZ",
        "aws-secret": "wJalrXUtnFEMI7K7MDENG" + "bPxRfiCYzQ4K2mVt8Lp",
        "github": f"{'ghp'}_{BODY}abcd",
        "github-fine": f"{'github'}_pat_11{BODY}_{BODY}",
        "gitlab": f"{'glpat'}-{BODY[:20]}",
        "huggingface": f"{'hf'}_{BODY}",
        "npm": f"{'npm'}_{BODY}abcd",
        "stripe": f"{'sk'}_live_{BODY[:24]}",
        "slack": f"{'xoxb'}-123456789012-{BODY[:24]}",
        "slack-hook": f"https://hooks.{'slack'}.com/services/T01ABCDEF/B01ABCDEF/{BODY[:24]}",
        "google": f"{'AIza'}Sy{BODY}x",
        "jwt": f"{'eyJ'}hbGciOiJIUzI1NiJ9.{'eyJ'}zdWIiOiIxMjM0NTY3ODkwIn0.{BODY}",
        "pem": f"-----BEGIN {'RSA'} PRIVATE KEY-----{BODY}{BODY}-----END {'RSA'} PRIVATE KEY-----",
        "url-password": "hunter2Secret",
        "assigned": "Tr0ub4dor-and-3",
        "email": "jane.roe@" + "acme-corp.io",
        "iban": "DE89 3704 0044 0532 0130 00",
        "phone": "+49 170 5550 1234",
        "ip": "10.20.30.40",
        "card": "4111 1111 1111 1111",
        "variable": "zebra-42-crossing",
        "home": "/home/janeroe77",
    }


def line() -> str:
    """Return a line that has them all, as they occur."""
    forms = {"url-password": "postgres://app:{}@db/x", "assigned": 'password = "{}"'}
    return " ".join(forms.get(kind, "{}").format(value).replace('"', "'") for kind, value in secrets().items())


def escaped() -> str:
    """Return tokens as JSON within a text may write them."""
    values = secrets()
    tokens = [values[kind] for kind in ("anthropic", "github", "stripe", "email", "variable")]
    return " ".join("".join(f"\\u{ord(sign):04x}" if sign in "-_@.z" else sign for sign in token) for token in tokens)


def planted() -> dict[str, str]:
    values = secrets()
    name = " ".join(values[kind] for kind in ("github", "email", "anthropic", "variable"))
    return {"prompt": line(), "output": line(), "content": line(), "name": name, "follow": line(), "escaped": escaped()}


def lay_out(base: Path, agent: str, values: dict[str, str]) -> tuple[Path, Path]:
    """Write what an agent recorded as if it had been here, and return the project and where the agent keeps it."""
    folder, state = worlds.project(base / "shop", agent, values), base / "state"
    commit, tree = (
        subprocess.run(
            ["git", "rev-parse", name], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("HEAD", "HEAD^{tree}")
    )
    encoded = re.sub(r"[^A-Za-z0-9]", "-", str(folder))
    slots = {f"@{slot}@": value for slot, value in values.items()}
    slots |= {"@project@": str(folder), "@encoded@": encoded, "@commit@": commit, "@short@": commit[:7], "@tree@": tree}

    def filled(text: str, *, inside_json: bool) -> str:
        for slot, value in slots.items():
            text = text.replace(slot, json.dumps(value, ensure_ascii=False)[1:-1] if inside_json else value)
        return text

    files = json.loads((worlds.RECORDINGS / f"{agent}.json").read_text())
    state.mkdir()
    if agent == "opencode":
        return folder, database(
            state, folder, {name.partition(".")[0]: list(map(json.loads, rows)) for name, rows in files.items()}, filled
        )
    for number, (name, lines) in enumerate(files.items()):
        file = state / filled(name, inside_json=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{filled(text, inside_json=True)}\n" for text in lines))
        os.utime(file, (1_900_000_000 + number,) * 2)
    return folder, state


def database(state, folder, tables, filled) -> Path:
    path = state / "opencode.db"
    for row in tables["session"]:
        copies = state / "snapshot" / filled(row["project_id"], inside_json=False)
        if not copies.exists():
            copies.mkdir(parents=True)
            subprocess.run(["git", "clone", "-q", "--bare", str(folder), str(copies / "x")], check=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for name, rows in tables.items():
            columns = sorted(
                ({"parent_id", "permission", "revert"} if name == "session" else set())
                | {key for row in rows for key in row}
            )
            connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            for row in rows:
                values = [
                    filled(value, inside_json=column == "data") if isinstance(value, str) else value
                    for column, value in ((column, row.get(column)) for column in columns)
                ]
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", values)  # noqa: S608
        connection.commit()
    return path
