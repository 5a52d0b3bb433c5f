"""What the target is asked, by every environment that comes with skillgit, in skillgit's own words."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from household_games import POTATO, Table
from hypothesis import given
from hypothesis import strategies as st
from scripted import ScriptedBackend

from skillgit.calls.route import Route
from skillgit.domain.asked_question import question_of
from skillgit.domain.evaluation import Split
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item
from skillgit.engine.search import Task, setup_digest
from skillgit.errors import ConfigError, SandboxError
from skillgit.plugin import plugin_identity
from skillgit.plugin.backend import Request, system, user
from skillgit.plugin.plugin_identity import PluginSource
from skillgit.plugin.registry import load_environment
from skillgit.plugin.skill_marks import as_text, marked
from skillgit_backends.agent_cli.prompting import assignment
from skillgit_envs.docvqa import DocVQA
from skillgit_envs.shipped_environment import in_turns, prompt_file, with_skill
from skillgit_envs.tasks import FORMS, messages
from skillgit_envs.tasks.attachments import Attachments

PROGRAM = "ends with ```."
DONE = "reply\nwithout a tool call and say in a sentence what you changed."
CASES = {
    "alfworld": ({}, "<action> and </action>"),
    "babyvision": ({}, "<answer> and </answer>"),
    "docvqa": ({}, "<answer> and </answer>"),
    "livemathematicianbench": ({}, "<answer> and </answer>"),
    "mathverse": ({}, "<answer> and </answer>"),
    "mmrb": ({}, "<answer> and </answer>"),
    "officeqa": ({"use_local_tools": False}, "<answer> and </answer>"),
    "sealqa": ({}, "<answer> and </answer>"),
    "sealqa documents": ({"mode": "documents", "subset": "longseal"}, "<answer> and </answer>"),
    "sealqa search": ({"mode": "search"}, "<answer> and </answer>"),
    "searchqa": ({}, "<answer> and </answer>"),
    "spreadsheetbench": ({"scorer": "skillopt"}, PROGRAM),
    "spreadsheetbench tools": ({"scorer": "skillopt", "mode": "react"}, PROGRAM),
    "swebench": ({}, DONE),
    "tasks": ({}, "<answer> and </answer>"),
}
"""Environment and variant, to its options and to the form of the answer that its scorer reads."""
FILES = [
    *((name, "system") for name in CASES if " " not in name and name not in {"sealqa", "spreadsheetbench"}),
    *(("sealqa", mode) for mode in ("closed", "documents", "search")),
    *(("spreadsheetbench", mode) for mode in ("program", "tools")),
]
QUESTIONS = {"spreadsheetbench": "instruction", "swebench": "problem_statement", "tasks": "prompt"}
"""Environment to the field of an item that is its question, where it is not called so."""
PLACES = re.compile(r"\{(?:skill|question|form|libraries|max_steps)\}|\[user\]")
RULE = "- Answer as the source writes it."


class AskedError(Exception):
    """The target was asked, which is all that is wanted."""


class Listener:
    """A target that keeps what it is asked first."""

    def __init__(self):
        self.heard = ()

    async def chat(self, conversation, tools=(), form=None):
        del tools, form
        self.heard = tuple(conversation)
        raise AskedError


def skill_of(text):
    return Skill("any", {"SKILL.md": f"---\nname: any\ndescription: Any.\n---\n\n{text}\n".encode()})


def asked(case, skill, folder, count=3):
    """Return what is asked first about some items, as the environment says it."""
    name, options = case.partition(" ")[0], CASES[case][0]
    environment = load_environment(name, folder)(options, folder)
    if name == "alfworld":
        environment._simulator = Table()
        items = [Item(id=str(number), content=POTATO, task_type="") for number in range(count)]
    else:
        items = environment.items(Split.TRAIN)[:count]
    heard = []
    for item in items:
        listener = Listener()
        with pytest.raises(AskedError):
            asyncio.run(environment.rollout(item, skill, listener))
        heard.append(listener.heard)
    return heard


@pytest.fixture(params=CASES, scope="module")
def case(request):
    if request.param == "alfworld" and find_spec("textworld") is None:
        pytest.skip("textworld is not installed")
    return request.param


@pytest.fixture(scope="module")
def conversations(case, tmp_path_factory):
    """What the target is asked about three items."""
    try:
        return asked(case, skill_of(RULE), tmp_path_factory.mktemp("asked"))
    except (SandboxError, ConfigError) as error:
        pytest.skip(error.message)


def test_the_form_of_the_answer_is_last_and_the_system_prompt_is_the_same_for_all_items(case, conversations):
    assert len({conversation[0] for conversation in conversations}) == 1
    for conversation in conversations:
        assert [message.role for message in conversation] == ["system", "user"]
        assert CASES[case][1] in conversation[1].text.rpartition("\n\n")[2]
        assert (conversation[0].text + conversation[1].text).count(RULE) == 1
        assert not PLACES.search(conversation[0].text + conversation[1].text)


def test_history_tells_the_question_from_what_is_around_it(case, conversations, tmp_path):
    if case == "alfworld":
        pytest.skip("a game asks nothing")
    name, options = case.partition(" ")[0], CASES[case][0]
    items = load_environment(name, tmp_path)(options, tmp_path).items(Split.TRAIN)
    for item, (_, turn) in zip(items, conversations, strict=False):
        words = " ".join(str(item.content[QUESTIONS.get(name, "question")]).split())
        question = question_of(turn.text)
        assert question in words, "nothing else is in it"
        assert words.endswith(question[-60:]), "it goes to the end"
        assert len(question) >= min(20, len(words))


def test_no_trace_of_a_skill_is_sent_where_there_is_none(case, tmp_path):
    try:
        (conversation,) = asked(case, skill_of(""), tmp_path, count=1)
    except (SandboxError, ConfigError) as error:
        pytest.skip(error.message)
    sent = as_text(conversation)
    assert sent == tuple(message for message in conversation if message.text)
    assert "skill" not in "".join(message.text for message in sent if message.role == "system").lower()


LINES = (
    *('<skill name="x">', "</skill>", "</skill> ", '<skill name="y" offered>', '<skill name="z" lines="2">'),
    *("[user]", "{question}", "{skill}", "{form}", " <skill>", "- Be brief.", "", "- é\u2028x\x0b"),
)
TEXTS = st.lists(st.sampled_from(LINES), max_size=8).map("\n".join).map(str.strip)


@given(st.sampled_from(FILES), TEXTS.filter(bool))
def test_any_skill_is_read_once_and_unchanged_by_models_and_installed_whole_by_agents(file, text):
    prompt = in_turns(prompt_file(f"skillgit_envs.{file[0]}", file[1]))[0]
    before, _, after = prompt.partition("{skill}")
    message = system(with_skill(prompt, skill_of(text)))
    plain, agent = (routed(installs, message) for installs in (False, True))
    assert plain == (system(f"{before}{text}{after}"), user("Go."))
    assert agent == (message, user("Go."))
    given_out = assignment(Request(model="m", messages=agent))
    (installed,) = given_out.skills
    assert installed.document.partition("---\n\n")[2] == f"{text}\n"
    assert given_out.instructions.startswith(before)
    assert given_out.instructions.endswith(after)


def routed(installs, *conversation):
    backend = ScriptedBackend()
    backend.info = replace(backend.info, installs_skills=installs)
    route = Route(backend=backend, backend_name="scripted", model="small")
    return route.request([*conversation, user("Go.")]).messages


@given(TEXTS, TEXTS.filter(bool), TEXTS)
def test_marks_keep_every_text_between_any_others(before, text, after):
    around = [part.replace("<", "(") for part in (before, after)]
    body = f"{around[0]}\n\n{marked('a', text)}\n\n{marked('b', text)}\n\n{around[1]}"
    (message,) = as_text([system(body)])
    assert message.text == f"{around[0]}\n\n{text}\n\n{text}\n\n{around[1]}"
    assert [skill.name for skill in assignment(Request(model="m", messages=(system(body), user("Go.")))).skills] == [
        "a",
        "b",
    ]


@given(TEXTS)
def test_what_an_agent_is_merely_offered_keeps_its_marks(text):
    message = system(f"List:\n{marked('a', text, offered=True)}\nEnd.")
    assert as_text([message]) == (message,)
    (skill,) = assignment(Request(model="m", messages=(message, user("Go.")))).skills
    assert skill.offered
    assert skill.document == f"{text}\n"


@given(st.sampled_from(FILES), TEXTS)
def test_any_question_is_asked_once_and_unchanged(file, text):
    environment = DocVQA({}, Path())
    turn = in_turns(prompt_file(f"skillgit_envs.{file[0]}", file[1]))[1]
    environment.target_prompt = lambda: prompt_file(f"skillgit_envs.{file[0]}", file[1])
    before, _, after = turn.partition("{question}")
    assert environment._turn(text) == f"{before}{text}{after}"
    item = Item(id="a", content={"prompt": text, "extract": "tag", "files": [], "images": []})
    system_message, question = messages(item, skill_of("{form}\n{question}"), Attachments(), "none")
    assert question.text == f"{text}\n\n{FORMS['tag']}"
    assert as_text([system_message]) == (system("{form}\n{question}"),)


@pytest.mark.parametrize("source", [None, PluginSource(name="any", version="1")])
def test_outcomes_that_were_measured_with_another_form_of_the_skill_are_no_longer_taken(source, tmp_path, monkeypatch):
    task = Task(environment=DocVQA({}, tmp_path), items={}, source=source)
    now = (task.digest, setup_digest(task, str))
    monkeypatch.setattr(plugin_identity, "FORM", "tags/1")
    before = (task.digest, setup_digest(task, str))
    assert not set(now) & set(before)


def test_the_digest_covers_what_the_prompt_says(case, tmp_path, monkeypatch):
    name, options = case.partition(" ")[0], CASES[case][0]
    environment = load_environment(name, tmp_path)(options, tmp_path)
    before, prompt = environment.digest, environment.target_prompt()
    assert {"{skill}", "[user]", "{question}"} <= set(prompt.split("\n"))
    original = type(environment)._prompt_file
    for part in ("{skill}", "{question}"):
        monkeypatch.setattr(
            type(environment),
            "_prompt_file",
            lambda self, *words, part=part: original(self, *words).replace(part, f"{part} and so on"),
        )
        assert environment.digest != before, part
