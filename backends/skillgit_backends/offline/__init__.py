"""The ``offline`` backend: three rule-driven models that rehearse a training run without network, key or learning.

``offline/reader`` answers questions from search results, ``offline/agent`` plays household games, ``offline/analyst``
proposes edits to the skills of both, and as a judge takes an answer that holds the right one for right. None is a
language model; all are deterministic.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from skillgit.domain.edit import normalised
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import (
    CHARACTERS_PER_TOKEN,
    BackendInfo,
    FinishReason,
    Message,
    Price,
    Reply,
    Request,
    ToolCall,
    estimated_usage,
)
from skillgit.plugin.backend_settings import check_settings
from skillgit_backends.offline import agent, analyst, reader
from skillgit_backends.offline.agent import played
from skillgit_backends.offline.analyst import by_cause
from skillgit_backends.offline.patches import (
    EDITS,
    SUGGESTIONS,
    TEXTS,
    Answer,
    added_rule,
    edit,
    edit_budget,
    line_asking,
    merged,
    proposed,
    ranked,
    rewritten,
)
from skillgit_backends.offline.rules import GAMES, HARMFUL, QUESTIONS, RULES, Subject
from skillgit_backends.offline.skills import draw, rules_in, title_of_edits, wording
from skillgit_backends.offline.text import Briefing, sections

_FEW = 2
_RULES_AT_ONCE = 2
_HASTY, _HASTY_IF_RARE, _ADVISES, _LURED = 25, 50, 38, 8
"""Chances in percent: to overshoot, and to propose something where nothing failed."""


def complete(messages: Sequence[Message]) -> str:
    """Answer an optimizer's conversation with the JSON that its system prompt asks for."""
    system = next((message.text for message in messages if message.role == "system"), "")
    user = next((message.text for message in messages if message.role == "user"), "")
    heading = system.lstrip().partition("\n")[0].lstrip("# ").strip()
    task = _TASKS.get(heading.lower())
    if task is None and (verdict := _verdict(system, user)):
        return verdict
    if task is None:
        hint = "use it with skillgit's own prompts only"
        raise FatalBackendError(f"offline/analyst does not know the task '{heading[:60]}'", hint=hint)
    briefing = Briefing(user)
    answer = task(briefing)
    if analyst.wants_reminders(system):
        answer = analyst.with_reminders(answer, briefing)
    if briefing.rules_file != DOCUMENT and "edits" in answer:
        answer |= {"edits": [change | {"file": briefing.rules_file} for change in answer["edits"]]}
    return json.dumps(answer, ensure_ascii=False, indent=1)


_VERDICTS = (("Reply True", "True", "False"), ("Reply with 1", "1", "0"), ("Reply with one letter", "A", "B"))
"""What the prompt of a judge asks for, the verdict on a right answer, and the one on any other."""


def _verdict(system: str, user: str) -> str:
    """Return the verdict on an answer, which is right if it holds the right one; empty if nothing is to be graded."""
    right, answer = (
        " ".join(Briefing(user).section(tag).casefold().split()) for tag in ("right-answer", "given-answer")
    )
    verdicts = (verdict for sign, *verdict in _VERDICTS if right and sign in system)
    return next((yes if right in answer else no for yes, no in verdicts), "")


def analyse_failures(briefing: Briefing) -> Answer:
    """Group the failures by cause and propose rules against the commonest."""
    document, seed, avoid = briefing.document, briefing.seed, briefing.rejected_lines
    rules_present = rules_in(document)
    items = by_cause(briefing.attempts, rules_present)
    edits = list[Answer]()
    anchors, causes = set[str](), list[StrEnum]()
    for rule in (rule for rule in items if rule in HARMFUL):
        change = _undo(document, rule, rules_present, seed)
        if change and change["anchor"] not in anchors:
            edits.append(change | {"items": items[rule], "support": len(items[rule])})
            anchors.add(change["anchor"])
            causes.append(RULES[rule].remedy or rule)
    unsayable = frozenset(rule for rule in RULES if not wording(rule, "", avoid))
    for rule in _choose(briefing, items, rules_present | unsayable):
        text = wording(rule, seed, avoid)
        if text and rule not in causes:
            change = added_rule(document, text, support=len(items.get(rule, ())) or 1, anchors=anchors)
            edits.append(change | {"items": items.get(rule, [])})
            causes.append(rule)
    edits = edits or _reword(briefing, items) or _advise(briefing)
    edits, causes = edits[: briefing.budget], causes[: briefing.budget]
    return {
        "findings": [{"pattern": RULES[rule].symptom, "count": len(ids), "items": ids} for rule, ids in items.items()],
        "title": title_of_edits(edits, "no change"),
        "reasoning": _reasoning(items, causes, len(briefing.attempts)),
        "edits": edits,
    }


