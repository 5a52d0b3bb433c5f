"""The JSON that optimizer prompts ask for: schemas, extraction from a reply, and one re-ask.

This is the door through which text of models enters: ``parse`` cleans every text of a reply.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, field_validator
from pydantic.json_schema import SkipJsonSchema  # noqa: TC002 - pydantic reads it

from skillgit.domain.document_rewrite import Priority, Rewrite, RewriteError, Suggestion, SuggestionType, Template
from skillgit.domain.edit import Edit, EditSource, Op, Patch
from skillgit.domain.protected_regions import has_marker
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.json_limits import DocumentError, SeveralObjectsError, json_spans, object_in
from skillgit.domain.untrusted.model_text import EMPTY, SkillText, clean_json
from skillgit.engine.proposals import Draft, common_source, grounded, joint_total, supported
from skillgit.engine.reply_fields import Cleaned, Count, Names, Notes, Numbers, ReplyModel, strict_schema
from skillgit.errors import UnanswerableError
from skillgit.plugin.backend import assistant, user

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Rollout
    from skillgit.engine.proposals import Proposed
    from skillgit.engine.session import Session
    from skillgit.plugin.backend import Message

_MOST_MENDED = 1 << 18  # characters; mending takes seconds for each 100,000


class _ProposalReply(ReplyModel):
    """What every kind of proposal says of itself: where it comes from and, after a merge, what it joins."""

    support: Count = 1
    source: SkipJsonSchema[EditSource | None] = None  # no prompt asks for it
    items: Names = ()
    joins: Numbers = ()


class EditReply(_ProposalReply):
    """An edit as a model writes it."""

    op: Op
    file: str = DOCUMENT
    anchor: Cleaned = EMPTY
    content: Cleaned = EMPTY

    @field_validator("anchor", "content", mode="before")
    @classmethod
    def _null_is_empty(cls, value: object) -> object:
        return "" if value is None else value

    def edit(self, source: EditSource) -> Edit:
        """Return the edit; ``source`` holds where the model names none."""
        return Edit(
            op=self.op,
            file=self.file,
            anchor=self.anchor,
            content=self.content,
            support=self.support,
            source=self.source or source,
            items=self.items,
        )

    def proposed(self, source: EditSource) -> Edit:
        """Return the edit; ``source`` holds where the model names none."""
        return self.edit(source)


class SuggestionReply(_ProposalReply):
    """A suggestion as a model writes it."""

    type: SuggestionType
    title: str = ""
    motivation: str = ""
    instruction: Annotated[str, Field(min_length=1)]
    priority: Priority = Priority.MEDIUM

    def proposed(self, source: EditSource) -> Suggestion:
        """Return the suggestion; ``source`` holds where the model names none."""
        return Suggestion(
            type=self.type,
            title=self.title,
            motivation=self.motivation,
            instruction=self.instruction,
            priority=self.priority,
            support=self.support,
            source=self.source or source,
            items=self.items,
        )


class Finding(ReplyModel):
    """What an analyst saw in several trajectories, and the ``rival`` cause that would explain them, if there is one."""

    pattern: str
    count: Count = 1
    items: tuple[str, ...] = ()
    rival: str = ""

    def grounded(self, ids: Sequence[str]) -> Finding:
        """Return the finding with items and count of the ``ids`` trajectories only; named ones are counted."""
        items = tuple(item for item in dict.fromkeys(self.items) if item in ids)
        count = len(items) or min(self.count, max(len(ids), 1))
        return Finding(pattern=self.pattern, count=count, items=items, rival=self.rival)


class DraftReply(ReplyModel):
    """Proposals of whatever kind; each kind says where in its JSON they stand."""

    title: str = ""
    reasoning: str = ""

    @abstractmethod
    def parts(self) -> Sequence[EditReply | SuggestionReply | RewriteReply]:
        """Return the proposals."""

    def draft(self, source: EditSource, ids: Sequence[str]) -> Draft:
        """Return an analyst's proposals, whose support the ``ids`` trajectories bound."""
        proposals = tuple(grounded(part.proposed(source), ids) for part in self.parts())
        return Draft(proposals=proposals, reasoning=self.reasoning, title=self.title)

    def merged(self, inputs: Sequence[Proposed]) -> Draft:
        """Return merged proposals; their support is that of the numbered ``inputs`` that they say they join."""
        source, most = common_source(inputs), joint_total(inputs)
        proposals = []
        for part in self.parts():
            proposal = part.proposed(source)
            sources = [inputs[number] for number in dict.fromkeys(part.joins) if number < len(inputs)]
            joint = supported(proposal, sources) if sources else replace(proposal, support=min(proposal.support, most))
            proposals.append(joint)
        return Draft(proposals=tuple(proposals), reasoning=self.reasoning, title=self.title)


