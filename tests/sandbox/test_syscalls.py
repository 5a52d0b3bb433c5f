"""Each call to the kernel, by its number: what the filter lets through, and that no other reaches the kernel."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.errors import SandboxError
from skillgit.sandbox import Job, Limits, Mode
from skillgit.sandbox.mechanisms import NOBODY, interpreter_for, usable_by
from skillgit.sandbox.syscalls import PROCESSORS, seccomp_filter, system_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

MACHINES = ("x86_64", "aarch64")
ALLOW, ERROR = 0x7FFF0000, 0x00050000
X32 = 0x40000000
I386, ARM = 0x40000003, 0x40000028
_HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return what a filter answers, by the rules of the kernel's machine."""
    words = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *(word & (1 << 64) - 1 for word in words))
    instructions = list(struct.iter_unpack("=HBBI", program))
    place = value = 0
    while True:
        code, if_true, if_false, operand = instructions[place]
        place += 1
        match code:
            case 0x20:
                value = struct.unpack_from("=I", data, operand)[0]
            case 0x54:
                value &= operand
            case 0x15:
                place += if_true if value == operand else if_false
            case 0x25:
                place += if_true if value > operand else if_false
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"instruction {code:#x}")


def filters() -> Iterator[tuple[str, dict[str, bool], bytes]]:
    for machine, unix_sockets, foreign_files, foreign_processes in product(MACHINES, *[(False, True)] * 3):
        ways = {"unix_sockets": unix_sockets, "foreign_files": foreign_files, "foreign_processes": foreign_processes}
        yield machine, ways, seccomp_filter(machine=machine, **ways)


def test_a_number_reaches_the_kernel_only_if_the_table_says_so():
    for machine, ways, program in filters():
        passes = {"allow", "argument"}
        passes |= set() if ways["foreign_files"] else {"rights", "attribute"}
        passes |= set() if ways["foreign_processes"] else {"signal"}
        passes |= {"local"} if ways["unix_sockets"] else set()
        rules = {call.numbers[machine]: call.rule for call in system_calls() if machine in call.numbers}
        # The arguments are among those that every guard lets pass.
        for number in range(1024):
            answer = verdict(program, PROCESSORS[machine].architecture, number, *_passing(machine, number))
            rule = rules.get(number, "absent")
            if rule in passes:
                assert answer == ALLOW or _name(machine, number) == "socket", (machine, number)
            else:
                assert answer & 0xFFFF0000 == ERROR, (machine, number)
                expected = {"refuse": errno.EPERM, "signal": errno.EPERM, "local": errno.EPERM, "rights": 0}
                assert answer & 0xFFFF == expected.get(rule, errno.ENOTSUP if rule == "attribute" else errno.ENOSYS), (
                    machine,
                    number,
                )


def _name(machine: str, number: int) -> str:
    return next(call.name for call in system_calls() if call.numbers.get(machine) == number)


def _passing(machine: str, number: int) -> tuple[int, ...]:
    name = next((call.name for call in system_calls() if call.numbers.get(machine) == number), "")
    arguments = {"clone": (0x11,), "fcntl": (0, 3), "ioctl": (0, 0x5401), "socket": (1, 1), "socketpair": (1, 1)}
    return arguments.get(name, (0,))


_LAST = max(number for call in system_calls() for number in call.numbers.values())
_WORD = st.integers(0, (1 << 64) - 1) | st.integers(0, 0xFFFF)


@given(
    filter_=st.sampled_from(list(filters())),
    number=st.integers(_LAST + 1, 0xFFFFFFFF) | st.integers(X32, X32 + 1024) | st.integers(-1024, -1),
    arguments=st.tuples(*[_WORD] * 6),
)
def test_no_number_above_the_last_one_and_none_of_x32_reaches_the_kernel(filter_, number, arguments):
    machine, _, program = filter_
    assert verdict(program, PROCESSORS[machine].architecture, number, *arguments) == ERROR | errno.ENOSYS


