"""SkillOpt trains the skill of a task folder, with its own method and defaults.

It needs an interpreter with skillgit and the peer::

    pip install -e .
    pip install skillopt==0.2.0
    python tests/bench/real/peers/skillopt_program.py FOLDER --seed 1 --target http://127.0.0.1:8081/v1 \
        --optimizer http://127.0.0.1:8082/v1 --model qwen2.5-coder-1.5b --out results

The package comes without the prompts that it loads. Copy ``skillopt/prompts/*.md`` of its repository, at the tag
v0.2.0, into the folder of the installed ``skillopt.prompts``; the program names that folder if they are missing.

The document that SkillOpt edits is the text of the skill below its frontmatter. Two epochs of batches of 20 items run
with the settings of its base configuration: cosine from 4 edits to 2, slow update and meta skill, the gate on the
strict score of the whole selection split. The best text is the one that SkillOpt chose, after its closing look at the
last one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillopt import prompts
from skillopt.datasets.base import BatchSpec, SplitDataLoader
from skillopt.engine.trainer import ReflACTTrainer
from skillopt.envs.base import EnvAdapter
from skillopt.model import azure_openai
from task import Optimizer, Outcome, Task, new_folder, wanted, write_result

from skillgit.domain.trajectory import Item

PROMPTS = (
    *("analyst_error", "analyst_success", "merge_failure", "merge_success", "merge_final"),
    *("ranking", "slow_update", "meta_skill"),
)
"""What SkillOpt loads under these settings."""
SETTINGS: Mapping[str, object] = {
    "env": "tasks",
    "num_epochs": 2,
    "batch_size": 20,
    "accumulation": 1,
    "merge_batch_size": 8,
    "analyst_workers": 16,
    "edit_budget": 4,
    "min_edit_budget": 2,
    "lr_scheduler": "cosine",
    "lr_control_mode": "fixed",
    "skill_update_mode": "patch",
    "use_slow_update": True,
    "slow_update_samples": 20,
    "slow_update_gate_with_selection": False,
    "longitudinal_pair_policy": "mixed",
    "use_meta_skill": True,
    "use_skill_aware_reflection": False,
    "use_gate": True,
    "gate_metric": "hard",
    "sel_env_num": 0,  # all
    "test_env_num": 0,
    "eval_test": True,  # only then SkillOpt looks at its last text before it chooses; the test split is empty here
    "reasoning_effort": "medium",
    "optimizer_backend": "openai_chat",
    "target_backend": "openai_chat",
}


class Loader(SplitDataLoader):  # type: ignore[misc]  # the peer is absent where types are checked
    """The splits of the task, without that for the test."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self._task = task

    def setup(self, cfg: Mapping[str, object]) -> None:
        del cfg
        splits = {"train": self._task.train, "val": self._task.selection, "test": ()}
        self._splits = {name: [row(item) for item in items] for name, items in splits.items()}


def row(item: Item) -> dict[str, object]:
    """Return what SkillOpt knows of an item."""
    return {"id": item.id, "question": str(item.content["prompt"])}


class Adapter(EnvAdapter):  # type: ignore[misc]
    """The task as SkillOpt rolls it out."""

    analyst_workers, failure_only, minibatch_size, edit_budget = 16, False, 8, 4

    def __init__(self, task: Task) -> None:
        self._task, self._loader = task, Loader(task)
        self._items = {item.id: item for item in (*task.train, *task.selection)}

    def setup(self, cfg: dict[str, Any]) -> None:
        super().setup(cfg)
        self._loader.setup(cfg)

    def get_dataloader(self) -> Loader:
        return self._loader

    def get_task_types(self) -> list[str]:
        return ["tasks"]

    def build_env_from_batch(self, batch: BatchSpec, **_: object) -> list[dict[str, object]]:
        return list(batch.payload)

    def build_train_env(self, batch_size: int, seed: int, **options: object) -> list[dict[str, object]]:
        return self.build_env_from_batch(self._loader.build_train_batch(batch_size=batch_size, seed=seed, **options))

    def build_eval_env(self, env_num: int, split: str, seed: int, **options: object) -> list[dict[str, object]]:
        batch = self._loader.build_eval_batch(env_num=env_num, split=split, seed=seed, **options)
        return self.build_env_from_batch(batch)

    def rollout(
        self, env_manager: Sequence[Mapping[str, object]], skill_content: str, out_dir: str, **_: object
    ) -> list[dict[str, object]]:
        """Let the target work on the items, and leave behind what the analysts are shown of each."""
        items = [self._items[str(entry["id"])] for entry in env_manager]
        outcomes = self._task.outcomes(items, skill_content)
        return [_reported(outcome, Path(out_dir) / "predictions" / outcome.item.id) for outcome in outcomes]

    def reflect(
        self, results: list[dict[str, object]], skill_content: str, out_dir: str, **options: Any
    ) -> list[dict[str, object]]:
        """Return the analysts' patches in the order of their minibatches.

        SkillOpt returns them in the order in which replies came, and asks for a merge in that order.
        """
        super().reflect(results, skill_content, out_dir, **options)
        files = sorted(Path(options["patches_dir"]).glob("minibatch_*.json"))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def _reported(outcome: Outcome, folder: Path) -> dict[str, object]:
    """Write what SkillOpt's own environments write of an item into ``folder``, and return its row."""
    is_solved = outcome.scored.hard >= 1
    verdict = f"Score: {outcome.scored.hard:g}. {outcome.feedback}"
    turns = [{"type": "message", "turn": 1, "content": outcome.reply}, {"role": "system", "content": verdict}]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "conversation.json").write_text(json.dumps(turns, ensure_ascii=False), encoding="utf-8")
    *system, user = outcome.prompts
    (folder / "target_system_prompt.txt").write_text("\n".join(system), encoding="utf-8")
    (folder / "target_user_prompt.txt").write_text(user, encoding="utf-8")
    return {
        **row(outcome.item),
        "task_description": outcome.question,
        "task_type": "tasks",
        "hard": outcome.scored.hard,
        "soft": outcome.scored.soft,
        "predicted_answer": outcome.answer,
        "response": outcome.reply,
        "fail_reason": "" if is_solved else outcome.feedback,
        "n_turns": 1,
    }


def main() -> None:
    words = wanted(__doc__ or "")
    folder = Path(prompts.__file__).parent
    if missing := [name for name in PROMPTS if not (folder / f"{name}.md").is_file()]:
        raise SystemExit(f"{folder} lacks {', '.join(missing)}; copy skillopt/prompts/*.md of SkillOpt v0.2.0 there")
    task, optimizer, peer = Task(words), Optimizer(words), new_folder(words.out)
    azure_openai._make_client = lambda _role: optimizer  # one client for all roles; the target is not asked through it
    seed = peer / "seed.md"
    seed.write_text(f"{task.body}\n", encoding="utf-8")
    settings = {
        **SETTINGS,
        "seed": words.seed,
        "optimizer_model": words.optimizer_model,
        "target_model": words.model,
        "skill_init": str(seed),
        "out_root": str(peer),
    }
    summary = ReflACTTrainer(settings, Adapter(task)).train()
    scores = summary["baseline_selection_hard"], summary["best_selection_hard"]
    write_result(words, "skillopt", task, (peer / "best_skill.md").read_text(encoding="utf-8"), scores)


if __name__ == "__main__":
    main()
