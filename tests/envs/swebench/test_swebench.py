"""An issue is settled by a model with a shell, from the first command to the tests, and a training ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from over_the_wire import QUICK, events, train
from program import SKILLGIT, refs, skillgit, surroundings
from saying import Says
from soaking import soak
from swebench_cases import DONE, bash, clone, gold, own_items, row, write
from wire import wire_server
from wire.scripted import TARGET

from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Trajectory
from skillgit.errors import ConfigError, EnvironmentFaultError, SandboxError
from skillgit.plugin.environment import secrets_of
from skillgit.testing import check_environment
from skillgit_envs.swebench import SWEBench

if TYPE_CHECKING:
    from pathlib import Path

FIX = "sed -i 's/date < last/date <= last/; s/name.strip()/name.strip().lower()/' larder/shelf.py"


@pytest.fixture
def environment(tmp_path) -> SWEBench:
    own_items()
    return SWEBench({}, tmp_path)


def rolled_out(environment: SWEBench, number: int, *said: object) -> tuple[Trajectory, Says]:
    target = Says(*said)
    item = own_items()[number]
    return asyncio.run(environment.rollout(item, environment.seed_skill(), target)), target


def scored(environment: SWEBench, number: int, patch: str):
    trajectory = Trajectory(item_id="a", turns=(), answer=patch)
    return asyncio.run(environment.score(own_items()[number], trajectory, None))


WRONG = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.parametrize(("patch", "expected", "step"), [("", 1.0, 4), soak("", 1.0, 1), soak(WRONG, 0.0, 1)])
def test_each_item_is_resolved_by_its_right_patch_and_not_without(patch, expected, step, environment):
    async def all_scores() -> list[float]:
        items = list(own_items().values())[::step]
        patches = [Trajectory(item_id="a", turns=(), answer=patch or gold(item)) for item in items]
        tasks = (environment.score(item, one, None) for item, one in zip(items, patches, strict=True))
        return [scores.hard for scores, _ in await asyncio.gather(*tasks)]

    assert asyncio.run(all_scores()) == [expected] * len(range(0, 9, step))


@pytest.mark.parametrize("mode", ["landlock", soak("bubblewrap"), soak("none")])
def test_it_works_in_every_way_of_isolation(mode, tmp_path):
    environment = SWEBench({"sandbox": mode}, tmp_path)
    try:
        item = environment.items(Split.TRAIN)[0]
    except SandboxError as error:
        pytest.skip(error.message)
    text = f"{item.content['patch']}\n"
    target = Says(bash(f"git apply - <<'END'\n{text}END"), DONE)
    trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), target))
    assert target.heard[-1][-1].text == "[exit code 0]"
    assert asyncio.run(environment.score(item, trajectory, None))[0].hard == 1.0


def test_changes_last_from_call_to_call_and_become_the_patch(environment):
    said = (bash(FIX), bash("cd larder && export X=1"), bash("pwd; echo $X; git status --short"), DONE)
    trajectory, target = rolled_out(environment, 8, *said)
    result = target.heard[-1][-1].text
    assert result == "/testbed\n\n M larder/shelf.py\n[exit code 0]"
    assert "+        return sorted(name for name, date in self._dates.items() if date <= last)" in trajectory.answer
    scores, feedback = asyncio.run(environment.score(own_items()[8], trajectory, None))
    assert (scores.hard, scores.soft) == (1.0, 1.0), feedback
    assert dict(scores.parts) == {"FAIL_TO_PASS": 1.0, "PASS_TO_PASS": 1.0}


def test_a_command_that_takes_too_long_keeps_what_it_has_done(tmp_path):
    own_items()
    environment = SWEBench({"tool_timeout": 0.5}, tmp_path)
    trajectory, target = rolled_out(environment, 8, bash("echo kept > kept.txt; sleep 60"), DONE)
    assert target.heard[-1][-1].text == "[stopped after 0.5 seconds]"
    assert "+kept" in trajectory.answer


def test_the_target_is_shown_the_issue_and_nothing_that_gives_it_away(environment):
    _, target = rolled_out(environment, 7, bash("ls -a . tests; git log --stat; cat tests/*.py"), DONE)
    shown = "\n".join(message.text for messages in target.heard for message in messages)
    item = own_items()[7]
    assert str(item.content["problem_statement"]) in shown
    for text in ("there is too little", 'shelf.take("eggs", 3)', "SWEBENCH", "Start Test Output"):
        assert text in gold(item) + str(item.content["eval_script"]) + "SWEBENCH"
        assert text not in shown
    assert item.content["FAIL_TO_PASS"][0].split()[0] not in shown
    secrets = secrets_of(environment, item)
    assert (secrets.answers, secrets.checks) == ((item.content["patch"],), (item.content["test_patch"],))


def test_what_breaks_tests_is_told_by_count_and_error(environment):
    trajectory, _ = rolled_out(environment, 8, bash("echo 'raise KeyError(7)' > larder/shelf.py"), DONE)
    scores, feedback = asyncio.run(environment.score(own_items()[8], trajectory, None))
    assert (scores.hard, dict(scores.parts)) == (0.0, {"FAIL_TO_PASS": 0.0, "PASS_TO_PASS": 0.0})
    assert feedback.splitlines()[0] in {
        "1 of 1 tests of the issue fail; 5 of 5 tests that passed before fail",
        "with the change, the tests do not run to their end",
    }
    assert "- KeyError: 7" in feedback


@pytest.mark.parametrize(("patch", "words"), [("", "nothing was changed"), ("nonsense", "the patch does not apply")])
def test_a_patch_that_is_none_is_worth_nothing(patch, words, environment):
    scores, feedback = scored(environment, 1, patch)
    assert (scores.hard, feedback) == (0.0, words)


def test_tests_that_do_not_end_are_a_fault_and_no_score(tmp_path):
    item = own_items()[1]
    environment = SWEBench({"test_timeout": 0.5}, tmp_path)
    slow = "diff --git a/larder/__init__.py b/larder/__init__.py\n--- a/larder/__init__.py\n+++ b/larder/__init__.py\n"
    slow += '@@ -1 +1,2 @@\n """Amounts of ingredients, and what is on a shelf."""\n+__import__("time").sleep(60)\n'
    with pytest.raises(EnvironmentFaultError, match=r"hearthside__larder-1 did not end within 0.5 seconds"):
        asyncio.run(environment.score(item, Trajectory(item_id="a", turns=(), answer=slow), None))


def own_rows(folder: Path, **fields: object) -> SWEBench:
    """Return the environment with the project that comes with skillgit as data of one's own, in its own Python."""
    clone(folder / "clones")
    program = folder / "environments" / "hearthside__larder" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    content = [{**item.content, "instance_id": item.id, **fields} for item in own_items().values()]
    write(folder / "rows.jsonl", *content)
    options = {"data_path": "rows.jsonl", "split_mode": "stratified", "split_ratio": "1:1:1", "engine": "sandbox"}
    return SWEBench({**options, "repositories": "clones", "environments": "environments"}, folder)


