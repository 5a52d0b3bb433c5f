"""Shortening: the analyst's text is shorter, says the same, and keeps what is protected."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.document_rewrite import Template
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.engine.prompt_sections import conversation, template_section
from skillgit.engine.replies import RewriteReply, parse
from skillgit_backends import offline
from skillgit_backends.offline.rules import QUESTIONS, RULES
from skillgit_backends.offline.skills import rules_in

RULE_LINES = sorted(
    {f"- {rule}" for rules in (*(rule.wordings for rule in RULES.values()), QUESTIONS.advice) for rule in rules}
)
SLOW = """\
<!-- skillgit:slow -->
- When the question asks for a year or a date, give the year alone, in four digits.
<!-- /skillgit:slow -->"""


def shortened(*lines: str) -> tuple[str, RewriteReply]:
    text = "---\nname: demo\ndescription: d\n---\n\n" + "\n".join(lines) + "\n"
    skill = Skill("demo", {DOCUMENT: text.encode()})
    reply = parse(offline.complete(conversation("compress", None, [template_section(skill)])), RewriteReply)
    return (Template.of(text).fill(reply.body) if reply.body else text), reply


def test_rules_that_say_the_same_become_one_and_idle_advice_goes():
    first, second = sorted(RULES["number"].wordings, key=len)[:2]
    text, reply = shortened(
        "# Answering", "", "Read the text.", "", f"- {second}", f"- {QUESTIONS.advice[0]}", f"- {first}"
    )
    assert [line for line in text.splitlines() if line.startswith("- ")] == [f"- {first}"]
    assert "# Answering\n\nRead the text.\n" in text
    assert reply.title


def test_what_a_protected_region_states_is_not_said_again_and_the_region_stays():
    text, _ = shortened("# Answering", "", f"- {RULES['year'].wordings[0]}", f"- {RULES['span'].wordings[0]}", "", SLOW)
    assert text.endswith(f"{SLOW}\n")
    assert rules_in(text) == rules_in(f"- {RULES['year'].wordings[0]}\n- {RULES['span'].wordings[0]}")
    assert RULES["year"].wordings[0] not in text.partition("<!--")[0]


def test_a_short_text_is_left_alone():
    shortest = min(RULES["paren"].wordings, key=len)
    _, reply = shortened("# Answering", "", f"- {shortest}")
    assert (reply.body, reply.title) == ("", "")


@given(st.lists(st.sampled_from(RULE_LINES), min_size=1, max_size=8))
def test_the_new_text_is_shorter_and_asks_for_the_same(lines):
    before = "\n".join(("# Answering", "", *lines))
    text, reply = shortened("# Answering", "", *lines)
    if reply.body:
        assert len(reply.body) < len(before)
    assert rules_in(text) == rules_in(before)
    assert json.loads(json.dumps(reply.summary)) == list(reply.summary)


@pytest.mark.parametrize("line", ["- Say hello.", "- Never guess a colour."])
def test_a_rule_that_is_not_understood_stays(line):
    text, _ = shortened("# Answering", "", line, line)
    assert text.count(line) == 1
