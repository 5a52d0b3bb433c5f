r"""A question to the optimizer: the JSON that it is asked for, and what is done where the reply is not that.

``parse`` is the door through which text of models enters: it cleans every text of a reply. A reply that cannot be used
is sent back once with the reason.

JSON that a model wrote almost right is repaired if it has one reading; all else is refused. Two kinds of damage are
frequent. A model writes a backslash of TeX, of a regular expression or of a path as it is (``\frac``, ``\d``), which
JSON does not allow, or reads as something else: ``\f`` is a form feed. And it forgets a comma or the backslash before a
quotation mark. A repair keeps every character that was written, in its order: it guesses, drops and closes nothing. So
a reply that was cut has no reading.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetPydanticSchema, ValidationError, field_validator
from pydantic.json_schema import JsonSchemaValue, SkipJsonSchema
from pydantic_core.core_schema import no_info_wrap_validator_function, str_schema

from skillgit.domain.document_rewrite import (
    Priority,
    Rewrite,
    RewriteError,
    Suggestion,
    SuggestionType,
    Template,
    UpdateMode,
    unwrapped,
)
from skillgit.domain.edit import Edit, EditSource, Op
from skillgit.domain.protected_regions import has_marker
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Rollout
from skillgit.domain.untrusted.json_limits import DocumentError, SeveralObjectsError, json_spans, object_in
from skillgit.domain.untrusted.model_text import EMPTY, SkillText, clean, clean_json
from skillgit.engine.proposals import Draft, Proposed, alike, common_source, grounded, joint_total, supported
from skillgit.engine.search import Session
from skillgit.errors import UnanswerableError
from skillgit.lazy import loaded_on_use
from skillgit.plugin.backend import Message, assistant, user

with loaded_on_use():
    import json_repair
    from pydantic import json_schema


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
Names = Annotated[tuple[str, ...], BeforeValidator(lambda value: tuple(map(str, _listed(value))))]
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
            joined_inputs = [inputs[number] for number in dict.fromkeys(part.joins) if number < len(inputs)]
            sources = joined_inputs or [each for each in inputs if alike(each, proposal)]
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


R = TypeVar("R", bound=ReplyModel)
_ONE_OBJECT = "one JSON object and nothing else"
_CUT = (
    "Your reply reached the limit of its length and was cut. Answer again within half of it: propose fewer items, the"
    f" most valuable first, and write shorter texts. Answer with {_ONE_OBJECT}."
)


class UnusableReplyError(Exception):
    """A reply is not the JSON that was asked for; the text says why, for the model to read."""


class MisplacedEditsError(UnusableReplyError):
    """Some edits of a reply have no place in the skill, or may not be made; the others can be used."""


def parse(text: str, schema: type[R], *, mend: bool = True) -> R:
    """Read the JSON in ``text`` and clean it; an UnusableReplyError if none fits ``schema``.

    Damage that has one reading is repaired, unless ``mend`` says otherwise: nothing of a reply that was cut is.
    """
    try:
        text = restored_escapes(text)
        value = clean_json(repaired_object(text, key_names(schema)) if mend else object_in(text) or None)
    except SeveralObjectsError as error:
        raise UnusableReplyError("it holds several JSON objects") from error
    except AmbiguousEscapeError as error:
        raise UnusableReplyError(str(error)) from error
    except DocumentError:
        value = None
    except RecursionError as error:  # a repaired reply may be nested at any depth
        raise UnusableReplyError("its JSON is nested too deeply") from error
    if value is None:
        raise UnusableReplyError("it contains no JSON object")
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc'])) or 'object'}: {fault['msg']}" for fault in error.errors()[:5]]
        raise UnusableReplyError("; ".join(faults)) from error


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

    Return None if the second reply does not fit either, or the question will never be answered: it is left out like a
    reply that cannot be used, see :func:`skillgit.engine.search.unanswered`. A reply of which only some edits have no
    place is better than none: it is returned unless the second is better.

    ``draw`` is the place in the run that the call belongs to. ``check`` raises an UnusableReplyError if a reply of the
    right shape cannot be used all the same.
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
                f"Some of your edits have no place in the skill, or may not be made. {fault}\nAnswer again with the"
                " whole JSON object, every edit included; copy each anchor from the skill as it is written there."
            )
            conversation += [assistant(reply.text), user(again)]
        except UnusableReplyError as fault:
            again = _CUT if is_cut else f"Your reply cannot be used: {fault}. Answer again with {_ONE_OBJECT}."
            conversation += [assistant(reply.text), user(again)]
        else:
            return answer
    return partial


MOST_MENDED = 1 << 18  # characters; mending takes seconds for each 100,000

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[A-Za-z]+|.|$)", re.DOTALL)
_COMMANDS = """
nabla natural ncong nearrow neq nexists newcommand newline ngeq ngtr nleftarrow nleq noindent nolimits nonumber not
notin nrightarrow nsubseteq nsupseteq nwarrow tanh tbinom textbackslash textbf textcolor textit textrm textsc textsf
textstyle textsuperscript texttt tfrac therefore theta thickapprox thinspace tilde times tiny toprule triangle
triangleleft triangleq triangleright
"""
_TEX = frozenset(_COMMANDS.split())
"""Commands of TeX whose first letter makes an escape of JSON and whose other letters begin no word."""
_DOUBTFUL = frozenset(
    (
        *("ne", "neg", "ni", "nless", "nmid", "nparallel", "nprec", "nsim", "nsucc", "nu"),
        *("tag", "tan", "tau", "text", "to", "top"),
    )
)
"""Commands that may be a line end or a tab before a word: ``\\nless`` is also a new line that begins with "less"."""
_AFTER_COMMAND = "{_^"
_BEFORE_COMMAND = "$({[=+-^_ "
_PATH = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]:(?:\\(?!\\)[\w .()-]+){2,}")
_UNDOUBTED = re.compile(r"\\(?:[^nrtu\"\\/]|u(?![0-9a-fA-F]{4}))")


class AmbiguousEscapeError(ValueError):
    """A backslash in JSON may be meant as one, or as a line end or a tab; the text names the place."""


def restored_escapes(text: str) -> str:
    r"""Return JSON ``text`` with those backslashes doubled that were meant as backslashes.

    Escapes that JSON does not know are such, and so are form feeds, backspaces and lone carriage returns, which no
    skill holds. A line end or a tab that begins a command of TeX is one too; where a line end is possible as well, what
    ``text`` does with its other backslashes decides. An AmbiguousEscapeError if that says nothing either.

    >>> print(restored_escapes(r'{"content": "- Write \frac{a}{b}.\n- A year is \d{4}."}'))
    {"content": "- Write \\frac{a}{b}.\n- A year is \\d{4}."}
    """
    if "\\" not in text:
        return text
    paths = [match.span() for match in _PATH.finditer(text) if _UNDOUBTED.search(match[0])]
    pieces, at = list[str](), 0
    doubtful = dict[int, re.Match[str]]()
    has_single = has_double = False
    for match in _ESCAPE.finditer(text):
        pieces.append(text[at : match.start()])
        at, escape = match.end(), match[1]
        if escape == "\\":
            has_double = has_double or text[at : at + 1].isalpha()
            pieces.append(match[0])
        elif escape in ('"', "/") or re.fullmatch(r"u[0-9a-fA-F]{4}", escape):
            pieces.append(match[0])
        elif escape in ("'", "`"):  # as JavaScript writes them
            pieces.append(escape)
        elif escape in _DOUBTFUL and text[at : at + 1] not in _AFTER_COMMAND:
            doubtful[len(pieces)] = match
            pieces.append(match[0])
        elif escape == "r" or (
            escape[:1] in ("n", "t") and escape not in _TEX | _DOUBTFUL and not _within(match.start(), paths)
        ):
            pieces.append(match[0])
        else:
            pieces.append(f"\\{match[0]}")
            has_single = True
    for index, match in doubtful.items():
        if has_single and not has_double:
            pieces[index] = f"\\{match[0]}"
        elif has_single == has_double and text[match.start() - 1] in _BEFORE_COMMAND:
            raise AmbiguousEscapeError(
                f"{match[0]} may be a command or the begin of a line; write each backslash in a JSON string twice"
            )
    return "".join([*pieces, text[at:]])


def _within(index: int, spans: list[tuple[int, int]]) -> bool:
    return any(start <= index < end for start, end in spans)


def repaired_object(text: str, names: frozenset[str]) -> dict[str, object] | None:
    """Return the one object in ``text``, repaired if need be; None if it holds none that has one reading.

    ``names`` are the keys that an object may have after a repair: a text that is taken apart at a quotation mark shows
    as an unexpected key.
    """
    try:
        return object_in(text) or None
    except SeveralObjectsError:
        raise
    except DocumentError:
        fences, braces = json_spans(text)
    excerpt = fences[0] if fences and fences[0] == fences[-1] else braces
    if "{" not in excerpt or len(excerpt) > MOST_MENDED:
        return None

    try:
        value = json_repair.repair_json(excerpt, return_objects=True)
        if isinstance(value, dict) and value and _keeps_all(value, excerpt, names) and _ends(text, excerpt):
            return value
    except (ValueError, RecursionError):  # nested too deep, or a number of thousands of digits
        pass
    return None


def _ends(text: str, excerpt: str) -> bool:
    """Say whether nothing after ``excerpt`` looks like more of the same JSON."""
    return not re.search(r'["\[\]{}]', text[text.rfind(excerpt) + len(excerpt) :])


def _keeps_all(value: dict[str, object], excerpt: str, names: frozenset[str]) -> bool:
    plain_text = _decoded(excerpt)
    return (
        _signs(excerpt) == _signs(json.dumps(value, ensure_ascii=False))
        and all(text in plain_text for text in _texts(value))
        and all(name in names for name in _keys(value))
    )


_UNESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


def _decoded(text: str) -> str:
    """Return ``text`` with its escapes as the characters that they stand for."""

    def character(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _UNESCAPED.get(escape, escape)

    plain = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", character, text, flags=re.DOTALL)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _signs(text: str) -> str:
    """Return the characters of JSON that a repair must keep: all but blanks, commas, colons and kinds of quotes."""
    literals = {"True": "true", "False": "false", "None": "null"}
    plain = re.sub(r"\b(?:True|False|None)\b", lambda match: literals[match[0]], _decoded(text))
    return re.sub(r"[\s,:]+", "", plain).replace("'", '"')


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from map(str, value)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(part)
