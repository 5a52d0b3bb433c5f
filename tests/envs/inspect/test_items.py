"""Samples as items: their splits and digests, what is secret of them, and what is refused before a run begins."""

from __future__ import annotations

import shutil

import pytest
from samples_at_work import HERE

from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError, SkillgitError
from skillgit.testing import check_environment
from skillgit_envs.inspect import EXAMPLE, InspectEnvironment
from skillgit_envs.inspect.conversion import as_messages, as_output
from skillgit_envs.inspect.task import ValueScale, scored, task_arguments


def test_arguments_are_pairs_or_an_object():
    assert task_arguments("a=1, b=two words,c=true,d=None,e=1.5") == {
        "a": 1, "b": "two words", "c": True, "d": None, "e": 1.5
    }  # fmt: skip
    assert task_arguments('{"a": [1, 2]}') == {"a": [1, 2]}
    assert task_arguments(" ") == {}
    for text in ("a", "{", "=1", "a=1,b"):
        with pytest.raises(ConfigError):
            task_arguments(text)


def test_a_scale_says_what_numbers_mean():
    assert ValueScale.parse("1:10").share(5.5) == 0.5
    assert ValueScale.parse("10:0").share(10) == 0.0
    assert ValueScale.parse("").share(1.0000000001) == 1.0
    for text in ("1", "1:1", "a:b", "0:inf", "nan:1"):
        with pytest.raises(ConfigError):
            ValueScale.parse(text)
    with pytest.raises(ConfigError, match="not between 0 and 1"):
        ValueScale.parse("").share(7)


@pytest.mark.parametrize(
    ("value", "key", "soft"),
    [
        ("C", "", 1),
        ("P", "", 0.5),
        ("N", "", 0),
        (True, "", 1),
        ("yes", "", 1),
        ("0.25", "", 0.25),
        ({"a": "C", "b": 0}, "b", 0),
    ],
)
def test_values_are_read_as_inspect_reads_them(value, key, soft):
    from inspect_ai.scorer import Score  # noqa: PLC0415 - of the extra

    score = scored(Score(value=value), key, ValueScale())
    assert (score.soft, score.hard) == (soft, float(soft == 1))
    for broken in (float("nan"), "maybe", [1, 0]):
        with pytest.raises(EnvironmentFaultError, match="not a score"):
            scored(Score(value=broken), "", ValueScale())
    with pytest.raises(ConfigError, match=r"env\.score_key is"):
        scored(Score(value={"a": 1}), "c", ValueScale())


def test_items_are_divided_as_the_options_say(made, tmp_path):
    parts = {split: made("described").items(split) for split in Split}
    assert [len(part) for part in parts.values()] == [6, 3, 3]
    assert [item.task_type for item in parts[Split.TRAIN]] == [*["small"] * 5, "large"]
    assert len({item.id for part in parts.values() for item in part}) == 12
    again = made("described", split_field="", split_mode="stratified", split_ratio="1:1:1")
    assert {item.task_type for item in again.items(Split.TEST)} == {"small", "large"}
    for name, ids in (("train", ["sum-1"]), ("val", ["sum-2"]), ("test", ["sum-3", "sum-4"])):
        (tmp_path / f"{name}.json").write_text(str(ids).replace("'", '"'))
    listed = made("matching", split_mode="split_dir", split_dir=str(tmp_path))
    assert [item.id for item in listed.items(Split.TEST)] == ["sum-3", "sum-4"]
    assert len(made("matching", limit=1).items(Split.TEST)) == 1
    with pytest.raises(DataError, match="has no part"):
        made("described", split_field="part").items(Split.TRAIN)


