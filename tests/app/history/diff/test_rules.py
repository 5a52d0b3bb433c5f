from __future__ import annotations

import subprocess
from types import SimpleNamespace

import pytest
from asking import ask

from skillgit.app.attribution.rule_lineage import RuleHistory
from skillgit.app.history.diff.rules import _Removal, removing_edit, rule_diff
from skillgit.app.history.diff.stat import stat
from skillgit.app.recorded.step_evidence import AppliedEdit
from skillgit.domain.skill_rules import Region, Rule
from skillgit.errors import RevisionNotFoundError

METRES, UNIT = "Always answer in metres.", "Answer in the unit the question asks for, and say it."


def told(row) -> tuple[object, ...]:
    return row.change, row.deed, row.text, row.version, row.step, row.source, row.support


@pytest.mark.usefixtures("records")
def test_rules_are_told_with_the_step_that_brought_or_removed_them(context):
    found = ask(rule_diff, context, "v0", "v3")
    assert [told(row) for row in found.rows] == [
        ("added", "brought", UNIT, 1, 1, "failure", 4),
        ("added", "brought", "Quote the span that you rely on.", 3, 4, "failure", 5),
        ("added", "brought", "Prefer the shortest answer that the source supports.", 2, 3, "slow", None),
        ("removed", "removed", METRES, 1, 1, "failure", 4),
    ]
    assert found.kept == 2
    assert [row.region for row in found.rows] == [Region.BODY, Region.BODY, Region.SLOW, Region.BODY]
    assert [round(row.gain, 4) for row in found.rows] == [0.2, 0.1, 0.1, 0.2]
    assert [(row.first, row.last) for row in found.rows] == [(8, 8), (9, 9), (12, 13), (8, 8)]
    assert {row.heading for row in found.rows} == {"Demo"}


@pytest.mark.usefixtures("records")
def test_the_other_way_round_a_rule_bears_what_brought_it_and_a_lost_one_what_removed_it(context):
    found = ask(rule_diff, context, "v3", "v0")
    assert [told(row)[:4] for row in found.rows] == [
        ("added", "removed", METRES, 1),
        ("removed", "brought", UNIT, 1),
        ("removed", "brought", "Quote the span that you rely on.", 3),
        ("removed", "brought", "Prefer the shortest answer that the source supports.", 2),
    ]


@pytest.mark.usefixtures("records")
def test_a_rejected_candidate_brought_and_removed_its_rules_itself(context):
    (removed,) = ask(rule_diff, context, "r2").rows
    assert told(removed) == ("removed", "removed", "Read the question again before answering.", None, 2, "success", 2)
    assert (removed.kind, round(removed.gain, 4)) == ("rejected", -0.1)
    (added,) = ask(rule_diff, context, "v3", "r5").rows
    assert (added.file, added.text, added.step) == ("references/units.md", "Write numbers with commas.", 5)
    assert ask(rule_diff, context, "v3", "r5", ["SKILL.md"]).rows == ()


def test_a_rule_of_a_person_is_a_persons(context, repo, records):
    folder = repo.workdir
    run = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run([*run, "switch", "-q", "--detach", records[1].commit], check=True)
    document = folder / "skills" / "demo" / "SKILL.md"
    document.write_text(document.read_text() + "- Be kind.\n")
    subprocess.run([*run, "commit", "-qam", "kindness"], check=True)
    (row,) = ask(rule_diff, context, "v1", "HEAD").rows
    assert (row.text, row.by, row.kind, row.source) == ("Be kind.", "", "", "human")
    assert len(row.commit) == 40


def test_without_a_run_nothing_tells_the_skill(context, repo, records):
    run = ["git", "-C", str(repo.workdir), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    made = subprocess.run(
        [*run, "commit-tree", f"{records[0].commit}^{{tree}}", "-m", "x"], check=True, capture_output=True
    )
    plain = made.stdout.decode().strip()
    assert [row.text for row in ask(rule_diff, context, plain, "v1").rows] == [UNIT, METRES]
    with pytest.raises(RevisionNotFoundError, match="neither side belongs to a run"):
        ask(rule_diff, context, plain, plain)
    summary = ask(stat, context, plain, plain)
    assert (summary.rules_added, summary.text) == (0, "")


@pytest.fixture
def chain(repo):
    """Commit texts one after another and return what finds removals between them."""

    def build(*texts: str) -> tuple[_Removal, list[str]]:
        folder = repo.workdir
        run = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@localhost"]
        commits = []
        for text in texts:
            (folder / "SKILL.md").write_text(text)
            subprocess.run([*run, "add", "SKILL.md"], check=True)
            subprocess.run([*run, "commit", "-qm", "x", "--allow-empty"], check=True)
            commits.append(subprocess.run([*run, "rev-parse", "HEAD"], check=True, capture_output=True).stdout)
        names = [commit.decode().strip() for commit in commits]
        return _Removal(RuleHistory(SimpleNamespace(repo=repo)), "", names), names

    return build


def rule(text: str) -> Rule:
    return Rule(heading="", text=text, first=1, last=1)


OLD, NEW, NEWER = "- Give the year in four digits.\n", "- Give the year in digits only.\n", "- Mind years.\n"


@pytest.mark.parametrize("place", range(1, 7))
def test_the_version_that_removed_a_rule_is_found(place, chain):
    removal, commits = chain(*(OLD if number < place else NEWER for number in range(7)))
    assert removal.find("SKILL.md", rule("Give the year in four digits.")) == commits[place]


@pytest.mark.parametrize(("changed", "removed"), [(1, 2), (1, 6), (3, 5), (5, 6)])
def test_a_rule_is_followed_through_changes_of_its_words(changed, removed, chain):
    texts = [OLD if number < changed else NEW if number < removed else NEWER for number in range(7)]
    removal, commits = chain(*texts)
    assert removal.find("SKILL.md", rule("Give the year in four digits.")) == commits[removed]


def test_a_rule_that_changed_beyond_recognition_was_removed_by_its_last_change(chain):
    removal, commits = chain("- a b c d\n", "- a b c e\n", "- a b f e\n", "- a g f e\n", "- h g f e\n")
    assert removal.find("SKILL.md", rule("a b c d")) == commits[4]


def test_a_rule_of_which_a_copy_is_left_was_removed_by_nobody(chain):
    removal, _ = chain(OLD + OLD, OLD)
    assert removal.find("SKILL.md", rule("Give the year in four digits.")) is None


def edit(op: str, anchor: str, support: int) -> AppliedEdit:
    return AppliedEdit(
        position=0, op=op, file="SKILL.md", anchor=anchor, content="", support=support, source="failure", items=()
    )


def test_the_edit_that_removed_a_rule_is_the_one_that_names_it():
    edits = [edit("delete", "- Be brief.", 2), edit("replace", "year in four", 3), edit("append", "", 4)]
    assert removing_edit("Give the year in four digits.", edits) is edits[1]
    assert removing_edit("Be brief.", edits) is edits[0]
    assert removing_edit("Something else.", edits) is None
    assert removing_edit("Something else.", [edits[1], edits[2]]) is edits[1]
