"""A candidate that is no valid Agent Skill any more is told as such, and costs no rollout."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from toy import ONE_STEP, SEED, History, ToyBackend, run_to_end, trainer

from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import DOCUMENT
from skillgit.engine.candidate import refusal
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.search import Search
from skillgit.strategies import skillopt

OPTIONS = {
    "train": ONE_STEP,
    "optimizer": {"use_slow_update": False, "use_meta_skill": False},
}


def run_with(edit: dict[str, str]):
    said = json.dumps({"title": "try", "reasoning": "r", "edits": [edit]})
    backend, history = ToyBackend(script={"Analyse failures": lambda _: said}), History()
    asyncio.run(run_to_end(trainer(backend, history, **OPTIONS), history))
    return backend, history


@pytest.mark.parametrize("op", ["replace", "insert_after", "delete"])
def test_no_edit_of_an_optimizer_reaches_the_frontmatter(op):
    backend, history = run_with({"op": op, "anchor": "description: Toy.", "content": "description: amber"})
    assert [transition.event.kind for transition in history] == [
        EventKind.RUN_STARTED,
        EventKind.SKIPPED,
        EventKind.RUN_FINISHED,
    ]
    reports = json.loads(history[1].evidence["patch.json"])["edits"]
    assert [report["status"] for report in reports] == ["protected"]
    assert len([request for request in backend.requests if request.model == "target"]) == 3 * 8


def _other_description(document):
    return document.replace("description: Toy.", "description: amber")


def _second_frontmatter(document):
    head, body = document.split("\n# ", 1)
    return f"{head}\n---\nname: toy\ndescription: Again.\n---\n# {body}"


@pytest.mark.parametrize(
    ("tamper", "title"),
    [
        (_other_description, "invalid: the frontmatter is not that of the base"),
        (_second_frontmatter, "invalid: there are two frontmatters"),
    ],
)
def test_a_candidate_with_another_frontmatter_is_skipped_as_invalid_before_its_first_rollout(
    monkeypatch, tamper, title
):
    """Code that broke the rule would meet the guard: here it is broken on purpose."""
    carry_out = skillopt.carry_out

    async def tampering(*args, **kwargs):
        candidate = await carry_out(*args, **kwargs)
        return _with_document(candidate, tamper(candidate.application.skill.document))

    monkeypatch.setattr(skillopt, "carry_out", tampering)
    backend, history = run_with({"op": "append", "content": "- amber"})
    kinds = [EventKind.RUN_STARTED, EventKind.SKIPPED, EventKind.RUN_FINISHED]
    assert [transition.event.kind for transition in history] == kinds
    assert history[1].event.title == title
    of_target = [request for request in backend.requests if request.model == "target"]
    assert len(of_target) == 3 * 8, "baseline, batch and test"


def _with_document(candidate, text):
    application = candidate.application
    skill = application.skill.with_text(DOCUMENT, text)
    return replace(candidate, application=replace(application, skill=skill))


def refused(text: str, *files: str):
    """Return what the guard says of ``text`` in place of the seed where steps may edit ``files``."""
    sections = {"optimizer": {"files": list(files or ("SKILL.md",))}, "evaluation": {"leak_lint": False}}
    session = SimpleNamespace(settings=MethodSettings.model_validate(sections), outcomes=None)
    state = SimpleNamespace(memory=(), version=0, step=0)
    search = Search.of(session, state, SimpleNamespace(skill=lambda _: SEED))
    return refusal(search, SEED.with_text(DOCUMENT, text))


@pytest.mark.parametrize("files", [("SKILL.md",), ("frontmatter.description",)])
@pytest.mark.parametrize(
    "text",
    [
        SEED.document.replace("name: toy", "name: other"),
        SEED.document.removeprefix("---\n"),
        f"\ufeff{SEED.document}",
        f"\n{SEED.document}",
        SEED.document.replace("\n---\n", "\nversion: 1\n---\n", 1),
    ],
)
def test_whatever_is_not_the_frontmatter_of_the_base_is_refused(text, files):
    found = refused(text, *files)
    assert found is not None
    assert found.title.startswith("invalid: ")


DESCRIBED = SEED.document.replace("description: Toy.", 'description: "Plays a game."')


@pytest.mark.parametrize(
    ("text", "files", "is_refused"),
    [
        (DESCRIBED, ("frontmatter.description",), False),
        (DESCRIBED, ("SKILL.md",), True),
        (f"{DESCRIBED}- more\n", ("frontmatter.description",), True),
        (f"{DESCRIBED}- more\n", ("frontmatter.description", "SKILL.md"), False),
        (DESCRIBED.replace("Plays a game.", "x" * 1025), ("frontmatter.description",), True),
        (DESCRIBED.replace("name: toy", "name: ball"), ("frontmatter.description",), True),
    ],
)
def test_a_description_may_change_where_it_is_named_and_nothing_else(text, files, is_refused):
    assert (refused(text, *files) is not None) == is_refused
