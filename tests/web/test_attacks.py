"""What serve refuses, one line an attack, and that nothing that a stranger wrote acts on a page."""

from __future__ import annotations

import re
import socket
from collections import Counter
from contextlib import ExitStack, suppress
from itertools import product
from urllib.parse import quote, urlencode

import html5lib
import pytest
from harvested import ORIGIN, draft, write_drafts
from program import new_repository, run, skillgit
from serving import DEADLINE_S, serving

from skillgit.app.workspace.invitations import OWNER, Role
from skillgit.web.access import STREAMS
from skillgit.web.pages import ROUTES

SCRIPT = "</script></pre><img src=x onerror=alert(1)>\"'><script>alert(1)</script>"
QUERY = ("a", "b", "q", "tab", "sort", "file", "line", "page", "rev", "from", "config")
"""Names in queries of pages."""
OWNED = re.compile(r"<img src=x|<script>alert")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """Return a run in which skill, items, answers, notes and settings hold script."""
    path = new_repository(tmp_path_factory.mktemp("attacked") / "repository")
    skill = path / "skills" / "searchqa" / "SKILL.md"
    skill = skill if skill.exists() else next(path.rglob("SKILL.md"))
    skill.write_text(skill.read_text() + f"\n## Rules {SCRIPT}\n\n- Never {SCRIPT}\n")
    (skill.parent / "long.md").write_text("a_b*c[" * 20_000)
    run("git", "add", ".", cwd=path)
    run("git", "-c", "user.name=Eve", "-c", "user.email=eve@example.com", "commit", "-qam", f"x {SCRIPT}", cwd=path)
    sizes = ("-o", "train.num_epochs=1", "-o", "train.batch_size=20", "-o", "evaluation.sel_env_num=10")
    skillgit("train", "demo", "--run", "hostile", "-q", *sizes, "-o", "evaluation.test_env_num=4", cwd=path)
    skillgit("note", "hostile/v0", SCRIPT, cwd=path)
    origin = {**ORIGIN, "follow_up": SCRIPT, "signals": [SCRIPT]}
    rows = [
        draft(f"d{SCRIPT.split(maxsplit=1)[0]}", prompt=SCRIPT, rubric=SCRIPT, files=["files/x"], origin=origin),
        draft("d", prompt=SCRIPT),
    ]
    write_drafts(path, rows, skill="hostile")
    return path


@pytest.fixture(scope="module")
def server(repository):
    with serving(repository) as server:
        yield server


@pytest.fixture(scope="module")
def owner(server):
    return server.visitor()


@pytest.fixture(scope="module")
def viewer(repository, server):
    return server.visitor(skillgit("serve", "--invite", "Eve", cwd=repository).out.strip())


@pytest.fixture(scope="module")
def colleague(repository, server):
    return server.visitor(skillgit("serve", "--invite", "Bob", "--as", "operator", cwd=repository).out.strip())


