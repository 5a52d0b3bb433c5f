"""Whatever a model writes, no control or hidden character of it enters a skill, and what was removed is told."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import ONE_STEP, SEED, History, ToyBackend, run_to_end, trainer

from skillgit.domain.edit import Edit, EditSource, EditStatus, Op, apply
from skillgit.domain.event import CANDIDATES
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import hidden_characters
from skillgit.domain.untrusted.model_text import clean, hidden_in
from skillgit.engine.candidate import cleaned
from skillgit.engine.replies import AnalysisReply, RewriteReply, UnusableReplyError, parse

DIRT = "\x00\x1b]0;x\x07\r\u202e\u200b\U000e0041\ud83d"
COUNT = 11
"""Characters that are removed from a dirty text; half of a pair counts, though U+FFFD stands in its place."""
PLAN = {"num_epochs": 2, "batch_size": 8, "seed": 1}


def dirty(text: str) -> str:
    return f"{text[:4]}{DIRT}{text[4:]}"


def trained(script, optimizer=None, plan=ONE_STEP):
    backend, history = ToyBackend(script={kind: lambda _, said=said: said for kind, said in script.items()}), History()
    made = trainer(backend, history, train=plan, optimizer={"use_slow_update": False} | (optimizer or {}))
    return asyncio.run(run_to_end(made, history))


def check_clean(history):
    for transition in history:
        for path, content in transition.skill.files.items() if transition.skill is not None else ():
            assert hidden_characters(path, content) is None
            assert b"\r" not in content
        for content in transition.evidence.values():
            content.decode()
        for text in (transition.event.title, transition.event.why):
            assert hidden_in(text) == []


def analysis(*edits, **more):
    return json.dumps({"title": dirty("try it"), "reasoning": dirty("because"), "edits": edits, **more})


def test_edits_and_new_files_enter_clean_and_the_event_says_what_was_removed():
    edits = [
        {"op": "append", "content": dirty("- amber birch")},
        {"op": "append", "file": "references/words.md", "content": dirty("- coral dune")},
        {"op": "append", "content": "- clean"},
    ]
    optimizer = {"files": ["SKILL.md", "references/*.md"]}
    history = trained({"Analyse failures": analysis(*edits)}, optimizer)
    event, skill = history[1].event, history[1].skill
    assert event.kind in CANDIDATES
    check_clean(history)
    assert "- am\n\ufffdber birch" in skill.document
    rows = json.loads(history[1].evidence["patch.json"])["edits"]
    assert [row.get("removed", 0) for row in rows] == [COUNT, COUNT, 0]
    assert event.why.endswith(
        f"{COUNT} hidden characters were removed from edit 1. {COUNT} hidden characters were removed from edit 2."
    )


def test_a_clean_run_says_nothing_of_it():
    history = trained({"Analyse failures": analysis({"op": "append", "content": "- amber birch"})})
    assert "removed" not in history[1].event.why
    assert b"removed" not in history[1].evidence["patch.json"]


@pytest.mark.parametrize("mode", ["rewrite_from_suggestions", "full_rewrite_minibatch"])
def test_rewrites_enter_clean(mode):
    body = json.dumps({"title": dirty("anew"), "body": dirty("# Toy\n\n- amber birch coral dune\n")})
    suggestion = {"type": "add_rule", "title": dirty("words"), "instruction": dirty("say more")}
    said = body if mode.startswith("full") else json.dumps({"title": "t", "suggestions": [suggestion]})
    backend, history = ToyBackend(), History()

    def optimizer(messages):
        kind = messages[0].text.splitlines()[0].removeprefix("# ")
        if kind.startswith("Rank"):
            return json.dumps({"selected": [0]})
        return body if kind.startswith("Rewrite") else said

    backend._optimizer = optimizer
    made = trainer(backend, history, train=ONE_STEP, optimizer={"use_slow_update": False, "skill_update_mode": mode})
    asyncio.run(run_to_end(made, history))
    check_clean(history)
    assert "amber birch" in history[1].skill.document
    assert f"{COUNT} hidden characters were removed from the new text." in history[1].event.why


def test_guidance_and_memory_enter_clean():
    guidance = json.dumps({"title": dirty("guide"), "reasoning": "r", "guidance": dirty("- amber birch coral dune")})
    script = {"Slow update": guidance, "Optimizer memory": json.dumps({"memory": dirty("- words")})}
    history = trained(script, {"use_slow_update": True}, PLAN)
    check_clean(history)
    slow = next(transition.event for transition in history if transition.event.kind is EventKind.SLOW_PROPOSED)
    assert slow.guidance == "- am\n\ufffdber birch coral dune"
    assert hidden_in(slow.memory) == []
    assert f"{COUNT} hidden characters were removed from the guidance." in slow.why
    assert any(transition.event.kind in {EventKind.SLOW_MERGED, EventKind.SLOW_PROPOSED} for transition in history)


def test_reminders_enter_clean_and_keep_their_count():
    note = parse(json.dumps({"edits": [], "notes": [{"note": dirty("mind it")}]}), AnalysisReply).notes[0]
    assert (cleaned(note), cleaned(note).removed) == ("mind \ufffd it", COUNT)


# JSON writes a backspace, a form feed and a carriage return like a backslash before a letter, which is what they are
# taken for: see test_damaged_json.
WRITTEN = st.text(st.characters(codec=None, exclude_characters="\b\f\r"), max_size=60)


@given(WRITTEN, WRITTEN)
def test_no_reply_makes_an_edit_that_is_not_clean(anchor, content):
    reply = json.dumps({"edits": [{"op": "replace", "anchor": anchor, "content": content, "file": content}]})
    (edit,) = parse(reply, AnalysisReply).draft(EditSource.FAILURE, ()).edits
    assert (edit.anchor, edit.content, edit.file) == (clean(anchor), clean(content), clean(content))
    apply(SEED, [edit])


@given(st.text(st.characters(codec=None), max_size=200))
def test_any_text_is_a_reply_or_unusable(text):
    for said in (text, f'{{"body": {text}}}', json.dumps({"body": text})):
        try:
            reply = parse(said, RewriteReply)
        except UnusableReplyError:
            continue
        assert clean(reply.body) == reply.body


def test_json_that_python_cannot_read_is_unusable():
    with pytest.raises(UnusableReplyError):
        parse('{"body": ' + "[" * 100_000 + "}", RewriteReply)


@pytest.mark.parametrize(
    "written", ["- begin\r\n- begin well\r\n", "- be\u200bgin\n- begin\u2060 well\n", "- begin\n- begin well\n"]
)
def test_an_anchor_is_found_where_people_wrote_what_anchors_cannot_hold(written):
    skill = SEED.with_text("SKILL.md", f"---\nname: toy\ndescription: Toy.\n---\n\n{written}- end\n")
    anchor = clean("- begin\n- begin well")
    done = apply(skill, [Edit(op=Op.REPLACE, anchor=anchor, content=clean("- go"))])
    assert [report.status for report in done.reports] == [EditStatus.APPLIED]
    assert "begin" not in done.skill.document
    assert "- end\n" in done.skill.document
