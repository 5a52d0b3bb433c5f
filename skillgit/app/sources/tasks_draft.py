"""What models write of tasks, which people review before a run uses it: whole ones, and criteria of harvested ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from random import Random

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.models import find_routes
from skillgit.app.setup.plan import Bound, Plan, cap_notes, total_of
from skillgit.app.setup.planner import AGAIN, pace_of, row_of, tokens_of
from skillgit.app.skill_format.seed import read_seed
from skillgit.app.sources.requests import DraftRequest
from skillgit.app.sources.tasks import DRAFT, Row, TaskEntry, TaskFile, check_new, reader_of_tasks
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.shipped_configurations import USUAL, shipped_file
from skillgit.app.workspace.workspace import Workspace
from skillgit.calls.client import Calls
from skillgit.calls.ledger import Ledger
from skillgit.calls.route import Route
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.rehearsal import is_offline
from skillgit.domain.untrusted.model_text import removed_from
from skillgit.engine.replies import ReplyModel, UnusableReplyError, parse
from skillgit.errors import ConfigError, DataError, RepositoryNotFoundError, ServiceError, UsageError
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


class _Criteria(ReplyModel):
    """What the model says."""

    criteria: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    path: Path  # the file that the drafts were added to
    ids: tuple[str, ...]
    refused: tuple[str, ...]
    removed: int  # how many control and invisible characters were removed from what the model wrote
    model: str
    cost: Cost


def draft(context: Context, request: DraftRequest) -> Drafted | Plan:
    """Let the optimizer's model draft tasks for a skill, and add them to a file; a dry run returns the plan."""
    count, caps = request.limit, request.caps
    if not 1 <= count <= MOST:
        raise UsageError(f"{count} drafts cannot be asked for", hint=f"ask for 1 to {MOST}")
    file, reader = TaskFile(path=context.directory / (request.file or "")), reader_of_tasks(context)
    entries, seed = file.read(reader), read_seed(context.directory / request.subject)
    routes = _routes(context, request, _ROLE, "drafting needs")
    question = f"<skill>\n{seed.document.strip()}\n</skill>\n\nWrite {count} tasks."
    messages = [system(_prompt("draft.md")), user(question)]
    if request.dry_run:
        facts, tokens_out = {"skill": seed.name, "drafts": str(count)}, count * _TASK_TOKENS
        return _plan_of_draft(context, routes[_ROLE], messages, tokens_out, caps=caps, facts=facts)
    with Ledger.in_memory() as ledger:
        calls = _calls(context, routes, ledger, caps)
        replies = asyncio.run(_asked(calls, messages))
    rows, refusals = list[Row](), list[str]()
    for number, fields in enumerate(replies[:count], start=1):
        row: Row = {name: fields[name] for name in _FIELDS if fields.get(name)}
        where, check = f"draft {number}", row.get("check")
        if (check.get("type") if isinstance(check, dict) else check) in ("python", "command"):
            refusals.append(f"{where} has a check that runs code")
            continue
        try:
            item = reader.task(where, row, file.path)
            check_new(entries, item, where)
        except DataError as error:
            refusals.append(error.message)
            continue
        rows.append({"id": item.id, "status": DRAFT, **row})
        entries.append(TaskEntry(line=number, row=row, item=item))
    if not rows:
        raise ServiceError(f"no draft can be used: {'; '.join(refusals[:3])}", hint="try again, or another model")
    file.append(rows)
    return Drafted(
        path=file.path,
        ids=tuple(str(row["id"]) for row in rows),
        refused=tuple(refusals),
        removed=removed_from(rows),
        model=calls.routes[_ROLE].name,
        cost=calls.spent(),
    )


def _plan_of_draft(
    context: Context, route: Route, messages: Sequence[Message], tokens_out: int, *, caps: Caps, facts: dict[str, str]
) -> Plan:
    try:
        with Workspace(context) as workspace:
            pace_rows = paces(workspace.index)
    except RepositoryNotFoundError:
        pace_rows = {}
    tokens_in, seconds = sum(tokens_of(message.text) for message in messages), pace_of(pace_rows, _ROLE, route.name)
    rows = (
        row_of(route, _ROLE, "draft", (1, Bound.EXACTLY), (tokens_in, tokens_out), seconds=seconds),
        row_of(route, _ROLE, AGAIN, (1, Bound.AT_MOST), (tokens_in + tokens_out, tokens_out), seconds=seconds),
    )
    total = total_of(rows)
    return Plan(command="tasks draft", facts=facts, stages=rows, total=total, notes=cap_notes(caps, total))


