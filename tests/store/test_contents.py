from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pytest
from sample_run import RUN, Sample, as_json, clock_from, started, transitions

from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.document_rewrite import Template, UpdateMode, changed_hunks, rewritten
from skillgit.domain.edit import EditSource
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import BudgetSource, EditRecord, Origin
from skillgit.engine.evidence_files import edit_fields
from skillgit.store.event_writer import RunWriter

if TYPE_CHECKING:
    from skillgit.store.repo import Repo

BODY = "# Demo\n\n- Answer in the unit the question asks for.\n- Be brief.\n\n## Form\n\n- One line."


def rewrite(
    mode: UpdateMode = UpdateMode.SUGGESTIONS, budget: int | None = 4, by: BudgetSource = BudgetSource.SCHEDULE
) -> Sample:
    """Return the first step of the sample run as if its candidate had come of a rewrite."""
    sample, seed = transitions()[1], started().skill
    assert seed is not None
    assert sample.event.kind is EventKind.ACCEPTED
    skill = rewritten(seed, BODY)
    hunks = changed_hunks(seed, skill, support=5, source=EditSource.MIXED)
    edits = [edit_fields(hunk) | {"status": "applied", "detail": ""} for hunk in hunks]
    event = replace(
        sample.event,
        edits=tuple(EditRecord.of(hunk) for hunk in hunks),
        patch=replace(sample.event.patch, mode=mode, budget=budget, by=by, ranked=2),
    )
    patch = as_json({"title": "t", "reasoning": "r", "edits": edits, "rewrite": BODY})
    return Sample(event=event, skill=skill, evidence={**sample.evidence, "patch.json": patch})


def problems(repo: Repo, sample: Sample, schedule: int | None = None) -> list[str]:
    writer = RunWriter(repo, RUN, clock_from(count()))
    for made in (started(), sample):
        writer.append(made.event, made.skill, made.evidence)
    budget = None if schedule is None else lambda _: schedule
    return [problem.sentence for problem in check_run(repo, RUN, budget=budget)]


def with_patch(sample: Sample, **changes: object) -> Sample:
    document = json.loads(sample.evidence["patch.json"]) | changes
    kept = {name: value for name, value in document.items() if value is not None}
    return replace(sample, evidence={**sample.evidence, "patch.json": as_json(kept)})


@pytest.mark.parametrize("mode", [UpdateMode.SUGGESTIONS, UpdateMode.FULL])
def test_a_rewrite_is_sound_if_its_text_put_into_the_base_gives_the_commit(repo, mode):
    assert problems(repo, rewrite(mode)) == []


def test_another_text_than_the_committed_one_is_found(repo):
    told = problems(repo, with_patch(rewrite(), rewrite=f"{BODY}\n- More."))
    assert "the rewrite in the evidence, put into the base, does not give the committed skill" in told


def test_a_text_that_does_not_keep_what_is_protected_is_found(repo):
    (told,) = problems(repo, with_patch(rewrite(), rewrite="[[protected:1]]"))
    assert "does not keep what is protected" in told


def test_a_rewrite_without_its_text_and_a_patch_with_one_are_found(repo):
    (told,) = problems(repo, with_patch(rewrite(), rewrite=None))
    assert told == "the evidence is not that of the update mode rewrite_from_suggestions"


def test_a_patch_with_a_rewritten_text_is_found(repo):
    (told,) = problems(repo, rewrite(UpdateMode.PATCH))
    assert told == "the evidence is not that of the update mode patch"


def test_edits_that_the_rewrite_did_not_make_are_found(repo):
    sample = rewrite()
    assert sample.event.kind is EventKind.ACCEPTED
    event = replace(sample.event, edits=())
    edits = json.loads(sample.evidence["patch.json"])["edits"][:0]
    told = problems(repo, replace(with_patch(sample, edits=edits), event=event))
    assert "the edits in the evidence are not what the rewrite changed in the base" in told


