"""A new text is taken out of what models put around it, or asked for again; it never has two frontmatters."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.document_rewrite import RewriteError, Template, unwrapped
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.untrusted.model_text import clean
from skillgit.engine.replies import GuidanceReply, RewriteReply, UnusableReplyError, parse

BODY = "# Rules\n\n- Answer briefly.\n\n```json\n{}\n```\n\n- Give the year."
HEAD = "---\nname: answering\ndescription: Answers: all of them.\n---\n"
WRAPPERS = {
    "frontmatter": lambda text: f"{HEAD}\n{text}",
    "other frontmatter": lambda text: f"---\ndescription: x\nversion: 2\n---\n{text}",
    "fenced frontmatter": lambda text: f"```yaml\nname: answering\n```\n\n{text}",
    "fence": lambda text: f"```markdown\n{text}\n```",
    "bare fence": lambda text: f"```\n{text}\n```",
    "long fence": lambda text: f"````md\n{text}\n````",
    "thought": lambda text: f"<think>They want years.\n</think>\n\n{text}",
    "tag": lambda text: f"<body>\n{text}\n</body>",
    "words": lambda text: f"Here is the rewritten skill:\n\n{text}",
    "more words": lambda text: f"Sure! Here's the updated SKILL.md text:\n{text}\n\nLet me know if it needs more.",
    "byte order mark": lambda text: f"\ufeff{text}",
}


@pytest.mark.parametrize(
    "names", [(name,) for name in WRAPPERS] + [("fence", "words"), ("frontmatter", "fence", "words")]
)
def test_what_is_around_a_text_is_taken_off(names):
    text = BODY
    for name in names:
        text = WRAPPERS[name](text)
    assert unwrapped(text).strip() == BODY
    assert parse(json.dumps({"body": text}), RewriteReply).body.strip() == BODY
    assert parse(json.dumps({"guidance": text}), GuidanceReply).guidance == BODY


@given(st.lists(st.sampled_from(sorted(WRAPPERS.keys() - {"bare fence", "fence"})), max_size=4))
def test_wrappers_in_any_order_leave_the_text_and_one_frontmatter(names):
    text = BODY
    for name in names:
        text = WRAPPERS[name](text)
    template = Template.of(f"{HEAD}\n# Old\n")
    document = template.fill(clean(unwrapped(text)))
    assert frontmatter(document) == HEAD
    assert not frontmatter(document.removeprefix(HEAD).lstrip())
    assert document.removeprefix(HEAD).strip() == BODY


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        "- Answer briefly.",
        "---\n\nA rule between lines.\n\n---\n\n- More.",
        "```python\nprint(1)\n```",
        "```\ncode\n```\n\ntext\n\n```\nmore\n```",
        "# Rules\n\n```markdown\n# A title\n```",
        "Write a report like this:\n\n```markdown\n# Title\n```",
        "Here are the complete steps:\n\n1. Read.",
        "# Thoughts\n\n- Write `<think>` first.",
        "- Close with </think>.",
        "Sure things first.\n\n- Answer.",
        "  - indented",
        "",
    ],
)
def test_a_text_that_only_looks_wrapped_stays_as_it_is(text):
    assert unwrapped(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "<think>They want years. I will",
        "```markdown\n# Rules\n- Answer",
        "```\n# Rules\n```json\n{}\n```\n- Answer",
        "---\nname: answering\n# Rules",
        f"{HEAD}",
        "```markdown\n# Rules\n```\nx\n```\n- b\n```",
    ],
)
def test_what_is_begun_and_never_ended_is_asked_for_again(text):
    with pytest.raises(RewriteError):
        unwrapped(text)
    with pytest.raises(UnusableReplyError, match="body"):
        parse(json.dumps({"body": text}), RewriteReply)
