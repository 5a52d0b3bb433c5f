"""Replies to the prompts of skillgit's optimizer, in the JSON that they ask for."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from bench.search_world.insight import Insight, Optimizer, Seen

from skillgit.domain.edit import normalised
from skillgit.domain.skill import DOCUMENT
from skillgit_backends.offline.patches import body_lines
from skillgit_backends.offline.text import Briefing, sections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bench.search_world.world import World

Answer = dict[str, Any]
GUIDANCE_LINES = 2
"""Lines that an end of an epoch adds to the guidance at most."""


def reply(world: World, system: str, shown: str) -> str:
    """Answer one prompt: what the instructions ask for, about what is shown."""
    heading = system.lstrip().partition("\n")[0].lstrip("# ").strip()
    return json.dumps(TASKS[heading](world, Briefing(shown)))


def analyse_failures(world: World, briefing: Briefing) -> Answer:
    return _patch(world, briefing, _from_failures(world, briefing))


def _from_failures(world: World, briefing: Briefing) -> list[Insight]:
    """Return what failures suggest: those of a batch, or those that a draft left in the look at it."""
    tried = _seen(briefing.text, "tried")
    failures = _seen(briefing.text, "trajectory") or [seen for seen in tried if seen.feedback != "right"]
    solved = [seen for seen in tried if seen.feedback == "right"]
    return _optimizer(world, briefing).from_failures(failures, [*_seen(briefing.text, "contrasting"), *solved])


def rewrite_from_failures(world: World, briefing: Briefing) -> Answer:
    """Write the text with a line for each thing that failures suggest."""
    lines, insights = briefing.section("body").splitlines(), _from_failures(world, briefing)
    removed = {insight.old for insight in insights if insight.old}
    additions = [f"- {insight.new}" for insight in insights if insight.new]
    body = "\n".join([*(line for line in lines if line not in removed), *additions])
    return {"title": f"{len(additions)} new lines", "reasoning": "The feedback shows it.", "summary": [], "body": body}


def merge_rewrites(world: World, briefing: Briefing) -> Answer:
    """Write the text with all changes of the texts that are shown, changes that ask for the same once."""
    del world
    before = briefing.section("body").splitlines()
    texts = [
        text["body"].splitlines() for _, drafts in briefing.patches for each in drafts for text in each["rewrites"]
    ]
    rest = [line for line in before if all(line in text for text in texts)]
    additions = {
        _meaning({"op": "append", "content": line}): line for text in texts for line in text if line not in before
    }
    return {"title": "one text of several", "summary": [], "body": "\n".join([*rest, *additions.values()])}


def analyse_successes(world: World, briefing: Briefing) -> Answer:
    return _patch(world, briefing, _optimizer(world, briefing).from_solved(_seen(briefing.text, "trajectory")))


def merge(world: World, briefing: Briefing) -> Answer:
    del world
    edits = _joined(briefing)
    return {"title": _title(edits), "reasoning": "Equal proposals are one.", "edits": edits}


def merge_and_rank(world: World, briefing: Briefing) -> Answer:
    del world
    edits = _ranked(briefing, _joined(briefing))[: briefing.budget]
    return {"title": _title(edits), "reasoning": "The best supported ones stay.", "edits": edits}


def rank(world: World, briefing: Briefing) -> Answer:
    del world
    edits = _ranked(briefing, briefing.proposals("edits"))[: briefing.budget]
    selected = [edit["number"] for edit in edits]
    return {"title": _title(edits), "reasoning": "The best supported ones.", "selected": selected}


def slow_update(world: World, briefing: Briefing) -> Answer:
    """Keep the guidance that there is and add the likeliest rules that no step has found."""
    pairs = [body for _, body in sections(briefing.text, "pair")]
    failures = [seen for body in pairs for seen in _of_current(body)]
    solved = [seen for seen in failures if seen.feedback == "right"]
    failures = [seen for seen in failures if seen.feedback != "right"]
    standing = [line for line in briefing.section("guidance").splitlines() if line.strip()]
    insights = _optimizer(world, briefing).from_failures(failures, solved)
    lines = [f"- {insight.new}" for insight in insights if insight.new][:GUIDANCE_LINES]
    return {
        "title": "what is missing still",
        "reasoning": "Some tasks fail anew.",
        "guidance": "\n".join(standing + lines),
    }


def memory(world: World, briefing: Briefing) -> Answer:
    """Remember the lines that were rejected, the newest ones first."""
    del world
    lines = [line for step in briefing.steps() if not step.is_accepted for line in step.additions]
    words = "\n".join(f"- A candidate with this line was rejected: {line}" for line in lines[:6])
    return {"reasoning": "Rejections are worth remembering.", "memory": words}


TASKS: Mapping[str, Callable[[World, Briefing], Answer]] = {
    "Analyse failures": analyse_failures,
    "Analyse successes": analyse_successes,
    "Merge patches": merge,
    "Merge and rank edits": merge_and_rank,
    "Rewrite from failures": rewrite_from_failures,
    "Merge rewrites": merge_rewrites,
    "Rank edits": rank,
    "Slow update": slow_update,
    "Optimizer memory": memory,
}


def _optimizer(world: World, briefing: Briefing) -> Optimizer:
    return Optimizer(world, briefing.document, briefing.text, {_bare(line) for line in _rejected(briefing)})


def _seen(text: str, tag: str) -> list[Seen]:
    return [_trajectory(attributes.get("id", ""), body) for attributes, body in sections(text, tag)]


def _of_current(pair: str) -> list[Seen]:
    return [_trajectory("", body) for _, body in sections(pair, "current")]


def _trajectory(item: str, body: str) -> Seen:
    task = next((turn for attributes, turn in sections(body, "turn") if attributes.get("role") == "user"), "")
    return Seen(item, task, next((text.strip() for _, text in sections(body, "feedback")), ""))


def _patch(world: World, briefing: Briefing, insights: Iterable[Insight]) -> Answer:
    free = body_lines(briefing.document)
    edits = [edit for insight in insights if (edit := _edit(insight, free))][: briefing.budget]
    findings = [{"pattern": _title([edit]), "count": len(edit["items"]), "items": edit["items"]} for edit in edits]
    del world
    return {"findings": findings, "title": _title(edits), "reasoning": "The feedback shows it.", "edits": edits}


def _edit(insight: Insight, free: list[str]) -> Answer | None:
    """Return the edit that carries out an insight; None if it concerns a line that edits may not change."""
    if insight.old and insight.old not in free:
        return None
    op = "append" if not insight.old else "replace" if insight.new else "delete"
    content = f"- {insight.new}" if insight.new else ""
    return {"op": op, "file": DOCUMENT, "anchor": insight.old, "content": content, "items": list(insight.items)}


def _joined(briefing: Briefing) -> list[Answer]:
    """Return the numbered edits of all analysts, equal ones joined, the best supported ones first."""
    edits = dict[str, Answer]()
    for source, drafts in briefing.patches:
        for edit in ({"source": source} | edit for draft in drafts for edit in draft.get("edits", ())):
            same = edits.setdefault(_meaning(edit), edit | {"joins": [], "support": 0})
            same["joins"].append(edit["number"])
            same["support"] += edit["support"]
            same["source"] = "failure" if "failure" in (edit["source"], same["source"]) else same["source"]
    return sorted(edits.values(), key=_weight)


def _meaning(edit: Answer) -> str:
    """Return what two edits share that ask for the same: the mark that a rule is about, or else the words."""
    if edit["op"] != "append":
        return str(edit["anchor"])
    mark = re.search(r"(?:write|carry) the mark (\w\d)\.", edit["content"])
    return mark[1] if mark else normalised(edit["content"])


def _ranked(briefing: Briefing, edits: Iterable[Answer]) -> list[Answer]:
    rejected = _rejected(briefing)
    return sorted(edits, key=lambda edit: (edit["content"].strip() in rejected, *_weight(edit)))


def _weight(edit: Answer) -> tuple[bool, int]:
    return (edit["source"] == "success", -edit["support"])


def _rejected(briefing: Briefing) -> set[str]:
    return {line for step in briefing.steps() if not step.is_accepted for line in step.additions}


def _bare(line: str) -> str:
    return line.removeprefix("- ").strip()


def _title(edits: Iterable[Answer]) -> str:
    return "; ".join(edit["content"] or "remove a line" for edit in edits)[:60] or "no change"