ATTACKS = {
    "no token": ("GET", "/", {"cookie": ""}, 403),
    "a token that was guessed": ("GET", f"/?token={'A' * 43}", {"cookie": ""}, 403),
    "an empty token": ("GET", "/?token=", {"cookie": ""}, 403),
    "another name": ("GET", "/", {"host": "evil.example"}, 421),
    "another name with our port (DNS rebinding)": ("GET", "/", {"host": "evil.example:{port}"}, 421),
    "a name that begins like ours": ("GET", "/", {"host": "127.0.0.1.evil.example:{port}"}, 421),
    "a number that is not ours": ("GET", "/", {"host": "10.0.0.1:{port}"}, 421),
    "another port": ("GET", "/", {"host": "127.0.0.1:1"}, 421),
    "a foreign page reads": ("GET", "/", {"origin": "https://evil.example"}, 403),
    "a sandboxed page reads": ("GET", "/", {"origin": "null"}, 403),
    "a foreign page loads it as a picture": (
        *("GET", "/", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
    ),
    "another port of this machine loads it": (
        *("GET", "/", {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"}, 403),
    ),
    "another port of this machine has it in a frame": (
        "GET",
        "/",
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
        403,
    ),
    "a foreign link chooses a configuration, whose plug-ins are loaded": (
        "GET",
        "/new?config=demo",
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        403,
    ),
    "a foreign link has a measurement planned": (
        "GET",
        "/run/hostile/v0/eval",
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        403,
    ),
    "a length and chunks (smuggling)": (
        *("POST", "/revoke", {"origin": "{origin}", "content-length": "4", "transfer-encoding": "chunked"}, 403),
    ),
    "a proxy's headers": ("GET", "/", {"host": "evil.example", "x-forwarded-host": "127.0.0.1:{port}"}, 421),
    "a form without Origin": ("POST", "/revoke", {}, 403),
    "a form of a foreign page": ("POST", "/revoke", {"origin": "https://evil.example"}, 403),
    "a form of nowhere": ("POST", "/revoke", {"origin": "null"}, 403),
    "a form of another port": ("POST", "/revoke", {"origin": "http://127.0.0.1:1"}, 403),
    "a form without its secret (CSRF)": ("POST", "/revoke", {"origin": "{origin}"}, 403),
    "a form that a foreign page sends": (
        "POST",
        "/revoke",
        {"origin": "{origin}", "sec-fetch-site": "cross-site"},
        403,
    ),
    "a method that changes something": ("DELETE", "/", {"origin": "{origin}"}, 405),
    "a page as a form": ("POST", "/", {"origin": "{origin}"}, 403),
    "out of the static folder": ("GET", "/static/../../../etc/passwd", {}, 404),
    "out of it, encoded": ("GET", "/static/..%2f..%2fpages%2factivity.py", {}, 404),
    "out of it, encoded twice": ("GET", "/static/%252e%252e/server.py", {}, 404),
    "out of it, absolute": ("GET", "/static//etc/passwd", {}, 404),
    "a run that is a path": ("GET", "/run/..%2f..%2f.git%2fconfig", {}, 404),
    "a run that is an option": ("GET", "/run/--help", {}, 404),
    "a command that is a path": ("GET", "/activity/..%2f..%2fseal", {}, 404),
    "a name with NUL": ("GET", "/run/%00", {}, 404),
}


def raw(server, client, method, path, headers, *, body=b""):
    """Send a request as it is written, with the path and the headers that no client would send."""
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    given = {"host": f"127.0.0.1:{server.port}", "cookie": cookie, "connection": "close"}
    given |= {name: value.format(port=server.port, origin=server.origin) for name, value in headers.items()}
    given |= {"content-length": str(len(body))} if method == "POST" and "content-length" not in given else {}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S) as connection:
        connection.sendall(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    return int(answer.split(b" ", 2)[1]), answer.decode()


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_refused(server, owner, attack):
    method, path, headers, status = ATTACKS[attack]
    code, answer = raw(server, owner, method, path, headers)
    assert code == status, answer
    assert "root:" not in answer
    head = answer.partition("\r\n\r\n")[0].lower()
    assert "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'" in head
    assert "cache-control: no-store" in head


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 12, "²", "-1", "x"])
def test_a_number_that_is_none_does_no_harm(owner, number):
    for path in ("/?from=", "/activity?page=", "/run/hostile/items?page=", "/run/hostile/events?from="):
        assert owner.get(path + number).status_code == 200
    assert owner.get(f"/run/hostile/v0/why?line={number}").status_code == 400


def test_a_form_with_nul_starts_nothing(server, owner):
    answer = server.post(owner, "/run/hostile/v0/note", text="a\0b")
    assert answer.status_code == 400
    assert "NUL" in answer.text


@pytest.fixture
def evil(repository):
    path = repository / "evil.py"
    path.write_text(PLUGIN)
    yield path
    path.unlink()


PLUGIN = "from pathlib import Path\nPath('executed').touch()\n"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("env.name", "evil.py:Evil"),
        ("env.name", '"evil.py:Evil"'),
        ("model.target_backend", "evil.py:Evil"),
        ("model.target_backend", "claude_code_exec"),
        ("gate.policy", "evil.py:Evil"),
        ("env.split_dir", "/etc"),
        ("env.data_path", "~/.ssh"),
        ("env.skill_init", "/etc/passwd"),
        ("optimizer.check", "touch executed"),
        ("calls.ray_address", "ray://anything"),
        ("calls.executor", "ray"),
        ("calls.executor", "process"),
    ],
)
def test_an_invited_operator_names_no_file_and_no_program(evil, server, colleague, key, value):
    for path in ("/new/check", "/new"):
        answer = server.post(colleague, path, config="demo", run="mine", **{f"o.{key}": value})
        assert answer.status_code == 400
        assert f"your link does not allow this value for {key}" in answer.text
    assert not evil.with_name("executed").exists()


def test_an_invited_operator_changes_other_values(server, colleague):
    fine = {"o.train.batch_size": "10", "o.budget.max_calls": "9000", "o.train.stop_at_ceiling": "true"}
    assert server.post(colleague, "/new/check", config="demo", run="mine", **fine).status_code == 200


def test_an_invited_operator_lets_no_operator_in(server, colleague):
    answer = server.post(colleague, "/invite", name="Mallory", role="operator")
    assert answer.status_code == 400
    assert "Mallory" not in colleague.get("/activity").text
    assert 'value="operator"' not in colleague.get("/activity").text


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:{port}\r\nhost: evil.example"},
        {"content-length": "0\r\ncontent-length: 5"},
        {"content-length": "+5"},
        {"transfer-encoding": "chunked\r\ntransfer-encoding: identity"},
        {"x\r\n y": "folded"},
    ],
)
def test_a_request_that_contradicts_itself_is_none(server, owner, headers):
    code, _ = raw(server, owner, "POST", "/revoke", {"origin": "{origin}", **headers})
    assert code in {400, 501}


