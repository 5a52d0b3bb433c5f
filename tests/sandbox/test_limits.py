"""Code in a sandbox takes all that it can get; each limit holds, and the machine goes on."""

from __future__ import annotations

import asyncio
import errno
import tempfile
import threading
from pathlib import Path

import pytest
from soaking import soak

from skillgit.sandbox import Job, Limits, Mode, Result, Sandbox


def counts_apart(box: Sandbox) -> bool:
    """Say whether the processes of a job are counted for themselves."""
    return getattr(box._mechanism, "_counted", True)


def test_a_fork_bomb_stays_small_and_is_ended(run, sandbox):
    code = (
        "import os, time\n"
        "made = 0\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "        made += 1\n"
        "    except OSError:\n"
        "        print(made, flush=True); break\n"
        "time.sleep(600)"
    )
    done = run(code, limits={"wall_s": 4, "processes": 20})
    assert done.ended == "timeout"
    assert 5 < int(done.stdout) <= (20 if counts_apart(sandbox) else 200)


@pytest.mark.slow
def test_the_bomb_of_one_job_leaves_room_for_the_processes_of_another(sandbox):
    bomb = (
        "import os, time\n"
        "try:\n"
        "    while True:\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "except OSError: time.sleep(600)"
    )
    good = "import subprocess; print(subprocess.run(['true']).returncode)"

    async def main() -> str:
        first = asyncio.create_task(sandbox.run(sandbox.python_job(bomb, limits=Limits(wall_s=2.5, processes=30))))
        await asyncio.sleep(1)
        done = await sandbox.run(sandbox.python_job(good, limits=Limits(wall_s=60, processes=30)))
        await first
        return done.stdout + done.stderr

    if not counts_apart(sandbox):
        pytest.skip("without user namespaces, the processes of all jobs are counted together")
    assert asyncio.run(main()) == "0\n"


def test_a_full_disk_ends_the_job(run):
    code = (
        "import os\nfor n in range(100000):\n    with open(f'f{n % 50}', 'ab') as file: file.write(os.urandom(1 << 20))"
    )
    done = run(code, limits={"disk_mb": 16})
    assert (done.ended, done.exit_code, done.files) == ("disk", None, {})


def test_temporary_files_count_as_the_rest(run):
    code = (
        "import os, tempfile, time\n"
        "for n in range(12):\n"
        "    open(os.path.join(tempfile.gettempdir(), str(n)), 'wb').write(os.urandom(1 << 20))\n"
        "    open(str(n), 'wb').write(os.urandom(1 << 20))\n"
        "time.sleep(600)"
    )
    assert run(code, limits={"disk_mb": 16}).ended == "disk"


def is_full(done: Result) -> bool:
    """Say whether a job ended because its disk was full; it may be told so before anybody looks."""
    return done.ended == "disk" or "No space left on device" in done.stderr


@pytest.mark.parametrize("way", ["open", "mapped"])
def test_removed_files_count_as_long_as_they_are_held(run, way):
    code = (
        "import mmap, os, time\n"
        "held = []\n"
        "for n in range(24):\n"
        "    file = open('f', 'w+b'); file.write(os.urandom(1 << 20)); file.flush(); os.unlink('f')\n"
        f"    held.append(file if {way!r} == 'open' else mmap.mmap(file.fileno(), 1 << 20))\n"
        "    if file not in held: file.close()\n"
        "time.sleep(600)"
    )
    assert is_full(run(code, limits={"disk_mb": 16, "wall_s": 20}))


def test_a_folder_that_cannot_be_looked_into_hides_nothing(run):
    code = (
        "import os, time\n"
        "os.mkdir('d')\n"
        "here = os.open('d', os.O_RDONLY); os.chdir('d'); os.fchmod(here, 0o300)\n"
        "for n in range(24): open(str(n), 'wb').write(os.urandom(1 << 20))\n"
        "time.sleep(600)"
    )
    assert is_full(run(code, limits={"disk_mb": 16, "wall_s": 20}))


def test_a_giant_file_cannot_be_written(run):
    code = "file = open('big', 'wb')\nfor _ in range(100): file.write(bytes(1 << 20))"
    done = run(code, limits={"file_mb": 4})
    assert done.exit_code == 1
    assert "File too large" in done.stderr
    assert all(len(content) <= 4 << 20 for content in done.files.values())


def test_a_program_that_ignores_the_limit_of_a_file_is_ended(any_sandbox):
    job = Job(command=("dd", "if=/dev/zero", "of=big", "bs=1M", "count=100"), limits=Limits(file_mb=4))
    assert asyncio.run(any_sandbox.run(job)).ended == "disk"


def test_a_file_of_holes_is_as_large_as_it_says(run):
    code = "for n in range(8):\n    with open(f'hole{n}', 'wb') as file: file.truncate(3 << 20)"
    assert run(code, limits={"disk_mb": 16, "file_mb": 4}).ended == "disk"