@given(
    filter_=st.sampled_from(list(filters())),
    architecture=st.sampled_from([I386, ARM, 0, 0xFFFFFFFF]) | st.integers(0, 0xFFFFFFFF),
    number=st.integers(0, 1023),
)
def test_no_call_of_another_abi_reaches_the_kernel(filter_, architecture, number):
    machine, _, program = filter_
    if architecture != PROCESSORS[machine].architecture:
        assert verdict(program, architecture, number) == ERROR | errno.ENOSYS


_GUARDED = {
    "clone": ([(0x11,), (0x3D0F00,)], [(flag | 0x11,) for flag in (1 << 17, *(1 << n for n in range(25, 31)))]),
    "fcntl": ([(3, 1), (3, 6), (3, 1030)], [(3, 8), (3, 10), (3, 15), (3, 1024), (3, 1026), (3, 1036), (3, 1040)]),
    "ioctl": ([(1, 0x5401), (1, 0x5413)], [(1, n) for n in (0x5412, 0x541C, 0x40086602, 0x401C5820, 0x8901, 0x6685)]),
    "prlimit64": ([(0, 7)], [(1, 7), (os.getpid(), 7), (0xFFFFFFFF, 7)]),
    "socketpair": ([(1, 1), (1, 5), (1, 0x80801)], [(1, 2), (1, 3), (2, 1), (30, 1), (1, 0x80802)]),
}


@pytest.mark.parametrize("name", _GUARDED)
def test_arguments_decide(name):
    passing, refused = _GUARDED[name]
    for machine, _, program in filters():
        architecture = PROCESSORS[machine].architecture
        number = next(call.numbers[machine] for call in system_calls() if call.name == name)
        for arguments, high in product(passing, (0, 1 << 32)):
            # What is in the upper half of a register is nothing to the kernel, and nothing to the filter.
            assert verdict(program, architecture, number, *(word | high for word in arguments)) == ALLOW, arguments
        for arguments, high in product(refused, (0, 1 << 32)):
            answer = verdict(program, architecture, number, *(word | high for word in arguments))
            assert answer & 0xFFFF0000 == ERROR, arguments
            assert answer & 0xFFFF in {errno.EPERM, errno.EINVAL, errno.ENOTTY}, arguments


def test_sockets_are_local_and_of_those_who_may_have_them():
    for machine, ways, program in filters():
        number = next(call.numbers[machine] for call in system_calls() if call.name == "socket")
        for family in range(64):
            answer = verdict(program, PROCESSORS[machine].architecture, number, family, 1)
            assert (answer == ALLOW) == (family == 1 and ways["unix_sockets"]), (machine, family)


@pytest.mark.parametrize("machine", MACHINES)
def test_no_number_stands_twice(machine):
    numbers = Counter(call.numbers[machine] for call in system_calls() if machine in call.numbers)
    assert [number for number, times in numbers.items() if times > 1] == []
    assert len(system_calls()) == len({call.name for call in system_calls()})


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_kernels_headers(machine):
    header = next((path for path in map(Path, _HEADERS[machine]) if path.exists()), None)
    if header is None:
        pytest.skip("the kernel's headers are not installed")
    alias = {"3264_fstatat": "newfstatat"}
    ours = {call.name: call.numbers[machine] for call in system_calls() if machine in call.numbers}
    theirs = {}
    for name, number in re.findall(r"#define __NR_?(\w+)\s+(\d+)\s", header.read_text()):
        if "time64" not in name and not (machine == "aarch64" and 403 <= int(number) < 424):
            theirs[alias.get(name, name.removeprefix("3264_"))] = int(number)
    for name in ("syscalls", "arch_specific_syscall", "sync_file_range2"):
        theirs.pop(name, None)
    assert {name: number for name, number in theirs.items() if number <= _LAST and ours.get(name) != number} == {}


