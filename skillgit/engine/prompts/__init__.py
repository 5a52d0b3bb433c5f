"""The optimizer's prompts: files, read once, and the digest that names their version."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from skillgit.domain.ids import short_digest

NAMES = (
    "analyse_failures",
    "analyse_successes",
    "merge",
    "rank",
    "slow_update",
    "meta_skill",
    "probe",
    "probed",
    "meta_reflect",
    "lapses_in_failures",
    "lapses_in_successes",
    "consolidate_notes",
    "suggest_from_failures",
    "suggest_from_successes",
    "rewrite_from_failures",
    "rewrite_from_successes",
    "merge_suggestions",
    "merge_rewrites",
    "merge_and_rank",
    "merge_and_rank_suggestions",
    "rank_suggestions",
    "budget",
    "rewrite",
)
SHOWN = "shown"  # what every prompt ends with that shows something
FILES = "trainable_files"  # what prompts that ask for edits go on with where other files than ``SKILL.md`` are trained


@cache
def prompt(name: str) -> str:
    """Return the text of the prompt called ``name``."""
    return (files(__name__) / f"{name}.md").read_text(encoding="utf-8")


def prompts_digest(*more: str) -> str:
    """Return the digest of the prompts of every run, and of those called ``more`` that a run has besides."""
    return short_digest({name: prompt(name) for name in (*NAMES, SHOWN, *more)})
