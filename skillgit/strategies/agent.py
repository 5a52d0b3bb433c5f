"""Agent: a coding agent studies a step's rollouts and all history as files, and changes the folder of the skill.

It works where it sees nothing else: the folder is made for one call and holds no selection or test item, and the
backend seals the program off. What it leaves is data: of files that steps may change, plain text is taken; the rest is
dropped and reported. The call is one like any other, so the ledger answers it again with the same folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import ClassVar

from skillgit.calls.client import Route
from skillgit.domain.credentials.detector import MASK
from skillgit.domain.document_rewrite import folder_hunks
from skillgit.domain.edit import Application, Edit, EditReport, EditSource, EditStatus, Op, apply
from skillgit.domain.evaluation import Scored
from skillgit.domain.event import Event
from skillgit.domain.ids import text_digest
from skillgit.domain.outcomes import outcome_row
from skillgit.domain.protected_regions import frontmatter, protected
from skillgit.domain.skill import DOCUMENT, Skill, new_file_problem
from skillgit.domain.trajectory import Item, Rollout
from skillgit.domain.untrusted.model_text import clean, clean_paragraphs, clean_title
from skillgit.engine.candidate import RewriteResult, edit_lint, loss_paragraphs, unchanged
from skillgit.engine.evidence_files import json_file
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.prompt_sections import environment_section, marked, skill_tokens, tried_section
from skillgit.engine.proposals import Draft
from skillgit.engine.search import Session, Stage, items_of_step, unanswered
from skillgit.engine.strategy import Proposal, Strategy, TrainSearch, solved
from skillgit.errors import StrategyError, UnanswerableError
from skillgit.plugin.backend import AsksModels, ReplyForm, user
from skillgit.plugin.redaction import redact
from skillgit.plugin.work_folder import FolderChanges, WorkFolder, WorksInFolder

STAGE = "agent"
_QUESTION = (
    "Read TASK.md in your working folder and do what it says. Change the files in skill/ themselves, write notes.md,"
    " and then say in one sentence what you did."
)
_LONGEST_REASON = 4000  # characters of an agent's reasons
PART = "skill"  # what the agent changes
_NAME = 16  # digits of the digest that names the file of an item, whose id is data and names none
_GAP = re.compile(r"\{(\w+)\}")


class CodingAgent(Strategy):
    """One candidate a step: a coding agent's version of the folder.

    The agent gets a folder with the skill, the history of the run and the train rollouts of the step as files, sealed
    off from everything else, and what it leaves of the skill is the candidate. The optimizer's backend has to be a
    coding agent whose questions are metered.
    """

    name: ClassVar[str] = "agent"
    summary: ClassVar[str] = "a coding agent works on the folder, with the history and the step's evidence as files"
    keys: ClassVar[tuple[str, ...]] = ("train.batch_size", "train.accumulation", "optimizer.files", "gate.screening")

    def check(self, settings: MethodSettings, optimizer: Route) -> None:
        del settings
        backend, name = optimizer.backend, optimizer.backend_name
        if not isinstance(backend, WorksInFolder):
            raise StrategyError(
                f"the strategy agent needs a coding agent as optimizer, and {name} is none",
                hint="set model.optimizer_backend to claude_code_exec or another agent: docs/configuration.md",
            )
        if isinstance(backend, AsksModels) and optimizer.inner is None:
            raise StrategyError(
                f"the strategy agent needs an agent whose questions are metered, and {name} would ask by itself",
                hint=f"name who answers it: model.{name}_model_backend, and set that backend's key",
            )
        if problem := backend.folder_problem():
            raise StrategyError(
                f"{name} cannot be sealed off from the items here: {problem}",
                hint="the strategy agent needs bubblewrap: apt install bubblewrap; see docs/extending.md#the-sandbox",
            )

    def certain(self, session: Session, step: int) -> Sequence[Item]:
        return items_of_step(session, step)

    async def propose(self, search: TrainSearch) -> Proposal:
        session, (rollouts, failures) = search.session, await search.attempts()
        if not failures:
            return Proposal(rollouts=rollouts, candidate=unchanged(search.skill))
        session.monitor.stage(Stage.REFLECT, 1)
        form = ReplyForm(folder=work_folder(search, rollouts))
        draw = (STAGE, session.seed, search.step)
        try:
            reply = await session.calls.call("optimizer", STAGE, [user(_QUESTION)], draw=draw, form=form)
            changes = FolderChanges.read(reply.text)
        except UnanswerableError:
            proposal = _without_end(search, unanswered(session, STAGE))
        except ValueError as error:
            proposal = _without_end(search, f"Its work cannot be read: {error}.")
        else:
            candidate, losses = taken(session, search.skill, changes)
            record = {"notes": changes.notes, "refused": changes.refused, "turns": [turn.row for turn in reply.turns]}
            proposal = proposed(search.skill, candidate, losses, changes.notes, support=len(failures))
            proposal = replace(proposal, evidence={"agent.json": json_file(record)})
        session.monitor.tick()
        return replace(proposal, rollouts=rollouts)


def _without_end(search: TrainSearch, why: str) -> Proposal:
    return Proposal(candidate=unchanged(search.skill, "the agent came to no end", why))


def proposed(skill: Skill, candidate: Skill, losses: tuple[EditReport, ...], notes: str, *, support: int) -> Proposal:
    """Return ``candidate`` as a proposal: by edits where applying them gives just that, else by its changed lines."""
    edits = folder_hunks(skill, candidate, support=support, source=EditSource.FAILURE)
    title, reasons = _noted(notes)
    if not edits:
        why = loss_paragraphs(losses) or reasons or title or "It left the folder as it was."
        nothing = "nothing of the agent's work can be taken" if losses else "the agent changed nothing"
        return Proposal(candidate=unchanged(skill, nothing, why), losses=losses)
    draft = Draft(proposals=edits, title=title, reasoning=reasons, cut=bool(losses))
    application = apply(skill, edits)
    is_exact = application.complete and application.skill.digest == candidate.digest
    if not is_exact:
        reports = tuple(EditReport(edit=edit, status=EditStatus.APPLIED) for edit in edits)
        application = Application(skill=candidate, reports=reports)
    return Proposal(
        pool=draft,
        choice=draft,
        candidate=RewriteResult(application=application),
        losses=losses,
        is_folder=not is_exact,
    )


def _noted(notes: str) -> tuple[str, str]:
    """Return the title and the reasons in an agent's notes."""
    title, _, reasons = notes.strip().partition("\n")
    return clean_title(title.lstrip("#* ").rstrip("* ")), clean_paragraphs(reasons)[:_LONGEST_REASON]


