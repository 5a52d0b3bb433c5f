"""Configurations in the words of the reference implementation train unchanged.

The files here are written by us. Sections, keys, spellings, the ``_base_`` chain and keys without effect are those that
users of the reference bring along.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from once import copy_folder
from program import git, new_repository, skillgit
from soaking import soak

import skillgit_envs.searchqa

DATA = Path(skillgit_envs.searchqa.__file__).parent / "data"
BASE = """\
model:
  backend: azure_openai
  optimizer: gpt-5.5
  target: gpt-5.5
  optimizer_backend: openai_chat
  target_backend: openai_chat
  reasoning_effort: medium
  rewrite_reasoning_effort: ""
  rewrite_max_completion_tokens: 64000
  codex_exec_path: ""
  codex_exec_sandbox: workspace-write
  codex_exec_use_sdk: null
  codex_exec_network_access: false
  codex_trace_to_optimizer: true
  claude_code_exec_path: claude
  claude_code_exec_max_thinking_tokens: 16384
  azure_openai_endpoint: ""
  azure_openai_api_version: 2024-12-01-preview
  azure_openai_api_key: ""
  azure_openai_auth_mode: ""
  optimizer_azure_openai_endpoint: ""
  target_azure_openai_endpoint: ""
  qwen_chat_base_url: http://localhost:8000/v1
  qwen_chat_temperature: 0.7
  minimax_region: global_en
  minimax_model: MiniMax-M3

train:
  num_epochs: 4
  train_size: 0
  batch_size: 40
  accumulation: 1
  seed: 42

gradient:
  minibatch_size: 8
  merge_batch_size: 8
  analyst_workers: 16
  failure_only: false

optimizer:
  learning_rate: 4
  min_learning_rate: 2
  lr_scheduler: cosine
  lr_control_mode: fixed
  skill_update_mode: patch
  use_slow_update: true
  slow_update_samples: 20
  slow_update_gate_with_selection: false
  longitudinal_pair_policy: mixed
  use_meta_skill: true
  use_skill_aware_reflection: false
  skill_aware_appendix_source: both
  skill_aware_consolidate_threshold: 0

evaluation:
  use_gate: true
  sel_env_num: 0
  test_env_num: 0
  eval_test: true

env:
  name: ""
  skill_init: ""
  out_root: ""
  split_mode: ratio
  split_seed: 42
  exec_timeout: 120
"""
SEARCHQA = """\
_base_: ../_base_/default.yaml

train:
  train_size: 60

env:
  name: searchqa
  skill_init: {skill}
  split_mode: split_dir
  split_dir: {data}
  data_path: ""
  workers: 24
  limit: 0
  max_turns: 1
  max_completion_tokens: 16384
"""
SOFT_GATE = """\
_base_: ../searchqa/default.yaml

evaluation:
  gate_metric: soft
  gate_mixed_weight: 0.5
"""
RATIO = """\
_base_: ../_base_/default.yaml
env:
  name: searchqa
  split_mode: ratio
  split_ratio: "2:1:7"
  split_output_dir: ""
  data_path: {rows}
  workers: 24
gradient:
  max_analyst_rounds: 3
"""
FLAT = """\
env: searchqa
split_mode: split_dir
split_dir: {data}
num_epochs: 4
batch_size: 40
edit_budget: 4
min_edit_budget: 2
lr_scheduler: linear
skill_update_mode: rewrite
model_backend: azure_openai
optimizer_model: gpt-5.5
target_model: gpt-5.5
"""
OFFLINE = ("-o", "model.backend=offline", "-o", "model.optimizer=analyst", "-o", "model.target=reader")
SHORT = (
    *("-o", "train.num_epochs=2", "-o", "train.batch_size=30", "-o", "optimizer.slow_update_samples=6"),
    *("-o", "evaluation.sel_env_num=16", "-o", "evaluation.test_env_num=8"),
)
SKILL = """\
# Answering

Read the search results and answer the question.