def test_a_form_of_a_gigabyte_is_not_read(server, owner):
    headers = {"origin": "{origin}", "content-type": "application/x-www-form-urlencoded"}
    code, _ = raw(server, owner, "POST", "/revoke", headers, body=b"name=" + b"x" * (1 << 20))
    assert code == 413


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.role is Role.OPERATOR],
    ids=lambda route: f"{route.method} {route.path}",
)
def test_a_viewer_does_nothing_that_is_for_operators(server, viewer, route):
    path = re.sub(r"{\w+}", "hostile", route.path)
    answer = server.post(viewer, path) if route.method == "POST" else viewer.get(path)
    assert answer.status_code == 403
    assert "this link only reads" in answer.text


def test_every_form_is_for_operators():
    assert [route.path for route in ROUTES if route.method == "POST" and route.role is not Role.OPERATOR] == []


def filled(route):
    """Return addresses of a route, with names that exist and with names that are script."""
    # a page that leads to a command may plan it, which takes a process each time
    events = ["v1", SCRIPT] if route.role is Role.OPERATOR else ["v0", "v1", "r1", "end", SCRIPT]
    names = {"run": ["hostile", SCRIPT], "event": events, "skill": ["hostile", SCRIPT]}
    holes = re.findall(r"{(\w+)}", route.path)
    for values in product(*(names.get(hole, [SCRIPT]) for hole in holes)):
        path = route.path
        for hole, value in zip(holes, values, strict=True):
            path = path.replace(f"{{{hole}}}", quote(value, safe=""))
        yield path
        yield f"{path}?{urlencode(dict.fromkeys(QUERY, SCRIPT))}"


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method == "GET" and "stream" not in route.path], ids=lambda r: r.path
)
def test_what_a_stranger_wrote_is_text_on_every_page(owner, route):
    for path in filled(route):
        answer = owner.get(path)
        assert answer.status_code in {200, 303, 400, 404, 409}, (path, answer.text)
        if answer.headers["content-type"].startswith("text/html"):
            assert not OWNED.search(answer.text), path
            parser = html5lib.HTMLParser(strict=not route.path.endswith("part"))
            names = {name for element in parser.parse(answer.text).iter() for name in element.attrib}
            assert not {name for name in map(str, names) if name.startswith("on") or name == "style"}, path
        else:
            assert "attachment" in answer.headers.get("content-disposition", "") or "html" not in path


def test_markdown_that_would_take_minutes_is_not_rendered(owner):
    page = owner.get("/run/hostile/v0?file=long.md").text
    assert "a_b*c[a_b*c[" in page
    assert 'class="skill-text"' not in page
    assert 'class="skill-text"' in owner.get("/run/hostile/v0").text


def test_connections_that_say_nothing_hurt_nobody(server, owner):
    with ExitStack() as stack:
        for _ in range(800):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port))).sendall(b"GET / HT")
        # on a new connection: that of the client is one of those that are closed
        assert raw(server, owner, "GET", "/", {})[0] == 200


@pytest.mark.soak
@pytest.mark.slow
def test_a_request_that_never_ends_is_not_waited_for(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""


@pytest.mark.parametrize("number", [300, pytest.param(10_000, marks=pytest.mark.soak)])
def test_streams_of_one_viewer_leave_room_for_others(server, owner, viewer, number):
    path, headers = "/run/hostile/live/stream", {"accept": "text/event-stream"}
    if raw(server, owner, "HEAD", path, {})[0] == 404:
        pytest.skip("there are no streams")
    cookie = "; ".join(f"{name}={value}" for name, value in viewer.cookies.items())
    text = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\n"
    text += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    answers = Counter()
    for _ in range(0, number, 300):
        with ExitStack() as stack:
            for _ in range(300):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), DEADLINE_S))
                connection.sendall(text.encode())
                answers[connection.recv(12)[-3:]] += 1
            assert owner.get("/").status_code == 200
    assert set(answers) <= {b"200", b"503"}
    assert answers[b"200"] <= STREAMS // 2 * -(-number // 300)


def test_the_link_is_nowhere_but_with_its_owner(repository):
    with serving(repository) as server:
        token = server.link.partition("token=")[2]
        owner = server.visitor()
        pages = [owner.get(path).text for path in ("/", "/activity", "/nope", f"/nope?token={token}")]
        server.process.send_signal(2)
        _, errors = server.process.communicate(timeout=DEADLINE_S)
    assert all(token not in page for page in pages)
    assert token.encode() not in errors
    assert server.process.returncode == 0
    assert not [path for path in repository.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert OWNER not in skillgit("serve", "--tokens", cwd=repository).out
