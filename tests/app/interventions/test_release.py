"""Releases: ``metadata.version`` in the frontmatter, the merge commit and its tag."""

from __future__ import annotations

import pytest
from asking import ask
from hypothesis import given
from hypothesis import strategies as st
from real_git import git
from sample_run import PATH, RUN, seed_skill, write_run

from skillgit.app.interventions.promote import promote
from skillgit.app.skill_format import frontmatter
from skillgit.app.skill_format.lint import lint
from skillgit.errors import ConflictError, SkillError, UsageError
from skillgit.store.trunk import trunk
from skillgit.store.work_tree import add_skill

TAG = "refs/tags/demo/v1.2.0"


@pytest.fixture
def home(repo, context):
    """A work tree with ``main`` checked out, and the sample run."""
    add_skill(repo, PATH, seed_skill("demo"), time=context.clock())
    git(repo.workdir, "reset", "-q", "--hard", "main")
    write_run(repo)
    return repo.workdir


def test_a_release_writes_the_version_and_no_other_byte_and_tags_the_merge_commit(context, repo, home):
    result = promote(context, "v3", release="1.2.0")
    assert (result.release, result.tag, result.held) == ("1.2.0", "demo/v1.2.0", False)
    before = git(home, "show", f"{RUN}/v3:{PATH}/SKILL.md")
    after = git(home, "show", f"main:{PATH}/SKILL.md")
    assert after == before.replace("texts.\n---\n", 'texts.\nmetadata:\n  version: "1.2.0"\n---\n', 1) != before
    assert git(home, "diff", "--name-only", f"{RUN}/v3", "main") == f"{PATH}/SKILL.md"
    assert git(home, "cat-file", "-t", TAG).strip() == "tag"
    assert git(home, "rev-parse", f"{TAG}^{{commit}}").strip() == result.commit == repo.tip(trunk(repo))
    assert git(home, "tag", "-l", "--format=%(contents:subject)", "demo/v1.2.0").strip() == "demo 1.2.0"
    assert "released as 1.2.0" in git(home, "log", "-1", "--format=%B", "main")
    assert git(home, "status", "--porcelain") == ""
    assert git(home, "fsck", "--strict") == ""
    assert ask(lint, context, ("main",)).errors == 0


def test_releasing_twice_does_nothing_and_promoting_a_released_version_neither(context, repo, home):
    promote(context, "v3", release="1.2.0")
    tips = git(home, "for-each-ref")
    assert promote(context, "v3", release="1.2.0").held
    assert promote(context, "v3").held, "main has its text, under a version"
    assert git(home, "for-each-ref") == tips
    with pytest.raises(ConflictError, match="release of another text"):
        promote(context, "v1", release="1.2.0")
    assert git(home, "for-each-ref") == tips
    assert promote(context, "v3", release="1.2.1").commit == repo.tip(trunk(repo))
    assert frontmatter.version_of(git(home, "show", f"main:{PATH}/SKILL.md")) == "1.2.1"


def test_a_release_that_main_left_comes_back_under_its_tag(context, repo, home):
    first = promote(context, "v3", release="1.2.0")
    tag = git(home, "rev-parse", TAG)
    promote(context, "v1")
    back = promote(context, "v3", release="1.2.0")
    assert (back.held, back.tag) == (False, "demo/v1.2.0")
    assert back.commit == repo.tip(trunk(repo)) != first.commit
    assert git(home, "rev-parse", TAG) == tag, "a tag that was pushed never moves"
    assert git(home, "diff", TAG, "main") == ""
    promote(context, "v1")
    assert promote(context, "v3", release="1.2.0", dry_run=True).commit == ""
    with pytest.raises(ConflictError, match="release of another text"):
        promote(context, "v1", release="1.2.0")


def test_a_version_that_is_on_main_already_can_be_released_later(context, repo, home):
    promote(context, "v3")
    result = promote(context, "v3", release="1.2.0")
    assert result.commit == repo.tip(trunk(repo))
    assert frontmatter.version_of(git(home, "show", f"main:{PATH}/SKILL.md")) == "1.2.0"


