"""What an optimizer of the toy task answers in each update mode."""

from __future__ import annotations

import json
import re


def missing(prompt: str) -> list[str]:
    return sorted(set(re.findall(r"lacks (\w+)", prompt)))


def body(prompt: str) -> str:
    return re.search(r"<body[^>]*>\n(.*?)\n</body>", prompt, re.DOTALL).group(1)


def suggest(prompt: str) -> str:
    found = [
        {"type": "add_rule", "title": word, "instruction": f"add {word}", "priority": "high", "items": ["train1", "no"]}
        for word in missing(prompt)[:1]
    ]
    return json.dumps({"title": "suggest", "suggestions": found})


def carry_out(prompt: str) -> str:
    wanted = re.findall(r'"instruction": "add (\w+)"', prompt)
    return json.dumps({"title": "carried out", "body": body(prompt) + "".join(f"\n- {word}" for word in wanted)})


def listed(prompt: str, kind: str) -> list[dict]:
    drafts = [
        draft
        for text in re.findall(r"<patches[^>]*>\n(.*?)\n</patches[^>]*>", prompt, re.DOTALL)
        for draft in json.loads(text)
    ]
    return [entry for draft in drafts for entry in draft.get(kind, [])]


def merge_suggestions(prompt: str) -> str:
    joined: dict[str, dict] = {}
    for entry in listed(prompt, "suggestions"):
        known = joined.setdefault(entry["instruction"], {**entry, "joins": []})
        known["joins"].append(entry["number"])
    return json.dumps({"title": "merged", "suggestions": list(joined.values())})


def rewrite(prompt: str) -> str:
    added = "".join(f"\n- {word}" for word in missing(prompt)[:1])
    return json.dumps({"title": "rewritten", "body": body(prompt) + added if added else ""})


def merge_rewrites(prompt: str) -> str:
    lines = dict.fromkeys(line for entry in listed(prompt, "rewrites") for line in entry["body"].splitlines())
    return json.dumps({"title": "merged", "body": "\n".join(lines)})


SCRIPT = {
    "Suggest changes from failures": suggest,
    "Suggest changes from successes": lambda _: json.dumps({"suggestions": []}),
    "Rewrite from failures": rewrite,
    "Rewrite from successes": lambda _: json.dumps({"body": ""}),
    "Merge suggestions": merge_suggestions,
    "Merge rewrites": merge_rewrites,
    "Rank suggestions": lambda _: json.dumps({"selected": [0]}),
    "Rewrite the skill": carry_out,
    "Edit budget": lambda _: json.dumps({"edits": 1, "reasoning": "one at a time"}),
    "Merge and rank edits": lambda prompt: json.dumps({"edits": listed(prompt, "edits")}),
}
