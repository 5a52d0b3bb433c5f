"""What models write of tasks, which people review before a run uses it: whole ones, and criteria of harvested ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from random import Random

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.models import find_routes
from skillgit.app.setup.plan import Bound, Plan, cap_notes, total_of
from skillgit.app.setup.planner import AGAIN, pace_of, row_of, tokens_of
from skillgit.app.skill_format.seed import read_seed
from skillgit.app.sources.harvest_drafts import HarvestedDraft
from skillgit.app.sources.harvest_redaction import SessionRedactor
from skillgit.app.sources.tasks import DRAFT, ReadsTasks, Row, TaskEntry, TaskFile, check_new, reader_of_tasks
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.shipped_configurations import USUAL, shipped_file
from skillgit.app.workspace.workspace import open_workspace
from skillgit.calls.client import Calls
from skillgit.calls.ledger import Ledger
from skillgit.calls.pipeline import Route
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.model_text import removed_from
from skillgit.engine.questions import UnusableReplyError, parse
from skillgit.engine.reply_schemas import ReplyModel
from skillgit.errors import DataError, FatalBackendError, RepositoryNotFoundError, ServiceError, UsageError
from skillgit.index.spending import paces
from skillgit.plugin.backend import Message, assistant, system, user

_USUAL = shipped_file(USUAL)
MOST = 100  # drafts that can be asked for at once
_ROLE, _JUDGE = "optimizer", "judge"
_TASK_TOKENS = 120  # tokens that a drafted task is taken to have
_CRITERIA_TOKENS = 250  # that the criteria of one task are
_MOST_CRITERIA = 5
_FIELDS = ("prompt", "answers", "answer", "check", "criteria")


class _Reply(ReplyModel):
    """What the model says."""

    tasks: list[dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    path: Path  # the file that the drafts were added to
    ids: tuple[str, ...]
    refused: tuple[str, ...]
    removed: int  # how many control and invisible characters were removed from what the model wrote
    model: str
    cost: Cost


def draft(
    context: Context,
    skill: Path,
    path: Path,
    *,
    count: int,
    config: str | None = None,
    overrides: tuple[str, ...] = (),
    caps: Caps | None = None,
    dry_run: bool = False,
) -> Drafted | Plan:
    """Let the optimizer's model draft tasks for a skill, and add them to a file; a dry run returns the plan."""
    if not 1 <= count <= MOST:
        raise UsageError(f"{count} drafts cannot be asked for", hint=f"ask for 1 to {MOST}")
    file, reader = TaskFile(path=context.directory / path), reader_of_tasks(context)
    entries, seed = file.read(reader), read_seed(context.directory / skill)
    routes = find_routes(load_config(context, config or _USUAL, overrides), (_ROLE,))
    caps = caps or Caps()
    if dry_run:
        return _plan(context, routes[_ROLE], seed, count, caps)
    with Ledger.in_memory() as ledger:
        calls = _calls(context, routes, ledger, caps)
        replies = asyncio.run(_asked(calls, seed, count))
    rows, refusals = _checked(replies[:count], file, reader, entries)
    if not rows:
        raise ServiceError(f"no draft can be used: {'; '.join(refusals[:3])}", hint="try again, or another model")
    file.append(rows)
    return Drafted(
        path=file.path,
        ids=tuple(str(row["id"]) for row in rows),
        refused=tuple(refusals),
        removed=removed_from(rows),
        model=calls.model_name(_ROLE),
        cost=calls.spent(),
    )


def _messages(skill: Skill, count: int) -> list[Message]:
    prompt = (files(__package__) / "prompts" / "draft.md").read_text(encoding="utf-8")
    return [system(prompt), user(f"<skill>\n{skill.document.strip()}\n</skill>\n\nWrite {count} tasks.")]


def _plan(context: Context, route: Route, skill: Skill, count: int, caps: Caps) -> Plan:
    try:
        with open_workspace(context) as workspace:
            pace_rows = paces(workspace.index)
    except RepositoryNotFoundError:
        pace_rows = {}
    tokens_in, tokens_out = sum(tokens_of(message.text) for message in _messages(skill, count)), count * _TASK_TOKENS
    seconds = pace_of(pace_rows, _ROLE, route.name)
    rows = (
        row_of(route, _ROLE, "draft", (1, Bound.EXACTLY), (tokens_in, tokens_out), seconds=seconds),
        row_of(route, _ROLE, AGAIN, (1, Bound.AT_MOST), (tokens_in + tokens_out, tokens_out), seconds=seconds),
    )
    total = total_of(rows)
    facts = {"skill": skill.name, "drafts": str(count)}
    return Plan(command="tasks draft", facts=facts, stages=rows, total=total, notes=cap_notes(caps, total))


