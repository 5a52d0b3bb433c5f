"""The rules of a skill: its list items and sentences, where they are, which became which, and what one is worth."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, pairwise, product

from skillgit.domain.protected_regions import MARKER, Owner, blocks, frontmatter
from skillgit.domain.sequence_diff import ALIKE, differences, similarity, words
from skillgit.domain.skill import DOCUMENT, Skill, is_prose

_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+(?P<text>.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")
_BREAK = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<bullet>[-*+]|\d{1,9}[.)])(?:[ \t]+(?P<text>.*))?")
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>.*)")
_SENTENCE_END = re.compile(r"[.!?…]['\"”’)\]*_]*\Z")  # noqa: RUF001 - quotation marks
_SENTENCE_START = re.compile(r"['\"“‘(\[*_]*[^\W_a-z]")  # noqa: RUF001 - quotation marks


_ALL_PAIRS = 10_000  # so many pairs of rules are all compared; of more, those that have a chance
_NEIGHBOURS = 1
_RAREST = 4
_Words = tuple[str, str]


class Region(StrEnum):
    BODY = "body"
    SLOW = "slow"
    APPENDIX = "appendix"
    KEEP = "keep"  # a region that belongs to people: nothing but a person changes or removes its rules


_REGIONS = {Owner.SLOW: Region.SLOW, Owner.APPENDIX: Region.APPENDIX, Owner.KEEP: Region.KEEP}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: a list item, or sentences that have their lines to themselves."""

    heading: str  # the nearest heading above it, without its signs; empty above the first
    text: str  # what it says, on one line and without its bullet; the lines of a code fence follow as they are
    first: int  # its first line in the file, from 1
    last: int
    region: Region = Region.BODY
    is_item: bool = field(default=False, compare=False)  # whether it is a list item


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    old: Rule
    new: Rule
    similarity: float = 1.0  # how much of its words is common, from 0 to 1
    is_moved: bool = (
        False  # whether it is in another order among the others, under another heading or in another region
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDiff:
    """Which rules of an older text are in a newer one; every rule of either is in exactly one field."""

    matches: tuple[Pair, ...]  # rules with the same words in the same place, in the order of the newer text
    moves: tuple[Pair, ...]  # rules with the same words in another place
    changes: tuple[Pair, ...]
    additions: tuple[Rule, ...]
    removals: tuple[Rule, ...]


def rules(text: str, *, is_document: bool = True) -> tuple[Rule, ...]:
    """Return the rules of a Markdown text in their order.

    A rule covers whole lines. A list item is a rule, nested ones are rules of their own, and indented paragraphs belong
    to their item. Elsewhere a rule is a sentence, or the sentences that share lines. A code fence belongs to the rule
    before it. Frontmatter, which only the document has, headings, rulers and markers of regions belong to no rule.
    """
    entries: list[Rule] = []
    heading = ""
    line, read = 1, 0
    for block in blocks(text, is_document=is_document):
        line += text.count("\n", read, block.start)
        read = block.start
        if block.owner is not Owner.FRONTMATTER:
            reader = _Reader(line=line, heading=heading, region=_REGIONS.get(block.owner, Region.BODY))
            entries.extend(reader.read(MARKER.sub("", text[block.start : block.end])))
            heading = reader.heading
    return tuple(entries)


class _Reader:
    """Reads the rules of one block, which begins on the file's line ``line``, line by line."""

    def __init__(self, *, line: int, heading: str, region: Region) -> None:
        self.heading = heading
        self._line = line
        self._region = region
        self._rules: list[Rule] = []
        self._prose: list[str] = []
        self._code: list[str] = []
        self._fence = ""
        self._first = self._last = 0
        self._item = self._blank = False

    def read(self, text: str) -> list[Rule]:
        for number, line in enumerate(text.split("\n"), start=self._line):
            self._take(number, line.rstrip())
        self._end()
        return self._rules

    def _take(self, number: int, line: str) -> None:
        if self._fence or _FENCE.fullmatch(line):
            self._take_code(number, line)
        elif not line:
            self._blank = True
        elif self._prose and not self._item and not self._blank and not self._code and _UNDERLINE.fullmatch(line):
            self.heading = " ".join(self._prose)
            self._forget()
        elif _BREAK.fullmatch(line):
            self._end()
        elif heading := _HEADING.fullmatch(line):
            self._end()
            self.heading = (heading["text"] or "").strip()
        else:
            self._take_prose(number, line)

    def _take_code(self, number: int, line: str) -> None:
        if not self._prose and not self._code:
            self._first = number
        fence = _FENCE.fullmatch(line)
        if not self._fence and fence:
            self._fence = fence["fence"]
        elif fence and fence["fence"].startswith(self._fence) and not fence["info"].strip():
            self._fence = ""
        self._code.append(line)
        self._last = number
        self._blank = False

    def _take_prose(self, number: int, line: str) -> None:
        item = _ITEM.fullmatch(line)
        if item or not self._continues(line):
            self._end()
            self._item = item is not None
            self._first = number
        words_of_line = (item["text"] or "") if item else line
        if words_of_line.strip():
            self._prose.append(words_of_line.strip())
        self._last = number
        self._blank = False

    def _continues(self, line: str) -> bool:
        if not self._prose and not self._item:
            return False
        if self._item:
            return not self._blank or line[0] in " \t"
        has_ended = _SENTENCE_END.search(self._prose[-1]) and _SENTENCE_START.match(line.strip())
        return not (self._blank or self._code or has_ended)

    def _end(self) -> None:
        if self._prose or self._code:
            prose = [" ".join(" ".join(self._prose).split())] if self._prose else []
            text, lines = "\n".join([*prose, *self._code]), {"first": self._first, "last": self._last}
            self._rules.append(Rule(heading=self.heading, text=text, region=self._region, is_item=self._item, **lines))
        self._forget()

    def _forget(self) -> None:
        self._prose, self._code = [], []
        self._fence = ""
        self._item = self._blank = False


def match(old: Sequence[Rule], new: Sequence[Rule]) -> RuleDiff:
    """Say which rule of ``old`` is which of ``new``.

    Equal texts are one rule, in the order that they have. Of the others the most similar two are one rule that was
    changed, then the next two, as long as half of their words is common. From the other side it is the same. Where so
    many rules came and went that comparing all with all would take long, those are compared that share rare words, or
    others at about the same place.
    """
    same = _same(old, new)
    rest = [position for position in range(len(old)) if position not in same]
    came = set(range(len(new))) - set(same.values())
    alike = _alike(old, new, rest, sorted(came))
    partners = {i for i, _ in alike.values()}
    moves = _shifted(same, new)
    sections = ({rule.heading for rule in old}, {rule.heading for rule in new})
    pairs = [
        Pair(old=old[i], new=new[j], is_moved=i in moves or _elsewhere(old[i], new[j], *sections))
        for i, j in sorted(same.items(), key=lambda pair: pair[1])
    ]
    return RuleDiff(
        matches=tuple(pair for pair in pairs if not pair.is_moved),
        moves=tuple(pair for pair in pairs if pair.is_moved),
        changes=tuple(
            Pair(old=old[i], new=new[j], similarity=score, is_moved=_elsewhere(old[i], new[j], *sections))
            for j, (i, score) in sorted(alike.items())
        ),
        additions=tuple(new[j] for j in sorted(came - alike.keys())),
        removals=tuple(old[i] for i in rest if i not in partners),
    )


def _same(old: Sequence[Rule], new: Sequence[Rule]) -> dict[int, int]:
    """Return the places of equal texts, old to new; the n-th of several is the n-th of the others."""
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, rule in reversed(list(enumerate(new))):
        positions[rule.text].append(position)
    return {position: positions[rule.text].pop() for position, rule in enumerate(old) if positions[rule.text]}


def _alike(
    old: Sequence[Rule], new: Sequence[Rule], rest: Sequence[int], came: Sequence[int]
) -> dict[int, tuple[int, float]]:
    """Return new place to old place and similarity of rules that were changed, the most similar ones first."""
    before, after = {i: words(old[i].text) for i in rest}, {j: words(new[j].text) for j in came}
    candidates = ((similarity(before[i], after[j]), i, j) for i, j in _comparable(before, after))
    # equally similar ones in one order from either side: the nearest, and of these the upper ones
    ranking = sorted(
        (candidate for candidate in candidates if candidate[0] >= ALIKE),
        key=lambda candidate: (-candidate[0], abs(candidate[1] - candidate[2]), candidate[1] + candidate[2]),
    )
    partners: set[int] = set()
    pairs: dict[int, tuple[int, float]] = {}
    for score, i, j in ranking:
        if i not in partners and j not in pairs:
            partners.add(i)
            pairs[j] = (i, score)
    return pairs


def _comparable(before: Mapping[int, Sequence[str]], after: Mapping[int, Sequence[str]]) -> Iterable[tuple[int, int]]:
    """Return the places of rules to compare: all with all as long as these are not too many.

    Otherwise two rules are compared if they share one of the rarest pairs of neighbouring words that each has and that
    both texts have, and about as many rules before them, or as many behind them, have it among theirs: of rules that
    follow one pattern, those at the same place are compared.
    """
    if len(before) * len(after) <= _ALL_PAIRS:
        return product(before, after)
    old, new = ({position: {*pairwise(("", *text))} for position, text in texts.items()} for texts in (before, after))
    counts = [Counter(chain.from_iterable(texts.values())) for texts in (old, new)]
    both = counts[0].keys() & counts[1].keys()
    ranking = sorted(both, key=lambda bigram: (counts[0][bigram] + counts[1][bigram], bigram))
    ranks = {bigram: rank for rank, bigram in enumerate(ranking)}
    old_places, new_places = _by_rarest(old, ranks), _by_rarest(new, ranks)
    return {
        pair
        for bigram in old_places.keys() & new_places.keys()
        for a, b in ((old_places[bigram], new_places[bigram]), (old_places[bigram][::-1], new_places[bigram][::-1]))
        for shift in range(-_NEIGHBOURS, _NEIGHBOURS + 1)
        for pair in zip(a[max(0, -shift) :], b[max(0, shift) :], strict=False)
    }


def _by_rarest(texts: Mapping[int, set[_Words]], ranks: Mapping[_Words, int]) -> dict[int, list[int]]:
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for position, bigrams in texts.items():
        for rank in sorted(ranks[bigram] for bigram in bigrams if bigram in ranks)[:_RAREST]:
            positions[rank].append(position)
    return positions


def _shifted(same: dict[int, int], new: Sequence[Rule]) -> set[int]:
    """Return the fewest (and shortest) rules that move for the rest to be in order, the same from either side."""
    pairs = _crossed(sorted(same.items()))
    order = {position: rank for rank, position in enumerate(sorted(position for _, position in pairs), start=1)}
    ranking = sorted(range(len(pairs)), key=lambda k: (len(new[pairs[k][1]].text), new[pairs[k][1]].text, k))
    worth = {k: (1 << len(pairs)) + (1 << rank) for rank, k in enumerate(ranking)}
    best: list[tuple[int, int]] = []
    # a binary indexed tree (Fenwick, 1994) of the best sets that end before a place
    greatest = [(0, -1)] * (len(pairs) + 1)
    for k, (_, position) in enumerate(pairs):
        total, before = (0, -1)
        rank = order[position] - 1
        while rank > 0:
            total, before = max((total, before), greatest[rank])
            rank &= rank - 1
        best.append((total + worth[k], before))
        rank = order[position]
        while rank < len(greatest):
            greatest[rank] = max(greatest[rank], (best[k][0], k))
            rank += rank & -rank
    moves = {i for i, _ in pairs}
    k = max(range(len(best)), key=best.__getitem__, default=-1)
    while k >= 0:
        moves.remove(pairs[k][0])
        k = best[k][1]
    return moves


def _crossed(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return those of ``pairs``, sorted by their first place, that are out of order with another one."""
    out: set[tuple[int, int]] = set()
    greatest = -1
    for pair in pairs:
        if pair[1] < greatest:
            out.add(pair)
        greatest = max(greatest, pair[1])
    least = greatest + 1
    for pair in reversed(pairs):
        if pair[1] > least:
            out.add(pair)
        least = min(least, pair[1])
    return sorted(out)


def _elsewhere(old: Rule, new: Rule, headings_before: set[str], headings_after: set[str]) -> bool:
    """Say whether a rule is in another part of the text; a part that was only renamed is the same part."""
    if old.region is not new.region:
        return True
    return old.heading != new.heading and (old.heading in headings_after or new.heading in headings_before)


LABEL_WORDS = 3  # words of a list item that is a label at most


def changed_rules(old: str, new: str, *, is_document: bool = True) -> int:
    r"""Return how many rules differ between two Markdown texts: added, removed, reworded or moved to another place.

    An edit budget that counts rules counts them so. A rule is a list item or a sentence, as :func:`rules` reads them,
    with one exception: neighbouring entries are one rule together. An entry is a list item or paragraph that does not
    end as a sentence does and that is a label of at most three words, or maps one thing to another with a colon, a dash
    or an arrow: labels, "any name with -dev → libdevel", "kde: programs of the Plasma desktop", an example with its
    answer. Together they say one thing: what is in the list. So a list of 45 labels costs 1, also where a later edit
    adds ten labels to it and takes three away; the sentence with a colon at its end that introduces the list is a part
    of it. The same labels on one line are one sentence, and cost 1 as well, and so does a table. A reworded rule costs
    1, not 2, and headings cost nothing.

    The count is symmetric, and 0 only if both texts have the same rules in the same order. It is never larger than the
    number of rules of both texts.

    >>> changed_rules("", "- Answer in one word.\n- Give years in four digits.")
    2
    >>> changed_rules("", "Allowed:\n- perl\n- python\n- libdevel")
    1
    """
    before, after = rules(old, is_document=is_document), rules(new, is_document=is_document)
    diff = match(before, after)
    units = {id(rule): unit for text in (before, after) for unit in _units(text) for rule in unit}
    # which unit of the older text became which of the newer one: units that share a rule are one
    parents = {id(unit): id(unit) for unit in units.values()}

    def root(unit: int) -> int:
        while parents[unit] != unit:
            unit = parents[unit]
        return unit

    for pair in (*diff.matches, *diff.moves, *diff.changes):
        parents[root(id(units[id(pair.old)]))] = root(id(units[id(pair.new)]))
    changes = [*diff.additions, *diff.removals, *(pair.new for pair in (*diff.moves, *diff.changes))]
    return len({root(id(units[id(rule)])) for rule in changes})


def rules_changed_in(old: Skill, new: Skill) -> int:
    """Return how many rules differ between two skills; of a script or data file, a stretch of changed lines is a rule.

    Another frontmatter is one rule too.
    """
    before, after = dict(old.text_files()), dict(new.text_files())
    count = int(frontmatter(old.document) != frontmatter(new.document))
    for path in sorted(before.keys() | after.keys()):
        texts = before.get(path, ""), after.get(path, "")
        if texts[0] == texts[1]:
            continue
        if is_prose(path):
            count += changed_rules(*texts, is_document=path == DOCUMENT)
        else:
            count += sum(1 for _ in differences(*(text.splitlines() for text in texts)))
    return count


def _units(text: Sequence[Rule]) -> list[tuple[Rule, ...]]:
    """Return the rules of a text, neighbouring labels together with what introduces them."""
    units: list[tuple[Rule, ...]] = []
    for rule in text:
        last = units[-1][-1] if units else None
        is_next = last is not None and (last.heading, last.region) == (rule.heading, rule.region)
        is_list = last is not None and _is_entry(rule) and (_is_entry(last) or _introduces(last))
        if last is not None and is_next and is_list and rule.first - last.last <= _APART:
            units[-1] = (*units[-1], rule)
        else:
            units.append((rule,))
    return units


_APART = 2  # lines from an entry to the next one at most: one of them may be blank
_MAPPING = re.compile(r"\S\s*(?:→|⇒|[-=]>)\s*\S|\S: \S|\S [-–—=] \S")  # noqa: RUF001 - dashes of a text
_ARROW = re.compile(r"\S\s*(?:→|⇒|[-=]>)\s*(?P<label>[^\s,;(][^,;(]*)")


def _is_entry(rule: Rule) -> bool:
    """Say whether a rule is an entry of a list: a label, something with what it is mapped to, or an example."""
    prose = rule.text.partition("\n")[0]
    if _FENCE.fullmatch(prose):
        return True
    if (arrow := _ARROW.search(prose)) and len(arrow["label"].split()) <= LABEL_WORDS:
        return True
    is_label = rule.is_item and len(prose.split()) <= LABEL_WORDS
    return _SENTENCE_END.search(prose) is None and (is_label or _MAPPING.search(prose) is not None)


def _introduces(rule: Rule) -> bool:
    return not rule.is_item and rule.text.rstrip().endswith(":")


class Worth(StrEnum):
    """What a rule is good for, by what happens without it."""

    WORKS = "works"  # the score is lower without it
    MIXED = "mixed"  # it helps as many items as it harms
    HARMFUL = "harmful"  # the score is higher without it
    DEAD = "dead"  # nothing changes without it


def worth(delta: float, breaks: int) -> Worth:
    """Return what a rule is good for; ``delta`` is how much the score changes when it is left out."""
    if delta < 0:
        return Worth.WORKS
    if delta > 0:
        return Worth.HARMFUL
    return Worth.MIXED if breaks else Worth.DEAD


def without(text: str, rules: Iterable[Rule]) -> str:
    """Return ``text`` without the lines of ``rules``; where two blank lines would meet, one remains."""
    lines = text.split("\n")
    numbers = {number for rule in rules for number in range(rule.first - 1, rule.last)}
    rest: list[str] = []
    cut = False
    for number, line in enumerate(lines):
        if number in numbers:
            cut = True
        elif cut and not line.strip() and (not rest or not rest[-1].strip()) and number + 1 < len(lines):
            continue
        else:
            rest.append(line)
            cut = False
    return "\n".join(rest)
