"""The stand-in draws from what a prompt is about, so that two versions in full and one with its differences are one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.skill import Skill
from skillgit.engine.prompt_sections import changes_section, marked, skill_section, tagged
from skillgit_backends.offline.text import Briefing

LINES = st.lists(st.sampled_from(["- a", "- b", "", "- c -- d", "## e", "-", "+ f", " g"]), max_size=9)


def skill(lines: list[str]) -> Skill:
    return Skill("s", {"SKILL.md": "\n".join(["---", "name: s", "---", "", *lines, "- end", ""]).encode()})


@given(LINES, LINES)
def test_the_seed_of_a_comparison_is_that_of_both_versions_in_full(before, after):
    previous, current = skill(before), skill(after)
    rest = tagged("comparison", "x")
    both = (skill_section(previous, version="previous"), skill_section(current, version="current"), rest)
    shown = (skill_section(current), changes_section(previous, current), rest)
    first, second = (Briefing(marked("\n\n".join(parts))) for parts in (both, shown))
    assert first.seed == second.seed
    assert first.document == second.document
