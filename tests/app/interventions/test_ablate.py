from __future__ import annotations

import json

import pytest
from asking import ask
from program import git, refs, skillgit

from skillgit.app.interventions.ablate import ablate
from skillgit.app.measure.requests import AblateRequest
from skillgit.domain.skill import DOCUMENT
from skillgit.errors import BudgetError, NotFoundError
from skillgit.index.refresh import open_index
from skillgit.store.history_reader import skill_at
from skillgit.store.notes import read
from skillgit.store.repo import Repo


def left_out(user, repository, revision, eyes, **request):
    asked = AblateRequest(revision=revision, **request)
    return ask(ablate, user(repository), asked, eyes)


def noted(repository, revision="one/v2"):
    commit = git("rev-parse", revision, cwd=repository).out.strip()
    return [note for note in read(Repo.discover(repository), commit) if note["kind"] == "ablation"]


def test_every_rule_is_measured_against_the_whole_skill_and_noted(user, repository, eyes):
    before = refs(repository)
    found = left_out(user, repository, "one/v2", eyes)
    assert found.every == len(found.rules) == found.noted
    assert found.score == 0.45
    deltas = [row.ablation.delta for row in found.rules]
    for row in found.rules:
        one = row.ablation
        assert one.score - found.score == pytest.approx(one.delta)
        assert (len(one.fixed) - len(one.broken)) / found.n == pytest.approx(one.delta)
        assert row.since in {"v1", "v2", "seed"}
    assert deltas[0] == min(deltas)
    assert [row.ablation.worth for row in found.rules][-1] == "dead", "dead rules stand last"
    assert {name for name, _ in eyes.results} == {
        "v2",
        *(f"without rule {number + 1}" for number in range(found.every)),
    }
    (note,) = noted(repository)
    assert [row["rule"] for row in note["rules"]] == list(range(1, found.every + 1))
    assert (note["split"], note["n"], note["target"]) == ("selection", 20, "offline/reader")
    after = refs(repository)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} == {
        "refs/notes/skillgit/evals"
    }


def test_what_is_known_costs_nothing_and_is_noted_once(user, repository, eyes):
    one = left_out(user, repository, "one/v2", eyes, rule=2)
    assert (len(one.rules), one.noted) == (1, 1)
    every = left_out(user, repository, "one/v2", eyes)
    assert every.noted == every.every - 1
    again = left_out(user, repository, "one/v2", eyes)
    assert (again.noted, again.cost.calls, again.rules) == (0, 0, every.rules)
    assert len(noted(repository)) == 2


def test_a_rejected_candidate_and_another_split_can_be_looked_at_without_a_note(user, repository, eyes):
    found = left_out(user, repository, "one/r1", eyes, split="train", rule=1, note=False)
    assert (found.short, found.split, found.n, found.noted) == ("r1", "train", 60, 0)
    assert noted(repository, "rejected/one/0001") == []


def test_there_has_to_be_such_a_rule(user, repository, eyes):
    with pytest.raises(NotFoundError, match="v2 has no rule 99"):
        left_out(user, repository, "one/v2", eyes, rule=99)


def test_a_cap_notes_the_rules_that_are_complete(user, repository, eyes):
    with pytest.raises(BudgetError):
        left_out(user, repository, "one/v2", eyes, max_calls=30)
    (note,) = noted(repository)
    complete = [row["rule"] for row in note["rules"]]
    assert complete == list(range(1, len(complete) + 1))
    rest = left_out(user, repository, "one/v2", eyes)
    assert rest.noted == rest.every - len(complete)


def test_the_text_without_a_rule_is_what_the_target_saw(user, repository, eyes, monkeypatch):
    seen = set()
    from skillgit.engine import rollout  # noqa: PLC0415 - only this test looks inside

    delivered = rollout.delivered

    def spied(skill, settings):
        text = delivered(skill, settings)
        seen.add(text.document)
        return text

    monkeypatch.setattr(rollout, "delivered", spied)
    found = left_out(user, repository, "one/v2", eyes, rule=2)
    repo = Repo.discover(repository)
    with open_index(repo):
        whole = skill_at(repo, found.commit, "skills/searchqa").files[DOCUMENT].decode()
    assert whole in seen
    (other,) = seen - {whole}
    assert found.rules[0].ablation.text in " ".join(whole.split())
    assert found.rules[0].ablation.text not in " ".join(other.split())


def test_the_command_prints_a_table_and_names_what_to_type_next(repository):
    newest = git("describe", "--tags", "--abbrev=0", "--match", "one/v*", "run/one", cwd=repository).out.strip()
    done = skillgit("ablate", newest, cwd=repository)
    assert "rollouts" in done.err
    head = next(line for line in done.out.splitlines() if line.startswith("rule"))
    assert head.split() == ["rule", "lines", "since", "without", "delta", "fixed", "broken", "p"]
    assert f"skillgit shorten {newest}" in done.out
    told = json.loads(skillgit("ablate", newest, "--rule", "1", "--json", "-q", cwd=repository).out)
    assert (told["schema"], told["noted"], len(told["rules"])) == ("skillgit.ablate/1", 0, 1)
    assert told["rules"][0]["ablation"]["worth"]
