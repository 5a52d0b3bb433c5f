"""The folder that a coding agent is given: skill, task, history and the train evidence of one step, all as files."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import text_digest
from skillgit.domain.outcomes import outcome_row
from skillgit.engine.candidate_guards import skill_tokens
from skillgit.engine.edit_budget import analyst_budget
from skillgit.engine.evidence_files import json_file
from skillgit.engine.optimizer_memory import tried_section
from skillgit.engine.prompt_sections import environment_section, marked
from skillgit.engine.strategy import solved
from skillgit.plugin.redaction import redact
from skillgit.plugin.work_folder import WorkFolder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.run_state import StepMemory
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.strategy import Search

PART = "skill"  # what the agent changes
_NAME = 16  # digits of the digest that names the file of an item, whose id is data and names none
_GAP = re.compile(r"\{(\w+)\}")


def work_folder(search: Search, rollouts: Sequence[Rollout]) -> WorkFolder:
    """Return what the agent of ``search`` is given; it follows from the run's events and recorded calls alone."""
    skill = search.skill
    return WorkFolder(
        files={f"{PART}/{path}": content for path, content in skill.files.items()}
        | _history(search)
        | _evidence(rollouts)
        | {"TASK.md": _task(search, rollouts)},
        executable=frozenset(f"{PART}/{path}" for path in skill.executable),
        part=PART,
    )


def _task(search: Search, rollouts: Sequence[Rollout]) -> bytes:
    session, optimizer = search.session, search.session.settings.optimizer
    quota = analyst_budget(session, search.step)
    words = {
        "failed": str(sum(not solved(rollout) for rollout in rollouts)),
        "count": str(len(rollouts)),
        "tokens": f"{skill_tokens(search.skill):,}",
        "patterns": ", ".join(f"`{pattern}`" for pattern in optimizer.files),
        "limit": f"{optimizer.max_skill_tokens:,}",
        "file_limit": f"{optimizer.max_file_tokens:,}",
        "quota": "there is no fixed number" if quota is None else f"about {quota} in this step",
        "taxonomy": session.task.environment.taxonomy().strip(),
        "environment": marked(environment_section(session.task.environment)),
    }
    template = (files("skillgit.strategies") / "agent_task.md").read_text(encoding="utf-8")
    return _text(_GAP.sub(lambda gap: words.get(gap[1], gap[0]), template))


def _text(text: str) -> bytes:
    return redact(text).encode(errors="replace")


def _evidence(rollouts: Sequence[Rollout]) -> dict[str, bytes]:
    content: dict[str, bytes] = {}
    index: list[dict[str, object]] = []
    for rollout in rollouts:
        name = f"{text_digest(rollout.item.id)[:_NAME]}.json"
        passed = solved(rollout) if isinstance(rollout.outcome, Scored) else None
        row = {"id": rollout.item.id, "task_type": rollout.item.task_type, **outcome_row(rollout.outcome)}
        index.append({**row, "passed": passed, "file": name if rollout.trajectory is not None else None})
        if rollout.trajectory is not None:
            turns = [turn.row for turn in rollout.trajectory.turns]
            words = {"answer": rollout.trajectory.answer, "feedback": rollout.trajectory.feedback}
            content[f"evidence/{name}"] = json_file({**row, "turns": turns, **words})
    return content | {"evidence/index.json": json_file(index)}


def _history(search: Search) -> dict[str, bytes]:
    state, session = search.state, search.session
    steps = {f"{number:03}.json": json_file(_step(step)) for number, step in enumerate(state.memory, 1)}
    versions: list[dict[str, object]] = [
        {
            "version": number,
            "step": version.step,
            "score": None if state.known_evaluation(number) is None else round(session.score(state, number), 4),
            "best": number == state.best,
            "skill_is_this": number == search.base,
        }
        for number, version in enumerate(state.versions)
    ]
    texts = {"memory.md": state.optimizer_memory, "before.md": marked(tried_section(session.trials))}
    content = steps | {"versions.json": json_file(versions)}
    content |= {name: _text(f"{text}\n") for name, text in texts.items() if text}
    return {f"history/{name}": entry for name, entry in content.items()}


def _step(step: StepMemory) -> Mapping[str, object]:
    row: dict[str, object] = {
        "step": step.step,
        "epoch": step.epoch,
        "what": step.origin.value,
        "decision": "none" if step.decision is None else step.decision.value,
        "title": step.title,
        "reasons": step.why,
        "changes": [f"{change.sign} {change.text}" for change in step.changes],
    }
    if step.decision is None:
        return row
    scores = {"score": round(step.score, 4), "is_at_most": step.bound, "against": round(step.current, 4)}
    return row | scores | {"base": step.base, "fixed": list(step.fixes), "broken": list(step.breaks)}