def test_another_processor_is_refused():
    with pytest.raises(SandboxError, match="no list of system calls for the processor sparc"):
        seccomp_filter(unix_sockets=False, foreign_files=False, foreign_processes=False, machine="sparc")


_PROBES = "PROBES = [335, 336] if os.uname().machine == 'x86_64' else []\n"
"""uretprobe and uprobe of x86, which the kernel looks at before any filter: they are for code that it has put into a
process itself, and end with an error or SIGILL for anybody else."""
_ALL_NUMBERS = (
    """
import ctypes, errno, json, os, select, signal
libc = ctypes.CDLL(None, use_errno=True)
"""
    + _PROBES
    + """
expected = {int(number): wanted for number, wanted in json.load(open("expected.json")).items()}
def call(number):
    ctypes.set_errno(0)
    words = [ctypes.c_long(-1)] * 6
    answer = libc.syscall(ctypes.c_long(number), *words)
    return 0 if answer == 0 else ctypes.get_errno() if answer == -1 else -1
refused = {n: wanted for n, wanted in expected.items() if wanted is not None and n not in PROBES}
wrong = {n: errno.errorcode.get(e, e) for n, wanted in refused.items() if (e := call(n)) != wanted}
# What is allowed may end, stop or hang who calls it.
tried = 0
for number in [n for n in range(1024) if expected.get(n, 0) is None] + PROBES:
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        os._exit(call(number) != expected[number] if number in PROBES else 0)
    while True:
        ended, status = os.waitpid(child, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.kill(child, signal.SIGKILL)
        else:
            break
    if number in PROBES and os.waitstatus_to_exitcode(status) not in (0, 1, -signal.SIGILL):
        wrong[number] = status
    tried += number not in PROBES
print(json.dumps({"wrong": wrong, "tried": tried}))
"""
)


def _expected(mode: Mode) -> dict[int, int | None]:
    """Return the error with which each number ends on this machine; None for one that reaches the kernel."""
    machine = PROCESSORS[os.uname().machine].name
    landlocked = mode is Mode.LANDLOCK
    errors = {"absent": errno.ENOSYS, "refuse": errno.EPERM, "local": errno.EPERM}
    errors |= {"rights": 0, "attribute": errno.ENOTSUP} if landlocked else {}
    rules = {call.numbers[machine]: call for call in system_calls() if machine in call.numbers}
    # These refuse their argument -1.
    guarded = {"clone": errno.EPERM, "fcntl": errno.EINVAL, "ioctl": errno.ENOTTY, "prlimit64": errno.EPERM}
    guarded |= {"socket": errno.EPERM, "socketpair": errno.EPERM}
    expected: dict[int, int | None] = {}
    for number in (*range(1024), *range(X32, X32 + 600), 0xFFFFFFFF):
        call = rules.get(number)
        expected[number] = guarded.get(call.name, errors.get(call.rule)) if call else errno.ENOSYS
    return expected


def test_of_all_numbers_none_but_the_listed_reaches_this_kernel(sandbox, run):
    expected = _expected(sandbox.kind)
    assert sum(wanted is not None for wanted in expected.values()) > 1300
    done = run(_ALL_NUMBERS, files={"expected.json": json.dumps(expected).encode()}, limits={"wall_s": 120})
    assert done.ok, done
    answer = json.loads(done.stdout)
    assert answer == {"wrong": {}, "tried": sum(wanted is None for wanted in expected.values())}


