"""Drafts of tasks that were harvested from use: shown to operators alone, who accept, edit or drop them."""

from __future__ import annotations

import json
from functools import partial
from itertools import islice
from typing import Final

from skillgit.app.sources.draft_review import DraftFolder, PendingDraft, editable, harvested_skills, open_drafts
from skillgit.errors import ConflictError, DataError, UsageError
from skillgit.view.tasks import facts_of
from skillgit.web.rendering import Page, PageRoute, Redirect, Role, Visit, address

ON_PAGE: Final = 20
FILE_BYTES: Final = 16 << 10  # of a file that a page shows


def skills_page(visit: Visit) -> Page:
    return Page(
        template="drafts.html",
        title="Drafts of tasks",
        values={"skills": harvested_skills(visit.context)},
    )


def drafts_page(visit: Visit) -> Page:
    with open_drafts(visit.context, visit.parameters["skill"]) as folder:
        return _page(visit, folder)


def answer_page(visit: Visit) -> Page | Redirect:
    """Carry out what the form says about one draft, if it is still the draft that the form showed."""
    skill, answer = visit.parameters["skill"], visit.value("answer")
    with open_drafts(visit.context, skill) as folder:
        draft = folder.pending(visit.value("id"))
        if draft.state != visit.value("state"):
            raise ConflictError(f"draft {draft.id} has changed meanwhile", hint="look at it again before you answer")
        try:
            match answer:
                case "accept":
                    folder.accept(draft)
                case "drop":
                    folder.drop(draft)
                case "edit":
                    folder.edit(draft, visit.value("text").replace("\r\n", "\n"))
                case _:
                    raise UsageError("an answer is accept, edit or drop", hint="use the buttons of the page")
        except DataError as error:
            return _page(visit, folder, subject=draft, error=error)
    return Redirect(address=address("drafts", skill, skip=visit.value("skip")))


def _page(
    visit: Visit, folder: DraftFolder, *, subject: PendingDraft | None = None, error: DataError | None = None
) -> Page:
    skip = visit.number("skip")
    drafts = list(islice(folder.drafts(), skip, skip + ON_PAGE + 1))
    texts = {draft.id: editable(draft) for draft in drafts}
    if subject is not None and visit.value("text"):
        texts[subject.id] = visit.value("text")
    return Page(
        template="drafts_of_skill.html",
        title=f"Drafts of {folder.skill}",
        command=("tasks", "review", "--skill", folder.skill),
        status=400 if error else 200,
        values={
            "skill": folder.skill,
            "drafts": drafts[:ON_PAGE],
            "following": skip + ON_PAGE if len(drafts) > ON_PAGE else 0,
            "skip": skip,
            "total": len(folder.pending_ids()),
            "texts": texts,
            "refused": subject,
            "error": error,
            "facts_of": facts_of,
            "content": lambda file: file.text(FILE_BYTES),
            "file_bytes": FILE_BYTES,
            "as_json": partial(json.dumps, ensure_ascii=False),
        },
    )


_OF_SKILL: Final = "/drafts/{skill}"
ROUTES = (
    PageRoute(path="/drafts", page=skills_page, role=Role.OPERATOR),
    PageRoute(path=_OF_SKILL, page=drafts_page, role=Role.OPERATOR),
    PageRoute(path=_OF_SKILL, page=answer_page, role=Role.OPERATOR, method="POST"),
)
