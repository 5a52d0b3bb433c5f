from __future__ import annotations

import json
import re

import pytest
from toy import ToyEnvironment

from skillgit.domain.document_rewrite import UpdateMode
from skillgit.engine.prompt_sections import NAMES, conversation, prompt
from skillgit.engine.replies import DIALECTS, BudgetReply, RankReply, RewriteReply, parse

SCHEMAS = {"budget": BudgetReply, "rank": RankReply, "rank_suggestions": RankReply, "rewrite": RewriteReply}
for found in DIALECTS.values():
    SCHEMAS |= dict.fromkeys((found.failures, found.successes), found.analysis)
    SCHEMAS |= dict.fromkeys(filter(None, (found.merge, found.merge_and_rank)), found.merge_reply)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_example_of_a_prompt_fits_its_schema(name):
    example = re.search(r"```json\n(.*?)```", prompt(name), re.DOTALL).group(1)
    json.loads(example)
    parse(example, SCHEMAS[name])


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_prompt_is_listed_and_has_a_heading_of_its_own(name):
    assert name in NAMES
    assert sum(prompt(other).splitlines()[0] == prompt(name).splitlines()[0] for other in NAMES) == 1


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_prompt_says_what_the_target_is_asks_for_json_and_forbids_quoting_tasks(name):
    text = " ".join(prompt(name).split())
    assert "before it works on a task" in text
    assert "Answer with one JSON object and nothing else." in text
    if SCHEMAS[name] not in {RankReply, BudgetReply}:
        assert "Never put what belongs to one task alone into the skill" in text


@pytest.mark.parametrize("mode", UpdateMode)
def test_only_who_names_the_kind_of_failures_sees_the_taxonomy_and_none_asks_for_expected_answers(mode):
    words = DIALECTS[mode]
    assert [name for name in (words.failures, words.successes, words.merge) if "{taxonomy}" in prompt(name)] == [
        words.failures
    ]
    assert all(("{taxonomy}" in prompt(name)) == ("kind and cause" in prompt(name)) for name in NAMES)
    for name in NAMES:
        assert not re.search(r"\b(gold|ground truth|reference answer)s?\b", prompt(name), re.IGNORECASE), name


@pytest.mark.parametrize("environment", [None, ToyEnvironment()])
def test_what_is_sent_has_the_taxonomy_of_the_environment_in_its_place(environment):
    instructions = conversation("analyse_failures", environment, ())[0].text
    taxonomy = environment.taxonomy() if environment else ""
    assert instructions.startswith(prompt("analyse_failures").replace("{taxonomy}", taxonomy).rstrip())


def test_whole_texts_are_asked_for_with_their_placeholders():
    for name in ("rewrite", "rewrite_from_failures", "rewrite_from_successes", "merge_rewrites"):
        assert "[[protected:1]]" in prompt(name)
        assert "Code puts the protected parts back" in " ".join(prompt(name).split())
