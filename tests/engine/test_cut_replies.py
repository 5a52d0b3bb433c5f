"""A reply that ended at the limit of its length is said to have, and half an answer is never a right one."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import ONE_STEP, SEED, History, ToyBackend, ToyEnvironment, items, run_to_end, trainer

from skillgit.domain.evaluation import EvaluationSummary, Scored, Split
from skillgit.domain.outcomes import outcome_row, read_outcome
from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.engine.prompt_sections import trajectory_text
from skillgit.errors import EnvironmentFaultError
from skillgit.executors.attempt import AskedModel, Inline
from skillgit.plugin.backend import Reply, Usage, user
from skillgit_envs.answers import ask_judge, extract
from skillgit_envs.tasks.checks.catalogue import EXTRACTORS

USAGE = Usage(tokens_in=10, tokens_out=2)
CUT = "the reply was cut at the limit of its length (calls.max_output_tokens)"


def reply(text, *, is_cut=True):
    return Reply(text=text, usage=USAGE, finish_reason="length" if is_cut else "stop")


@dataclass
class Scripted(AskedModel):
    said: list[Reply]
    heard: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()

    async def ask(self, messages, tools, form):
        del tools, form
        self.heard.append(messages[-1].text)
        return self.said.pop(0)

    async def ask_for_program(self, question, provider, number):
        raise NotImplementedError

    def lease(self, ask):
        raise NotImplementedError


@dataclass
class Extracting(ToyEnvironment):
    """Asks as often as there are replies; an answer is right if it is in ``golds``."""

    extraction: str = "tag"
    golds: tuple[str, ...] = ()
    products: dict[str, bytes] = field(default_factory=dict)

    async def rollout(self, item, skill, target):
        del skill
        turns = []
        while target.said:
            answer = await target.chat([user("Which year?")])
            turns += [Turn(role="user", content="Which year?"), Turn(role="assistant", content=answer.text)]
        answer = EXTRACTORS[self.extraction](answer.text)
        return Trajectory(item_id=item.id, turns=tuple(turns), answer=answer, products=self.products)

    async def score(self, item, trajectory, judge):
        del item, judge
        right = float(trajectory.answer in self.golds)
        return Scored(right, right), "correct" if right else f"expected {self.golds[0]}"


def attempt(extraction, golds, *replies, products=None):
    environment = Extracting(extraction=extraction, golds=golds, products=products or {})
    target = Scripted(list(replies))
    row = asyncio.run(Inline().attempt(environment, items("i", 1)[0], SEED, target, Scripted([])))
    return read_outcome(row), str(row["feedback"])


@pytest.mark.parametrize(
    ("extraction", "text", "answer"),
    [
        ("tag", "It opened in 18", "It opened in 18"),
        ("tag", "<answer>18", "<answer>18"),
        ("last_line", "Step by step.\n18", "18"),
        ("whole", "18", "18"),
        ("json", "It is 18", "It is 18"),
        ("code", "```\n18", "```\n18"),
    ],
)
def test_half_an_answer_is_not_right(extraction, text, answer):
    whole, said = attempt(extraction, (answer,), reply(text, is_cut=False))
    assert (whole.hard, whole.cut, said) == (1.0, False, "correct")
    outcome, said = attempt(extraction, (answer,), reply(text))
    assert (outcome.hard, outcome.soft, outcome.cut) == (0.0, 0.0, True)
    assert said == f"{CUT}, so that there is no complete answer"


@pytest.mark.parametrize(
    ("extraction", "text", "answer"),
    [
        ("tag", "<answer>1871</answer> because the", "1871"),
        ("tag", "<answer>1871</answer>", "1871"),
        ("json", '{"year": 1871}', '{"year": 1871}'),
        ("json", '```json\n{"year": 1871}\n```\nThis', '{"year": 1871}\n'),
        ("code", "```\n1871\n```\nThis", "1871"),
    ],
)
def test_an_answer_that_was_complete_before_the_cut_keeps_its_score_and_says_so(extraction, text, answer):
    outcome, said = attempt(extraction, (answer,), reply(text))
    assert (outcome.hard, outcome.cut, said) == (1.0, True, f"{CUT}; correct")
    outcome, said = attempt(extraction, ("1900",), reply(text))
    assert (outcome.hard, outcome.cut, said) == (0.0, True, f"{CUT}; expected 1900")


def test_files_that_were_made_are_scored_whatever_became_of_the_last_words():
    outcome, said = attempt("whole", ("I wrote the fi",), reply("I wrote the fi"), products={"a.txt": b"1871"})
    assert (outcome.hard, outcome.cut, said) == (1.0, True, f"{CUT}; correct")


def test_of_several_replies_the_cut_ones_are_counted():
    replies = (reply("Let me see"), reply("Let me", is_cut=True), reply("1871", is_cut=False))
    outcome, said = attempt("last_line", ("1871",), *replies)
    assert (outcome.hard, outcome.cut) == (1.0, True)
    assert said == "2 of 3 replies were cut at the limit of their length (calls.max_output_tokens); correct"


@pytest.mark.parametrize(
    ("final", "golds", "hard", "said"),
    [
        (
            replace(reply("1871", is_cut=False), cut_within=1),
            ("1871",),
            1.0,
            "1 reply was cut at the limit of its length while the agent worked (calls.max_output_tokens); correct",
        ),
        (
            replace(reply("It was in 18"), cut_within=2),
            ("It was in 18",),
            0.0,
            CUT.replace(" (", ", and 2 replies were cut at the limit of their length while the agent worked (")
            + ", so that there is no complete answer",
        ),
    ],
)
def test_what_was_cut_while_an_agent_worked_is_said(final, golds, hard, said):
    outcome, feedback = attempt("whole", golds, final)
    assert (outcome.hard, outcome.cut, feedback) == (hard, True, said)


class AsksTarget(Extracting):
    """Has the target itself grade."""

    async def score(self, item, trajectory, judge):
        self.target.said.append(reply("GRADE: C", is_cut=False))
        await self.target.chat([user("Is that right?")])
        return await super().score(item, trajectory, judge)

    async def rollout(self, item, skill, target):
        self.target = target
        return await super().rollout(item, skill, target)


def test_what_a_scorer_asks_the_target_hides_no_cut_answer():
    environment, target = AsksTarget(extraction="whole", golds=("18",)), Scripted([reply("18")])
    row = asyncio.run(Inline().attempt(environment, items("i", 1)[0], SEED, target, Scripted([])))
    assert (read_outcome(row).hard, read_outcome(row).cut) == (0.0, True)


@given(st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), min_size=1).filter(str.strip))
def test_no_text_that_ends_with_its_answer_is_right_when_it_was_cut(text):
    answer = extract(text)
    if answer and text.strip().endswith(answer) and not answer.startswith(("{", "[")):
        assert attempt("tag", (answer,), reply(text))[0].hard == 0.0


@pytest.mark.parametrize("cut", [False, True])
def test_the_flag_is_kept_with_the_outcome_and_is_no_part_of_the_score(cut):
    outcome = Scored(1.0, 0.5, cut=cut)
    assert read_outcome(json.loads(json.dumps(outcome_row(outcome)))).cut is cut
    assert outcome == Scored(1.0, 0.5)
    assert ("cut" in outcome_row(outcome)) is cut


class CutBackend(ToyBackend):
    """A target whose every reply is cut."""

    def _target(self, messages):
        return reply(super()._target(messages))


def test_a_run_says_everywhere_that_replies_were_cut():
    prompts = []
    backend, history = CutBackend(), History()

    def analyse(prompt):
        prompts.append(prompt)
        return json.dumps({"edits": []})

    backend.script["Analyse failures"] = analyse
    asyncio.run(run_to_end(trainer(backend, history, train=ONE_STEP), history))
    start, end = history[0].event, history[-1].event
    assert isinstance(start.evaluation, EvaluationSummary)
    assert (start.evaluation.hard, start.evaluation.scored, start.evaluation.cut) == (0.0, 8, 8)
    assert "Of v0, 8 of 8 replies were cut at calls.max_output_tokens." in end.why
    assert prompts
    assert all(CUT in prompt for prompt in prompts)
    rows = json.loads(history[0].evidence["selection.json"])
    assert all(row["cut"] is True and row["feedback"].startswith(CUT) for row in rows)
    assert start.evaluation.split == Split.SELECTION


def test_the_optimizer_reads_it_in_the_feedback():
    trajectory = Trajectory(item_id="i", turns=(Turn(role="assistant", content="Let"),), answer="Let", feedback=CUT)
    assert CUT in trajectory_text(trajectory, 1000)


@pytest.mark.parametrize("text", ["CORRECT", '{"scores": [1]}', "The answer is right. GRADE: C"])
def test_a_verdict_that_was_cut_is_asked_for_again_and_is_no_score(text):
    judge = Scripted([reply(text), reply("A", is_cut=False)])
    assert asyncio.run(ask_judge(judge, "Judge.", "Is it right?", str.lower, form="a letter")) == "a"
    assert "cut at the limit of its length" in judge.heard[1]
    judge = Scripted([reply(text), reply(text)])
    with pytest.raises(EnvironmentFaultError) as error:
        asyncio.run(ask_judge(judge, "Judge.", "Is it right?", str.lower, form="a letter"))
    assert error.value.hint == "raise calls.max_output_tokens"


@pytest.mark.parametrize("stage", ["Analyse failures", "Merge patches"])
def test_no_patch_of_a_cut_reply_is_measured(stage):
    whole = json.dumps({"title": "t", "edits": [{"op": "append", "content": "- amber birch coral dune"}]})
    backend, history = ToyBackend(script={stage: lambda _: reply(whole[:-2])}), History()
    plan = ONE_STEP
    asyncio.run(run_to_end(trainer(backend, history, train=plan, optimizer={"use_slow_update": False}), history))
    if stage == "Analyse failures":
        assert all(transition.skill is None or transition.skill == SEED for transition in history)
    for request in backend.requests:
        if request.model == "optimizer" and len(request.messages) > 2:
            assert "was cut" in request.messages[-1].text