async def _asked(calls: Calls, skill: Skill, count: int) -> list[dict[str, object]]:
    """Ask for drafts; a reply that is no such JSON is sent back once with the reason."""
    messages = _messages(skill, count)
    try:
        for attempt in (1, 2):
            reply = await calls.call(_ROLE, "draft", messages, draw=("draft", attempt))
            try:
                return parse(reply.text, _Reply, mend=reply.finish_reason != "length").tasks
            except UnusableReplyError as error:
                reason = str(error)
                again = f"This reply cannot be used: {reason}. Reply with the JSON only."
                messages += [assistant(reply.text), user(again)]
    except FatalBackendError as error:
        error.hint = "drafting needs a language model: -o model.optimizer_backend=… -o model.optimizer=…"
        raise
    finally:
        await calls.aclose()
    raise ServiceError(f"{calls.model_name(_ROLE)} drafted nothing: {reason}", hint="try again, or another model")


def _checked(
    replies: Sequence[dict[str, object]], file: TaskFile, reader: ReadsTasks, entries: Sequence[TaskEntry]
) -> tuple[list[Row], list[str]]:
    """Return the drafts that are tasks and new, and why others are not."""
    all_entries, rows, refusals = list(entries), [], []
    for number, fields in enumerate(replies, start=1):
        row: Row = {name: fields[name] for name in _FIELDS if fields.get(name)}
        where = f"draft {number}"
        check = row.get("check")
        if (check.get("type") if isinstance(check, dict) else check) in ("python", "command"):
            refusals.append(f"{where} has a check that runs code")
            continue
        try:
            item = reader.task(where, row, file.path)
            check_new(all_entries, item, where)
        except DataError as error:
            refusals.append(error.message)
            continue
        rows.append({"id": item.id, "status": DRAFT, **row})
        all_entries.append(TaskEntry(line=number, row=row, item=item))
    return rows, refusals


def _calls(context: Context, routes: Mapping[str, Route], ledger: Ledger, caps: Caps) -> Calls:
    random = Random(context.entropy(8))  # noqa: S311 - jitter of retries
    return Calls(routes=routes, ledger=ledger, caps=caps, sleep=asyncio.sleep, random=random, remark=context.remark)


class _Criteria(ReplyModel):
    """What the model says."""

    criteria: list[str]


class RubricWriter:
    """Asks the judge's model for criteria, one question for each draft, under caps."""

    def __init__(self, context: Context, config: str | None, overrides: tuple[str, ...], caps: Caps) -> None:
        self._context, self._caps = context, caps
        self._routes = find_routes(load_config(context, config or _USUAL, overrides), (_JUDGE,))

    def plan(self, drafts: Sequence[HarvestedDraft], facts: dict[str, str]) -> Plan:
        """Return what asking would take; drafts for which a command turns out to be proved are not asked about."""
        tokens = sum(tokens_of(message.text) for draft in drafts for message in _rubric_messages(draft))
        count = (len(drafts), Bound.AT_MOST)
        row = row_of(
            self._routes[_JUDGE], _JUDGE, "rubric", count, (tokens, len(drafts) * _CRITERIA_TOKENS), seconds=None
        )
        total = total_of((row,))
        return Plan(
            command="tasks harvest", facts=facts, stages=(row,), total=total, notes=cap_notes(self._caps, total)
        )

    def write(self, drafts: Sequence[HarvestedDraft], redactor: SessionRedactor) -> tuple[Cost, list[str]]:
        """Give each draft the criteria of the model; a draft for which it gives none keeps its own, with a reason."""
        with Ledger.in_memory() as ledger:
            calls = _calls(self._context, self._routes, ledger, self._caps)
            reasons = asyncio.run(_asked_for_criteria(calls, drafts, redactor))
            return calls.spent(), reasons


def _rubric_messages(draft: HarvestedDraft) -> list[Message]:
    prompt = (files(__package__) / "prompts" / "rubric.md").read_text(encoding="utf-8")
    criteria = draft.row["criteria"]
    material = "\n\n".join(map(str, criteria)) if isinstance(criteria, list) else ""
    return [system(prompt), user(f"<request>\n{draft.row['prompt']}\n</request>\n\n<outcome>\n{material}\n</outcome>")]


async def _asked_for_criteria(calls: Calls, drafts: Sequence[HarvestedDraft], redactor: SessionRedactor) -> list[str]:
    reasons = []
    try:
        for draft in drafts:
            reply = await calls.call(_JUDGE, "rubric", _rubric_messages(draft), draw=("rubric", draft.id))
            mend = reply.finish_reason != "length"
            try:
                criteria = [
                    redactor.text(text) for text in parse(reply.text, _Criteria, mend=mend).criteria if text.strip()
                ]
            except UnusableReplyError as error:
                reasons.append(f"{draft.id} keeps its own criteria: {error}")
                continue
            draft.row["criteria"] = criteria[:_MOST_CRITERIA] or draft.row["criteria"]
    except FatalBackendError as error:
        error.hint = "criteria need a language model: -o model.judge_backend=… -o model.judge=…"
        raise
    finally:
        await calls.aclose()
    return reasons