async def _asked(calls: Calls, messages: list[Message]) -> list[dict[str, object]]:
    """Ask for drafts; a reply that is not such JSON is sent back once with the reason."""
    async with aclosing(calls):
        for attempt in (1, 2):
            reply = await calls.call(_ROLE, "draft", messages, draw=("draft", attempt))
            try:
                return parse(reply.text, _Reply, mend=reply.finish_reason != "length").tasks
            except UnusableReplyError as error:
                reason = str(error)
                again = f"This reply cannot be used: {reason}. Reply with the JSON only."
                messages += [assistant(reply.text), user(again)]
    raise ServiceError(f"{calls.routes[_ROLE].name} drafted nothing: {reason}", hint="try again, or another model")


class RubricWriter:
    """Asks the judge's model for criteria of harvested drafts, one question for each, under caps."""

    def __init__(self, context: Context, request: DraftRequest) -> None:
        self._context, self._caps = context, request.caps
        self._routes = _routes(context, request, _JUDGE, "criteria need")

    def plan(self, rows: Sequence[Row], facts: dict[str, str]) -> Plan:
        """Return what asking would take; drafts for which a command turns out to be proved are not asked about."""
        tokens = sum(tokens_of(message.text) for row in rows for message in _rubric_messages(row))
        sizes, number = (tokens, len(rows) * _CRITERIA_TOKENS), (len(rows), Bound.AT_MOST)
        stages = (row_of(self._routes[_JUDGE], _JUDGE, "rubric", number, sizes, seconds=None),)
        total = total_of(stages)
        notes = cap_notes(self._caps, total)
        return Plan(command="tasks draft", facts=facts, stages=stages, total=total, notes=notes)

    def write(self, rows: Sequence[Row], redact: Callable[[str], str]) -> tuple[Cost, list[str]]:
        """Give each draft the criteria of the model; a draft for which it gives none keeps its own, with a reason."""
        with Ledger.in_memory() as ledger:
            calls = _calls(self._context, self._routes, ledger, self._caps)
            reasons = asyncio.run(_asked_for_criteria(calls, rows, redact))
            return calls.spent(), reasons


def _rubric_messages(row: Row) -> list[Message]:
    criteria = row["criteria"]
    material = "\n\n".join(map(str, criteria)) if isinstance(criteria, list) else ""
    request = f"<request>\n{row['prompt']}\n</request>\n\n<outcome>\n{material}\n</outcome>"
    return [system(_prompt("rubric.md")), user(request)]


async def _asked_for_criteria(calls: Calls, rows: Sequence[Row], redact: Callable[[str], str]) -> list[str]:
    reasons = []
    async with aclosing(calls):
        for row in rows:
            reply = await calls.call(_JUDGE, "rubric", _rubric_messages(row), draw=("rubric", str(row["id"])))
            try:
                criteria = parse(reply.text, _Criteria, mend=reply.finish_reason != "length").criteria
            except UnusableReplyError as error:
                reasons.append(f"{row['id']} keeps its own criteria: {error}")
                continue
            criteria = [redact(text) for text in criteria if text.strip()]
            row["criteria"] = criteria[:_MOST_CRITERIA] or row["criteria"]
    return reasons


def _calls(context: Context, routes: Mapping[str, Route], ledger: Ledger, caps: Caps) -> Calls:
    calls = Calls(
        routes=routes,
        ledger=ledger,
        caps=caps,
        sleep=asyncio.sleep,
        random=Random(context.entropy(8)),  # noqa: S311 - jitter of retries
        remark=context.remark,
        environ=context.environ,
    )
    calls.enter(f"tasks-draft-{context.entropy(8).hex()}/draft", Cost())
    return calls


def _routes(context: Context, request: DraftRequest, role: str, need: str) -> Mapping[str, Route]:
    """Return the way to the model that plays ``role``, which fixed rules cannot: no plan promises it of them."""
    routes = find_routes(load_config(context, request.config or _USUAL, request.overrides), (role,))
    if is_offline(routes[role].name):
        hint = f"name one: -o model.{role}_backend=… -o model.{role}=…"
        raise ConfigError(f"{need} a language model, and {routes[role].name} follows fixed rules", hint=hint)
    return routes


def _prompt(name: str) -> str:
    return (files(__package__) / "prompts" / name).read_text(encoding="utf-8")