def pruned(**changes: object) -> Sample:
    """Return a candidate of a person whose edits only tell which lines changed."""
    sample = rewrite(UpdateMode.PATCH, budget=None, by=BudgetSource.NONE)
    assert sample.event.kind is EventKind.ACCEPTED
    event = replace(sample.event, origin=Origin.PRUNE, number=1, of=f"{RUN}/v0", epoch=0, step=0)
    return with_patch(replace(sample, event=event), **({"rewrite": None, "lines": True} | changes))


def test_lines_that_changed_are_held_against_both_texts(repo):
    assert problems(repo, pruned()) == []


def test_lines_that_did_not_change_are_found(repo):
    sample = pruned(edits=[])
    assert sample.event.kind is EventKind.ACCEPTED
    patch = replace(sample.event.patch, applied=0)
    told = problems(repo, replace(sample, event=replace(sample.event, edits=(), patch=patch)))
    assert told == ["the edits in the evidence are not what changed in the base"]


def of_a_folder(**changes: object) -> Sample:
    """Return a step whose edits only say which lines of the folder changed: a strategy may have had an agent do it."""
    return with_patch(rewrite(UpdateMode.PATCH), **({"rewrite": None, "lines": True} | changes))


def test_lines_of_a_folder_are_held_against_all_of_its_texts(repo):
    sample = of_a_folder()
    assert problems(repo, sample) == []


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"scripts/x.py": b"print(1)\n"}, "the edits in the evidence are not what changed in the base"),
        ({"logo.png": b"\0"}, "files that are not text differ from those of the base"),
    ],
)
def test_files_that_no_line_of_a_folder_speaks_of_are_found(files, told, repo):
    sample = of_a_folder()
    assert sample.skill is not None
    assert problems(repo, replace(sample, skill=replace(sample.skill, files={**sample.skill.files, **files}))) == [told]


def test_lines_of_a_folder_that_are_not_told_are_found(repo):
    sample = with_patch(rewrite(UpdateMode.PATCH), rewrite=None, lines=True, edits=[])
    assert sample.event.kind is EventKind.ACCEPTED
    patch = replace(sample.event.patch, applied=0)
    told = problems(repo, replace(sample, event=replace(sample.event, edits=(), patch=patch)))
    assert told == ["the edits in the evidence are not what changed in the base"]


def test_files_besides_the_document_do_not_change_with_its_lines(repo):
    sample = pruned()
    assert sample.skill is not None
    more = replace(sample.skill, files={**sample.skill.files, "NOTES.md": b"more"})
    assert problems(repo, replace(sample, skill=more)) == ["the prune after step 0 changes files besides SKILL.md"]


@pytest.mark.parametrize(
    ("budget", "by", "schedule", "said"),
    [
        (4, BudgetSource.SCHEDULE, 4, None),
        (3, BudgetSource.SCHEDULE, 4, "step 1 had an edit budget of 3, and the schedule says 4"),
        (3, BudgetSource.FALLBACK, 4, "step 1 had an edit budget of 3, and the schedule says 4"),
        (4, BudgetSource.FALLBACK, 4, None),
        (2, BudgetSource.OPTIMIZER, 4, None),
        (9, BudgetSource.OPTIMIZER, None, None),
        (1, BudgetSource.OPTIMIZER, 4, "step 1 chose 2 of its proposals with an edit budget of 1"),
        (None, BudgetSource.NONE, 4, None),
        (None, BudgetSource.SCHEDULE, None, "step 1 had the edit budget None, though it was set by 'schedule'"),
        (4, BudgetSource.NONE, 4, "step 1 had the edit budget 4, though it was set by 'none'"),
    ],
)
def test_the_budget_is_the_schedules_only_where_the_schedule_set_it(repo, budget, by, schedule, said):
    assert problems(repo, rewrite(budget=budget, by=by), schedule) == ([said] if said else [])


def test_the_sample_text_is_what_a_writer_would_see():
    seed = started().skill
    assert seed is not None
    assert Template.of(seed.document).body.startswith("# Demo")
