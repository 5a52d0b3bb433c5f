from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hosts import Person, knowing, own
from program import SKILLGIT, git, refs, surroundings
from sample_run import RUN
from soaking import sampled


@pytest.fixture
def http(host, ann) -> Person:
    """Somebody who reaches the host over HTTP."""
    ann.git("remote", "set-url", "origin", host.url())
    return ann


@pytest.mark.parametrize(
    ("password", "said"),
    [
        ("wrong", "origin refused the name, the password or the token"),
        (None, "origin asks for a name and a password, and there is no terminal to type them"),
    ],
)
def test_a_wrong_password_and_none_are_told_apart(password, said, http):
    http.env = knowing(password)
    for words in (("push",), ("pull",)):
        done = http(*words, code=5)
        assert done.err.startswith(f"skillgit: {said}\nhint: ")
        assert done.out == ""


def test_a_clone_with_a_wrong_password_leaves_nothing_behind(host, tmp_path):
    done = Person(tmp_path, "wrong")("clone", host.url(), "copy", code=5)
    assert "refused the name, the password or the token" in done.err
    assert not (tmp_path / "copy").exists()


def test_a_clone_of_nothing_gets_no_advice_about_remotes(tmp_path):
    (tmp_path / "file").write_text("no repository")
    for place in ("nowhere.git", "file"):
        done = Person(tmp_path)("clone", tmp_path / place, "copy", code=5)
        assert f"there is no repository at {tmp_path / place}, or you may not see it\nhint: correct the" in done.err
        assert "git remote" not in done.err


