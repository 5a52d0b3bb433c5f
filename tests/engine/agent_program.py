"""A program that stands in for a coding agent that improves a skill: it speaks as Claude Code does, and asks once."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

HEAD = """#!{python} -I
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
"""
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


def program(folder: Path, work: str) -> Path:
    """Write a program that does ``work``, in Python, and return its path.

    ``skill`` is the document, ``words`` are those that the toy's items lack.
    """
    path = folder / "agent"
    python = Path(sys.executable).resolve()
    path.write_text(HEAD.format(python=python) + work + TAIL, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
