"""Tasks of a skill: added, drafted and reviewed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeAlias

from skillgit.app.sources.requests import MODEL, SESSIONS, DraftRequest
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.request import Arg, MisuseError, OfSkill, Opt, given, option_of, refuse_together
from skillgit.errors import NotFoundError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.measuring import planned
from skillgit.verbs.tui import has_terminal
from skillgit.verbs.verb import Answer, Effect, Form, TerminalSession, Verb
from skillgit.view.numbers import plural

with loaded_on_use():
    from skillgit.app.setup import plan as plans
    from skillgit.app.setup import skill_tasks
    from skillgit.app.skill_format import seed
    from skillgit.app.sources import draft_review, harvest, plugin_evals, tasks, tasks_draft
    from skillgit.app.sources.sessions import session as sessions
    from skillgit.view import deliveries
    from skillgit.view import tasks as task_view

DraftFolder: TypeAlias = "draft_review.DraftFolder"
PendingDraft: TypeAlias = "draft_review.PendingDraft"
DraftAnswer: TypeAlias = "draft_review.DraftAnswer"


@dataclass(frozen=True, kw_only=True)
class AddRequest(OfSkill):
    """FILE is created if it is missing. Default: tasks/NAME.jsonl for the only skill of the repository, or for the one
    that --skill names. A task that FILE has already is refused.
    """

    file: Annotated[Path | None, Arg("[FILE]")] = None
    prompt: Annotated[str, Opt("What to do; - reads it from stdin", metavar="TEXT")]
    answers: Annotated[tuple[str, ...], Opt("An accepted answer (repeatable)", "--answer", metavar="TEXT")] = ()
    check: Annotated[
        str | None, Opt('A kind of check, or a check as JSON, like {"type": "regex", …}', metavar="CHECK")
    ] = None
    rubric: Annotated[str | None, Opt("What a judge grades by", metavar="TEXT")] = None
    files: Annotated[
        tuple[str, ...], Opt("A file next to FILE that the task is about (repeatable)", "--file", metavar="PATH")
    ] = ()
    split: Annotated[
        str | None, Opt("The split: train, selection or test; by default, tasks are divided by ratio", metavar="NAME")
    ] = None
    identity: Annotated[str | None, Opt("A name; default: made from the content", "--id", metavar="ID")] = None


def _add(session: TerminalSession, request: AddRequest) -> Answer[object]:
    refuse_together(request, "file", "skill")
    check: object = request.check
    if request.check is not None and request.check.lstrip().startswith("{"):
        try:
            check = json.loads(request.check)
        except ValueError as error:
            raise MisuseError(f"--check is not valid JSON: {error}") from error
    row = {
        "id": request.identity,
        "prompt": session.stdin() if request.prompt == "-" else request.prompt,
        "answers": [*request.answers],
        "check": check,
        "rubric": request.rubric,
        "files": [*request.files],
        "split": request.split,
    }
    file = request.file or skill_tasks.tasks_of_skill(session.workspace)
    result = tasks.add(session.context, file, {name: value for name, value in row.items() if value})
    return Answer("tasks-add/1", result, [f"added {result.id} to {result.path.name}, {plural(result.count, 'task')}"])


TASKS_ADD = Verb("tasks add", AddRequest, _add, Effect.FILES)

_NAME = re.compile(r"[a-z0-9-]+")  # of a skill, and not a path
_DIR = "DIR"
_ASKING = ("dry_run", "max_calls", "max_tokens", "max_usd", "config", "overrides")
_FITTING = {
    **dict.fromkeys(("since", "projects", "all_projects", "rubric"), (SESSIONS,)),
    **dict.fromkeys(_ASKING, (MODEL, SESSIONS)),
    "limit": (MODEL,),
    "file": (MODEL, _DIR),
}
"""Options to the kinds of source that they suit."""


def _kind(request: DraftRequest) -> str:
    word = request.source.partition(":")[0]
    if word in {MODEL, SESSIONS}:
        return word
    return SESSIONS if word in set(sessions.SessionAgent) else _DIR


def _draft(session: TerminalSession, request: DraftRequest) -> Answer[object]:
    kind, context = _kind(request), session.context
    refuse_together(request, "subject", "skill")
    for parameter in given(request):
        kinds = _FITTING.get(parameter.name, (kind,))
        if kind not in kinds:
            raise MisuseError(f"{option_of(parameter)} needs --from {' or '.join(kinds)}")
    if kind == _DIR and not (context.directory / request.source).exists():
        hint = "--from takes model, sessions, sessions:PATH, atif:PATH, an agent, or the folder of a plug-in"
        raise NotFoundError(f"there is no folder {request.source}", hint=hint)
    path = context.directory / request.subject
    is_path = request.subject and (path.exists() or not _NAME.fullmatch(request.subject))
    name = (path.parent if path.suffix else path).resolve().name if is_path else request.subject
    if kind == SESSIONS:
        if is_path:
            seed.read_seed(path)
        name = name if is_path else skill_tasks.name_of_meant(session.workspace.asked(OfSkill(skill=name)))
        harvest_result = harvest.harvest(context, replace(request, subject=name))
        if isinstance(harvest_result, plans.Plan):
            return planned(session, harvest_result)
        lines = task_view.harvested(harvest_result, session.screen)
        return Answer("tasks-harvest/1", harvest_result, lines, notes=_notes(harvest_result.remarks))
    file = request.file or skill_tasks.tasks_of_skill(session.workspace.asked(OfSkill(skill=name)))
    if kind == _DIR:
        import_result = plugin_evals.import_evals(context, Path(request.source), file)
        return Answer("tasks-import/1", import_result, deliveries.evals_imported(import_result))
    folder = request.subject
    if not is_path:
        folder = str(skill_tasks.folder_of_meant(session.workspace.asked(OfSkill(skill=name))))
    draft_result = tasks_draft.draft(context, replace(request, subject=folder, file=file))
    if isinstance(draft_result, plans.Plan):
        return planned(session, draft_result)
    sentences = [f"left out: {reason}" for reason in draft_result.refused]
    if draft_result.removed:
        sentences.append(f"{draft_result.removed} control or invisible characters were removed from the drafts")
    return Answer(
        "tasks-draft/1", draft_result, task_view.drafted(draft_result, session.screen), notes=_notes(sentences)
    )


def _notes(sentences: Iterable[str]) -> list[tuple[str, str]]:
    return [(sentence, "") for sentence in sentences]


def _effect_of_draft(request: DraftRequest) -> Effect:
    return Effect.PAYS if _kind(request) == MODEL or request.rubric else Effect.FILES


TASKS_DRAFT = Verb("tasks draft", DraftRequest, _draft, _effect_of_draft)


@dataclass(frozen=True, kw_only=True)
class ReviewRequest(OfSkill):
    """With FILE, the drafts that a model wrote there. Without it, those from your sessions, which are private until you
    accept them: a terminal shows each as it would be committed and sent to a model, and each answer takes effect at
    once. --accept all leaves out drafts with a warning. A draft that may hold a secret is refused until you edit it.
    Nothing is committed. For a day, an answer can be taken back; then the text of a dropped draft is deleted.
    """

    file: Annotated[Path | None, Arg("[FILE]")] = None
    accept: Annotated[tuple[str, ...], Opt("Accept the draft ID, or all (repeatable)", metavar="ID")] = ()
    drop: Annotated[tuple[str, ...], Opt("Drop the draft ID, or all (repeatable)", metavar="ID")] = ()
    undo: Annotated[bool, Opt("Take back what the last command answered; again, the one before")] = False
    into: Annotated[Path | None, Opt("Where accepted drafts go; default: tasks/NAME.jsonl", metavar="FILE")] = None


def _review(session: TerminalSession, request: ReviewRequest) -> Answer[object]:
    context, screen = session.context, session.screen
    for name in ("accept", "drop"):
        refuse_together(request, "undo", name)
    if request.file is not None:
        for name in ("skill", "drop", "into", "undo"):
            refuse_together(request, "file", name)
        result = tasks.review(context, request.file, request.accept)
        return Answer("tasks-review/1", result, task_view.reviewed(result, screen, brief=bool(request.accept)))
    skill = request.skill or skill_tasks.name_of_meant(session.workspace)
    is_answered = bool(request.accept or request.drop or request.undo)
    if session.answers and has_terminal(session) and session.form is not Form.JSON and not is_answered:
        with draft_review.open_drafts(context, skill, request.into) as folder:
            session.surface("tui").review_drafts(context, skill, request.into, unicode=screen.unicode)
            return Answer(lines=[f"{plural(folder.count(), 'task')} in {folder.tasks.path.name}"])
    review = draft_review.review_harvest(
        context, skill, into=request.into, accept=request.accept, drop=request.drop, undo=request.undo
    )
    return Answer("tasks-drafts/2", review, task_view.harvest_review(review, screen, brief=is_answered))


TASKS_REVIEW = Verb("tasks review", ReviewRequest, _review, Effect.FILES)


def reviewing(context: Context, skill: str, into: Path | None = None) -> AbstractContextManager[DraftFolder]:
    """Open the drafts of ``skill`` for a person who answers them one by one, as a form does."""
    return draft_review.open_drafts(context, skill, into)


def drafted_skills(context: Context) -> Mapping[str, int]:
    """Return the skills of which there are drafts, with their number."""
    return draft_review.harvested_skills(context)