def test_one_s_own_clones_and_environments_are_used(tmp_path):
    environment = own_rows(tmp_path)
    assert [len(environment.items(split)) for split in Split] == [3, 3, 3]
    assert scored(environment, 1, gold(own_items()[1]))[0].hard == 1.0


@pytest.mark.parametrize(
    "fields",
    [
        {"eval_script": "cd /testbed\n: '>>>>> Start Test Output'\nno-such-program\n: '>>>>> End Test Output'"},
        {"PASS_TO_PASS": ["test_of_another_release (tests.test_amounts.AmountsTest.test_of_another_release)"]},
    ],
)
def test_a_machine_on_which_tests_fail_without_a_change_is_a_fault_and_no_score(fields, tmp_path):
    environment = own_rows(tmp_path, **fields)
    item = environment.items(Split.TRAIN)[0]
    with pytest.raises(EnvironmentFaultError, match="do not pass here without a change either"):
        asyncio.run(environment.score(item, Trajectory(item_id="a", turns=(), answer=gold(item)), None))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"engine": "lxc"}, "env.engine is 'lxc'"),
        ({"dataset_name": "tiny"}, "env.dataset_name is 'tiny'"),
        ({"scorer": "lenient"}, "env.scorer is 'lenient'"),
        ({"max_turns": 0}, "env.max_turns is 0"),
        ({"tool_timeout": 0.0}, "must be above 0"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, sentence, tmp_path):
    with pytest.raises(ConfigError, match=sentence):
        SWEBench(options, tmp_path)


def test_rows_that_need_the_package_are_refused_without_it(tmp_path):
    write(
        tmp_path / "rows.jsonl",
        *(row(instance_id=f"acme__tool-{number}", problem_statement=f"It is {number}.") for number in range(10)),
    )
    options = {"data_path": "rows.jsonl", "engine": "sandbox", "grader_environment": "no-such-folder"}
    with pytest.raises(ConfigError, match="graded by the package swebench"):
        SWEBench({**options, "repositories": ".", "environments": "."}, tmp_path).items(Split.TRAIN)


def test_the_environment_keeps_every_promise(tmp_path):
    own_items()
    # a patch is made by commands: as a reply it changes nothing
    limits = {"max_turns": 3}
    check_environment(SWEBench, {}, root=tmp_path, scoring_options=limits, rollouts=1, partial_answers=True)


FIXED = "Several faults were mended."
SAID = (
    (TARGET, f"tool:bash {json.dumps({'command': FIX})}"),
    ("[exit code", FIXED),
)


@pytest.mark.soak
def test_it_trains_over_the_wire_with_a_shell(tmp_path):
    own_items()
    short = ("-o", "env.limit=1", "-o", "evaluation.eval_test=false")
    repository, asked = train(tmp_path, "swebench", *short, scripted=SAID, keep=True)
    sent = json.dumps([entry.document for entry in asked if entry.role == "target"])
    assert "[exit code 0]" in sent
    assert "test_ending_on_the_last_day" not in sent
    assert events(repository)[0]["kind"] == "run-finished"
    assert "hearthside__larder-" in skillgit("items", "wire", "--json", cwd=repository).out


@pytest.mark.slow
@pytest.mark.parametrize("moment", [soak(4), soak(11)])
def test_a_training_that_is_killed_goes_on_as_if_it_never_was(moment, tmp_path):
    own_items()
    with wire_server(scripted=SAID, process=True) as wire:
        backend = "openai_compatible"
        options = ("-o", f"model.target_backend={backend}", "-o", f"model.optimizer_backend={backend}")
        options += ("-o", f"model.{backend}_base_url={wire.url}/v1", "-o", "calls.concurrency=1")
        command = ("train", "swebench/default", "--run", "wire", *QUICK, *options)
        for name in ("unbroken", "killed"):
            skillgit("init", name, "--env", "swebench", cwd=tmp_path)
        skillgit(*command, cwd=tmp_path / "unbroken")
        wire.clear()
        process = subprocess.Popen(
            (*SKILLGIT, *command), cwd=tmp_path / "killed", env=surroundings(), stdin=subprocess.DEVNULL
        )
        assert wire.wait(moment, 60) >= moment
        process.send_signal(signal.SIGKILL)
        process.wait()
        skillgit(*command, cwd=tmp_path / "killed")
    assert refs(tmp_path / "killed") == refs(tmp_path / "unbroken")