_OLD_DOOR = """
import ctypes, mmap, os, signal
# mov eax, edi; mov ebx, esi; mov ecx, edx; int 0x80; ret, with rbx kept
code = bytes.fromhex("53" "89f8" "89f3" "89d1" "cd80" "5b" "c3")
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
enter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(
    ctypes.addressof(ctypes.c_char.from_buffer(page))
)
child = os.fork()
if child == 0:
    os._exit(enter(20, -1, -1) != -38)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if code == -signal.SIGSEGV:
    print("no door")
else:
    print(code, [number for number in range(1024) if enter(number, -1, -1) != -38])
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the older door is that of x86")
def test_the_door_of_older_programs_is_closed(run):
    done = run(_OLD_DOOR)
    assert done.stdout in {"0 []\n", "no door\n"}, done


WAYS = Path(__file__).resolve().with_name("ways_outside.py")


class Outside:
    """A folder outside of a sandbox that everybody may write to, with files of several owners."""

    def __init__(self, root: Path, owner: int) -> None:
        self.root = root
        for name in ("theirs", "ours", "folder/inner"):
            path = root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("as it was")
            path.chmod(0o666)
        (root / "folder").chmod(0o777)
        root.chmod(0o777)
        self.paths = (root, *sorted(root.rglob("*")))
        for path in self.paths:
            try:
                os.setxattr(path, "user.mark", b"as it was")
            except OSError:
                pytest.skip("the file system for temporary files keeps no attributes")
        if os.geteuid() == 0:
            for path in (root / "ours", root / "folder", root / "folder/inner"):
                os.chown(path, owner, owner)

    def seen(self) -> dict[str, object]:
        """Return all that is known of the folder but when it was last read; any change moves its ctime."""
        seen = {}
        for path in sorted(self.root.rglob("*")):
            state = path.lstat()
            attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
            content = path.read_bytes() if path.is_file() else None
            seen[str(path)] = (
                *(state.st_mode, state.st_uid, state.st_gid, state.st_mtime_ns, state.st_ctime_ns, state.st_nlink),
                attributes,
                content,
            )
        state = self.root.lstat()
        seen[""] = (state.st_mode, state.st_uid, state.st_gid, state.st_mtime_ns, state.st_ctime_ns)
        return seen


_DRIVER = """
import asyncio, json, sys
from pathlib import Path
from skillgit.sandbox import Limits, Mode, Sandbox
mode, root, shown, ways, numbers = sys.argv[1:]
box = Sandbox(Mode(mode))
job = box.python_job(
    Path(ways).read_text(),
    files={"numbers.json": numbers.encode(), "root.txt": root.encode()},
    read_only=(Path(root),) if shown else (),
    limits=Limits(wall_s=60),
)
done = asyncio.run(box.run(job))
if not done.ok:
    sys.exit(repr(done))