class PatchReply(DraftReply):
    """A proposed patch."""

    edits: tuple[EditReply, ...]

    def parts(self) -> Sequence[EditReply]:
        return self.edits

    def patch(self, source: EditSource) -> Patch:
        """Return the patch; ``source`` holds for edits that name none."""
        edits = tuple(edit.edit(source) for edit in self.edits)
        return Patch(edits=edits, reasoning=self.reasoning, title=self.title)


class SuggestionsReply(DraftReply):
    """Proposed suggestions."""

    suggestions: tuple[SuggestionReply, ...]

    def parts(self) -> Sequence[SuggestionReply]:
        return self.suggestions


class RewriteReply(_ProposalReply, DraftReply):
    """A complete new editable text; an empty one is none."""

    summary: Names = ()
    body: Cleaned

    def parts(self) -> Sequence[RewriteReply]:
        """Return the text as the only proposal, if there is one."""
        return (self,) if self.body.strip() else ()

    def proposed(self, source: EditSource) -> Rewrite:
        """Return the rewrite; ``source`` holds where the model names none."""
        return Rewrite(
            title=self.title,
            summary=self.summary,
            body=self.body,
            support=self.support,
            source=self.source or source,
            items=self.items,
        )

    def merged(self, inputs: Sequence[Proposed]) -> Draft:
        """Return the text, which joins all ``inputs``."""
        draft = super().merged(inputs)
        return replace(draft, proposals=tuple(supported(proposal, inputs) for proposal in draft.proposals))


class Analysis(DraftReply):
    """What an analyst says beside its proposals; notes only where it was asked for them."""

    findings: tuple[Finding, ...] = ()
    notes: Notes = ()

    def seen(self, rollouts: Sequence[Rollout]) -> tuple[Finding, ...]:
        """Return the findings of the analyst that read ``rollouts``, as far as they are about those."""
        ids = [rollout.item.id for rollout in rollouts]
        return tuple(finding.grounded(ids) for finding in self.findings)


class AnalysisReply(PatchReply, Analysis):
    """An analyst's answer: edits."""


class SuggestionAnalysis(SuggestionsReply, Analysis):
    """An analyst's answer: suggestions."""


class RewriteAnalysis(RewriteReply, Analysis):
    """An analyst's answer: a whole new text."""

    def draft(self, source: EditSource, ids: Sequence[str]) -> Draft:
        """Return the text, which rests on all trajectories that the analyst was shown."""
        draft = super().draft(source, ids)
        proposals = tuple(replace(proposal, items=tuple(ids), support=len(ids)) for proposal in draft.proposals)
        return replace(draft, proposals=proposals)


def _edits(value: object) -> object:
    """Read a number of edits: an integer, an integral float, or the first integer of a text; never below 0."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        match = re.search(r"-?\d+", value)
        value = int(match.group()) if match else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return max(value, 0) if isinstance(value, int) else value


class BudgetReply(ReplyModel):
    """How many edits the optimizer wants to make."""

    edits: Annotated[int, Field(strict=True), BeforeValidator(_edits)]
    reasoning: str = ""
    confidence: str = ""
    risks: Names = ()


class RankReply(ReplyModel):
    """The choice of edits."""

    title: str = ""
    reasoning: str = ""
    selected: tuple[Annotated[int, Field(strict=True)], ...]


class GuidanceReply(ReplyModel):
    """The slow update's answer."""

    title: str = ""
    reasoning: str = ""
    guidance: Cleaned

    @field_validator("guidance")
    @classmethod
    def _no_markers(cls, value: SkillText) -> SkillText:
        if has_marker(value):
            raise ValueError("guidance must not contain skillgit markers")
        return value.reworded(value.strip())


class MemoryReply(ReplyModel):
    """The optimizer's note to itself."""

    reasoning: str = ""
    memory: str