def taken(session: Session, skill: Skill, changes: FolderChanges) -> tuple[Skill, tuple[EditReport, ...]]:
    """Return ``skill`` with what of ``changes`` a step may change, and a report on each file that it may not."""
    candidate, losses = skill, [_loss(path, why) for path, why in sorted(changes.refused.items())]
    for path, text in sorted(changes.texts.items()):
        head, own = (frontmatter(each) if path == DOCUMENT else "" for each in (skill.document, text))
        if own and own != head:
            losses.append(_loss(path, "the frontmatter belongs to people and stays", EditStatus.PROTECTED))
            text = head + text.removeprefix(own)  # noqa: PLW2901 - the rest of the file may be good
        result = _with_file(session, candidate, path, text, is_executable=path in changes.executable)
        if isinstance(result, EditReport):
            losses.append(result)
        else:
            candidate = result
    for path in changes.removed:
        if problem := _removal_problem(session, skill, path):
            losses.append(_loss(path, problem))
        else:
            candidate = replace(
                candidate,
                files={name: content for name, content in candidate.files.items() if name != path},
                executable=candidate.executable - {path},
            )
    return candidate, tuple(losses)


def _with_file(session: Session, skill: Skill, path: str, text: str, *, is_executable: bool) -> Skill | EditReport:
    """Return ``skill`` with ``text`` at ``path``, or why that cannot be."""
    is_document = path == DOCUMENT
    old, new = dict(skill.text_files()).get(path, ""), clean(text)
    is_new = path not in skill.files and session.settings.optimizer.trainable.covers(path)
    if problem := new_file_problem(skill, path) if is_new else "":
        return _loss(path, problem)
    if protected(old, is_document=is_document) != protected(new, is_document=is_document):
        return _loss(path, "what is protected in it is not as it was", EditStatus.PROTECTED)
    if not new.removeprefix(frontmatter(new)).strip():
        return _loss(path, "nothing of its text is left")
    if problem := next(_faults(session, skill, skill.with_text(path, new)), ""):
        return _loss(path, problem)
    if folder_hunks(skill, skill.with_text(path, new), support=1, source=EditSource.FAILURE):
        executable = (skill.executable - {path}) | ({path} if is_executable else frozenset())
        return replace(skill.with_text(path, new), executable=executable)
    return skill  # blank lines and rights alone do not count as a change


def _faults(session: Session, skill: Skill, candidate: Skill) -> Iterator[str]:
    """Yield why a step may not add the lines of ``candidate``: a secret is in them, or the file is off limits."""
    lint = edit_lint(session, skill)
    for hunk in folder_hunks(skill, candidate, support=1, source=EditSource.FAILURE):
        if MASK in hunk.content or redact(hunk.content) != hunk.content:
            yield "it carries something like a secret"
        if problem := lint(skill, hunk):
            yield problem


def _removal_problem(session: Session, skill: Skill, path: str) -> str:
    if path == DOCUMENT:
        return f"a skill has a {DOCUMENT}"
    if not session.settings.optimizer.trainable.covers(path):
        return f"optimizer.files does not name '{path}'"
    return "a part of it is protected" if protected(dict(skill.text_files()).get(path, ""), is_document=False) else ""


def _loss(path: str, detail: str, status: EditStatus = EditStatus.INVALID) -> EditReport:
    return EditReport(edit=Edit(op=Op.REPLACE, file=path, anchor=clean(path)), status=status, detail=detail)


def work_folder(search: TrainSearch, rollouts: Sequence[Rollout]) -> WorkFolder:
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


def _task(search: TrainSearch, rollouts: Sequence[Rollout]) -> bytes:
    session, optimizer = search.session, search.session.settings.optimizer
    quota = search.quota
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
        is_solved = solved(rollout) if isinstance(rollout.outcome, Scored) else None
        row = {"id": rollout.item.id, "task_type": rollout.item.task_type, **outcome_row(rollout.outcome)}
        index.append({**row, "passed": is_solved, "file": name if rollout.trajectory is not None else None})
        if rollout.trajectory is not None:
            turns = [turn.row for turn in rollout.trajectory.turns]
            words = {"answer": rollout.trajectory.answer, "feedback": rollout.trajectory.feedback}
            content[f"evidence/{name}"] = json_file({**row, "turns": turns, **words})
    return content | {"evidence/index.json": json_file(index)}


def _history(search: TrainSearch) -> dict[str, bytes]:
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


def _step(step: Event) -> Mapping[str, object]:
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
    scores = {
        "score": round(step.verdict.score, 4),
        "is_at_most": step.is_bound,
        "against": round(step.verdict.current, 4),
    }
    return row | scores | {"base": step.base, "fixed": list(step.fixed), "broken": list(step.broken)}
