"""What the scripts of this folder share: an even draw of items, its splits, and the files that a task consists of.

The rank of an item is a digest of the draw's seed and the item's key, so that a draw depends neither on the order of
the source nor on the machine, and a source that gains a few packages changes a few items.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from math import sqrt
from pathlib import Path

from rapidfuzz import fuzz, process

SPLITS: Mapping[str, int] = {"train": 40, "selection": 40, "test": 80}
DRAW = 11
ALIKE = 85
"""Two questions that are this similar, in percent, are not both drawn."""
DUMMY = re.compile(r"\b(?:transitional|dummy|metapackage|meta-package) |\bdebug(?:ging)? symbols\b", re.IGNORECASE)
"""What the summary of a package says that has nothing in it of its own."""


class Missing(Exception):  # noqa: N818 - it says what is missing
    """What the source lacks, as a sentence for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An item that may be drawn: the fields of its row but for id and split, and where it comes from."""

    origin: str
    """The source package: no two items have the same one."""
    stratum: str
    row: Mapping[str, object]
    provenance: Mapping[str, str]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What was read: a name for people, the digest of its bytes, the licence of the data, and the items in it."""

    name: str
    digest: str
    licence: str
    candidates: Sequence[Candidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task to write: its name, the two sentences of its seed skill, and how its items are read."""

    name: str
    title: str
    description: str
    instruction: str
    read: Callable[[Path | None], Source]
    """Reads the source at a path, or that of this machine."""
    splits: Mapping[str, int] = field(default_factory=lambda: dict(SPLITS))


def rank(seed: int, *words: str) -> str:
    return blake2b("\0".join((str(seed), *words)).encode(), digest_size=16).hexdigest()


def quotas(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Divide ``count`` among strata by the square roots of their sizes; none gets more than it has."""
    quota = dict.fromkeys(sorted(sizes), 0)
    while (left := count - sum(quota.values())) > 0:
        growing = [name for name in quota if quota[name] < sizes[name]]
        if not growing:
            break
        weight = sum(sqrt(sizes[name]) for name in growing)
        shares = {name: left * sqrt(sizes[name]) / weight for name in growing}
        whole = {name: min(int(share), sizes[name] - quota[name]) for name, share in shares.items()}
        if any(whole.values()):
            for name, extra in whole.items():
                quota[name] += extra
        else:
            for name in sorted(growing, key=lambda name: (-shares[name], name))[:left]:
                quota[name] += 1
    return quota


def draw(candidates: Iterable[Candidate], splits: Mapping[str, int], seed: int) -> dict[str, list[Candidate]]:
    """Draw so many items for each split, from all strata, at most one of an origin, and no two that are alike."""
    strata: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda candidate: rank(seed, candidate.key)):
        strata[candidate.stratum].append(candidate)
    quota = quotas({name: len({c.origin for c in items}) for name, items in strata.items()}, sum(splits.values()))
    origins: set[str] = set()
    questions: list[str] = []
    drawn: list[Candidate] = []
    # The smallest strata choose first, for the origins of a large one leave it a choice.
    order = sorted(strata, key=lambda name: (len(strata[name]), name))
    waiting = {name: iter(strata[name]) for name in order}

    def take(name: str) -> bool:
        for candidate in waiting[name]:
            question = bare(str(candidate.row["question"]))
            if candidate.origin in origins or process.extractOne(
                question, questions, scorer=fuzz.ratio, score_cutoff=ALIKE
            ):
                continue
            origins.add(candidate.origin)
            questions.append(question)
            drawn.append(candidate)
            return True
        return False

    for name in order:
        for _ in range(quota[name]):
            take(name)
    # What alike items left open goes to the largest strata, one each in turn.
    open_strata = order[::-1]
    while len(drawn) < sum(splits.values()) and open_strata:
        open_strata = [name for name in open_strata if len(drawn) < sum(splits.values()) and take(name)]
    if len(drawn) < sum(splits.values()):
        raise Missing(f"The source has {len(drawn)} items that differ enough, and {sum(splits.values())} are needed.")
    return _divided(drawn, splits, seed)


def bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _divided(drawn: Sequence[Candidate], splits: Mapping[str, int], seed: int) -> dict[str, list[Candidate]]:
    """Deal the items of each stratum to the splits in turn, so that each split has its share of all strata."""
    parts: dict[str, list[Candidate]] = {name: [] for name in splits}
    for candidate in sorted(drawn, key=lambda item: (item.stratum, rank(seed, "split", item.key))):
        # The split that is furthest behind its share; of several, the one whose turn the item's rank says.
        behind = min(splits, key=lambda name: (len(parts[name]) / splits[name], rank(seed, name, candidate.key)))
        parts[behind].append(candidate)
    for items in parts.values():
        items.sort(key=lambda item: rank(seed, "order", item.key))
    return parts


def write(task: Task, source: Source, folder: Path, *, seed: int, splits: Mapping[str, int]) -> None:
    parts = draw(source.candidates, splits, seed)
    everyone = sorted((rank(seed, "id", item.key), split, item) for split in parts for item in parts[split])
    ids = {item.key: f"p-{number:03}" for number, (_, _, item) in enumerate(everyone, start=1)}
    rows = [{"id": ids[item.key], **item.row, "split": split} for split, items in parts.items() for item in items]
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    origins = [
        {"id": ids[item.key], "split": split, **item.provenance} for split, items in parts.items() for item in items
    ]
    record = {
        "task": task.name,
        "read": source.name,
        "read_sha256": source.digest,
        "licence": source.licence,
        "draw": {"seed": seed, "splits": dict(splits)},
        "tasks_sha256": sha256(data.encode()).hexdigest(),
        "labels": dict(sorted(Counter(item.stratum for _, _, item in everyone).items())),
        "items": origins,
    }
    skill = f"---\nname: {task.name}\ndescription: {task.description}\n---\n\n# {task.title}\n\n{task.instruction}\n"
    for name, text in (
        (f"tasks/{task.name}.jsonl", data),
        (f".claude/skills/{task.name}/SKILL.md", skill),
        ("SOURCE.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def paragraphs(text: str) -> Iterator[dict[str, str]]:
    """Yield the paragraphs of a control file: fields by name, continued lines without the blank that marks them."""
    for block in re.split(r"\n(?:[ \t]*\n)+", text):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in {" ", "\t"} and name:
                fields[name] += "\n" + line[1:]
            elif match := re.match(r"([!-9;-~]+):[ \t]*(.*)", line):
                name = match[1]
                fields[name] = match[2].rstrip()
        if fields:
            yield fields


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of items from 1 on")
    return int(text)


def main(task: Task) -> int:
    """Write the task into the folder that the command line names; 1 where the source lacks something."""
    parser = argparse.ArgumentParser(description=(sys.modules["__main__"].__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where tasks/, .claude/skills/ and SOURCE.json are written")
    parser.add_argument("--from", dest="source", type=Path, help="the source, in place of that of this machine")
    parser.add_argument("--seed", type=int, default=DRAW, help=f"seed of the draw (default {DRAW})")
    for name, count in task.splits.items():
        parser.add_argument(f"--{name}", type=_size, default=count, help=f"items of the {name} split (default {count})")
    arguments = parser.parse_args()
    splits = {name: getattr(arguments, name) for name in task.splits}
    try:
        source = task.read(arguments.source)
        write(task, source, arguments.folder, seed=arguments.seed, splits=splits)
    except Missing as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{error.filename} cannot be used: {error.strerror}.\n")
        return 1
    sys.stdout.write(f"{sum(splits.values())} items of {task.name} in {arguments.folder}, from {source.name}\n")
    return 0