R = TypeVar("R", bound=ReplyModel)
_ONE_OBJECT = "one JSON object and nothing else"
_CUT = (
    "Your reply reached the limit of its length and was cut. Answer again within half of it: propose fewer items, the"
    f" most valuable first, and write shorter texts. Answer with {_ONE_OBJECT}."
)


class UnusableReplyError(Exception):
    """A reply is not the JSON that was asked for; the text says why, for the model to read."""


class MisplacedEditsError(UnusableReplyError):
    """Some edits of a reply have no place in the skill; the others can be used."""


def parse(text: str, schema: type[R], *, mend: bool = True) -> R:
    """Read the JSON object in ``text``, and clean what it says.

    Args:
        mend: Whether near misses are mended; the rest of a reply that was cut is not there to be mended.

    Raises:
        UnusableReplyError: There is none, or it does not fit ``schema``.
    """
    try:
        value = clean_json(_json_object(text, mend=mend))
    except RecursionError as error:  # what was mended may be nested as deep as it likes
        raise UnusableReplyError("its JSON is nested too deeply") from error
    if value is None:
        raise UnusableReplyError("it contains no JSON object")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc'])) or 'object'}: {fault['msg']}" for fault in error.errors()[:5]]
        raise UnusableReplyError("; ".join(faults)) from error


def _json_object(text: str, *, mend: bool) -> dict[str, object] | None:
    """Return the JSON object of a reply, see :func:`object_in`."""
    try:
        return object_in(text) or None
    except SeveralObjectsError as error:
        raise UnusableReplyError("it holds several JSON objects") from error
    except DocumentError:
        if not mend:
            return None
        fences, braces = json_spans(text)
    excerpt = fences[0] if fences and fences[0] == fences[-1] else braces
    if "{" not in excerpt or len(excerpt) > _MOST_MENDED:
        return None
    from json_repair import repair_json  # noqa: PLC0415 - needed for damaged replies only

    try:
        value = repair_json(excerpt, return_objects=True)
    except (ValueError, RecursionError):  # nested too deep, or a number of thousands of digits
        return None
    return value if isinstance(value, dict) and value else None


def keeps_protected(skill: Skill) -> Callable[[ReplyModel], None]:
    """Return a check of replies with a whole new text: it must keep what is protected in ``skill``."""
    template = Template.of(skill.document)

    def check(reply: ReplyModel) -> None:
        if isinstance(reply, RewriteReply) and reply.body.strip():
            try:
                template.fill(reply.body)
            except RewriteError as error:
                raise UnusableReplyError(f"body: {error}") from error

    return check


async def ask(
    session: Session,
    stage: str,
    messages: Sequence[Message],
    schema: type[R],
    *,
    draw: tuple[str | int, ...],
    check: Callable[[R], object] = lambda _: None,
) -> R | None:
    """Ask the optimizer for JSON; a reply that does not fit is sent back once with the reason.

    A reply of which only some edits have no place is better than none: it is returned if the second is no better.

    A question that will never be answered is left out like a reply that cannot be used: see ``engine.unanswered``.

    Args:
        draw: The place in the run that the call belongs to.
        check: Raises UnusableReplyError if a reply of the right shape cannot be used all the same.

    Returns:
        The reply, or None if the second one does not fit either, or the question will never be answered.
    """
    conversation, partial = list(messages), None
    form = strict_schema(schema, messages[0].text) if session.settings.optimizer.structured_output == "auto" else None
    for attempt in (1, 2):
        key = (stage, session.seed, *draw, attempt)
        try:
            reply = await session.calls.call("optimizer", stage, conversation, draw=key, schema=form)
        except UnanswerableError:
            return partial  # the door keeps why
        is_cut = reply.finish_reason == "length"
        try:
            answer = parse(reply.text, schema, mend=not is_cut)
            check(answer)
        except MisplacedEditsError as fault:
            partial = answer
            again = (
                f"Some of your edits have no place in the skill. {fault}\nAnswer again with the whole JSON object,"
                " every edit included; copy each anchor from the skill as it is written there."
            )
            conversation += [assistant(reply.text), user(again)]
        except UnusableReplyError as fault:
            again = _CUT if is_cut else f"Your reply cannot be used: {fault}. Answer again with {_ONE_OBJECT}."
            conversation += [assistant(reply.text), user(again)]
        else:
            return answer
    return partial
