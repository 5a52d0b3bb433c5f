from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from sandboxed import living, marked

from skillgit.errors import EnvironmentFaultError
from skillgit.sandbox import Job, Limits


def test_output_and_exit_code_come_back(run_any):
    done = run_any("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.exit_code, done.stdout, done.stderr, done.ended) == (3, "out\n", "err\n", "exit")
    assert not done.ok
    assert done.seconds > 0


def test_a_failing_program_tells_its_reason_with_the_same_words_everywhere(run_any):
    done = run_any("raise ValueError('no')")
    assert done.exit_code == 1
    assert 'File "/job/main.py", line 1' in done.stderr
    assert "ValueError: no" in done.stderr


def test_standard_input_is_read_to_its_end(run_any):
    given = os.urandom(300_000)
    done = run_any("import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())", stdin=given)
    assert len(done.stdout.strip()) == 64
    assert done.ok


def test_a_program_that_reads_nothing_does_not_hold_up_who_gives(run_any):
    assert run_any("print('done')", stdin=bytes(1 << 20)).stdout == "done\n"


def test_only_new_and_changed_files_come_back(run_any):
    code = (
        "import os\n"
        "open('given.txt').read()\n"
        "open('changed.txt', 'a').write('!')\n"
        "open('same.txt', 'w').write('same')\n"
        "os.makedirs('deep/er'); open('deep/er/new.bin', 'wb').write(bytes(3))"
    )
    files = {"given.txt": b"given", "changed.txt": b"was", "same.txt": b"same"}
    assert run_any(code, files=files).files == {"changed.txt": b"was!", "deep/er/new.bin": bytes(3)}


def test_patterns_choose_what_comes_back(run_any):
    code = "import os; os.mkdir('out')\nfor name in ('a.txt', 'a.bin', 'out/a.txt'): open(name, 'w').write(name)"
    assert sorted(run_any(code, collect=("*.txt",)).files) == ["a.txt"]
    assert sorted(run_any(code, collect=("**/*.txt",)).files) == ["a.txt", "out/a.txt"]
    assert sorted(run_any(code, collect=("out/**", "*.bin")).files) == ["a.bin", "out/a.txt"]


def test_given_files_are_in_place_and_may_be_imported(run_any):
    files = {"helping/__init__.py": b"ANSWER = 42", "data/in.csv": b"1,2"}
    done = run_any("import helping; print(helping.ANSWER, open('data/in.csv').read())", files=files)
    assert done.stdout == "42 1,2\n"


def test_installed_packages_can_be_imported_and_ours_cannot(run):
    assert run("import yaml; print(yaml.safe_load('a: 1'))").stdout == "{'a': 1}\n"
    done = run("import skillgit_envs.searchqa")
    assert "ModuleNotFoundError" in done.stderr


def test_a_folder_of_this_machine_can_be_shown_under_a_name(run_any, open_folder):
    (open_folder / "note.txt").write_text("seen")
    code = "print(open('documents/note.txt').read())\nopen('made', 'w').write('x')"
    done = run_any(code, links={"documents": open_folder})
    assert done.stdout == "seen\n", done.stderr
    assert done.files == {"made": b"x"}


def test_variables_of_a_job_are_added_to_few(any_sandbox):
    job = Job(command=("/usr/bin/env",), environment={"ANSWER": "42"})
    done = asyncio.run(any_sandbox.run(job))
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert "ANSWER" in names
    assert names <= {"ANSWER", "HOME", "LANG", "PATH", "TMPDIR", "PYTHONDONTWRITEBYTECODE", "PWD"} | {
        name for name in names if name.endswith("_NUM_THREADS")
    }


def test_a_job_that_takes_too_long_is_ended(run_any):
    done = run_any("print('begun')\nimport time; time.sleep(600)", limits={"wall_s": 4})
    assert (done.ended, done.exit_code, done.stdout) == ("timeout", None, "begun\n")


def test_a_program_that_a_signal_killed_says_so(run_any):
    done = run_any("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    assert (done.ended, done.exit_code) == ("killed", -15)


def test_a_missing_program_is_the_fault_of_the_machine(any_sandbox):
    with pytest.raises(EnvironmentFaultError, match="cannot run no-such-program"):
        asyncio.run(any_sandbox.run(Job(command=("no-such-program",))))


def test_a_program_that_the_job_brings_fails_by_itself(any_sandbox):
    done = asyncio.run(any_sandbox.run(Job(command=("./broken",), files={"broken": b"no program"})))
    assert (done.exit_code, done.ended) == (127, "exit")
    assert "./broken" in done.stderr


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "a/../x", "a/../../x", "", ".", "a//b", "./a", "a\0b", "a\\b", "..", "a/"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(name):
    with pytest.raises(EnvironmentFaultError):
        Job(command=("true",), files={name: b""})


def test_a_file_in_a_file_is_refused():
    with pytest.raises(EnvironmentFaultError, match="is in a file"):
        Job(command=("true",), files={"a": b"", "a/b": b""})


@pytest.mark.parametrize("path", [Path("/"), Path("relative")])
def test_what_is_shown_is_named_exactly(path):
    with pytest.raises(EnvironmentFaultError, match="cannot be shown"):
        Job(command=("true",), read_only=(path,))


def test_what_is_not_there_cannot_be_shown(sandbox):
    with pytest.raises(EnvironmentFaultError, match="is not there"):
        asyncio.run(sandbox.run(Job(command=("true",), read_only=(Path("/no/such/folder"),))))


def test_files_over_the_limit_of_the_disk_are_refused():
    with pytest.raises(EnvironmentFaultError, match="larger than its disk"):
        Job(command=("true",), files={"a": bytes(2 << 20)}, limits=Limits(disk_mb=1))


def test_the_event_loop_goes_on_while_jobs_run(any_sandbox):
    async def main() -> int:
        ticks = 0
        job = asyncio.create_task(any_sandbox.run(any_sandbox.python_job("import time; time.sleep(1)")))
        while not job.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert job.result().ok
        return ticks

    assert asyncio.run(main()) > 20


def test_nothing_of_a_cancelled_job_is_left(any_sandbox):
    async def main() -> None:
        mark = marked()
        job = asyncio.create_task(any_sandbox.run(Job(command=("/bin/sleep", mark))))
        while not living(mark):  # noqa: ASYNC110 - another process cannot set an event
            await asyncio.sleep(0.02)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        assert not living(mark)

    asyncio.run(main())
