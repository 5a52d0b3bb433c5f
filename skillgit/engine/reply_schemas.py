"""The JSON that optimizer prompts ask for: schemas of replies, and fields that a model may write in several ways."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetPydanticSchema, field_validator
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core.core_schema import no_info_wrap_validator_function, str_schema

from skillgit.domain.document_rewrite import Priority, Rewrite, Suggestion, SuggestionType, UpdateMode, unwrapped
from skillgit.domain.edit import Edit, EditSource, Op
from skillgit.domain.protected_regions import has_marker
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.trajectory import Rollout
from skillgit.domain.untrusted.model_text import EMPTY, SkillText, clean
from skillgit.engine.proposals import Draft, Proposed, alike, common_source, grounded, joint_total, supported
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    from pydantic import json_schema

if TYPE_CHECKING:
    from skillgit.engine.session import Session


class ReplyModel(BaseModel):
    """What a prompt asks for; keys that it does not ask for are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


@cache
def key_names(model: type[ReplyModel]) -> frozenset[str]:
    """Return the keys that a reply and the objects in it may have."""
    names = set(model.model_fields)
    annotations = [info.annotation for info in model.model_fields.values()]
    while annotations:
        annotation = annotations.pop()
        annotations += get_args(annotation)
        if isinstance(annotation, type) and issubclass(annotation, ReplyModel):
            names |= key_names(annotation)
    return frozenset(names)


def _count(value: object) -> object:
    """Read a count that a model may write as text or as an integral float; whatever it is, it is at least 1."""
    match = re.search(r"\d+", str(value))
    return max(int(match.group()), 1) if match else 1


Count = Annotated[int, BeforeValidator(_count)]


