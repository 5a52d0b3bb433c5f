"""GEPA trains the skill of a task folder, with its own method and defaults.

It needs an interpreter with skillgit and the peer::

    pip install -e .
    pip install gepa==0.1.4
    python tests/bench/real/peers/gepa_program.py FOLDER --seed 1 --target http://127.0.0.1:8081/v1 \
        --optimizer http://127.0.0.1:8082/v1 --model qwen2.5-coder-1.5b --out results

The candidate is the text of the skill below its frontmatter, as one component. GEPA reflects on minibatches of three
train items, accepts a child that scores more on them, measures it on the selection split, and stops after 280 metric
calls. The best text is the one with the best mean on the selection split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import gepa
from gepa.core.adapter import EvaluationBatch
from openai.types.chat import ChatCompletionMessageParam
from task import Optimizer, Outcome, Task, new_folder, wanted, write_result

from skillgit.domain.trajectory import Item

COMPONENT = "skill"
METRIC_CALLS = 280
MINIBATCH = 3


class Adapter:
    """The task as GEPA evaluates a candidate on it."""

    propose_new_texts = None  # GEPA's own proposer

    def __init__(self, task: Task) -> None:
        self._task = task

    def evaluate(
        self,
        batch: Sequence[Item],
        candidate: Mapping[str, str],
        capture_traces: bool = False,  # noqa: FBT001, FBT002 - GEPA's signature
    ) -> EvaluationBatch[Outcome, str]:
        outcomes = self._task.outcomes(batch, candidate[COMPONENT])
        return EvaluationBatch(
            outputs=[outcome.reply for outcome in outcomes],
            scores=[outcome.scored.hard for outcome in outcomes],
            trajectories=outcomes if capture_traces else None,
        )

    def make_reflective_dataset(
        self,
        candidate: Mapping[str, str],
        eval_batch: EvaluationBatch[Outcome, str],
        components_to_update: Sequence[str],
    ) -> dict[str, list[dict[str, str]]]:
        """Return what GEPA's prompt shows of a minibatch, in the fields of its own adapter."""
        del candidate
        records = [
            {"Inputs": outcome.prompts[-1], "Generated Outputs": outcome.reply, "Feedback": outcome.feedback}
            for outcome in eval_batch.trajectories or ()
        ]
        return dict.fromkeys(components_to_update, records)


def main() -> None:
    words = wanted(__doc__ or "")
    task, optimizer = Task(words), Optimizer(words)

    def reflect(prompt: str | list[ChatCompletionMessageParam]) -> str:
        messages: list[ChatCompletionMessageParam] = (
            [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        )
        reply = optimizer.chat.completions.create(model=words.optimizer_model, messages=messages)
        return reply.choices[0].message.content or ""

    result = gepa.optimize(
        seed_candidate={COMPONENT: task.body},
        trainset=list(task.train),
        valset=list(task.selection),
        adapter=Adapter(task),
        reflection_lm=reflect,
        reflection_minibatch_size=MINIBATCH,
        max_metric_calls=METRIC_CALLS,
        run_dir=str(new_folder(words.out)),
        seed=words.seed,
    )
    scores = result.val_aggregate_scores
    write_result(
        words, "gepa", task, result.candidates[result.best_idx][COMPONENT], (scores[0], scores[result.best_idx])
    )


if __name__ == "__main__":
    main()