def test_digests_hold_what_decides(made, tmp_path):
    names = ("matching", "choosing", "including", "graded", "boxed")
    digests = [made(name).digest for name in names]
    digests += [made("including", scorer="match").digest, made("including", task_args="words=Please.").digest]
    digests += [made("matching", scale="0:2").digest, made("matching", roles="user=judge").digest]
    assert len(set(digests)) == len(digests)
    assert made("matching").digest == digests[0]
    shutil.copy(HERE / "own_tasks.py", tmp_path / "own_tasks.py")
    assert InspectEnvironment({"task_file": f"{tmp_path}/own_tasks.py@matching"}, tmp_path).digest == digests[0]
    with (tmp_path / "own_tasks.py").open("a") as file:
        file.write("# edited\n")
    assert InspectEnvironment({"task_file": f"{tmp_path}/own_tasks.py@matching"}, tmp_path).digest != digests[0]
    item = made("boxed").items(Split.TRAIN)[0]
    assert set(item.content) == {"input", "target", "files", "setup"}


def test_secrets_are_answers_in_words_and_questions(made):
    choosing, described = made("choosing"), made("described")
    item = choosing.items(Split.TRAIN)[0]
    assert choosing.secrets(item).answers == (f"the {item.id}th",)
    assert choosing.secrets(item).inputs == (f"Which is {item.id}?",)
    assert described.secrets(described.items(Split.TRAIN)[0]).inputs[0] == "Add."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task_file": "own_tasks.py@parted"}, "scores of own_tasks.py@parted are dictionaries"),
        ({"task_file": "own_tasks.py@including"}, "has 2 scorers"),
        ({"task_file": "own_tasks.py@including", "scorer": "f1"}, "has no scorer f1"),
        ({"task_file": "own_tasks.py@including", "scorer": "match", "task_args": "twice=true"}, "one score of 2 tries"),
        ({"task_file": "own_tasks.py@boxed"}, "is local, which confines nothing"),
        ({"task_file": "own_tasks.py@matching", "task_args": "colour=red"}, "cannot be made: TypeError"),
        ({"task_file": "own_tasks.py@none"}, "has no task none"),
        ({"task_file": "own_tasks.py"}, "has several tasks"),
        ({"task_file": "nowhere.py@x"}, "there is no file"),
        ({"task": "no_such_package/task"}, "there is no task no_such_package/task"),
        ({"roles": "grader=me"}, "env.roles is 'grader=me'"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_in_a_sentence(made, options, words):
    with pytest.raises(SkillgitError, match=words) as caught:
        made(**options).items(Split.TRAIN)
    assert caught.value.hint


def test_arguments_that_are_no_json_go_back_as_they_were_written():
    from inspect_ai.model import ChatMessageTool  # noqa: PLC0415 - of the extra
    from inspect_ai.tool import ToolCallError  # noqa: PLC0415 - of the extra

    from skillgit.plugin.backend import Reply, ToolCall, Usage  # noqa: PLC0415 - beside what they are made into

    arguments: dict[str, str] = {}
    calls = (ToolCall(id="a", name="add", arguments='{"a": 1'), ToolCall(id="b", name="add", arguments="[1]"))
    reply = Reply(
        text="", usage=Usage(tokens_in=9, tokens_out=1, cached=4), tool_calls=calls, finish_reason="tool_calls"
    )
    output = as_output(reply, "target", arguments)
    assert all("Error parsing the arguments of add" in call.parse_error for call in output.message.tool_calls)
    assert (output.usage.input_tokens, output.usage.input_tokens_cache_read, output.stop_reason) == (5, 4, "tool_calls")
    failed = ChatMessageTool(content="x", tool_call_id="a", function="add", error=ToolCallError("timeout", "too slow"))
    first, second = as_messages([output.message, failed], arguments)
    assert first.tool_calls == calls
    assert (second.text, second.tool_call_id) == ("Error: too slow", "a")


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")  # of what is imported
@pytest.mark.parametrize(
    ("options", "verdict"), [({"limit": 2}, ""), ({"task_file": "own_tasks.py@graded", "limit": 2}, "GRADE: C")]
)
def test_the_kit_finds_nothing(options, verdict):
    assert EXAMPLE == "example.py@weekdays"
    check_environment(
        InspectEnvironment,
        options,
        HERE,
        answers=lambda item: str(item.content["target"]),
        verdict=verdict,
        partial_answers=True,
        rollouts=2,
    )
