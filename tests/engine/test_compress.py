from __future__ import annotations

import asyncio
import json
import re

import pytest

from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.engine import candidate as stage
from skillgit.engine.prompt_sections import NAMES, prompt
from skillgit.engine.replies import RewriteReply, parse

TEXT = """\
---
name: demo
description: d
---

# A

- One rule, said at length.
- One rule.

<!-- skillgit:slow -->
- g
<!-- /skillgit:slow -->
"""
SKILL = Skill("demo", {DOCUMENT: TEXT.encode()})


@pytest.fixture
def answering(monkeypatch):
    """Let the optimizer give these bodies, one after the other; the answer collects what was wrong with each."""

    def prepare(*bodies: str) -> list[str]:
        faults: list[str] = []

        async def ask(session, name, messages, schema, *, draw, check):
            del session, messages
            assert (name, schema, draw) == ("compress", RewriteReply, (3, 1))
            for body in bodies:
                reply = RewriteReply(title="shorter", body=body)
                try:
                    check(reply)
                except stage.UnusableReplyError as fault:
                    faults.append(str(fault))
                else:
                    return reply
            return None

        monkeypatch.setattr(stage, "ask", ask)
        return faults

    return prepare


def compressed():
    return asyncio.run(stage.compress(None, SKILL, draw=(3, 1)))


def test_a_shorter_text_keeps_frontmatter_and_regions(answering):
    faults = answering("# A\n\n- One rule.\n\n[[protected:1]]")
    made = compressed()
    assert faults == []
    assert made.application.skill.document == TEXT.replace("- One rule, said at length.\n", "")
    assert made.title == "shorter"
    assert [report.edit.op for report in made.application.reports] == ["delete"]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("# A\n\n- One rule, said at length.\n- One rule!\n\n[[protected:1]]", "the text that stands has"),
        ("# A\n\n- One rule.", r"\[\[protected:1\]\] is missing"),
    ],
)
def test_a_text_that_is_not_shorter_or_loses_a_region_is_sent_back(answering, body, fault):
    faults = answering(body)
    assert compressed() is None
    assert re.search(fault, faults[0])


def test_an_empty_body_says_that_nothing_can_go(answering):
    answering("")
    assert compressed() is None


def test_the_prompt_has_an_example_that_fits_and_belongs_to_no_run():
    text = prompt("compress")
    parse(re.search(r"```json\n(.*?)```", text, re.DOTALL).group(1), RewriteReply)
    json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL).group(1))
    assert "Answer with one JSON object and nothing else." in text
    assert "compress" not in NAMES, "it is no part of what a run does, and must not keep one from going on"
