from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import httpx2
import pytest
from program import new_repository, skillgit
from serving import DEADLINE_S, OTHER, serving, two_runs, until


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return new_repository(tmp_path_factory.mktemp("served") / "repository")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "192.0.2.1"), "other machines reach 192.0.2.1"),
        (("--host", "nowhere.invalid", "--behind-proxy", "https://a.example"), "cannot listen on nowhere.invalid"),
        (("--behind-proxy", "http://a.example"), "is not a public origin"),
        (("--behind-proxy", "https://a.example/path"), "is not a public origin"),
        (("--tls-cert", "SKILL.md"), "go together"),
        (("--tls-cert", "SKILL.md", "--tls-key", "SKILL.md"), "cannot be used for TLS"),
        (("--as", "operator"), "--as needs --invite"),
        (("--tokens", "--revoke", "x"), "--tokens cannot be combined with --revoke"),
        (("--mcp", "--host", "192.0.2.1"), "--mcp cannot be combined with --host"),
        (("--mcp", "--behind-proxy", "https://a.example"), "--mcp cannot be combined with --behind-proxy"),
        (("--port", "70000"), "cannot listen on 127.0.0.1, port 70000"),
    ],
)
def test_a_server_that_would_be_unsafe_is_refused_with_a_way_out(repository, options, message):
    (repository / "SKILL.md").touch()
    refusal = skillgit("serve", *options, cwd=repository, code=2)
    assert message in refusal.err
    assert "hint: " in refusal.err


def test_a_port_that_is_taken_is_named(repository):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refusal = skillgit("serve", "--port", str(taken.getsockname()[1]), cwd=repository, code=2)
    assert "cannot listen on 127.0.0.1" in refusal.err
    assert "leave out --port" in refusal.err


def test_two_servers_of_a_repository_know_nothing_of_each_other(repository):
    with serving(repository) as first, serving(repository) as second:
        assert first.visitor().get("/").status_code == second.visitor().get("/").status_code == 200
        assert httpx2.get(f"{second.origin}/?token={first.link.partition('token=')[2]}").status_code == 403


def test_the_browser_is_given_the_link_without_its_token_on_a_command_line(tmp_path, repository):
    program, report = tmp_path / "browser", tmp_path / "report"
    program.write_text(
        f'#!/bin/sh\nfile="${{1#file://}}"\n{{ echo "$@"; stat -c %a "$file"; cat "$file"; }} > {report}.part\n'
    )
    program.write_text(f"{program.read_text()}mv {report}.part {report}\n")
    program.chmod(0o700)
    with serving(repository, "--open", BROWSER=str(program)) as server:
        until(report.exists)
        words, mode, *page = report.read_text().splitlines()
        assert "token" not in words
        assert mode == "600"
        assert re.search(r'content="0; url=([^"]+)"', "".join(page))[1] == server.link
        assert httpx2.get(server.link).is_redirect
    assert not Path(words.removeprefix("file://")).exists()


def test_behind_a_proxy_the_public_name_is_a_name_and_its_cookie_is_secure(repository):
    with serving(repository, "--behind-proxy", "https://skills.example.com") as server:
        assert server.link.startswith("https://skills.example.com/?token=")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_server_with_a_certificate_encrypts(tmp_path, repository):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run([*words.split(), "-keyout", key, "-out", cert], check=True, capture_output=True)
    with serving(repository, "--host", "localhost", "--tls-cert", str(cert), "--tls-key", str(key)) as server:
        assert server.origin == f"https://localhost:{server.port}"
        answer = httpx2.get(server.link, verify=ssl.create_default_context(cafile=str(cert)))
        assert "; Secure" in answer.headers["set-cookie"]


def test_a_stream_that_is_open_ends_when_its_token_is_revoked(tmp_path_factory):
    with serving(two_runs(tmp_path_factory)) as server:
        iris = server.visitor(server.invite())
        name = json.loads(skillgit("serve", "--tokens", "--json", cwd=server.repository).out)["tokens"][-1]["name"]
        with iris.stream("GET", f"/run/{OTHER}/live/stream") as stream:
            chunks = stream.iter_bytes()
            assert next(chunks).startswith(b"retry:")
            assert b"data:" in next(chunks)
            skillgit("serve", "--revoke", name, cwd=server.repository)
            assert not [chunk for chunk in chunks if b"data:" in chunk]  # and it ends, or this would wait for good


def test_a_server_with_open_streams_ends_without_a_word(tmp_path_factory):
    with serving(two_runs(tmp_path_factory)) as server:
        viewer = server.visitor()
        with viewer.stream("GET", f"/run/{OTHER}/live/stream") as stream:
            assert next(stream.iter_bytes())
            server.process.send_signal(signal.SIGINT)
            _, errors = server.process.communicate(timeout=DEADLINE_S)
    assert server.process.returncode == 0
    assert b"Traceback" not in errors
    assert b"ERROR" not in errors
