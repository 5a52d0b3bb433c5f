"""Which check fails, on how many items, and what an edit did to each of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program import attempt, new_repository, skillgit
from trained_runs import ONE_CANDIDATE, small_run

from skillgit.app.recorded.outcomes import check_changes
from skillgit.view.numbers import score

SCORES = st.dictionaries(
    st.sampled_from("abc"), st.dictionaries(st.sampled_from("123456"), st.sampled_from([0.0, 0.5, 1.0]), min_size=1)
)


@given(SCORES, SCORES)
def test_a_check_is_compared_on_the_items_that_have_it_on_both_sides(before, after):
    changes = {change.check: change for change in check_changes(before, after)}
    assert changes.keys() == {check for check in after if before.get(check, {}).keys() & after[check].keys()}
    for check, change in changes.items():
        items = before[check].keys() & after[check].keys()
        assert change.n == len(items)
        gain = sum(after[check][item] - before[check][item] for item in items) / len(items)
        assert change.after - change.before == pytest.approx(gain)
        assert change.fixes == sum(before[check][item] < 1 == after[check][item] for item in items)
    reverse = {change.check: change for change in check_changes(after, before)}
    assert {check: (change.fixes, change.breaks) for check, change in changes.items()} == {
        check: (change.breaks, change.fixes) for check, change in reverse.items()
    }


def test_without_an_older_version_each_check_has_its_mean():
    (change,) = check_changes(None, {"short": {"1": 1.0, "2": 0.0}})
    assert (change.before, change.after, change.n) == (None, 0.5, 2)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A run on tasks of three checks each, two of them with a name; the seed answers too long, so that a step tries."""
    repository = new_repository(tmp_path_factory.mktemp("checks") / "repository")
    rows = [
        {
            "id": f"t{number}",
            "prompt": f"Who wrote book {number}? Author {number} (a novelist from the north) did, in 19{number:02d}.",
            "checks": [
                {"type": "contains", "answer": f"Author {number}", "name": "author"},
                {"type": "regex", "pattern": "^.{1,20}$", "name": "short"},
                {"type": "regex", "pattern": "[0-9]"},
            ],
        }
        for number in range(24)
    ]
    (repository / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = ("-o", "env.data_path=t.jsonl", "-o", "train.num_epochs=1", *ONE_CANDIDATE)
    skillgit("train", "tasks/default", "--from", "main", "--run", "one", "-q", *data, cwd=repository)
    return repository


def test_each_check_has_a_line_under_every_version(repository):
    table = json.loads(skillgit("items", "--checks", "--json", cwd=repository).out)
    assert (table["schema"], table["run"]) == ("skillgit.checks/1", "one")
    first = {row["check"]: row for row in table["checks"] if row["version"] == "v0"}
    assert first.keys() == {"author", "short", "regex"}
    assert {row["items"] for row in first.values()} == {6}
    head, *lines = skillgit("items", "--checks", cwd=repository).out.splitlines()
    assert head.split()[:3] == ["check", "items", "v0"]
    assert [line.split()[0] for line in lines] == ["author", "regex", "short"]
    refused = skillgit("items", "--checks", "--solved", cwd=repository, code=2)
    assert "--solved cannot be combined with --checks" in refused.err


def test_show_and_diff_tell_what_became_of_each_check(repository):
    shown = json.loads(skillgit("show", "v0", "--json", cwd=repository).out)["checks"]
    assert [(row["check"], row["before"], row["n"]) for row in shown] == [
        ("author", None, 6),
        ("regex", None, 6),
        ("short", None, 6),
    ]
    assert "checks" in skillgit("show", "v0", cwd=repository).out
    events = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    commit = next(row["commit"] for row in events if row["kind"] in {"accepted", "rejected"})
    compared = json.loads(attempt("diff", "v0", commit, "--items", "--json", cwd=repository).out)
    assert {row["check"] for row in compared["checks"]} == {"author", "regex", "short"}


def test_where_items_have_one_score_there_is_nothing_to_break_down(tmp_path_factory):
    refused = skillgit("items", "--checks", cwd=small_run(tmp_path_factory), code=3)
    assert "have one score each" in refused.err
    assert "check" not in skillgit("diff", "v0", "best", "--items", cwd=small_run(tmp_path_factory)).out


def test_the_report_tells_the_checks_of_each_event_and_from_seed_to_best(repository):
    skillgit("report", "one", "--output", "one.html", cwd=repository)
    page = (repository / "one.html").read_text()
    diff = json.loads(skillgit("diff", "one/v0", "one/best", "--items", "--json", cwd=repository).out)
    for row in diff["checks"]:
        cells = (
            f'<th scope="row">{row["check"]}</th><td class="n">{row["n"]}</td><td class="n">{score(row["before"])}</td>'
        )
        assert f'{cells}<td>→</td><td class="n">{score(row["after"])}</td>' in page
    assert page.count("<dt>Checks</dt>") >= 1
