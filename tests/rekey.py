"""Carry a recorded run over to prompts that are worded otherwise: every reply stays, its request becomes today's.

    python tests/rekey.py note FOLDER places.json      with the program that the record was made for
    python tests/rekey.py write FOLDER places.json     with today's

``FOLDER`` holds ``replies.jsonl``, as ``configs/recorded`` does, and its configuration is ``FOLDER.yaml``; give the
whole path. The first run notes the place of each reply: of the optimizer's, the kind of the prompt, the tasks
that it shows, the text of the skill and how many turns there were; of the target's, the lines of the request. The
second one finds replies by their places where the request is none of the record: a target's by the request that has
most lines in common with it.
What a reply cost is kept. It was still given to the older wording: say so where you publish the record.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillgit.cli.main import run as skillgit
from skillgit.plugin.backend import Reply, Request, estimated_usage
from skillgit.plugin.call_records import request_digest
from skillgit.plugin.skill_marks import as_text
from skillgit_backends.offline.text import Briefing
from skillgit_backends.replay import ReplayBackend


def place(request: Request) -> str:
    """Return what a question is about, however it is worded."""
    shown = request.messages[1].text if len(request.messages) > 1 else ""
    ids = sorted(set(re.findall(r'<(?:trajectory|pair)(?:-\d+)? id="([^"]*)"', shown)))
    numbers = re.findall(r'"content": "((?:[^"\\]|\\.)*)"', Briefing(shown).section("patches"))
    heading = request.messages[0].text.splitlines()[0]
    return json.dumps([heading, ids, numbers, Briefing(shown).document, len(request.messages)])


def lines_of(request: Request) -> list[str]:
    return sorted({line for message in request.messages for line in message.text.splitlines() if line.strip()})


def is_of_optimizer(request: Request) -> bool:
    return request.messages[0].text.startswith("# ") and "<skill" in request.messages[-1].text


def nearest(lines: list[str], replies: list[tuple[list[str], str]]) -> str | None:
    """Return the reply to the request that is most like one with ``lines``; each is given once."""
    wanted = set(lines)
    place = max(replies, key=lambda each: len(wanted & set(each[0])) / len(wanted | set(each[0])), default=None)
    if place is not None:
        replies.remove(place)
    return place[1] if place else None


def main(mode: str, folder: str, notes: str) -> None:
    empty: dict[str, Any] = {"optimizer": {}, "target": []}
    noted = empty if mode == "note" else json.loads(Path(notes).read_text())
    known: dict[str, str] = noted["optimizer"]
    replies: list[tuple[list[str], str]] = noted["target"]
    lines: dict[str, str] = {}
    by_request = ReplayBackend.complete

    async def complete(self: ReplayBackend, request: Request) -> Reply:
        try:
            reply = await by_request(self, request)
        except Exception:
            text = known.get(place(request)) if is_of_optimizer(request) else nearest(lines_of(request), replies)
            if text is None:
                raise
            reply = Reply(text=text, usage=estimated_usage(request.messages, text))
        if mode == "note" and is_of_optimizer(request):
            known[place(request)] = reply.text
        elif mode == "note":
            replies.append((lines_of(request), reply.text))
        lines[request_digest(replace(request, messages=as_text(request.messages), schema=None))] = reply.text
        return reply

    ReplayBackend.complete = complete  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as repository:
        for words in (["init"], ["train", f"{folder}.yaml", "--run", "again", "-q"]):
            code = skillgit(["-C", repository, *words])
            if code:
                sys.exit(code)
    if mode == "note":
        Path(notes).write_text(json.dumps(noted))
    else:
        record = Path(folder) / "replies.jsonl"
        old = {row["request"]: row["reply"] for row in map(json.loads, record.read_text("utf-8").splitlines())}
        by_text = {reply if isinstance(reply, str) else reply["text"]: reply for reply in old.values()}
        rows = (
            {"request": digest, "reply": old.get(digest, by_text.get(text, text))} for digest, text in lines.items()
        )
        record.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
