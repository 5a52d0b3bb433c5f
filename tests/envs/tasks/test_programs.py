from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skillgit.errors import ConfigError, DataError, EnvironmentFaultError, SandboxError
from skillgit.testing import check_environment
from skillgit_envs.tasks import Tasks

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("isolated")

CHECKS = """
import os
import time
from pathlib import Path

import helping


def whole(answer, item, made):
    return answer == item["gold"] and (made / "a.txt").read_text() == "made", "compared"


def half(answer):
    return 0.5


def asserts(answer):
    assert answer == "right", "it is not right"
    return True


def broken(answer):
    return int(answer) > 0


def nothing(answer):
    return None


def large(answer):
    return 2.0


def slow(answer):
    time.sleep(60)


def floods(answer):
    print("x" * 10_000_000)


def peeks(answer):
    assert not Path("/etc/shadow").exists() or not os.access("/etc/shadow", os.R_OK)
    assert "SKILLGIT_TEST_KEY" not in os.environ
    return True
"""


@pytest.fixture
def checks(tmp_path: Path) -> Path:
    (tmp_path / "checks.py").write_text(CHECKS)
    (tmp_path / "helping.py").write_text("")
    return tmp_path


def function(name: str, **more: object) -> dict:
    return {"check": {"type": "python", "function": f"checks.py:{name}", "files": ["helping.py"]}, **more}


@pytest.mark.usefixtures("checks")
def test_a_function_sees_answer_row_and_files(graded):
    row = function("whole", gold="7")
    assert graded(row, "7", products={"a.txt": b"made"}) == (1.0, 1.0, "compared")
    assert graded(row, "8", products={"a.txt": b"made"}) == (0.0, 0.0, "compared")


@pytest.mark.usefixtures("checks")
def test_a_function_may_give_partial_credit_or_assert(graded):
    assert graded(function("half"), "x")[:2] == (0.0, 0.5)
    assert graded(function("asserts"), "right")[0] == 1.0
    assert graded(function("asserts"), "wrong") == (0.0, 0.0, "it is not right")


@pytest.mark.usefixtures("checks")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken", "ValueError: invalid literal"),
        ("nothing", "neither a truth value nor a number"),
        ("large", "returned 2.0"),
        ("missing", "has no attribute 'missing'"),
    ],
)
def test_a_check_that_fails_is_a_fault_and_no_score(graded, name: str, said: str):
    with pytest.raises(EnvironmentFaultError) as caught:
        graded(function(name), "x")
    assert said in caught.value.message


@pytest.mark.usefixtures("checks")
@pytest.mark.parametrize(
    ("check", "ended"),
    [
        (function("slow")["check"], "timeout"),
        (function("floods")["check"], "output"),
        ({"type": "command", "command": "sleep 60"}, "timeout"),
        ({"type": "command", "command": ["sh", "-c", "yes"]}, "output"),
    ],
)
def test_a_check_that_a_limit_stops_has_no_score(graded, check: dict, ended: str):
    with pytest.raises(EnvironmentFaultError, match=rf"was stopped \({ended}\)") as caught:
        graded({"check": check}, "x", check_timeout=1)
    assert "env.check_timeout" in caught.value.hint


@pytest.mark.usefixtures("checks")
def test_a_check_cannot_look_at_this_machine(graded, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SKILLGIT_TEST_KEY", "secret")
    assert graded(function("peeks"), "x")[0] == 1.0


@pytest.mark.parametrize(
    ("script", "scores", "said"),
    [
        ("import sys; sys.exit(sys.stdin.read() != 'x')", (1.0, 1.0), "correct"),
        ("print('so'); print(0.25)", (0.0, 0.25), "so"),
        ("print(1); raise SystemExit(3)", (0.0, 0.0), "the check failed"),
        ("print('so'); print(0.9); raise SystemExit(3)", (0.0, 0.0), "so"),
        ("print(7); raise SystemExit(3)", (0.0, 0.0), "the check failed"),
        ("import os; print(0.9, flush=True); os.kill(os.getpid(), 11)", (0.0, 0.0), "the check failed"),
        ("print('no'); raise SystemExit(1)", (0.0, 0.0), "no"),
        ("open('answer.txt').read() == 'x' or exit(1); open('made/a.txt')", (1.0, 1.0), "correct"),
    ],
)
def test_a_command_passes_by_its_exit_code_and_its_last_line(graded, tmp_path: Path, script: str, scores, said: str):
    (tmp_path / "check.py").write_text(script)
    row = {"check": {"type": "command", "command": "python check.py", "files": ["check.py"]}}
    assert graded(row, "x", products={"a.txt": b""}) == (*scores, said)


def test_a_command_that_cannot_be_run_is_a_fault(graded):
    with pytest.raises(EnvironmentFaultError):
        graded({"check": {"type": "command", "command": ["no-such-program-here"]}}, "x")


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"type": "python", "function": "checks.py"}, "is not written like checks.py:score"),
        ({"type": "python", "function": "gone.py:score"}, "there is no file gone.py"),
        ({"type": "python", "function": "../checks.py:score"}, "not a path next to the data"),
        ({"type": "command", "command": ""}, "neither text nor a list of texts"),
        ({"type": "command", "command": "x", "files": ["answer.txt"]}, "that name is taken"),
    ],
)
def test_a_program_that_is_not_there_is_refused(graded, tmp_path: Path, check: dict, said: str):
    (tmp_path / "answer.txt").write_text("")
    with pytest.raises(DataError) as caught:
        graded({"check": check}, "x")
    assert said in caught.value.message


def test_the_source_of_a_check_is_part_of_its_item(checks: Path):
    def digest() -> str:
        return Tasks({}, checks).task("x", {"prompt": "a", **function("half")}, checks / "t.jsonl").digest

    before = digest()
    (checks / "helping.py").write_text("# changed")
    assert digest() != before


def test_without_a_sandbox_a_file_with_programs_is_refused_at_once(
    written, checks: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(mode: object) -> None:
        raise SandboxError("this machine cannot isolate", hint=f"not {mode}")

    monkeypatch.setattr("skillgit.sandbox.Sandbox", refuse)
    written(*({"prompt": f"{n}?", **function("half")} for n in range(20)))
    with pytest.raises(SandboxError):
        Tasks({"data_path": "tasks.jsonl"}, checks).items("train")


def test_unknown_isolation_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"env\.sandbox is 'loose'"):
        Tasks({"sandbox": "loose"}, tmp_path)


@pytest.mark.usefixtures("checks")
def test_the_environment_keeps_every_promise_with_functions_commands_and_a_judge(tmp_path: Path, written):
    rows = (
        function("asserts", prompt="Say what is right."),
        {"prompt": "Say it again.", "check": {"type": "command", "command": "grep -qx right answer.txt"}},
        {"prompt": "Be kind.", "rubric": "It is kind."},
    )
    written(*({**row, "prompt": f"{row['prompt']} ({number})"} for row in rows for number in range(3)))
    check_environment(
        Tasks,
        {"data_path": "tasks.jsonl", "split_ratio": "1:1:1"},
        tmp_path,
        answers=lambda item: "right" if "rubric" not in str(item.content) else "Hello.",
        verdict='{"scores": [1], "reason": "it is"}',
        rollouts=2,
    )