def _subject(briefing: Briefing) -> Subject:
    attempts = briefing.attempts
    return GAMES if attempts and played(attempts[0].turns) else QUESTIONS


def _tried(briefing: Briefing) -> frozenset[StrEnum]:
    memory = briefing.section("memory")
    from_memory = {rule for rule in HARMFUL if RULES[rule].label in memory}
    lines = [line for step in briefing.steps() if not step.is_accepted for line in step.additions]
    return frozenset(from_memory.union(*(rules_in(line) for line in lines)))


def _choose(briefing: Briefing, items: Mapping[StrEnum, list[str]], rules_present: frozenset[StrEnum]) -> list[StrEnum]:
    """Return the rules to propose: those that several failures ask for, and now and then one that overshoots."""
    seed, attempts = briefing.seed, _tried(briefing)
    missing = [rule for rule in items if rule not in HARMFUL | rules_present]
    missing.sort(key=lambda rule: rule in attempts)
    common = [rule for rule in missing if len(items[rule]) >= _FEW]
    rare = [rule for rule in missing if len(items[rule]) < _FEW]
    choice = common[: 1 if draw(seed, "how many", 3) else _RULES_AT_ONCE]
    tempting = [RULES[rule].overshoot for rule in (*rare, *reversed(missing)) or items]
    tempting += [] if missing else _subject(briefing).guesses
    hasty = [rule for rule in tempting if rule is not None and rule not in attempts | rules_present]
    if hasty and draw(seed, "hasty", 100) < (_HASTY_IF_RARE if rare else _HASTY):
        return [hasty[0]] if draw(seed, "alone", 3) == 0 or not choice else [*choice[:1], hasty[0]]
    return choice or missing[:1]


def _undo(document: str, rule: StrEnum, rules_present: frozenset[StrEnum], seed: str) -> Answer | None:
    """Return an edit that takes a harmful rule out, putting the rule that was meant in its place if it is missing."""
    line, remedy = line_asking(document, rule), RULES[rule].remedy
    if not line:
        return None
    if remedy is None or remedy in rules_present:
        return edit("delete", anchor=line)
    return edit("replace", anchor=line, content=f"- {wording(remedy, seed)}")


def _reword(briefing: Briefing, items: Mapping[StrEnum, list[str]]) -> list[Answer]:
    for rule, ids in items.items():
        line = line_asking(briefing.document, rule)
        text = wording(rule, briefing.seed, briefing.rejected_lines | {normalised(line)}) if line else ""
        if text and rules_in(line) == {rule}:
            return [edit("replace", anchor=line, content=f"- {text}", support=len(ids)) | {"items": ids}]
    return []


def _advise(briefing: Briefing) -> list[Answer]:
    """Return advice that fits any failure, if some is neither in the skill nor rejected; often nothing."""
    seed, options = briefing.seed, _subject(briefing).advice
    first = draw(seed, "advice", len(options))
    sequence = [text for text in (*options[first:], *options[:first]) if text not in briefing.document]
    fresh = [text for text in sequence if normalised(text) not in briefing.rejected_lines]
    if not fresh or not briefing.attempts or draw(seed, "advise", 5) == 0:
        return []
    return [added_rule(briefing.document, fresh[0], support=len(briefing.attempts), anchors=set())]


def _reasoning(items: Mapping[StrEnum, list[str]], causes: list[StrEnum], size: int) -> str:
    if not items:
        return f"None of the {size} failures shows a cause that a rule would mend."
    rule, ids = next(iter(items.items()))
    sentence = f"In {len(ids)} of {size} failures {RULES[rule].symptom}."
    return sentence if causes else f"{sentence} The skill says so already; closer reading may help."


def analyse_successes(briefing: Briefing) -> Answer:
    """Mostly find nothing that the skill should say; sometimes propose a rule that is idle, or one that harms."""
    seed, subject = briefing.seed, _subject(briefing)
    chance = draw(seed, "success", 100)
    items = [attempt.item for attempt in briefing.attempts]
    symptom, text = subject.strengths[draw(seed, "habit", len(subject.strengths))]
    if subject.lure and chance < _LURED and subject.lure[1] not in _tried(briefing) | rules_in(briefing.document):
        symptom, text = subject.lure[0], wording(subject.lure[1], seed)
    is_present = normalised(text) in briefing.rejected_lines or normalised(text) in normalised(briefing.document)
    if len(items) < _FEW or chance >= _ADVISES or is_present:
        return {"findings": [], "title": "no change", "reasoning": "The skill says what matters.", "edits": []}
    edits = [edit("append", content=f"- {text}", support=len(items)) | {"items": items}]
    return {
        "findings": [{"pattern": symptom, "count": len(items), "items": items}],
        "title": title_of_edits(edits),
        "reasoning": f"All {len(items)} solved tasks show it: the target {symptom}.",
        "edits": edits,
    }