def _listed(value: object) -> tuple[object, ...]:
    """Read a list that a model may leave out, or write as a single value."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _named(value: object) -> object:
    return tuple(str(entry) for entry in _listed(value))


def _numbers(value: object) -> object:
    return tuple(int(str(entry)) for entry in _listed(value) if re.fullmatch(r"\d+", str(entry)))


def _noted(value: object) -> object:
    """Read notes that a model may write as texts, as one text or as objects with ``note`` or ``content``."""
    texts = [entry.get("note", entry.get("content")) if isinstance(entry, dict) else entry for entry in _listed(value)]
    return tuple(text for text in texts if isinstance(text, str) and text.strip())


def _as_clean(value: object, text: Callable[[object], str]) -> SkillText:
    """Return a text cleaned; one that ``parse`` has cleaned keeps its count of what was removed."""
    return value if isinstance(value, SkillText) else clean(text(value))


Cleaned = Annotated[SkillText, GetPydanticSchema(lambda *_: no_info_wrap_validator_function(_as_clean, str_schema()))]
"""A text that may be in a skill."""
Names = Annotated[tuple[str, ...], BeforeValidator(_named)]
Notes = Annotated[tuple[Cleaned, ...], BeforeValidator(_noted)]
Numbers = Annotated[tuple[int, ...], BeforeValidator(_numbers)]


@cache
def strict_schema(model: type[ReplyModel], prompt: str) -> JsonSchemaValue:
    """Return the JSON schema of a reply as the strict modes of providers take it: objects are closed and complete.

    It has the keys that ``prompt`` names, in the order of its names, and those that cannot be left out: a provider has
    the keys written in this order, and a model has to say what it saw before it says what to do. A model that has
    nothing to say for a key writes an empty value. The schema has few words, for servers that make a grammar of it
    refuse those that they do not know. A ValueError if a field is of a kind that strict modes do not have, such as an
    object with any keys.
    """

    class Generator(json_schema.GenerateJsonSchema):
        ignored_warning_kinds = {"non-serializable-default"}  # noqa: RUF012 - defaults are left out

    whole = model.model_json_schema(schema_generator=Generator)
    order = re.findall(r"`(\w+)`", prompt[max(prompt.rfind("\n## Your answer"), 0) :])
    return {"title": model.__name__, **_strict(whole, whole.get("$defs", {}), tuple(dict.fromkeys(order)))}


def _strict(schema: Mapping[str, Any], definitions: Mapping[str, Any], order: Sequence[str]) -> JsonSchemaValue:
    match schema:
        case {"$ref": str(reference)}:
            return _strict(definitions[reference.rpartition("/")[2]], definitions, order)
        case {"type": "object", "properties": dict(properties)}:
            rest = [name for name in schema.get("required", ()) if name not in order]
            names = [*(name for name in order if name in properties), *rest]
            return {
                "type": "object",
                "properties": {name: _strict(properties[name], definitions, order) for name in names},
                "required": names,
                "additionalProperties": False,
            }
        case {"type": "array", "items": items}:
            return {"type": "array", "items": _strict(items, definitions, order)}
        case {"type": "string", "enum": values}:
            return {"type": "string", "enum": values}
        case {"type": ("string" | "integer") as kind}:
            return {"type": kind}
    raise ValueError(f"strict modes have no such field: {schema}")


class _ProposalReply(ReplyModel):
    """What every kind of proposal says of itself; ``makes`` is the class of the proposal, which has the same fields."""

    support: Count = 1
    source: SkipJsonSchema[EditSource | None] = None  # no prompt asks for it
    items: Names = ()
    joins: Numbers = ()
    makes: ClassVar[type[Edit | Suggestion | Rewrite]]

    def proposed(self, source: EditSource) -> Proposed:
        values = {field.name: getattr(self, field.name) for field in fields(self.makes)}
        return self.makes(**values | {"source": self.source or source})


class EditReply(_ProposalReply):
    makes = Edit

    op: Op
    file: str = DOCUMENT
    anchor: Cleaned = EMPTY
    content: Cleaned = EMPTY

    @field_validator("anchor", "content", mode="before")
    @classmethod
    def _null_is_empty(cls, value: object) -> object:
        return "" if value is None else value


class SuggestionReply(_ProposalReply):
    makes = Suggestion

    type: SuggestionType
    title: str = ""
    motivation: str = ""
    instruction: Annotated[str, Field(min_length=1)]
    priority: Priority = Priority.MEDIUM


class FailurePattern(ReplyModel):
    """What an analyst saw in several trajectories, and the ``rival`` cause that would explain them, if there is one."""

    pattern: str
    count: Count = 1
    items: tuple[str, ...] = ()
    rival: str = ""

    def grounded(self, ids: Sequence[str]) -> FailurePattern:
        """Return the finding with items and count of the ``ids`` trajectories only; named ones are counted."""
        items = tuple(item for item in dict.fromkeys(self.items) if item in ids)
        count = len(items) or min(self.count, max(len(ids), 1))
        return FailurePattern(pattern=self.pattern, count=count, items=items, rival=self.rival)


class DraftReply(ReplyModel):
    """Proposals of whatever kind; each kind says where in its JSON they stand."""

    title: str = ""
    reasoning: str = ""

    @abstractmethod
    def parts(self) -> Sequence[_ProposalReply]:
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
            named = [inputs[number] for number in dict.fromkeys(part.joins) if number < len(inputs)]
            sources = named or [each for each in inputs if alike(each, proposal)]
            joint = supported(proposal, sources) if sources else replace(proposal, support=min(proposal.support, most))
            proposals.append(joint)
        return Draft(proposals=tuple(proposals), reasoning=self.reasoning, title=self.title)


class PatchReply(DraftReply):
    edits: tuple[EditReply, ...]

    def parts(self) -> Sequence[EditReply]:
        return self.edits


class SuggestionsReply(DraftReply):
    suggestions: tuple[SuggestionReply, ...]

    def parts(self) -> Sequence[SuggestionReply]:
        return self.suggestions


class RewriteReply(_ProposalReply, DraftReply):
    """A complete new editable text; an empty one is none."""

    makes = Rewrite

    # a text rests on all that its writer was shown, so that no prompt asks for these
    support: SkipJsonSchema[Count] = 1
    items: SkipJsonSchema[Names] = ()
    joins: SkipJsonSchema[Numbers] = ()
    summary: Names = ()
    body: Cleaned

    @field_validator("body")
    @classmethod
    def _nothing_around(cls, value: SkillText) -> SkillText:
        return value.reworded(unwrapped(value))

    def parts(self) -> Sequence[RewriteReply]:
        return (self,) if self.body.strip() else ()

    def merged(self, inputs: Sequence[Proposed]) -> Draft:
        draft = super().merged(inputs)
        return replace(draft, proposals=tuple(supported(proposal, inputs) for proposal in draft.proposals))


class Analysis(DraftReply):
    """What an analyst says beside its proposals; notes only where it was asked for them."""

    findings: tuple[FailurePattern, ...] = ()
    notes: Notes = ()

    def seen(self, rollouts: Sequence[Rollout]) -> tuple[FailurePattern, ...]:
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
    edits: Annotated[int, Field(strict=True), BeforeValidator(_edits)]
    reasoning: str = ""
    confidence: str = ""
    risks: Names = ()


class RankReply(ReplyModel):
    title: str = ""
    reasoning: str = ""
    selected: tuple[Annotated[int, Field(strict=True)], ...]


class GuidanceReply(ReplyModel):
    title: str = ""
    reasoning: str = ""
    guidance: Cleaned

    @field_validator("guidance")
    @classmethod
    def _no_markers(cls, value: SkillText) -> SkillText:
        if has_marker(value):
            raise ValueError("guidance must not contain skillgit markers")
        return value.reworded(unwrapped(value).strip())


class MemoryReply(ReplyModel):
    reasoning: str = ""
    memory: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """The prompts and replies of an update mode; where nothing is chosen, it has no prompts of a choice."""

    failures: str
    successes: str
    analysis: type[Analysis]
    merge: str
    merge_reply: type[DraftReply]
    rank: str = ""
    merge_and_rank: str = ""


DIALECTS = {
    UpdateMode.PATCH: Dialect(
        "analyse_failures", "analyse_successes", AnalysisReply, "merge", PatchReply, "rank", "merge_and_rank"
    ),
    UpdateMode.SUGGESTIONS: Dialect(
        "suggest_from_failures",
        "suggest_from_successes",
        SuggestionAnalysis,
        "merge_suggestions",
        SuggestionsReply,
        "rank_suggestions",
        "merge_and_rank_suggestions",
    ),
    UpdateMode.FULL: Dialect(
        "rewrite_from_failures", "rewrite_from_successes", RewriteAnalysis, "merge_rewrites", RewriteReply
    ),
}


def dialect(session: Session) -> Dialect:
    return DIALECTS[session.settings.optimizer.skill_update_mode]
