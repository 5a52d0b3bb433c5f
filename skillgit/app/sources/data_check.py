"""``skillgit doctor``: load every item and look for what spoils a measurement.

That is leaks, duplicates, odd splits, and shortcuts: answers that score without a question.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from skillgit.app.recorded.score_summary import POWER, before_baseline
from skillgit.app.setup.config.resolved import ResolvedConfig
from skillgit.app.setup.skill_tasks import load_for_skill
from skillgit.app.train.starting_point import first_skill
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.evaluation import Gauge, Split, item_set_digest
from skillgit.domain.finding import Finding, Severity, exit_code
from skillgit.domain.leaks import (
    SHORTEST_QUOTED,
    Leak,
    LeakKind,
    Secrets,
    build_index,
    find_leaks,
    fold,
    long_texts,
    quotations,
    ties,
    vocabulary,
    words,
)
from skillgit.domain.statistics import minimum_detectable_effect
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError, ExitCode
from skillgit.plugin.data_rows import singled
from skillgit.plugin.environment import Environment, KeepsSecrets, secrets_of
from skillgit.plugin.likeness import alike
from skillgit.plugin.registry import load_environment
from skillgit.plugin.shortcuts import AnswerForm, Shortcut, ShortcutReport, measure_shortcuts
from skillgit.plugin.splits import repetitions

Watch = Callable[[str], None]  # hears in a few words what is being done


def silent(_: str) -> None:
    """Hear nothing."""


@dataclass(frozen=True, kw_only=True)  # no slots: they have no room for cached properties
class ItemFacts:
    item: Item
    split: Split
    secrets: Secrets  # its answers, and its inputs with the question first

    @cached_property
    def question(self) -> str:
        """The folded words of the first input."""
        return " ".join(words("".join(self.secrets.inputs[:1])))

    @cached_property
    def answers(self) -> frozenset[str]:
        return frozenset(" ".join(words(answer)) for answer in self.secrets.answers)


def item_facts(environment: Environment, items: Mapping[Split, Sequence[Item]]) -> list[ItemFacts]:
    """Return all items; none if the environment does not say what is secret about them."""
    if not isinstance(environment, KeepsSecrets):
        return []
    return [
        ItemFacts(item=item, split=split, secrets=secrets_of(environment, item))
        for split, entries in items.items()
        for item in entries
    ]


def train_leaks(rows: Sequence[ItemFacts], watch: Watch = silent) -> Iterator[tuple[str, str]]:
    """Yield ids of train items, each with the selection or test item that it gives away."""
    # An answer alone says little, for many questions have the same one. It gives an item away where rare words of
    # the item's own question are next to it in the same train item.
    held_out = [row for row in rows if row.split is not Split.TRAIN]
    index = build_index(_questions(held_out), vocabulary([row.secrets for row in rows]))
    train = [row for row in rows if row.split is Split.TRAIN]
    for number, row in enumerate(train):
        watch(f"looking for answers of selection and test items in train items: {number:,} of {len(train):,}")
        first_line = " ".join((row.question, *row.answers))
        text = "\n".join((first_line, *row.secrets.inputs))
        given_away = dict.fromkeys(leak.item for leak in ties(index, text, frozenset()))
        yield from ((row.item.id, name) for name in given_away)


Pairs = dict[tuple[Split, Split], list[tuple[str, str]]]


def near_duplicates(rows: Sequence[ItemFacts]) -> Pairs:
    """Return the ids of alike items by their splits; equal items are not near-duplicates.

    Two items are alike if their questions are, and if they share an answer where both have one: the same question about
    two documents is not the same item. Questions of a few words are like others by chance and are passed over.
    """
    pairs: Pairs = defaultdict(list)
    order = list(Split)
    rows = [row for row in rows if row.question.count(" ") + 1 >= SHORTEST_QUOTED]
    for pair in alike([row.question for row in rows]):
        first, second = sorted((rows[number] for number in pair), key=lambda row: (order.index(row.split), row.item.id))
        share_answer = not first.answers or not second.answers or first.answers & second.answers
        if first.item.digest != second.item.digest and share_answer:
            pairs[first.split, second.split].append((first.item.id, second.item.id))
    return {splits: sorted(pairs[splits]) for splits in sorted(pairs, key=lambda pair: [order.index(s) for s in pair])}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSummary:
    split: Split
    items: int
    used: int
    types: Mapping[str, int]  # task type to its number of items, the most frequent first
    digest: str  # identifies its items, as on screens of runs that take all of them
    step: float  # what one item adds to a mean score
    detectable: float | None  # the smallest true gain that the paired test finds four times out of five, if any


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCheck:
    environment: str
    splits: tuple[SplitSummary, ...]  # its splits; none if they could not be read
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]  # what the selection split can tell, and what could not be looked for
    exit_code: ExitCode
    shortcuts: ShortcutReport | None = None  # what answers score that need no question; None if items are unreadable


def check_data(workspace: Workspace, config: str, overrides: tuple[str, ...] = (), watch: Watch = silent) -> DataCheck:
    """Return what is wrong with the items of a configuration; no model is asked. ``watch`` hears what is being done."""
    settings = load_for_skill(workspace, config, overrides)
    environment = load_environment(settings.values.env.name, settings.root)(settings.options, settings.root)
    watch("reading the items")
    items, unreadable = _load(environment)
    findings = [_fault("unreadable", fault) for fault in unreadable]
    notes: list[str] = []
    shortcuts = None
    if not unreadable:
        watch("looking for repeated items")
        findings += [_fault("repeated", fault) for fault in repetitions(items)]
        findings += _repeated_inside(items)
        rows = item_facts(environment, items)
        findings += _of_texts(rows, workspace, settings, environment, watch)
        watch("scoring answers that need no question")
        rule = settings.values.method.rule()
        shortcuts = measure_shortcuts(environment, items, Gauge(metric=rule.metric, soft_weight=rule.soft_weight))
        findings += map(_shortcut, shortcuts.cues)
        notes += _notes(settings, items, rows, shortcuts)
    return DataCheck(
        environment=environment.info.name,
        splits=() if unreadable else tuple(_summary(split, items[split], settings) for split in Split),
        findings=tuple(sorted(findings, key=lambda finding: finding.severity is Severity.WARNING)),
        notes=tuple(notes),
        exit_code=exit_code(findings),
        shortcuts=shortcuts,
    )


def _load(environment: Environment) -> tuple[Items, tuple[DataError, ...]]:
    items: dict[Split, Sequence[Item]] = {}
    faults = []
    for split in Split:
        try:
            items[split] = environment.items(split)
            if not items[split]:
                faults.append(
                    DataError(
                        f"the {split} split has no items",
                        hint="bring more items, of each task type: every split needs one",
                    )
                )
        except DataError as fault:
            faults.append(fault)
    return items, singled(faults)


def _fault(kind: str, fault: DataError) -> Finding:
    return Finding(severity=Severity.ERROR, rule=kind, sentence=fault.message, hint=fault.hint)


def _repeated_inside(items: Items) -> Iterator[Finding]:
    for split, entries in items.items():
        first: dict[str, str] = {}
        pairs = [(first[item.digest], item.id) for item in entries if first.setdefault(item.digest, item.id) != item.id]
        if pairs:
            yield _pairs("repeated", f"items of the {split} split have the same content", "=", pairs)


def _seed_leaks(rows: Sequence[ItemFacts], skill: str, taxonomy: str) -> Iterator[Leak]:
    """Yield what the seed skill gives away of selection and test items, and of checks."""
    # The texts of many items are long: they are gone through once, and not kept in an index.
    task_words = vocabulary([row.secrets for row in rows])
    held_out = [row for row in rows if row.split is not Split.TRAIN]
    yield from find_leaks(build_index(_questions(held_out), task_words), skill, taxonomy)
    texts = long_texts((row.item.id, row.split, row.secrets) for row in held_out)
    yield from quotations(((fold(text), source) for source, text in texts), skill, taxonomy, task_words.fewest)


def _questions(rows: Sequence[ItemFacts]) -> Iterator[tuple[str, Split, Secrets]]:
    """Yield what answers are tied to, without the long texts of items, which are not kept in an index."""
    for row in rows:
        yield row.item.id, Split.TRAIN, Secrets(answers=row.secrets.answers, inputs=row.secrets.inputs[:1])


def _of_texts(
    rows: Sequence[ItemFacts], workspace: Workspace, config: ResolvedConfig, environment: Environment, watch: Watch
) -> Iterator[Finding]:
    leaks: list[Leak] = []
    if rows:
        watch(f"looking for {len(rows):,} items in the seed skill")
        skill = first_skill(workspace, config, environment)
        text = "\n\n".join(content for _, content in skill.text_files())
        leaks += _seed_leaks(rows, text, environment.taxonomy())
    for kind in LeakKind:
        if ids := tuple(dict.fromkeys(leak.item for leak in leaks if leak.kind is kind)):
            yield Finding(
                severity=Severity.ERROR,
                rule="leak",
                sentence=f"the seed skill quotes {kind}s of selection or test items: {_shown(ids)}",
                hint="take the words out of the skill, or the items out of the splits",
                items=ids,
            )
    given_away = list(train_leaks(rows, watch))
    if given_away:
        sentence = "train items contain answers of selection or test items next to words of their questions"
        yield _pairs("leak", sentence, "gives away", given_away)
    watch(f"comparing {len(rows):,} items with each other")
    for (first, second), pairs in near_duplicates(rows).items():
        where = f"the {first} split" if first is second else f"the {first} and the {second} split"
        yield _pairs("alike", f"items of {where} are almost the same", "~", pairs)


def _pairs(kind: str, sentence: str, sign: str, pairs: Sequence[tuple[str, str]]) -> Finding:
    return Finding(
        severity=Severity.WARNING,
        rule=kind,
        sentence=f"{sentence}: {_shown([f'{first} {sign} {second}' for first, second in pairs])}",
        hint="look at them with --json, which lists all, and keep one of each in one split",
        items=tuple(dict.fromkeys(name for pair in pairs for name in pair)),
    )


def _shortcut(cue: Shortcut) -> Finding:
    kind = "with choices" if cue.form is AnswerForm.CHOICE else "with a free answer"
    items = f"{cue.n:,} items {kind}" if cue.answers == cue.n else f"the {cue.answers:,} items that it answers"
    chance = cue.chance * cue.answers
    return Finding(
        severity=Severity.WARNING,
        rule="shortcut",
        sentence=f"without the question, {cue.rule} is right in {cue.right:,.4g} of {items}, against {chance:,.3g} by"
        " chance",
        hint=cue.advice,
    )


def _shown(names: Sequence[str], limit: int = 5) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"{', '.join(names[:limit])}{more}"


def _summary(split: Split, items: Sequence[Item], config: ResolvedConfig) -> SplitSummary:
    count = _used(split, len(items), config)
    return SplitSummary(
        split=split,
        items=len(items),
        used=count,
        types=dict(Counter(item.task_type for item in items).most_common()),
        digest=item_set_digest({item.id: item.digest for item in items}),
        step=1 / count,
        detectable=minimum_detectable_effect(count, alpha=config.values.gate.alpha, power=POWER),
    )


def _used(split: Split, items: int, config: ResolvedConfig) -> int:
    evaluation = config.values.evaluation
    limits = {Split.SELECTION: evaluation.sel_env_num, Split.TEST: evaluation.test_env_num}
    return min(items, limits.get(split) or items)


def _notes(config: ResolvedConfig, items: Items, rows: Sequence[ItemFacts], shortcuts: ShortcutReport) -> Iterator[str]:
    count = _used(Split.SELECTION, len(items[Split.SELECTION]), config)
    yield before_baseline(count, config.values.method.rule())
    expected_size, train_size = config.values.train.train_size, len(items[Split.TRAIN])
    if expected_size not in {0, train_size}:
        yield f"train.train_size is {expected_size}, but there are {train_size} train items: a run would refuse them"
    if shortcuts.reason:
        yield f"shortcuts were measured on {shortcuts.sample:,} of {shortcuts.items:,} items: {shortcuts.reason}"
    if not rows:
        yield "the environment does not say which texts are answers, so leaks and likeness were not checked"


if TYPE_CHECKING:
    Items = Mapping[Split, Sequence[Item]]