@pytest.mark.parametrize("sandbox", [Mode.BUBBLEWRAP, soak(Mode.LANDLOCK)], indirect=True, ids=str)
@pytest.mark.slow
def test_many_small_files_end_the_job(run):
    code = "import time\nfor n in range(30_000): open(f'f{n}', 'w').close()\ntime.sleep(600)"
    assert run(code, limits={"disk_mb": 256, "wall_s": 50, "cpu_s": 40}).ended == "disk"


def test_a_deep_folder_does_no_harm(run, open_folder, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
    code = "import os\nfor n in range(3000):\n    os.mkdir('d'); os.chdir('d')\nopen('f', 'w').write('x')"
    done = run(code)
    assert done.ended in {"exit", "disk"}
    assert done.files == {}
    assert list(open_folder.iterdir()) == []


def test_names_too_long_for_a_path_do_no_harm(run):
    code = "import os\nfor n in range(30):\n    os.mkdir('d' * 250); os.chdir('d' * 250)\n    open('f', 'w').write('x')"
    assert run(code).ended == "disk"


@pytest.mark.parametrize("sandbox", [Mode.BUBBLEWRAP, soak(Mode.LANDLOCK)], indirect=True, ids=str)
def test_names_that_are_too_many_end_the_job(run):
    code = "import os\nfor n in range(6000): open(f'{n:0200}', 'w').close()"
    assert run(code).ended == "disk"


def test_a_process_that_wants_too_much_memory_gets_none(run):
    done = run("x = bytearray(3 << 30)", limits={"memory_mb": 1024})
    assert done.exit_code == 1
    assert "MemoryError" in done.stderr


def test_processes_share_the_limit_of_memory(run):
    code = (
        "import os, time\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0:\n"
        "        held = bytearray(os.urandom(1 << 20) * 100); time.sleep(600)\n"
        "time.sleep(600)"
    )
    assert run(code, limits={"memory_mb": 300}).ended == "memory"


def test_memory_that_belongs_to_no_process_is_refused(run):
    code = "import os\ntry: os.memfd_create('x')\nexcept OSError as error: print(error.errno)"
    assert run(code).stdout == f"{errno.ENOSYS}\n"


def test_a_spinning_processor_is_stopped(run_any):
    done = run_any("while True: pass", limits={"cpu_s": 1})
    assert done.ended == "cpu"


@pytest.mark.parametrize("sandbox", [Mode.BUBBLEWRAP, soak(Mode.LANDLOCK)], indirect=True, ids=str)
def test_processes_share_the_limit_of_the_processor(run):
    code = "import os\nfor _ in range(3):\n    if os.fork() == 0:\n        while True: pass\nos.wait()"
    assert run(code, limits={"cpu_s": 1, "wall_s": 50}).ended == "cpu"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_of_output_is_cut(run_any, stream):
    code = f"import sys\nwhile True: sys.{stream}.write('x' * 4096)"
    done = run_any(code, limits={"output_kb": 64})
    assert (done.ended, done.exit_code, done.files) == ("output", None, {})
    assert len(getattr(done, stream)) == 64 << 10


def test_too_much_output_of_a_short_job_is_cut_as_well(run_any):
    done = run_any("print('x' * 100_000)", limits={"output_kb": 1})
    assert (done.ended, len(done.stdout)) == ("output", 1024)


def test_so_many_jobs_run_at_a_time_whoever_asks(open_folder):
    box, other = Sandbox(Mode.NONE, width=2), Sandbox(Mode.NONE, width=2)
    code = (
        "import os, time\n"
        f"os.chdir({str(open_folder)!r})\n"
        "count = lambda kind: sum(name.startswith(kind) for name in os.listdir())\n"
        "mine = str(os.getpid())\n"
        "for name in ('at-work-' + mine, 'begun-' + mine): open(name, 'w').close()\n"
        "while count('at-work') < 2 and count('begun') < 6: time.sleep(0.01)\n"
        "time.sleep(0.1)\n"
        "print(count('at-work'))\n"
        "os.unlink('at-work-' + mine)"
    )

    async def main() -> list[int]:
        jobs = [(box, other)[n % 2].run(box.python_job(code)) for n in range(6)]
        return [int(done.stdout) for done in await asyncio.gather(*jobs)]

    assert max(asyncio.run(main())) == 2


def test_a_sandbox_works_in_one_event_loop_after_another_and_in_threads(any_sandbox):
    found = []

    def work() -> None:
        found.append(asyncio.run(any_sandbox.run(any_sandbox.python_job("print(1)"))).stdout)

    work()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["1\n"] * 3


def test_no_descriptor_and_no_folder_is_left(any_sandbox, open_folder, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))

    async def main() -> None:
        for _ in range(2):
            await any_sandbox.run(any_sandbox.python_job("print(1)"))

    asyncio.run(main())
    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(main())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert list(open_folder.iterdir()) == []
