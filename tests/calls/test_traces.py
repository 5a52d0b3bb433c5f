"""What a collector gets of a training and a measurement: every call once, with the tokens of the ledger."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections import Counter
from contextlib import ExitStack, closing

import pytest
from collector import collector, environment
from program import QUICK, SKILLGIT, new_repository, run, skillgit
from soaking import soak
from wire import Faults, wire_server
from wire.training import ENVIRONMENT, course, over

SHORT = ("-o", "train.num_epochs=1", *QUICK[2:], "-o", "env.limit=20")
KEY = ENVIRONMENT["OPENAI_API_KEY"]


def named(url, **more):
    return {**ENVIRONMENT, **environment(url), **more}


def charged(repository):
    """Return the tokens of all calls that the ledger has, by key; of failed attempts those of the key are added up."""
    tokens = Counter()
    with closing(sqlite3.connect(repository / ".git" / "skillgit" / "ledger.db")) as ledger:
        for key, tokens_in, tokens_out in ledger.execute("SELECT key, tokens_in, tokens_out FROM reply"):
            tokens[key, "in"], tokens[key, "out"] = tokens_in, tokens_out
        keys = [key for (key,) in ledger.execute("SELECT key FROM reply")]
    return keys, tokens


def collected(spans):
    answered = [span for span in spans if "error.type" not in span.facts]
    tokens = Counter()
    for span in answered:
        key = span.facts["skillgit.call"]
        tokens[key, "in"] += span.facts["gen_ai.usage.input_tokens"]
        tokens[key, "out"] += span.facts["gen_ai.usage.output_tokens"]
    return [span.facts["skillgit.call"] for span in answered], tokens


@pytest.mark.slow
def test_every_call_of_a_training_and_a_measurement_arrives_once_with_the_tokens_of_the_ledger(tmp_path):
    repository = new_repository(tmp_path / "repository")
    with wire_server(faults=Faults(script=("rate_limit",))) as wire, collector() as taken:
        options, env = (*SHORT, *over(wire, "chat")), named(taken.url)
        skillgit("train", "demo", "--run", "demo", *options, cwd=repository, env=env)
        skillgit("eval", "demo~1", *("--split", "test"), cwd=repository, env=env)
        keys, tokens = charged(repository)
        chats = taken.named("chat")
        arrived, counted = collected(chats)
        assert (sorted(arrived), counted) == (sorted(keys), tokens)
        assert len(set(keys)) == len(keys) > 40

        refused = [span for span in chats if "error.type" in span.facts]
        assert [(span.facts["error.type"], "gen_ai.usage.input_tokens" in span.facts) for span in refused] == [
            ("429", False)
        ]
        by_id = {span.id: span for span in taken.spans}
        assert len(by_id) == len(taken.spans)
        roots = [span for span in taken.spans if not span.parent]
        assert [root.name.split("-")[0] for root in roots] == ["invoke_workflow demo", "invoke_workflow eval"]
        assert {by_id[span.parent].name for span in chats} >= {"rollout", "step"}
        assert all(span.parent in by_id for span in taken.spans if span.parent)
        assert {span.facts["gen_ai.provider.name"] for span in chats} == {"openai"}
        assert {span.name for span in chats} == {"chat reader", "chat analyst"}

        rollouts = {span.id: span for span in taken.named("rollout")}
        hard = {event.parent: event for event in taken.events if event.facts["gen_ai.evaluation.name"] == "hard"}
        assert hard.keys() == rollouts.keys()
        assert {event.name for event in taken.events} == {"gen_ai.evaluation.result"}
        for id_, event in hard.items():
            assert event.facts["gen_ai.evaluation.score.value"] == rollouts[id_].facts["skillgit.hard"]

        # what the ledger answers is not sent again
        before = len(taken.spans)
        skillgit("eval", "demo~1", *("--split", "test"), cwd=repository, env=env)
        assert not taken.named("chat")[len(chats) :]
        assert {span.name.split("-")[0] for span in taken.spans[before:]} <= {"invoke_workflow eval", "measure"}


def called(name, **arguments):
    call = {"function_name": name, "tool_call_id": "c", "arguments": arguments}
    return {"source": "agent", "tool_calls": [call], "observation": {"results": [{"source_call_id": "c"}]}}


STEPS = [
    {"source": "user", "message": "Sum 1, 2 and 3 into sum.txt."},
    called("Skill", skill="searchqa"),
    called("Write", file_path="/app/sum.txt", content="5\n"),
    {"source": "user", "message": "No, it is one more."},
    called("Write", file_path="/app/sum.txt", content="6\n"),
]
ATIF = {"schema_version": "ATIF-v1.7", "session_id": "one", "agent": {"name": "a", "version": "1"}, "steps": STEPS}
REPLIES = (
    ("# Draft tasks", json.dumps({"tasks": [{"prompt": "What is 2 + 2?", "answers": ["4"]}]})),
    ("<outcome>", json.dumps({"criteria": ["It says six."]})),
)
ASKING = {
    "doctor": (("doctor", "demo"), 2),
    "tasks draft": (("tasks", "draft", "searchqa", "--limit", "1"), 1),
    "tasks draft --rubric": (("tasks", "draft", "searchqa", "--rubric", "--from", "atif:trajectory.json"), 1),
}


@pytest.mark.parametrize("name", ASKING)
def test_a_command_that_keeps_no_ledger_sends_each_call_once_with_the_tokens_of_the_provider(name, tmp_path):
    repository = new_repository(tmp_path / "repository")
    (repository / "trajectory.json").write_text(json.dumps(ATIF))
    (words, count) = ASKING[name]
    with wire_server(scripted=REPLIES) as wire, collector() as taken:
        judge = ("-o", "model.judge_backend=openai_chat", "-o", "model.judge=analyst")
        skillgit(*words, *over(wire, "chat"), *judge, cwd=repository, env=named(taken.url))
        asked = [(entry.model, entry.tokens_in, entry.tokens_out) for entry in wire.log() if entry.delivered]
        keys = "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
        assert sorted(tuple(span.facts[key] for key in keys) for span in taken.named("chat")) == sorted(asked)
        assert len(asked) == count
        (root,) = [span for span in taken.spans if not span.parent]
        assert root.name.startswith(f"invoke_workflow {name.partition(' --')[0].replace(' ', '-')}-")


@pytest.mark.slow
@pytest.mark.parametrize("content", ["", "span_only"])
def test_words_arrive_only_where_they_are_asked_for_and_credentials_never(content, tmp_path):
    repository = new_repository(tmp_path / "repository")
    quoted = f"the key {KEY} was refused"
    faults = Faults(script=("rate_limit",))
    with wire_server(quote=quoted, said=((r"\w+$", KEY),), faults=faults) as wire, collector() as taken:
        env = named(f"{taken.url}/", OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=content)
        env["OTEL_EXPORTER_OTLP_HEADERS"] = f"authorization=Bearer {KEY}"
        command = ("train", "demo", "--run", "demo", *SHORT, *over(wire, "chat"))
        skillgit(*command, cwd=repository, env=env)
    chats, sent = taken.named("chat"), b"".join(taken.bodies)
    assert KEY.encode() not in sent
    answers = [event for event in taken.events if "gen_ai.evaluation.explanation" in event.facts]
    assert bool(answers) is bool(content)
    assert (b"the key" in sent) is bool(content)
    for span in chats:
        assert ("gen_ai.input.messages" in span.facts) is bool(content)
        messages = json.loads(span.facts.get("gen_ai.input.messages", "[]"))
        assert [part["type"] for message in messages for part in message["parts"]] == ["text"] * len(messages)


@pytest.fixture(scope="module")
def untraced(tmp_path_factory):
    repository = new_repository(tmp_path_factory.mktemp("untraced") / "repository")
    with wire_server() as wire:
        skillgit("train", "demo", "--run", "demo", *SHORT, *over(wire, "chat"), cwd=repository, env=ENVIRONMENT)
    return course(repository)


@pytest.mark.slow
@pytest.mark.parametrize("fate", [soak("absent"), "dies", "silent", soak("misnamed")])
def test_a_collector_that_takes_nothing_changes_no_run_and_is_said_once(fate, untraced, tmp_path):
    repository = new_repository(tmp_path / "repository")
    with ExitStack() as stack, wire_server() as wire:
        silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        if fate == "absent":
            silent.close()
        if fate == "misnamed":
            url = "no-scheme"
        if fate == "dies":
            taken = stack.enter_context(collector())
            url, taken.arrived = taken.url, taken.die
        command = ("train", "demo", "--run", "demo", *SHORT, *over(wire, "chat"))
        done = skillgit(*command, cwd=repository, env=named(url, OTEL_EXPORTER_OTLP_TIMEOUT="1"))
    assert done.err.count("and the work goes on without them") == 1
    assert course(repository) == untraced
    if fate == "dies":
        assert taken.spans


def test_that_the_packages_are_missing_is_said_with_what_to_type(tmp_path):
    repository = new_repository(tmp_path / "repository")
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").write_text("raise ImportError")
    env = named("http://collector.example", PYTHONPATH=str(tmp_path))
    done = run(*SKILLGIT, "train", "demo", "--run", "demo", *SHORT, cwd=repository, env=env)
    assert done.code == 0, done
    assert (
        done.err.count("no traces are sent to collector.example: OpenTelemetry is not installed; install it with: ")
        == 1
    )
    assert "[otel]" in done.err