def _described(briefing: Briefing) -> Answer:
    """Add to a description the words that the requests missed have in common, and others have not."""
    text = briefing.section("description")
    misses, near_misses = Counter[str](), Counter[str]()
    for attributes, body in sections(briefing.text, "trajectory"):
        request = next((words for turn, words in sections(body, "turn") if turn.get("role") == "user"), "")
        words = list(dict.fromkeys(re.findall(r"[a-z]{4,}", request.lower())))  # the order is the same in any process
        (near_misses if attributes.get("task_type") == "near miss" else misses).update(words)
    words = [word for word, _ in misses.most_common(40) if word not in near_misses and word not in text.lower()][:8]
    return {
        "reasoning": "The requests that were missed use words that the description does not have.",
        "title": "say more of what is asked",
        "description": f"{text} Use it for {', '.join(words)}.",
    }


_TASKS: Mapping[str, Callable[[Briefing], Answer]] = {
    "analyse failures": analyse_failures,
    "analyse successes": analyse_successes,
    "propose edits": analyse_failures,
    "suggest changes from failures": proposed(analyse_failures, SUGGESTIONS),
    "suggest changes from successes": proposed(analyse_successes, SUGGESTIONS),
    "rewrite from failures": proposed(analyse_failures, TEXTS),
    "rewrite from successes": proposed(analyse_successes, TEXTS),
    "merge patches": merged(EDITS),
    "merge and rank edits": merged(EDITS, within_budget=True),
    "rank edits": ranked(EDITS),
    "merge suggestions": merged(SUGGESTIONS),
    "merge and rank suggestions": merged(SUGGESTIONS, within_budget=True),
    "rank suggestions": ranked(SUGGESTIONS),
    "merge rewrites": merged(TEXTS),
    "rewrite the skill": rewritten,
    "edit budget": edit_budget,
    "slow update": analyst.slow_update,
    "optimizer memory": analyst.memory,
    "reflect on an epoch": analyst.reflect,
    "write a probe": analyst.probe,
    "put reminders together": analyst.consolidate,
    "shorten the skill": analyst.compress,
    "rewrite a description": _described,
}


_MODELS = {"reader": reader.complete, "agent": agent.complete, "analyst": complete}


class OfflineBackend:
    """Answers with fixed rules: a rehearsal instrument, not a language model."""

    info = BackendInfo(
        name="offline",
        summary="Fixed rules without network or key, for rehearsing a run: a rehearsal instrument, not an LLM.",
        models=tuple(_MODELS),
        needs_network=False,
        estimates_tokens=True,
        prices={model: Price(usd_in=0.0, usd_out=0.0) for model in _MODELS},
        settings={},
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        check_settings("offline", {}, settings)

    async def complete(self, request: Request) -> Reply:
        model = _MODELS.get(request.model)
        if model is None:
            hint = "use offline/reader or offline/agent as the target and offline/analyst as the optimizer"
            raise FatalBackendError(f"the offline backend has no model '{request.model}'", hint=hint)
        if any(tool.name == _LOAD for tool in request.tools):
            return _loaded(request)
        text = model(request.messages)
        limit = request.max_output_tokens * CHARACTERS_PER_TOKEN
        finish: FinishReason = "length" if len(text) > limit else "stop"
        usage = estimated_usage(request.messages, text[:limit])
        return Reply(text=text[:limit], usage=usage, finish_reason=finish)

    async def aclose(self) -> None:
        """Release nothing: there is no connection."""


_LOAD = "load_skill"
_ENTRY = re.compile(r"^- (?P<name>[\w-]+): (?P<description>.+?)(?: \(file: .*)?$", re.MULTILINE)
_LIKENESS = 2  # words that a request and a description have to share


def _loaded(request: Request) -> Reply:
    """Load the skill whose listed description has most words of the request, if it has enough of them."""
    system, question = (next(m.text for m in request.messages if m.role == role) for role in ("system", "user"))
    words = _stems(question)
    counts = {entry["name"]: len(words & _stems(entry["description"])) for entry in _ENTRY.finditer(system)}
    name = max(counts, key=lambda name: (counts[name], name), default="")
    if counts.get(name, 0) < _LIKENESS:
        text = "No skill is for this."
        return Reply(text=text, usage=estimated_usage(request.messages, text))
    call = ToolCall(id="call_1", name=_LOAD, arguments=json.dumps({"name": name}))
    usage = estimated_usage(request.messages, call.arguments)
    return Reply(text="", usage=usage, finish_reason="tool_calls", tool_calls=(call,))


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:5] for word in re.findall(r"[a-z]{4,}", text.lower()))


__all__ = ["OfflineBackend"]