class Forbids(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(403)

    def log_message(self, *words: object) -> None:
        del words


def test_an_address_that_forbids_everything_is_not_about_pushing(ann, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Forbids) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/skills.git"
        ann.git("remote", "set-url", "origin", url)
        ends = [
            Person(tmp_path)("clone", url, "copy", code=5),
            ann("pull", code=5),
            ann("pull", "--dry-run", code=5),
            ann.push(code=5),
        ]
        server.shutdown()
    for done in ends:
        assert "does not let you read it\nhint: ask its owner for access" in done.err
        assert "push" not in done.err
    assert not (tmp_path / "copy").exists()


def test_a_host_that_cannot_be_reached_is_told(ann):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    ann.git("remote", "set-url", "origin", f"http://127.0.0.1:{port}/skills.git")
    assert "skillgit: origin cannot be reached\nhint: " in ann.push(code=5).err


def test_a_repository_that_does_not_exist_is_told(host, http):
    http.git("remote", "set-url", "origin", host.url("nowhere"))
    assert "there is no repository at origin, or you may not see it" in http.push(code=5).err


@pytest.mark.parametrize("known", [(), ("origin",), ("team",)], ids=" ".join)
@pytest.mark.parametrize(
    "name", sampled(["upstream", "a b", "-x", "x..y", "x.lock", ".x", "x.", "x~1", "../there.git", "é"], 3)
)
def test_the_hint_for_an_unknown_remote_can_be_typed(known, name, ann):
    ann.git("remote", "remove", "origin")
    for remote in known:
        ann.git("remote", "add", remote, "elsewhere")
    done = ann("pull", "--", name, code=3)
    assert done.err.startswith(f"skillgit: there is no remote '{name}'\nhint: ")
    assert all(f"remotes: {remote}; or " in done.err for remote in known)
    added = re.search(r"(git remote add .*) URL$", done.err.strip())[1].replace("NAME", "another")
    ann.git(*shlex.split(added)[1:], "elsewhere")


SECRETS = [
    "https://me:open-sesame@example.org/x.git",
    "ssh://me:open-sesame@example.org/x.git",
    f"https://ghp_{'a1' * 18}@github.com/a/b",
    f"https://example.org/x.git?private_token=glpat-{'a1' * 10}",
]


@pytest.mark.parametrize("url", SECRETS)
def test_an_address_with_a_credential_is_neither_written_nor_shown_by_a_clone(url, ann):
    done = ann("clone", url, "copy", code=2)
    assert "the address holds a password or a token" in done.err
    assert not re.search("ghp_|glpat-", done.err)
    assert not (ann.path / "copy").exists()


@pytest.mark.parametrize("key", sampled(["url", "pushurl"], 3))
@pytest.mark.parametrize("url", SECRETS)
def test_a_push_to_an_address_with_a_credential_is_refused_until_its_hint_is_followed(url, key, ann, host):
    ann.git("config", f"remote.origin.{key}", url)
    for words in ((), ("--dry-run",), ("--no-verify",), ("origin", RUN)):
        done = ann.push(*words, code=2)
        assert done.err.startswith("skillgit: the address of origin in git's configuration holds a password or a token")
        assert not re.search("ghp_|glpat-", done.err)
    command = re.search(r"git remote set-url .*? URL", done.err)[0].replace("URL", str(host.path))
    ann.git(*shlex.split(command)[1:])
    ann.push()
    assert refs(host.path)


@pytest.mark.parametrize("url", SECRETS)
def test_each_of_several_push_addresses_is_looked_at(url, ann, host):
    ann.git("config", "remote.origin.pushurl", str(host.path))
    ann.git("config", "--add", "remote.origin.pushurl", url)
    pushed = ann.push(code=2).err
    assert not re.search("ghp_|glpat-|sesame", pushed)
    command = re.search(r"git remote set-url .*? sets one", pushed)[0].removesuffix(" sets one")
    ann.git(*shlex.split(command.replace("URL", str(host.path)))[1:])
    ann.push()


def test_a_credential_that_git_puts_in_itself_is_its_own_affair(ann):
    """``url.*.insteadOf`` is the user's, of all repositories; no ``git remote`` changes it."""
    ann.git("remote", "set-url", "origin", "https://example.org/x.git")
    ann.git("config", "url.http://me:open-sesame@127.0.0.1:1/.insteadOf", "https://example.org/")
    assert "origin cannot be reached" in ann.push(code=5).err


def test_a_credential_that_git_was_given_by_hand_is_masked(ann):
    """Hosts of CI put a token into the address of a checkout: what only reads goes on."""
    ann.git("remote", "set-url", "origin", "http://me:open-sesame@127.0.0.1:1/x.git")
    assert "sesame" not in ann("pull", code=5).err


def test_a_host_that_refuses_hidden_refs_gets_the_rest_and_a_warning(host, ann):
    host.hook("update", 'case "$1" in refs/skillgit/*) echo "no such refs here" >&2; exit 1;; esac')
    done = ann.push("--evidence")
    assert f"warning: origin did not take the evidence of run {RUN} (hook declined)\n" in done.err
    assert "rejected candidates" in done.err
    assert "--rejected branches sends them as branches" in done.err
    assert "remote: no such refs here" in done.err
    assert {name.split("/")[1] for name in refs(host.path)} == {"heads", "tags"}


def test_a_host_that_refuses_a_branch_gets_nothing_of_the_runs(host, ann):
    host.hook("update", f'[ "$1" != refs/heads/best/{RUN} ]')
    done = ann.push(code=5)
    assert f"skillgit: origin refused best/{RUN}: hook declined\n" in done.err
    assert "held back, for another ref of the run was refused" in done.out
    assert set(refs(host.path)) == {"refs/heads/main"}


@pytest.mark.soak
def test_a_host_without_room_for_more_branches_is_answered_with_the_attic(host, ann):
    host.hook("update", 'case "$1" in refs/heads/rejected/*) exit 1;; esac')
    assert f"origin refused rejected/{RUN}/0002" in ann.push("--rejected", "branches", code=5).err
    ann.push("--rejected", "attic")
    assert f"refs/skillgit/attic/{RUN}" in refs(host.path)


def test_a_server_that_dies_in_the_middle_of_a_push_loses_nothing(host, http, tmp_path):
    reached, never = tmp_path / "reached", tmp_path / "never"
    for pipe in (reached, never):
        os.mkfifo(pipe)
    host.hook("pre-receive", f"cat > /dev/null; echo x > {reached}; cat {never}")
    process = subprocess.Popen(
        [*SKILLGIT, "push", "--no-verify"],
        cwd=http.path,
        env=surroundings(**http.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    reached.read_text()  # the server has the objects, and no ref has moved
    host.kill()
    _, said = process.communicate()
    assert process.returncode == 5, said
    # git may have tried once more, and then there was nobody
    assert said.startswith((b"skillgit: the connection to origin broke\n", b"skillgit: origin cannot be reached\n")), (
        said
    )

    (host.path / "hooks/pre-receive").unlink()
    http.git("remote", "set-url", "origin", host.url())
    http.push("--rejected", "branches", "--evidence")
    assert own(host.path) == http.own()
    assert "missing" not in git("fsck", "--full", cwd=host.path).out


def test_a_user_s_own_hook_is_asked_unless_told_otherwise(ann, host):
    hook = ann.path / ".git/hooks/pre-push"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    ann("push", code=5)
    assert refs(host.path) == {}
    ann("push", "--no-verify")
    assert refs(host.path)


def test_a_secret_stops_the_push_before_anything_leaves(ann, host):
    (ann.path / "key.txt").write_text(f"ghp_{'a1B2' * 9}\n")
    ann.git("add", "key.txt")
    ann.git("-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-q", "-m", "key")
    done = ann("push", code=1)
    assert "key.txt" in done.err
    assert refs(host.path) == {}
    ann("push", "--no-verify")


@pytest.mark.soak
def test_a_remote_that_is_set_up_as_a_mirror_loses_nothing(ann, host, clone):
    ann.push()
    bob = clone("bob")
    bob.git("push", "-q", "origin", "main:refs/heads/theirs")
    ann.git("config", "remote.origin.mirror", "true")
    ann("fork", f"{RUN}/best", "other")
    ann.push()
    assert {"refs/heads/theirs", "refs/heads/run/other"} <= refs(host.path).keys()
