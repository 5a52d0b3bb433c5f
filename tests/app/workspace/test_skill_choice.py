"""One resolver for every ``--skill``: a name, a path, or a sentence with what there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.workspace.skill_choice import choose_skill, labels, name_of, only_skill
from skillgit.errors import NotFoundError, UsageError

PATHS = (
    "skills/town",
    ".claude/skills/mill",
    ".agents/skills/town",
    "deep/a/b/charts",
    "charts-2",
    "one/river",
    "two/river",
)


@pytest.mark.parametrize(
    ("word", "here", "path"),
    [
        ("mill", "", ".claude/skills/mill"),
        (".claude/skills/mill", "", ".claude/skills/mill"),
        (".claude/skills/mill/", "", ".claude/skills/mill"),
        ("./.claude/skills/mill/SKILL.md", "", ".claude/skills/mill"),
        ("skills/mill", ".claude", ".claude/skills/mill"),
        ("../b/charts", "deep/a/b", "deep/a/b/charts"),
        (".", "charts-2", "charts-2"),
        ("charts", "", "deep/a/b/charts"),
        ("charts-2", "", "charts-2"),
        ("town", "", "skills/town"),  # of several, the one in skills/
        (".agents/skills/town", "", ".agents/skills/town"),
        ("two/river", "", "two/river"),
    ],
)
def test_a_name_or_a_path_means_one_skill(word, here, path):
    assert choose_skill(word, PATHS, here=here) == path


def test_a_name_of_several_is_refused_with_their_paths():
    with pytest.raises(UsageError, match="'river' is the name of 2 skills: one/river, two/river") as caught:
        choose_skill("river", PATHS)
    assert caught.value.hint == "--skill one/river"


@pytest.mark.parametrize(
    ("word", "near"), [("twon", "town"), ("mil", "mill"), ("chart", "charts"), ("skills/twon", "skills/town")]
)
def test_an_unknown_one_is_refused_with_the_nearest_and_the_list(word, near):
    with pytest.raises(NotFoundError, match=f"there is no skill '{word}'") as caught:
        choose_skill(word, PATHS)
    assert f"did you mean '{near}'?" in caught.value.hint
    assert "mill" in caught.value.hint
    assert "one/river" in caught.value.hint


def test_where_there_are_none_the_hint_makes_one():
    with pytest.raises(NotFoundError) as caught:
        choose_skill("x", ())
    assert "skillgit init --skill" in caught.value.hint


_PART = st.sampled_from(["a", "b", ".claude", "skills", "x-1"])


@given(st.sets(st.lists(_PART, min_size=1, max_size=4).map("/".join), min_size=1, max_size=6))
def test_every_label_and_every_path_means_its_own_skill(paths):
    for path, word in labels(paths).items():
        assert choose_skill(path, paths) == path
        # a name that is the path of another skill means that one
        assert choose_skill(word, paths) == path or word in paths
    assert only_skill(sorted(paths)) in {"", *paths}
    assert {name_of(path) for path in paths} >= {word for word in labels(paths).values() if "/" not in word}
