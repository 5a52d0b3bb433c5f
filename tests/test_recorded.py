"""The recorded run: the training of a real language model that comes with skillgit, replayed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from documents import ROOT, blocks
from program import git, run, skillgit


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    skillgit("init", cwd=folder)
    skillgit("train", "recorded", "--run", "slips", cwd=folder)
    return folder


def test_it_learns_what_no_prompt_states(replayed):
    rows = json.loads(skillgit("log", "slips", "--json", cwd=replayed).out)["events"]
    scores = {row["version"]: row["score"] for row in rows if row["version"] is not None}
    assert scores == {0: 0.0, 1: 0.45, 2: 0.85}
    finish = git("log", "-1", "--format=%(trailers:key=Skillgit-Eval,valueonly)", "run/slips", cwd=replayed).out
    assert "version=0" in finish
    assert "version=2" in finish
    assert "hard=0.916" in finish


def test_its_history_is_whole_and_its_commits_are_always_the_same(replayed, tmp_path):
    skillgit("fsck", "--deep", cwd=replayed)
    skillgit("init", cwd=tmp_path)
    skillgit("train", "recorded", "--run", "slips", cwd=tmp_path)
    text = "slips/v2:skills/seed-library-slips/SKILL.md"
    assert git("show", text, cwd=tmp_path).out == git("show", text, cwd=replayed).out
    assert "GROW" in git("show", text, cwd=replayed).out


def test_other_settings_ask_what_was_not_recorded(replayed):
    told = skillgit("train", "recorded", "--run", "other", "-o", "train.seed=7", cwd=replayed, code=5)
    assert "has no reply of claude" in told.err


def replay_sections(folder):
    folder.mkdir()
    skillgit("init", cwd=folder)
    skillgit("train", "recorded/archive-sections", "--run", "sections", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def sections(tmp_path_factory):
    return replay_sections(tmp_path_factory.mktemp("once") / "archive")


def test_a_real_small_model_learns_real_labels(sections):
    rows = json.loads(skillgit("log", "sections", "--json", cwd=sections).out)["events"]
    scores = {row["version"]: row["score"] for row in rows if row["version"] is not None and row["kind"] != "rejected"}
    assert {version: scores[version] for version in range(3)} == {0: 0.4, 1: 0.475, 2: 0.575}
    output = skillgit("eval", "sections/v2", "--against", "sections/v0", "--split", "test", "--json", cwd=sections)
    measured = {arm["name"]: arm["splits"][0]["overall"]["hard"] for arm in json.loads(output.out)["arms"]}
    assert measured == {"v2": 0.55, "v0": 0.25}


def test_each_line_of_a_whole_text_names_the_failures_that_it_was_written_for(sections):
    lines = json.loads(skillgit("blame", "sections/v2", "--json", cwd=sections).out)["lines"]
    trained = [line for line in lines if line["version"] and line["text"].strip()]
    assert {line["version"] for line in trained} == {1, 2}
    assert [line for line in trained if not line["items"] or line["support"] != len(line["items"])] == []
    told = skillgit("why", "ruby", cwd=sections).out
    assert "asked     Package: libghc-log-domain-dev Summary: log-domain arithmetic" in told
    assert 'expected: "haskell"; the answer is "math"' in told


def test_a_stranger_checks_the_signed_claim_of_the_run_as_the_page_says(sections, tmp_path):
    (block,) = blocks("sharing.md", "sh", mark="executed")
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = run("bash", "-e", "-c", block, cwd=tmp_path, env={"PATH": path, "SKILLGIT_CLOCK": "2026-12-01T12:00:00Z"})
    assert done.code == 0, done.out + done.err
    assert "recomputed  yes: 73 values as claimed, and 80 replies scored again" in done.out
    texts = {
        git("rev-parse", *(f"sections/v{version}:skills/archive-section" for version in range(3)), cwd=folder).out
        for folder in (sections, tmp_path / "build" / "sections")
    }
    assert len(texts) == 1, "the run and its replay are the same versions"


def test_its_replay_ends_in_the_same_commits(sections, tmp_path):
    skillgit("fsck", "--deep", cwd=sections)
    again = replay_sections(tmp_path / "archive")
    refs = ("run/sections", "rejected/sections/0004", "slow/sections")
    assert len({git("rev-parse", *refs, cwd=folder).out for folder in (sections, again)}) == 1
