"""Owns where the answers of selection and test items must not stand: in the seed skill, and beside train items."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import Secrets, build_index, find_leaks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.data.told import Told
    from skillgit.domain.leaks import Leak
    from skillgit.domain.skill import Skill


def seed_leaks(rows: Sequence[Told], skill: Skill, known: str) -> list[Leak]:
    """Return what the texts of ``skill`` quote of selection and test items, by the rules of the leak lint.

    Args:
        rows: All items.
        skill: The skill that a run starts with.
        known: What the skill may repeat: the environment's taxonomy.
    """
    index = build_index((row.item.id, row.split, _measured(row)) for row in rows)
    text = "\n\n".join(content for _, content in skill.text_files())
    return list(find_leaks(index, text, known))


def train_leaks(rows: Sequence[Told]) -> Iterator[tuple[str, str]]:
    """Yield ids of train items, each with the selection or test item that it gives away.

    An answer alone says little, for many questions have the same one. It gives an item away where telling words of the
    item's own question stand in the same train item.
    """
    measured = [replace(row, split=Split.TRAIN, secrets=_measured(row)) for row in rows if row.split is not Split.TRAIN]
    index = build_index((row.item.id, row.split, row.secrets) for row in measured)
    # Words that are known tell nothing by themselves, so that every answer needs words of its question.
    known = " ".join(answer for row in measured for answer in row.secrets.answers)
    for row in rows:
        if row.split is Split.TRAIN:
            text = "\n".join((*row.secrets.inputs, *row.secrets.answers))
            yield from ((row.item.id, leak.item) for leak in find_leaks(index, text, known))


def _measured(row: Told) -> Secrets:
    """Return the secrets of an item that scores are made of; of a train item its inputs, which say what is common."""
    return Secrets(inputs=row.secrets.inputs) if row.split is Split.TRAIN else row.secrets
