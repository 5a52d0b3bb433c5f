"""Steps that train other files than SKILL.md: what the optimizer is told, what it may do, and what is invalid."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from toy import ONE_STEP, History, ToyBackend, ToyEnvironment, kinds, run_to_end, trainer

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import Skill
from skillgit.engine.candidate import fault_in
from skillgit.engine.method_settings import OptimizerSettings
from skillgit.engine.prompt_sections import prompts_digest
from skillgit.errors import ConfigError, SandboxError
from skillgit.sandbox import Sandbox

HEAD = b"---\nname: toy\ndescription: Toy.\n---\n\n# Toy\n\n"
SEED = Skill(
    "toy",
    {
        "SKILL.md": HEAD + b"- Follow `references/rules.md`.\n- Run scripts/count.py.\n",
        "references/rules.md": b"# Rules\n\n- begin\n",
        "references/more.md": b"# More\n\n- nothing\n",
        "scripts/count.py": b"def count(text):\n    return len(text)\n",
        "assets/data.bin": b"\x00",
    },
)
FILES = ["SKILL.md", "references/*.md", "scripts/*.py"]
RULE = {"op": "append", "file": "references/rules.md", "content": "- amber"}


def sandboxed() -> bool:
    try:
        Sandbox()
    except SandboxError:
        return False
    return True


needs_sandbox = pytest.mark.skipif(not sandboxed(), reason="this machine has no sandbox")


def run(*edits, seed=SEED, target=None, analyst=None, backend=None, **optimizer):
    """Train one step, or two, in which the analyst proposes ``edits``."""
    reply = json.dumps({"title": "try", "reasoning": "r", "edits": list(edits)})
    backend = backend or ToyBackend(script={"Analyse failures": analyst or (lambda _: reply)})
    settings = {"use_slow_update": False, "use_meta_skill": False, "files": FILES} | optimizer
    history = History()
    sections = {"train": ONE_STEP, "optimizer": settings} | ({"target": target} if target else {})
    made = trainer(backend, history, environment=ToyEnvironment(), **sections)
    made = replace(made, start=replace(made.start, skill=seed))
    return backend, asyncio.run(run_to_end(made, history))


def statuses(transition):
    rows = json.loads(transition.evidence["patch.json"])["edits"]
    return [(row["status"], row["detail"]) for row in rows]


def asked(backend, kind):
    return next(request.messages for request in backend.requests if request.messages[0].text.startswith(f"# {kind}"))


def targets(backend):
    return len([request for request in backend.requests if request.model == "target"])


def test_a_rule_in_a_reference_is_trained_and_the_target_reads_it():
    backend, history = run(RULE)
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.ACCEPTED, EventKind.RUN_FINISHED]
    event, skill = history[1].event, history[1].skill
    assert [edit.file for edit in event.edits] == ["references/rules.md"]
    assert skill.files["references/rules.md"] == b"# Rules\n\n- begin\n- amber\n"
    assert skill.files["SKILL.md"] == SEED.files["SKILL.md"]
    shown = [request.messages[0].text for request in backend.requests if request.model == "target"]
    assert any(
        '<companion path="references/rules.md">\n# Rules\n\n- begin\n- amber\n</companion>' in text for text in shown
    )


def test_a_target_without_companions_gains_nothing_by_them():
    backend, history = run(RULE, target={"companions": "none"})
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.REJECTED, EventKind.RUN_FINISHED]
    assert not any(
        "<companion" in request.messages[0].text for request in backend.requests if request.model == "target"
    )


def test_an_edit_to_a_file_that_is_not_trained_is_left_out_and_the_others_go_on():
    _, history = run({"op": "append", "content": "- no"}, RULE, files=["references/rules.md"], learning_rate=4)
    assert kinds(history)[1] is EventKind.ACCEPTED
    assert statuses(history[1]) == [("applied", ""), ("invalid", "optimizer.files does not name 'SKILL.md'")]
    assert history[1].event.patch.skipped == 1


@pytest.mark.parametrize(
    ("edit", "detail"),
    [
        (RULE, "optimizer.files does not name 'references/rules.md'"),
        (
            {"op": "append", "file": "references/new.md", "content": "- x"},
            "the skill has no text file 'references/new.md'",
        ),
    ],
)
def test_steps_edit_the_document_alone_where_nothing_else_is_said(edit, detail):
    backend, history = run(edit, files=["SKILL.md"])
    assert statuses(history[1]) == [("invalid", detail)]
    assert kinds(history)[1] is EventKind.SKIPPED
    assert detail in history[1].event.why
    assert targets(backend) == 3 * 8, "baseline, batch and test"


def test_a_new_file_is_made_where_a_pattern_names_it():
    point = {"op": "append", "content": "- Read references/new.md."}
    new = {"op": "append", "file": "references/new.md", "content": "- amber"}
    _, history = run(point, new)
    assert kinds(history)[1] is EventKind.ACCEPTED
    assert history[1].skill.files["references/new.md"] == b"- amber\n"


@pytest.mark.parametrize("path", ["assets/new.md", "references/deep/new.md", "new.md"])
def test_a_new_file_that_no_pattern_names_is_refused(path):
    _, history = run({"op": "append", "file": path, "content": "- amber"})
    ((status, detail),) = statuses(history[1])
    assert status == "invalid"
    assert detail.startswith(f"the skill has no text file '{path}', and optimizer.files lets no step make it")


def test_analyst_and_merger_are_told_which_files_they_may_edit():
    backend, _ = run(RULE)
    for kind in ("Analyse failures", "Merge patches"):
        if not any(request.messages[0].text.startswith(f"# {kind}") for request in backend.requests):
            continue
        system, user, *_ = asked(backend, kind)
        assert "## Files that you may edit" in system.text
        assert "- `references/*.md`" in system.text
        assert '<file path="references/rules.md" editable="yes">' in user.text
        assert '<file path="scripts/count.py" editable="yes">\ndef count(text):' in user.text
        assert "<other_files>\nassets/data.bin\n</other_files>" in user.text


def test_files_that_are_not_trained_are_shown_as_such():
    backend, _ = run(RULE, files=["references/rules.md"])
    _, user, *_ = asked(backend, "Analyse failures")
    assert '<file path="SKILL.md" editable="no">' in user.text
    assert '<file path="references/more.md" editable="no">' in user.text
    assert "def count" not in user.text


def test_a_skill_of_one_file_is_shown_as_it_always_was():
    backend = ToyBackend()
    history = History()
    asyncio.run(run_to_end(trainer(backend, history, train=ONE_STEP), history))
    system, user, *_ = asked(backend, "Analyse failures")
    assert "Files that you may edit" not in system.text
    assert '<file path="SKILL.md">\n---' in user.text
    assert "editable" not in user.text


def test_a_long_file_is_shown_without_its_middle_and_may_not_grow():
    long = Skill("toy", {**SEED.files, "references/rules.md": b"# Rules\n\n" + b"- a rule\n" * 60})
    backend, history = run(RULE, seed=long, max_file_tokens=50)
    _, user, *_ = asked(backend, "Analyse failures")
    assert "characters left out" in user.text
    assert history[1].event.title == "too long: references/rules.md has 140 tokens, 50 are allowed"
    assert targets(backend) == 3 * 8


@pytest.mark.parametrize(
    ("path", "content", "fault"),
    [
        ("a.py", b"def f(:\n", "invalid syntax (line 1)"),
        ("a.py", b"return 1\n", "'return' outside function (line 1)"),
        ("a.py", b"x = 1\0", "null bytes"),
        ("a.sh", b"if true; then\n", "syntax error"),
        ("a.json", b'{"a": }', "Expecting value"),
        ("a.json", b"[" * 100_000, "recursion"),
        ("a.yaml", b"a: [1,\n", "expected"),
        ("a.toml", b"a = \n", "Invalid value"),
        ("run", b"#!/usr/bin/env python3\ndef f(:\n", "invalid syntax"),
        ("run", b"#!/bin/sh\nif true; then\n", "syntax error"),
    ],
)
def test_a_file_that_does_not_parse_is_told_why(path, content, fault):
    assert fault in fault_in(path, content)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.py", b"import sys\nsys.exit('executed')\nx = '\\d'\n"),
        ("a.sh", b"touch executed\nexit 7\n"),
        ("a.json", b"{}"),
        ("a.yml", b"a: !!python/object:os.system 1\n---\nb: 2\n"),
        ("a.toml", b"a = 1\n"),
        ("a.js", b"not ( javascript"),
        ("notes", b"#!no\n"),
    ],
)
def test_what_parses_has_no_fault_and_is_not_executed(path, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fault_in(path, content) == ""
    assert list(tmp_path.iterdir()) == []


def test_a_candidate_with_a_broken_script_is_invalid_and_costs_no_rollout():
    broken = {"op": "append", "file": "scripts/count.py", "content": "def broken(:"}
    backend, history = run(RULE, broken)
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.SKIPPED, EventKind.RUN_FINISHED]
    assert history[1].event.title == "invalid: scripts/count.py does not parse"
    assert "invalid syntax (line 3)" in history[1].event.why
    assert targets(backend) == 3 * 8
    assert [status for status, _ in statuses(history[1])] == ["applied", "applied"]


def test_a_script_that_was_broken_before_is_not_the_candidates_fault():
    seed = Skill("toy", {**SEED.files, "scripts/old.py": b"print 'two'\n"})
    _, history = run(RULE, seed=seed)
    assert kinds(history)[1] is EventKind.ACCEPTED


CHECKED = Skill(
    "toy",
    {
        **SEED.files,
        "scripts/selftest.py": b"import pathlib, sys\n"
        b"text = pathlib.Path('references/rules.md').read_text()\n"
        b"sys.exit('a forbidden word' if 'amber' in text else 0)\n",
    },
)
CHECK = "python scripts/selftest.py"


@needs_sandbox
def test_a_candidate_that_fails_its_self_check_is_invalid_and_costs_no_rollout():
    backend, history = run(RULE, seed=CHECKED, check=CHECK)
    assert kinds(history) == [EventKind.RUN_STARTED, EventKind.SKIPPED, EventKind.RUN_FINISHED]
    assert history[1].event.title == "invalid: the skill fails its self-check"
    assert "exit code 1: a forbidden word" in history[1].event.why
    assert targets(backend) == 3 * 8


@needs_sandbox
def test_a_candidate_that_passes_its_self_check_is_measured():
    birch = {"op": "append", "file": "references/rules.md", "content": "- birch"}
    _, history = run(birch, seed=CHECKED, check=CHECK)
    assert kinds(history)[1] is EventKind.ACCEPTED


@needs_sandbox
def test_a_run_does_not_begin_with_a_skill_that_fails_its_self_check():
    with pytest.raises(ConfigError, match=r"fails optimizer\.check"):
        run(RULE, seed=CHECKED, check="python scripts/absent.py")


def test_a_self_check_needs_a_sandbox(monkeypatch):
    def refuse(*_):
        raise SandboxError("no way to isolate", hint="")

    monkeypatch.setattr("skillgit.sandbox.Sandbox", refuse)
    with pytest.raises(SandboxError, match="no way to isolate"):
        run(RULE, seed=CHECKED, check=CHECK)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (["assets/data.bin"], "binary files"),
        (["assets/logo"], "names no file of skill 'toy'"),
        (["templates/*.md"], "names no file of skill 'toy'"),
    ],
)
def test_a_run_does_not_begin_with_nothing_to_train(files, told):
    with pytest.raises((ConfigError, ValueError), match=told):
        run(RULE, files=files)


def test_a_file_that_is_named_and_is_no_text_is_an_error():
    seed = Skill("toy", {**SEED.files, "assets/blob": b"\0"})
    with pytest.raises(ConfigError, match="not text in skill"):
        run(RULE, seed=seed, files=["SKILL.md", "assets/blob"])


def test_rewrites_and_other_files_do_not_go_together():
    with pytest.raises(ValueError, match="a rewrite changes no other"):
        OptimizerSettings(files=("references/*.md",), skill_update_mode="full_rewrite_minibatch")


def test_the_prompt_on_files_counts_only_where_it_is_used():
    assert prompts_digest() != prompts_digest("trainable_files")


def test_the_reflection_on_an_epoch_may_edit_other_files_too():
    back = json.dumps({"title": "back", "edits": [RULE, {"op": "append", "file": "notes.md", "content": "- x"}]})
    nothing = json.dumps({"title": "", "reasoning": "", "edits": []})
    backend = ToyBackend(script={"Analyse failures": lambda _: nothing, "Reflect on an epoch": lambda _: back})
    _, history = run(backend=backend, use_meta_reflect=True)
    event = next(transition for transition in history if transition.event.kind is EventKind.ACCEPTED)
    assert [edit.file for edit in event.event.edits] == ["references/rules.md"]
    assert "## Files that you may edit" in asked(backend, "Reflect on an epoch")[0].text