sys.stdout.write(done.files["answers.json"].decode())
"""
ORDINARY = 61234  # a user that no system gives to anybody


def all_ways(mode: Mode, root: Path, *, shown: bool, user: int | None) -> dict[str, int]:
    """Try all ways to change ``root`` from a sandbox of ``user``; return the best answer of each, 0 or an error."""
    machine = PROCESSORS[os.uname().machine].name
    numbers = {call.name: call.numbers[machine] for call in system_calls() if machine in call.numbers}
    python = interpreter_for(user)
    packages = [path for path in sys.path if path and (user is None or usable_by(user, Path(path)))]
    if python is None or not usable_by(ORDINARY, WAYS):
        pytest.skip("another user can run no Python here, or not read these tests")
    process = subprocess.run(
        [python.path, "-c", _DRIVER, mode, str(root), "shown" if shown else "", str(WAYS), json.dumps(numbers)],
        env={"PYTHONPATH": os.pathsep.join([str(WAYS.parents[2]), *packages]), "PATH": os.environ["PATH"]},
        cwd="/",
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        capture_output=True,
        text=True,
        check=False,
    )
    if "SandboxError" in process.stderr:
        pytest.skip(process.stderr.splitlines()[-1])
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


USERS = [pytest.param(None, id="this user"), pytest.param(ORDINARY, id="ordinary user")]


def the_user(user: int | None) -> int | None:
    if user is not None and os.geteuid() != 0:
        pytest.skip("this is an ordinary user already")
    return user


@pytest.fixture
def outside(open_folder: Path, request: pytest.FixtureRequest) -> Outside:
    user = request.node.callspec.params["user"]
    return Outside(open_folder, NOBODY if user is None else user)


@pytest.mark.parametrize("shown", [True, False], ids=["shown", "not shown"])
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mode", [Mode.BUBBLEWRAP, Mode.LANDLOCK], ids=str)
def test_all_ways_leave_rights_and_attributes_outside_as_they_were(mode, user, shown, outside):
    before = outside.seen()
    answers = all_ways(mode, outside.root, shown=shown, user=the_user(user))
    assert outside.seen() == before
    assert len(answers) > 50
    absent = ("setxattrat", "removexattrat", "file_setattr", "open_tree_attr", "open_tree", "mount_setattr", "fsopen")
    absent += ("io_uring_setup", "io_uring_register", "fanotify_init", "process_madvise", "pidfd_getfd", "bpf")
    absent += ("statmount", "listmount", "shmat", "mq_unlink", "name_to_handle_at", "userfaultfd", "quotactl", "acct")
    assert {name: answers[name] for name in absent} == dict.fromkeys(absent, errno.ENOSYS)
    assert answers["inotify_add_watch outside"] == errno.ENOSYS


@pytest.mark.parametrize("user", USERS[1:])
def test_without_isolation_the_same_ways_change_them(user, outside):
    """The attempts above are real ones. Root never makes them, who could really mount and unmount."""
    before = outside.seen()
    answers = all_ways(Mode.NONE, outside.root, shown=False, user=user if os.geteuid() == 0 else None)
    assert outside.seen() != before
    assert {name for name, answer in answers.items() if answer == 0} >= {"chmod", "setxattr", "utimensat", "unlink"}


_PROGRAMS = {
    "shell": ("sh", "cd $(mktemp -d) && (echo b; echo a) | sort > f && cp -a f g && tar c f g | tar t && wc -l < g"),
    "bash": ("bash", "set -e; mapfile -t x < <(seq 3); sleep 0.01 & wait; time echo ${x[@]}"),
    "git": (
        "git",
        "export HOME=$PWD; git init -q r && cd r && git -c user.name=a -c user.email=b commit -qm x --allow-empty",
    ),
    "node": ("node", 'node -e \'require("child_process").execSync("echo a"); setTimeout(() => {}, 5)\''),
    "perl": ("perl", "perl -e 'print `echo a`; opendir(D, q(.)); print readdir(D)'"),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_usual_programs_work(name, sandbox):
    program, script = _PROGRAMS[name]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    if name in {"git", "node"} and sandbox.kind is Mode.LANDLOCK:
        pytest.skip("it reads settings in /etc that Landlock refuses and bubblewrap does not have")
    shell = "bash" if name == "bash" else "sh"
    done = asyncio.run(sandbox.run(Job(command=(shell, "-c", script), limits=Limits(memory_mb=4096))))
    assert done.ok, done


def test_python_works(run):
    code = (
        "import asyncio, concurrent.futures, os, shutil, sqlite3, subprocess, tempfile, threading, time\n"
        "async def main():\n"
        "    process = await asyncio.create_subprocess_exec('echo', 'a', stdout=-1)\n"
        "    return (await process.communicate())[0]\n"
        "assert asyncio.run(main()) == b'a\\n'\n"
        "assert subprocess.run('cat', input=b'x', capture_output=True, shell=True).stdout == b'x'\n"
        "with concurrent.futures.ThreadPoolExecutor(4) as pool: assert list(pool.map(abs, [-1, 2])) == [1, 2]\n"
        "folder = tempfile.mkdtemp(); open(folder + '/f', 'w').write('x'); os.chmod(folder + '/f', 0o600)\n"
        "shutil.copytree(folder, folder + '2'); shutil.copy2(folder + '/f', 'g'); os.utime('g')\n"
        "connection = sqlite3.connect('a.db'); connection.execute('create table t (a)'); connection.commit()\n"
        "shutil.rmtree(folder); print(os.listdir('.'))\n"
    )
    done = run(code)
    assert done.ok, done
