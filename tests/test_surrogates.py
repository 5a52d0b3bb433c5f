"""Half of a surrogate pair, or bytes that are not UTF-8, never end in an internal error, wherever they stand."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from contextlib import suppress

import pygit2
import pytest
import rule_run
from hypothesis import given
from hypothesis import strategies as st
from program import SKILLGIT, attempt, new_repository, skillgit, surroundings
from rule_run import write_rule_run
from sample_run import RUN

from skillgit.domain.cost import Cost
from skillgit.domain.event import Event, Models
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.ids import check_item_id, digest
from skillgit.domain.proposal import PatchCounts
from skillgit.domain.trajectory import Trajectory
from skillgit.domain.untrusted.model_text import storable, unstorable_place
from skillgit.engine.evidence_files import json_file
from skillgit.errors import DataError, EnvironmentFaultError
from skillgit.plugin.backend import Reply, Tool, ToolCall, Usage
from skillgit.plugin.call_records import read_reply, reply_json
from skillgit.plugin.data_rows import read_rows
from skillgit.plugin.redaction import Redactor
from skillgit.sandbox import Sandbox
from skillgit.sandbox.tools import read_arguments
from skillgit.store import commit_message
from skillgit_envs import docvqa, livemathematicianbench, searchqa
from skillgit_envs.officeqa import scoring as officeqa
from skillgit_envs.tasks import Tasks

CUT = "\ud83d"
texts = st.text(st.characters(codec=None, categories=None), max_size=40) | st.sampled_from([CUT, f"a{CUT}b", "\udcff"])
EVIDENCE = "0" * 40


@given(texts)
def test_rows_are_read_or_refused_with_their_place(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("rows")
    row = {"id": "a", "prompt": text, "deep": [{"x": text}]}
    for name, content in (
        ("a.jsonl", json.dumps(row)),
        ("a.json", json.dumps([row])),
        ("b.json", json.dumps({"data": [row]})),
        ("c.json", json.dumps({"a": row, "b": row})),
    ):
        (folder / name).write_text(f"{content}\n")
        if unstorable_place(json.loads(json.dumps(text))) is None:
            json.dumps(read_rows(folder / name)[0].value, ensure_ascii=False).encode()
            continue
        with pytest.raises(DataError, match="half of a surrogate pair in 'prompt'") as caught:
            read_rows(folder / name)
        assert str(folder / name) in caught.value.message
        assert caught.value.hint


def test_every_row_that_cannot_be_stored_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"id": str(number), "answers": ["x", CUT]}) + "\n" for number in range(2)))
    with pytest.raises(DataError) as caught:
        read_rows(path)
    assert f"{path}:1" in str(caught.value)
    assert "and 1 more fault" in str(caught.value)
    assert "answers.2" in str(caught.value)


@given(texts)
def test_ids_and_digests_take_any_text(text):
    assert digest([text]) == digest([text])
    with suppress(DataError):
        check_item_id(text).encode()


@given(texts, texts)
def test_replies_are_recorded_and_read_back_as_utf8(text, arguments):
    calls = (ToolCall(id=text, name=text, arguments=arguments),)
    recorded = Redactor(()).reply(Reply(text=text, usage=Usage(tokens_in=1, tokens_out=1), tool_calls=calls))
    written = json.dumps(reply_json(recorded), ensure_ascii=False).encode()
    assert read_reply(json.loads(written), recorded.usage) == recorded


@given(texts)
def test_arguments_of_tools_are_utf8_however_they_were_escaped(text):
    parameters = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    tool = Tool(name="run", description="", parameters=parameters)
    call = ToolCall(id="1", name="run", arguments=json.dumps({"code": text}))
    read_arguments(call, [tool])["code"].encode()


@given(texts)
def test_events_and_artefacts_are_written_and_read_back(text):
    patch = PatchCounts(merged=0, ranked=0, applied=0, skipped=0, budget=3)
    event = Event(kind=EventKind.SKIPPED,
        run="r", skill="skills/a", epoch=1, step=1, title=text, why=text, patch=patch,
        models=Models(target="a/b", optimizer="c/d"), cost=Cost(),
    )  # fmt: skip
    assert commit_message.decode(commit_message.encode(event, EVIDENCE)).event == event
    json.loads(json_file({"text": text, "rows": [{text: text}]}).decode())


CHECKS = (
    {"check": "exact", "answers": ["7"]},
    {"check": "contains", "answers": ["7"]},
    {"check": "numeric", "answers": ["7"]},
    {"check": {"type": "regex", "pattern": "^7$"}},
    {"check": {"type": "f1"}, "answers": ["7"]},
    {"check": {"type": "json", "fields": {"a": 7}}},
)


@pytest.mark.parametrize("row", CHECKS, ids=lambda row: str(row["check"]))
@given(text=texts)
def test_a_check_scores_an_answer_with_half_a_pair_like_one_with_its_replacement(tmp_path_factory, row, text):
    environment = Tasks({}, tmp_path_factory.getbasetemp())
    try:
        item = environment.task("the row", {"prompt": "Do it.", **row}, tmp_path_factory.getbasetemp() / "t.jsonl")
    except DataError:
        pytest.skip("the check is called otherwise")
    scores = [
        asyncio.run(environment.score(item, Trajectory(item_id=item.id, turns=(), answer=answer), None))[0]
        for answer in (text, storable(text))
    ]
    assert scores[0] == scores[1]


@given(texts)
def test_scorers_of_benchmarks_take_any_answer(text):
    choices = {"A": "one", "B": "two"}
    for scored in (
        lambda answer: searchqa.score(answer, ["7"]),
        lambda answer: docvqa.score(answer, ["7"], docvqa.RULES["official"]),
        lambda answer: officeqa.score(officeqa.final_answer(answer), "7", "official", 0.0),
        lambda answer: livemathematicianbench.score(answer, choices, "one")[0],
    ):
        alone = len(storable(text)) == len(text)  # two halves that stand together are one character
        assert scored(text) == scored(storable(text)) or not alone
    for said in (searchqa.feedback(text, ["7"]), officeqa.feedback(text, "7", "official", 0.0)):
        json_file({"feedback": said})


def test_a_python_check_gets_utf8(tmp_path):
    try:
        Sandbox()
    except EnvironmentFaultError as error:
        pytest.skip(error.message)
    (tmp_path / "checks.py").write_text("def score(answer, item):\n    return float(answer.endswith(chr(0xFFFD)))\n")
    environment = Tasks({}, tmp_path)
    row = {"prompt": "Do it.", "check": {"type": "python", "function": "checks.py:score"}}
    item = environment._reader.item("the row", row, tmp_path / "tasks.jsonl")
    scored, _ = asyncio.run(environment.score(item, Trajectory(item_id=item.id, turns=(), answer=f"x{CUT}"), None))
    assert scored.hard == 1.0


def test_a_tasks_file_with_a_cut_emoji_is_refused_with_its_row(tmp_path):
    repository = new_repository(tmp_path / "repository")
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"Q{number} {CUT}", "answers": ["a"]}) + "\n" for number in range(9)))
    done = skillgit("train", "tasks/default", "-o", f"env.data_path={path}", cwd=repository, code=2)
    assert f"{path}:1 has half of a surrogate pair in 'prompt'" in done.err
    assert "hint: " in done.err


@pytest.mark.parametrize(
    "words",
    [
        (b"show", b"v\xff"),
        (b"log", b"\xff"),
        (b"why", b"\xff"),
        (b"train", b"demo", b"-o", b"model.target=a\xff"),
        (b"train", b"demo", b"--run", b"a\xff"),
        (b"sql", b"select '\xff'"),
        (b"note", b"v0", b"say \xff"),
        (b"\xff",),
    ],
)
def test_an_argument_that_is_not_utf8_is_refused(words, tmp_path):
    repository = new_repository(tmp_path / "repository")
    command = [os.fsencode(word) for word in SKILLGIT]
    done = subprocess.run([*command, *words], cwd=repository, env=surroundings(), capture_output=True, check=False)
    assert done.returncode == 2, done.stderr
    assert b"is not UTF-8" in done.stderr
    assert b"internal error" not in done.stderr
    done.stderr.decode()


def test_a_configuration_with_half_a_pair_is_refused(tmp_path):
    repository = new_repository(tmp_path / "repository")
    (repository / "own.yaml").write_text('env:\n  name: searchqa\nmodel:\n  target: "a\\ud83d"\n')
    done = skillgit("config", "own.yaml", cwd=repository, code=2)
    assert "internal error" not in done.err


def test_an_author_that_is_not_utf8_is_shown(repo):
    write_rule_run(repo)
    branch = f"refs/heads/run/{RUN}"
    made = repo.raw.get(repo.tips()[branch]).read_raw()
    strange = b"\n".join(line.replace(rule_run.PERSON.encode(), b"J\xf6rg \xed\xa0\xbd") for line in made.split(b"\n"))
    assert strange != made
    oid = repo.raw.odb.write(pygit2.enums.ObjectType.COMMIT, strange)
    repo.raw.references[branch].set_target(oid)
    for words in (
        ("log",),
        ("log", "--json"),
        ("show", "v5"),
        ("show", "v5", "--json"),
        ("blame",),
        ("fsck",),
        ("runs",),
    ):
        done = attempt(*words, cwd=repo.workdir)
        assert done.code in {0, 1}, done


def test_an_attachment_whose_name_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    environment = Tasks({}, tmp_path)
    with pytest.raises(DataError, match="is not UTF-8"):
        environment._reader.item("the row", {"prompt": "p", "answers": ["a"], "files": ["files"]}, tmp_path / "t.jsonl")