<!-- SLOW_UPDATE_START -->
<!-- SLOW_UPDATE_END -->
"""


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """The files in the folders that the reference keeps them in."""
    folder = tmp_path / "configs"
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "initial.md").write_text(SKILL)
    rows = [row for split in ("train", "val", "test") for row in json.loads((DATA / split / "items.json").read_text())]
    (tmp_path / "rows.json").write_text(json.dumps({"data": rows}))
    for name, text in {
        "_base_/default": BASE,
        "searchqa/default": SEARCHQA,
        "searchqa/ratio": RATIO,
        "features/soft_gate": SOFT_GATE,
        "flat": FLAT,
    }.items():
        path = folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        filled = text.replace("{data}", str(DATA)).replace("{rows}", str(tmp_path / "rows.json"))
        path.write_text(filled.replace("{skill}", str(tmp_path / "skills" / "initial.md")))
    return folder


@pytest.mark.parametrize("name", ["searchqa/default", "flat", soak("searchqa/ratio"), soak("features/soft_gate")])
def test_a_configuration_of_the_reference_trains_unchanged(name, configs, tmp_path):
    repository = new_repository(tmp_path / "repository")
    path = configs / f"{name}.yaml"
    before = path.read_bytes()
    trained = skillgit("train", path, "--run", "theirs", "--quiet", "--json", *OFFLINE, *SHORT, cwd=repository)
    assert json.loads(trained.out)["outcome"] in {"improved", "null-result", "underpowered"}
    assert path.read_bytes() == before
    skillgit("fsck", "--deep", cwd=repository)
    subjects = git("log", "--format=%s", "--all", cwd=repository).out
    assert "skill: " in subjects, "candidates were measured"


def test_what_has_no_effect_here_is_said_and_nothing_is_dropped_in_silence(configs, tmp_path):
    repository = new_repository(tmp_path / "repository")
    told = skillgit("config", configs / "searchqa" / "ratio.yaml", *OFFLINE, cwd=repository)
    assert "gradient.max_analyst_rounds has no effect" in told.out + told.err
    assert "calls.concurrency" in told.out
    note = "env.prompts is own: scores compare with SkillOpt's under env.prompts=reference"
    assert note in told.out + told.err
    chosen = skillgit("config", configs / "searchqa" / "ratio.yaml", "-o", "env.prompts=own", *OFFLINE, cwd=repository)
    assert note not in chosen.out + chosen.err
    usual = skillgit("config", "searchqa/default", cwd=repository)
    assert note not in usual.out + usual.err


def test_scores_by_other_words_are_not_compared(tmp_path):
    repository = new_repository(tmp_path / "repository")
    options = (*OFFLINE, *SHORT, "-o", "train.num_epochs=1", "-o", "evaluation.eval_test=false")
    for run, words in (("ours", "own"), ("theirs", "reference")):
        skillgit(
            "train", "searchqa/default", "--run", run, "-q", *options, "-o", f"env.prompts={words}", cwd=repository
        )
    told = json.loads(skillgit("diff", "ours/v0", "theirs/v0", "--items", "--json", cwd=repository).out)
    assert {entry["aspect"] for entry in told["differs"]} == {"environment", "parameters"}
    again = skillgit(
        "eval", "--fresh", "--sample", "20", "ours/v0", "-o", "env.prompts=reference", "--json", cwd=repository, code=1
    )
    assert json.loads(again.out)["verdict"]["word"] == "not comparable"
    refused = skillgit("train", "--run", "ours", "-o", "env.prompts=reference", "-q", cwd=repository, code=2)
    assert "env.prompts" in refused.err


def test_a_key_that_the_reference_would_drop_in_silence_is_an_error(configs, tmp_path):
    repository = new_repository(tmp_path / "repository")
    path = configs / "searchqa" / "default.yaml"
    path.write_text(path.read_text() + "\noptimizer:\n  learning_rat: 8\n")
    refused = skillgit("train", path, "--dry-run", *OFFLINE, cwd=repository, code=2)
    assert "learning_rat" in refused.err


def test_a_key_that_holds_a_secret_is_refused(configs, tmp_path):
    repository = new_repository(tmp_path / "repository")
    path = configs / "_base_" / "default.yaml"
    path.write_text(path.read_text().replace('azure_openai_api_key: ""', "azure_openai_api_key: abc123"))
    refused = skillgit("train", configs / "searchqa" / "default.yaml", "--dry-run", *OFFLINE, cwd=repository, code=2)
    assert "holds a secret" in refused.err
    assert "abc123" not in refused.err


REAL = Path(os.environ.get("SKILLGIT_REAL_DATA", Path(__file__).parents[2] / "shared" / "data")).parent
CONFIGS = REAL / "reference" / "reference-configs" / "configs"
SPLITS = {
    "alfworld": "alfworld_path_split",
    "docvqa": "docvqa/splits",
    "livemathematicianbench": "livemathematicianbench_split",
    "officeqa": "officeqa_split",
    "searchqa": "searchqa_split",
    "spreadsheetbench": "spreadsheetbench_split",
}


def checkout_of_the_reference(folder: Path) -> None:
    """Lay out ``folder`` as a checkout of the reference: its own configurations, our data where its data would be."""
    copy_folder(CONFIGS, folder / "configs")
    for name, split in SPLITS.items():
        package = DATA.parents[1] / name
        copy_folder(package / "data", folder / "data" / split)
        skill = folder / "skillopt" / "envs" / name / "skills"
        skill.mkdir(parents=True)
        (skill / "initial.md").write_text("# Task\n\n- Answer the question.\n")
    data = folder / "data"
    copy_folder(data / "officeqa_split" / "bulletins", data / "officeqa_docs_official")
    copy_folder(data / "spreadsheetbench_split" / "workbooks", data / "spreadsheetbench_verified_400" / "workbooks")
    for split in ("train", "val", "test"):
        copy_folder(data / "docvqa" / "splits" / "pages", data / "docvqa" / "splits" / split / "pages")


@pytest.mark.skipif(not CONFIGS.is_dir(), reason=f"the reference's configurations are not at {CONFIGS}")
@pytest.mark.parametrize("name", SPLITS)
def test_each_configuration_of_the_reference_plans_a_training_in_place(name, tmp_path):
    if name == "alfworld":
        pytest.importorskip("alfworld.gen")
    if name == "spreadsheetbench" and shutil.which("soffice") is None:
        pytest.skip("LibreOffice is not installed")
    checkout_of_the_reference(tmp_path / "reference")
    repository = new_repository(tmp_path / "repository")
    config = tmp_path / "reference" / "configs" / name / "default.yaml"
    # what comes with skillgit has fewer items than the reference takes
    plan = skillgit(
        "train", config, "--dry-run", "-o", "train.train_size=0", cwd=repository, env={"OPENAI_API_KEY": "x"}
    )
    assert "openai_chat/gpt-5.5" in plan.out
    assert "nothing was run or written" in plan.out