def test_a_dry_run_writes_neither_commit_nor_tag(context, home):
    tips = git(home, "for-each-ref")
    assert promote(context, "v3", release="1.2.0", dry_run=True).commit == ""
    assert git(home, "for-each-ref") == tips


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("version", ["1.2", "v1.2.0", "01.2.0", "1.2.0-", "1.2.0 ", "1.2.0\n", "newest", "1.2.0-01"])
def test_what_is_no_semantic_version_is_refused(context, version):
    with pytest.raises(UsageError, match="not a semantic version"):
        promote(context, "v3", release=version)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("version", ["0.0.1", "1.2.0-rc.1+build.5", "10.20.30-alpha-b"])
def test_semantic_versions_are_written_as_they_are(context, version):
    assert promote(context, "v3", release=version).tag == f"demo/v{version}"


plain = st.text(alphabet="abcdefgh ÄÖ-0123456789", min_size=1, max_size=30).filter(lambda text: "--" not in text)
texts = st.one_of(
    plain.map(lambda text: f"x{text.strip()}"),
    plain.map(lambda text: f"'{text}: yes'"),
    plain.map(lambda text: f'"{text} # no remark"'),
    plain.map(lambda text: f"x{text.strip()} # a remark"),
    plain.map(lambda text: f">-\n    first {text.strip()}\n    second"),
    plain.map(lambda text: f"|\n    first {text.strip()}\n"),
)
held = st.sampled_from(
    [
        (" 1.0", ""),
        (" '2.0.0'", ""),
        (' "2.0.0"', " # by hand"),
        (" >-\n        1.0\n        beta", ""),
        (" |\n        1.0", ""),
        (" ''", "  "),
        ("", ""),
    ]
)
remarks = st.sampled_from(["", "# a remark\n", "\n"])
BELOW = "---\n\n# Demo\n\nversion: 9\n---\nmetadata:\n"


@st.composite
def documents(draw) -> tuple[str, str, str]:
    """A valid document with metadata of every shape, divided where a version stands, or may stand."""
    head = f"---\nname: demo\ndescription: {draw(texts)}\n{draw(remarks)}"
    tail = draw(st.sampled_from(["", "license: MIT\n", "# the end\n"])) + BELOW
    metadata = draw(st.sampled_from(["none", "empty", "others", "version", "both"]))
    if metadata == "none":
        return head, "", tail
    indent = " " * draw(st.integers(min_value=1, max_value=4))
    head += f"metadata:{draw(st.sampled_from(['', ' # more']))}\n"
    if metadata in {"others", "both"}:
        head += f"{draw(remarks)}{indent}author: someone\n"
    if metadata in {"version", "both"}:
        value, rest = draw(held)
        return f"{head}{indent}version:", value, f"{rest}\n{tail}"
    return head, "", tail


@given(documents())
def test_a_version_is_written_into_any_frontmatter_and_nothing_else_changes(parts):
    head, _, tail = parts
    document = "".join(parts)
    before = frontmatter.read(document)
    after = frontmatter.with_version(document, "3.1.4-rc.1")
    metadata = before.get("metadata") or {}
    assert frontmatter.read(after) == {**before, "metadata": {**metadata, "version": "3.1.4-rc.1"}}
    assert frontmatter.with_version(after, "3.1.4-rc.1") == after
    if head.endswith("version:"):
        assert after == f'{head} "3.1.4-rc.1"{tail}'
    else:
        length = len(after) - len(document)
        places = range(len(document) + 1)
        assert any(after[:place] + after[place + length :] == document for place in places), "one piece is put in"


def test_a_document_without_frontmatter_cannot_be_released():
    with pytest.raises(SkillError, match="no frontmatter"):
        frontmatter.with_version("# Demo\n", "1.0.0")
    with pytest.raises(SkillError, match="uses braces"):
        frontmatter.with_version("---\nname: demo\ndescription: x\nmetadata: {}\n---\n", "1.0.0")
