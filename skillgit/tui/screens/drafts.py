"""Drafts of tasks, one card at a time: what each would become, and keys whose answers can be taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, partialmethod
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from skillgit.app.workspace.context import Context
from skillgit.errors import ConflictError, SkillgitError
from skillgit.tui.keymap import bindings
from skillgit.tui.reading import app_of
from skillgit.tui.screens.dialogs import Choice, SearchScreen
from skillgit.tui.widgets.lines import FindBar, KeyLine, OneLine
from skillgit.tui.widgets.painted_lines import Painted, RenderedLines, on_one_line, rendered
from skillgit.verbs.tasks import DraftAnswer, DraftFolder, PendingDraft, reviewing
from skillgit.view.surface import Style
from skillgit.view.tasks import answer_said, draft_card, progress, state_of
from skillgit.view.text import one_line

Act = Callable[[DraftFolder], str]
"""An answer; returns the draft to go on with, or nothing for the one that takes its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCard:
    draft: PendingDraft | None = None
    at: int = 0  # its position among those that wait
    progress: str = ""
    state: str = ""
    into: str = ""  # the name of the file of tasks
    last: DraftAnswer | None = None
    later: Sequence[DraftAnswer] = ()  # answers that cannot be taken back
    refusal: str = ""  # why the draft was not answered: it is no longer what was shown

    @property
    def news(self) -> str:
        """What was answered last, and what ``u`` takes back."""
        said = answer_said(self.last, self.later, self.into)
        way = f"takes back: {self.last}" if self.later else "takes it back"
        return f"{said}; u {way}" if self.last is not None else said


def _look(context: Context, skill: str, into: Path | None, at: int, act: Act | None = None) -> DraftCard:
    """Answer by ``act``, and return the draft to go on with."""
    with reviewing(context, skill, into) as folder:
        name = refusal = ""
        try:
            name = act(folder) if act is not None else ""
        except ConflictError as error:
            refusal = f"{error}; {error.hint}"
        last, later = folder.last()
        names, answers = folder.pending_ids(), folder.decisions()
        at = names.index(name) if name in names else max(0, min(at, len(names) - 1))
        draft = folder.pending(names[at]) if names else None
        return DraftCard(
            draft=draft,
            at=at,
            progress=progress(at + 1, len(names), answers),
            state=state_of(draft, answers) if draft is not None else "",
            into=folder.tasks.path.name,
            last=last,
            later=later,
            refusal=refusal,
        )


class CardText(RenderedLines[DraftCard], inherit_bindings=False):
    """The card, to be scrolled and searched."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("list", "find")  # arrows turn to other drafts

    def made(self, facts: DraftCard) -> Sequence[Painted]:
        if facts.draft is None:
            return rendered([" No drafts are left."], self.ink)
        return rendered(draft_card(facts.draft, self.ink, facts.state, facts.into), self.ink)


class DraftsScreen(SearchScreen):
    """The drafts of ``skill``; if ``is_alone``, there is nothing to go back to."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("drafts", "find")

    def __init__(self, skill: str, into: Path | None = None, *, is_alone: bool = False) -> None:
        super().__init__()
        self._skill, self._into, self._is_alone = skill, into, is_alone
        self._card = DraftCard()
        self._texts: dict[str, str] = {}  # edits that were refused, by draft

    def compose(self) -> ComposeResult:
        yield OneLine(id="head")
        yield CardText(id="card")
        yield Static("", id="answer", markup=False)
        yield FindBar(id="find")
        yield KeyLine(compact=True)

    def on_mount(self) -> None:
        self.searched.focus()
        self.reload()

    def reload(self) -> None:
        self._turn(0)

    def _call(self, report: Callable[[DraftCard], str], act: Act | None = None, by: int = 0) -> None:
        """Carry out ``act``, show the draft that is ``by`` further, and say what ``report`` makes of it."""
        show, at = partial(self._show, report), self._card.at + by
        app_of(self).call(_look, self._skill, self._into, at, act, then=show, on_error=self._refuse, group="drafts")

    def _show(self, report: Callable[[DraftCard], str], card: DraftCard) -> None:
        facts = app_of(self).facts
        self._say(card.refusal or report(card))
        self._card = card
        self.say("head", facts.paint(Style.STRONG, f" Drafts of {one_line(self._skill)}"), f"{card.progress} ")
        self.query_one(CardText).show(card, from_top=True)

    def _say(self, text: str) -> None:
        self.query_one("#answer", Static).update(Text(on_one_line(text, app_of(self).facts)))

    def _refuse(self, error: SkillgitError) -> None:
        is_edit = self._card.draft is not None and self._card.draft.id in self._texts
        self._say(f"{error}; {error.hint}{'; e opens it again, and leaving it as it is drops it' if is_edit else ''}")

    def _turn(self, by: int) -> None:
        at, end = self._card.at, f"there is no draft {'after' if by > 0 else 'before'} this one"
        self._call(lambda card: "" if card.at != at else end if by else card.news, by=by)

    action_item_later = partialmethod(_turn, 1)
    action_item_earlier = partialmethod(_turn, -1)

    def _answer(self, answer: Callable[[DraftFolder, PendingDraft], object]) -> None:
        if (draft := self._card.draft) is None:
            self._say("there is no draft to answer")
            return

        def act(folder: DraftFolder) -> str:
            answer(folder, draft)
            self._texts.pop(draft.id, None)
            return draft.id  # an edit leaves it where it is

        self._call(lambda card: card.news, act)

    def action_draft_accept(self) -> None:
        self._answer(lambda folder, draft: folder.accept(draft))

    def action_draft_drop(self) -> None:
        self._answer(lambda folder, draft: folder.drop(draft))

    def action_draft_undo(self) -> None:
        state = self._card.last.state if self._card.last is not None else ""
        self._call(
            lambda card: f"taken back: {card.draft.id if card.draft else ''} waits for an answer again",
            lambda folder: folder.undo(state).id,
        )

    def action_draft_edit(self) -> None:
        """Have the fields edited; a text that was refused is opened again."""
        if (draft := self._card.draft) is None:
            self._say("there is no draft to edit")
            return
        before = self._texts.get(draft.id, draft.editable)
        content = self.in_editor("draft.yaml", before.encode())
        if content is None:
            self._say("the editor ended with an error; nothing was changed")
            return
        try:
            text = content.decode()
        except UnicodeDecodeError:
            self._say("the edit is not UTF-8; nothing was changed")
            return
        if text.strip() in {"", draft.editable.strip(), before.strip()}:
            is_dropped = self._texts.pop(draft.id, None) is not None
            self._say(f"{'the refused edit was dropped; ' if is_dropped else ''}nothing was changed")
            return
        self._texts[draft.id] = text
        self._answer(lambda folder, old: folder.edit(old, text))

    def action_screen_back(self) -> None:
        if self._is_alone:
            self.app.exit()
        else:
            self.dismiss()

    action_screen_close = action_screen_back

    def choices(self) -> Sequence[Choice]:
        draft = self._card.draft
        return [("q", "question", draft.prompt), ("l", "line", draft.line)] if draft is not None else []
