"""Code in a sandbox tries to get out; each attempt is made in every way of isolation that works on this machine."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import pytest
from sandboxed import living, marked

from skillgit.sandbox import Mode, Sandbox

if TYPE_CHECKING:
    from skillgit.sandbox import Result

HERE = Path(__file__).resolve()


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    """A secret in the environment of this process."""
    value = secrets.token_hex(16)
    monkeypatch.setenv("SOME_API_KEY", value)
    return value


def tried(*attempts: str) -> str:
    """Return code that makes attempts one after the other and prints what each sets ``found`` to, or its error."""
    return "\n".join(
        f"try:\n{indent(attempt, '    ')}\n"
        "except BaseException as error:\n    found = f'refused {type(error).__name__}'\n"
        "print(found)"
        for attempt in attempts
    )


def all_refused(done: Result, *attempts: str) -> bool:
    """Say whether a job that ran ``tried(*attempts)`` was refused each of them."""
    assert len(done.stdout.splitlines()) == len(attempts), done
    assert [
        attempt for attempt, said in zip(attempts, done.stdout.splitlines(), strict=True) if "refused" not in said
    ] == []
    return True


def test_a_file_elsewhere_cannot_be_read(run, open_folder):
    gold = open_folder / "gold.json"
    gold.write_text("the gold answer")
    gold.chmod(0o644)
    attempts = (f"found = open({str(gold)!r}).read()", f"import os; found = os.listdir({str(open_folder)!r})")
    assert all_refused(run(tried(*attempts)), *attempts)
    done = run(
        f"import os; print([p for p, _, _ in os.walk({str(open_folder.parent)!r}) if 'gold' in str(os.listdir(p))])"
    )
    assert "gold" not in done.stdout


def test_the_repository_and_the_ledger_cannot_be_read(run, open_folder):
    subprocess.run(["git", "init", "--quiet", open_folder / "repository"], check=True)
    paths = (open_folder / "repository" / ".git" / "HEAD", HERE, HERE.parents[2] / "pyproject.toml")
    assert all(path.read_bytes() for path in paths)
    attempts = [f"found = open({str(path)!r}).read()" for path in paths]
    assert all_refused(run(tried(*attempts)), *attempts)


def test_the_shipped_items_cannot_be_read(run):
    code = "import skillgit_envs, os\nfound = [os.listdir(path) for path in skillgit_envs.__path__]"
    assert run(tried(code)).stdout.strip() in {"[[]]", "[]", "refused ModuleNotFoundError", "refused PermissionError"}


def test_the_environment_of_no_process_is_seen(run, secret):
    code = (
        "import glob, os\n"
        "seen = repr(dict(os.environ))\n"
        f"for path in ['/proc/1/environ', '/proc/{os.getpid()}/environ', *glob.glob('/proc/*/environ')]:\n"
        "    try: seen += open(path, 'rb').read().decode(errors='replace')\n"
        "    except OSError: pass\n"
        "print(seen)"
    )
    done = run(code)
    assert done.ok, done.stderr
    assert secret not in done.stdout
    assert "SOME_API_KEY" not in done.stdout


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
def test_the_network_cannot_be_reached(run, kind):
    with socket.socket(socket.AF_INET, getattr(socket, kind)) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0)
        if kind == "SOCK_STREAM":
            server.listen()
        port = server.getsockname()[1]
        code = (
            f"import socket\ns = socket.socket(socket.AF_INET, socket.{kind})\n"
            f"s.connect(('127.0.0.1', {port}))\ns.send(b'hello')\nfound = 'sent'"
        )
        assert "refused" in run(tried(code)).stdout
        with pytest.raises(BlockingIOError):
            server.accept() if kind == "SOCK_STREAM" else server.recv(1)


@pytest.mark.parametrize("abstract", [True, False], ids=["abstract", "path"])
def test_local_sockets_cannot_be_reached(run, open_folder, abstract):
    name = f"\0skillgit-{secrets.token_hex(8)}" if abstract else str(open_folder / "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(name)
        server.listen()
        if not abstract:
            Path(name).chmod(0o777)
        code = f"import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({name!r})\nfound = 'connected'"
        assert "refused" in run(tried(code), read_only=(open_folder,)).stdout


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"])
def test_a_pair_of_sockets_reaches_no_third_one(run, open_folder, kind):
    name = str(open_folder / "socket")
    with socket.socket(socket.AF_UNIX, getattr(socket, kind)) as server:
        server.bind(name)
        server.settimeout(0)
        if kind != "SOCK_DGRAM":
            server.listen()
        Path(name).chmod(0o777)
        made = f"import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.{kind})\n"
        attempts = [
            f"{made}a.connect({name!r})\nfound = 'connected'",
            f"{made}a.sendto(b'hello', {name!r})\nfound = 'sent'",
            f"{made}a.sendmsg([b'hello'], [], 0, {name!r})\nfound = 'sent'",
        ]
        done = run(tried(*attempts), read_only=(open_folder,))
        assert len(done.stdout.splitlines()) == len(attempts), done
        with pytest.raises(BlockingIOError):
            server.recv(1) if kind == "SOCK_DGRAM" else server.accept()


def test_a_raw_socket_and_a_netlink_socket_are_refused(run):
    attempts = [
        f"import socket\nsocket.socket(socket.{family}, socket.SOCK_RAW)\nfound = 'made'"
        for family in ("AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK")
    ]
    assert all_refused(run(tried(*attempts)), *attempts)


def test_nothing_is_written_outside(run):
    folders = ("/usr", "/etc", "", "/dev", "/proc", "/proc/sys/kernel", "/var", "/home")
    names = [f"{folder}/skillgit-{secrets.token_hex(8)}" for folder in folders]
    attempts = [f"open({name!r}, 'w').write('x'); found = 'written'" for name in names]
    assert all_refused(run(tried(*attempts)), *attempts)
    assert not any(Path(name).exists() for name in names)


def test_temporary_files_are_the_jobs_own(run):
    name = f"skillgit-{secrets.token_hex(8)}"
    code = (
        "import os, tempfile\n"
        f"open(os.path.join(tempfile.gettempdir(), {name!r}), 'w').write('x')\n"
        f"try: open('/tmp/{name}-2', 'w').write('x')\n"
        "except OSError: pass\n"
    )
    assert run(code).ok
    assert not list(Path("/tmp").glob(f"{name}*"))  # noqa: S108 - the one of this machine
    seen = run("import os, tempfile; print(*os.listdir(tempfile.gettempdir()))").stdout.split()
    assert set(seen) <= {Path(sys.prefix).parts[2]}, "nothing but the way to the interpreter, if it leads through here"


def test_what_is_shown_cannot_be_changed(run, open_folder):
    note = open_folder / "note.txt"
    note.write_text("as it was")
    note.chmod(0o666)
    open_folder.chmod(0o777)
    attempts = (
        f"open({str(note)!r}, 'a').write('!')",
        f"import os; os.truncate({str(note)!r}, 0)",
        f"import os; os.unlink({str(note)!r})",
        f"import os; os.rename({str(note)!r}, {str(note)!r} + '2')",
        f"open({str(open_folder)!r} + '/new', 'w')",
        f"import os; os.symlink('/etc', {str(open_folder)!r} + '/link')",
        "import os; os.link('documents/note.txt', 'mine'); open('mine', 'a').write('!')",
    )
    done = run(tried(*(f"{attempt}\nfound = 'changed'" for attempt in attempts)), links={"documents": open_folder})
    assert all_refused(done, *attempts)
    assert note.read_text() == "as it was"
    assert list(open_folder.iterdir()) == [note]


def test_mode_owner_and_times_of_what_is_shown_stay(run, open_folder):
    note = open_folder / "note.txt"
    note.write_text("x")
    before = note.stat()
    attempts = (f"os.chmod({str(note)!r}, 0o777)", f"os.utime({str(note)!r}, (1, 1))", f"os.chown({str(note)!r}, 1, 1)")
    run(tried(*(f"import os; {attempt}; found = 'done'" for attempt in attempts)), read_only=(open_folder,))
    after = note.stat()
    assert (before.st_mode, before.st_uid, before.st_mtime) == (after.st_mode, after.st_uid, after.st_mtime)


def test_a_file_of_an_earlier_job_is_neither_seen_nor_collected(run):
    assert run("open('out.txt', 'w').write('first')").files == {"out.txt": b"first"}
    done = run("import os; print(sorted(os.listdir('.')))")
    assert done.stdout == "['main.py']\n"
    assert done.files == {}


def test_links_in_the_output_are_not_followed(run, open_folder):
    gold = open_folder / "gold"
    gold.write_text("gold")
    code = (
        "import os\n"
        "os.symlink('/etc/passwd', 'passwd')\n"
        f"os.symlink({str(gold)!r}, 'gold')\n"
        f"os.symlink({str(open_folder)!r}, 'folder')\n"
        "os.symlink('/', 'root')\n"
        "os.symlink('.', 'loop')\n"
        "os.mkfifo('pipe')\n"
        "open('real', 'w').write('x')\n"
    )
    assert run(code).files == {"real": b"x"}


def test_a_given_file_that_became_a_link_is_not_collected(run):
    code = "import os; os.unlink('book'); os.symlink('/etc/passwd', 'book')"
    assert run(code, files={"book": b"1"}).files == {}


def test_files_without_rights_come_back_nonetheless(run):
    code = "import os; os.mkdir('d'); open('d/f', 'w').write('x'); os.chmod('d/f', 0); os.chmod('d', 0)"
    assert run(code).files == {"d/f": b"x"}


def test_a_strange_name_does_no_harm(run):
    code = (
        "open(b'\\xff\\xfe', 'w').write('x'); open('new\\nline', 'w').write('y'); open('back\\\\slash', 'w').write('z')"
    )
    assert run(code).files == {"new\nline": b"y"}


def test_no_other_process_is_harmed(run):
    with subprocess.Popen(["sleep", marked()], user=65534 if os.geteuid() == 0 else None) as bystander:
        try:
            code = (
                "import os, signal\n"
                f"for pid in (1, os.getppid(), {os.getpid()}, {bystander.pid}):\n"
                "    try: os.kill(pid, signal.SIGKILL)\n"
                "    except OSError as error: print(type(error).__name__)\n"
            )
            assert run(code).ended == "exit"
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_a_job_that_stops_itself_and_its_parent_is_ended(run):
    code = (
        "import os, signal\n"
        "try: os.kill(os.getppid(), signal.SIGSTOP)\n"
        "except OSError: pass\n"
        "os.kill(os.getpid(), signal.SIGSTOP)"
    )
    assert run(code, limits={"wall_s": 2}).ended == "timeout"


def test_signals_to_everybody_end_the_job_alone(run):
    done = run("import os, signal; os.kill(-1, signal.SIGKILL); print('still here')")
    assert done.ended in {"exit", "killed"}
    assert os.getppid() > 0


@pytest.mark.parametrize("limits", [{}, {"wall_s": 4}], ids=["exits", "hangs"])
def test_no_daemon_outlives_its_job(run_any, limits):
    mark = marked()
    code = (
        "import os, subprocess, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        f"        os.execv('/bin/sleep', ['sleep', '{mark}'])\n"
        "    os._exit(0)\n"
        f"subprocess.Popen(['sleep', '{mark}'], start_new_session=True, stdin=0, stdout=1)\n"
        "time.sleep(0.3)\nprint('done', flush=True)\n"
        f"time.sleep({600 if limits else 0})"
    )
    done = run_any(code, limits=limits)
    assert done.stdout == "done\n"
    assert done.ended == ("timeout" if limits else "exit")
    assert not living(mark)


def test_calls_that_lead_out_are_refused(run):
    calls = [
        "libc.ptrace(16, os.getppid(), 0, 0)",
        "libc.unshare(0x10000000)",
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0)",
        "libc.setns(0, 0)",
        "libc.syscall(425, 8, ctypes.create_string_buffer(256))",  # io_uring_setup
        "libc.syscall(319, b'x', 0)",  # memfd_create
        "libc.syscall(321, 0, 0, 0)",  # bpf
        "libc.syscall(250, 0, 0, 0, 0)",  # keyctl
        "libc.syscall(323, 0)",  # userfaultfd
        "libc.chroot(b'.')",
        "libc.setuid(0)",
    ]
    if os.uname().machine != "x86_64":  # the numbers are those of x86-64
        calls = [call for call in calls if "syscall" not in call]
    code = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    told = run(code + "\n".join(f"print({call}, ctypes.get_errno(), flush=True)" for call in calls)).stdout
    for call, line in zip(calls, told.splitlines(), strict=True):
        answer, error = map(int, line.split())
        assert answer == -1, call
        assert error in {errno.EPERM, errno.ENOSYS, errno.EINVAL}, call


def test_new_privileges_are_given_up(run):
    get_no_new_privileges = 39
    assert run(f"import ctypes; print(ctypes.CDLL(None).prctl({get_no_new_privileges}, 0, 0, 0, 0))").stdout == "1\n"


def test_memory_of_a_parent_cannot_be_read(run):
    paths = ("/proc/1/mem", f"/proc/{os.getpid()}/mem", "/proc/self/../1/fd/0", "/dev/mem", "/dev/kmem")
    attempts = [f"found = open({path!r}, 'rb').read(1)" for path in paths]
    assert all_refused(run(tried(*attempts)), *attempts)


def test_descriptors_of_the_launcher_are_closed(run):
    code = "import os\nopen_ones = []\nfor n in range(3, 512):\n    try: os.fstat(n); open_ones.append(n)\n"
    code += "    except OSError: pass\nprint(open_ones)"
    assert run(code).stdout == "[]\n"


def test_jobs_do_not_see_each_other(sandbox):
    async def main() -> list[str]:
        code = "import os, time\nopen('mine-' + os.urandom(4).hex(), 'w').close()\ntime.sleep(1)\n"
        code += "print(len([n for n in os.listdir('.') if n.startswith('mine-')]))"
        done = await asyncio.gather(*(sandbox.run(sandbox.python_job(code)) for _ in range(3)))
        return [result.stdout for result in done]

    assert asyncio.run(main()) == ["1\n"] * 3


def test_without_isolation_it_is_said_so():
    assert "WITHOUT isolation" in Sandbox(Mode.NONE).explain()
