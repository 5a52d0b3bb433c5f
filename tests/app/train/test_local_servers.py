"""doctor --local: which program it is, by what it answers; stand-ins answer as the documents of the programs say."""

from __future__ import annotations

import json
import shlex
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sample_run import seed_skill

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.models import find_routes
from skillgit.app.train import local_servers as module
from skillgit.app.workspace.context import Context
from skillgit.cli import main
from skillgit.errors import ConflictError
from skillgit.store.work_tree import add_skill

MODEL = "small-model:1b"
KEPT, LOOSE = '{"colour": "teal", "legs": 4}', "Hello!"


def listed(**more):
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1, **more}]}


def reply(text):
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


REFUSED = (400, {"error": {"message": "response_format is not supported", "type": "invalid_request_error"}})
OLLAMA = {
    "/v1/models": listed(owned_by="library"),
    "/api/version": {"version": "0.12.6"},
    "/api/tags": {"models": [{"name": MODEL, "model": MODEL, "size": 1, "digest": "d", "details": {}}]},
    "/api/ps": {"models": [{"name": MODEL, "model": MODEL, "context_length": 4096, "size_vram": 0}]},
    "/api/show": {"model_info": {"general.architecture": "qwen2", "qwen2.context_length": 32768}},
}
STUDIO = {
    "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "organization_owner"}]},
    "/api/v0/models": {
        "object": "list",
        "data": [
            {
                "id": MODEL,
                "type": "llm",
                "state": "loaded",
                "max_context_length": 99999,
                "loaded_context_length": 8192,
            },
            {"id": "other", "type": "vlm", "state": "not-loaded", "max_context_length": 4096},
            {"id": "vectors", "type": "embeddings", "state": "not-loaded", "max_context_length": 2048},
        ],
    },
}
LLAMA = {
    "/v1/models": listed(owned_by="llamacpp", meta={"n_ctx_train": 32768, "n_params": 1}),
    "/props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 3, "build_info": "b7000"},
}
VLLM = {"/v1/models": listed(owned_by="vllm", max_model_len=40960), "/version": {"version": "0.11.0"}}


def handler(answers, chat):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer()

        def do_POST(self):
            self.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.server.posts.append((self.path, self.body))
            self.answer()

        def answer(self):
            value = chat if self.path == "/v1/chat/completions" else answers.get(self.path)
            status, document = value if isinstance(value, tuple) else (404 if value is None else 200, value)
            content = document if isinstance(document, bytes) else json.dumps(document or {"error": "?"}).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    return Handler


@contextmanager
def serving(answers, chat=None):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(answers, chat or reply(KEPT)))
    server.posts, server.daemon_threads = [], True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PROGRAMS", ())  # what runs on this machine is not asked by a test
    return Context.from_process(tmp_path)


@pytest.mark.parametrize(
    ("answers", "program", "version", "limits"),
    [
        (OLLAMA, "Ollama", "0.12.6", (4096, None)),
        ({**OLLAMA, "/api/ps": {"models": []}}, "Ollama", "0.12.6", (32768, None)),
        (STUDIO, "LM Studio", "", (8192, None)),
        (LLAMA, "llama.cpp", "b7000", (4096, 3)),
        ({"/v1/models": listed(owned_by="llamacpp", meta={"n_ctx": 2048})}, "llama.cpp", "", (2048, None)),
        (VLLM, "vLLM", "0.11.0", (40960, None)),
        ({"/v1/models": listed(owned_by="me")}, "another server", "", (None, None)),
    ],
)
def test_a_program_is_known_by_what_it_answers(here, answers, program, version, limits):
    with serving(answers) as server:
        (one,) = module.local_servers(here, ports=[server.server_port], ask=False).servers
    assert (one.program, one.version) == (program, version)
    assert one.address == f"http://127.0.0.1:{server.server_port}/v1"
    assert one.models[0].name == MODEL
    assert (one.models[0].context, one.slots) == limits
    assert not [post for post in server.posts if "chat" in post[0]], "no model is asked"
    assert "vectors" not in [model.name for model in one.models]


@pytest.mark.parametrize(
    ("chat", "schemas"),
    [(reply(KEPT), "kept"), (reply(LOOSE), "not kept"), (reply('{"colour": "red"}'), "not kept"), (REFUSED, "refused")],
)
def test_one_small_question_says_whether_schemas_are_kept_to(here, chat, schemas):
    with serving(LLAMA, chat) as server:
        (one,) = module.local_servers(here, ports=[server.server_port]).servers
    assert one.models[0].schemas == schemas
    ((_, body),) = server.posts
    assert body["response_format"]["type"] == "json_schema"
    assert body["max_tokens"] <= 200
    assert "teal" not in str(body["messages"]), "a reply that fits was not made from the prompt"


def test_a_model_that_is_not_loaded_is_not_asked(here):
    with serving({**OLLAMA, "/api/ps": {"models": []}}) as server:
        (one,) = module.local_servers(here, ports=[server.server_port]).servers
    assert (one.models[0].schemas, one.models[0].detail) == ("not asked", "not loaded")
    assert [path for path, _ in server.posts] == ["/api/show"]


@pytest.mark.parametrize(
    "answer",
    [b"not JSON", {"data": "no list"}, {"data": [1, None, {"id": 3}]}, b"[" * 100_000, b"x" * (5 << 20), [], (500, {})],
)
def test_whatever_else_listens_there_is_left_alone(here, answer):
    with serving(dict.fromkeys(OLLAMA, answer)) as server:
        result = module.local_servers(here, ports=[server.server_port])
    assert all(not one.models for one in result.servers)
    assert not [post for post in server.posts if "chat" in post[0]]


def test_a_server_that_says_nothing_holds_nobody_up(here, monkeypatch):
    monkeypatch.setattr(module, "_LOOK_S", 0.2)
    began = threading.Event()

    class Silent(BaseHTTPRequestHandler):
        def do_GET(self):
            began.wait(30)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Silent)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with serving(VLLM) as other:
        result = module.local_servers(here, ports=[server.server_port, other.server_port])
    began.set()
    server.shutdown()
    server.server_close()
    assert [one.program for one in result.servers] == ["vLLM"]


def test_no_proxy_hears_of_it(here, monkeypatch):
    with serving({}) as proxy, serving(VLLM) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.server_port}")
        result = module.local_servers(here, ports=[server.server_port])
        assert result.servers
        assert proxy.posts == []


@pytest.mark.parametrize("answers", [OLLAMA, STUDIO, LLAMA, VLLM, {"/v1/models": listed()}])
@pytest.mark.parametrize("base", ["", "searchqa/default", "own.yaml"])
def test_what_is_written_is_a_configuration_that_reaches_the_model(here, answers, base):
    (here.directory / "own.yaml").write_text("_base_: searchqa/default\ntrain: {num_epochs: 1}\n")
    with serving(answers) as server:
        module.local_servers(here, ports=[server.server_port], write="models.yaml", base=base)
    config = load_config(here, "models.yaml")
    assert config.values.env.name == ("searchqa" if base else "tasks")
    for role, route in find_routes(config, ("target", "optimizer")).items():
        assert route.name == f"openai_compatible/{MODEL}", role
        assert route.served.place == f"127.0.0.1:{server.server_port}"
        assert route.price is not None
    with pytest.raises(ConflictError, match="is there already"):
        module.local_servers(here, write="models.yaml")


def test_the_next_command_of_the_hint_works(here, monkeypatch, capsys):
    monkeypatch.chdir(here.directory)
    with serving(LLAMA) as server:
        assert main.run(["doctor", "--local", "--port", str(server.server_port), "--write", "models.yaml"]) == 0
        assert "hint: skillgit doctor models.yaml, then skillgit train models.yaml" in capsys.readouterr().err
        assert main.run(["doctor", "models.yaml", "--no-call"]) == 0
        assert f"127.0.0.1:{server.server_port}" in capsys.readouterr().out


@pytest.mark.parametrize(("skills", "choice"), [(["town"], ""), (["town", "mill"], " --skill mill")])
def test_both_commands_of_the_hint_work_where_skills_have_tasks(repo, clock, monkeypatch, capsys, *, skills, choice):
    monkeypatch.chdir(repo.workdir)
    (repo.workdir / "tasks").mkdir()
    for name in skills:
        add_skill(repo, f"skills/{name}", seed_skill(name), time=clock())
        rows = [{"question": f"When was {name} {n} built, in {1800 + n}?", "answer": str(1800 + n)} for n in range(20)]
        (repo.workdir / "tasks" / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with serving(LLAMA) as server:
        assert main.run(["doctor", "--local", "--port", str(server.server_port), "--write", "models.yaml"]) == 0
        hint = capsys.readouterr().err.partition("hint: ")[2].strip()
        assert hint == f"skillgit doctor models.yaml{choice}, then skillgit train models.yaml{choice}"
        for command in hint.split(", then "):
            words = shlex.split(command)[1:]
            assert main.run([*words, "--no-call" if words[0] == "doctor" else "--dry-run"]) == 0, command
        assert f"tasks/{skills[-1]}.jsonl" in capsys.readouterr().out


def test_where_none_answers_the_ways_to_start_one_are_named(here, monkeypatch, capsys):
    monkeypatch.chdir(here.directory)
    assert main.run(["doctor", "--local"]) == 1
    assert "ollama serve" in capsys.readouterr().err
    assert main.run(["doctor", "--port", "1"]) == 2
    assert main.run(["doctor", "demo", "--local"]) == 2
    capsys.readouterr()


def test_several_servers_are_asked_at_once(here):
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(answers)) for answers in (OLLAMA, STUDIO, LLAMA, VLLM)]
        ports = [server.server_port for server in servers]
        result = module.local_servers(here, ports=ports)
    assert [one.program for one in result.servers] == ["Ollama", "LM Studio", "llama.cpp", "vLLM"]


def test_the_real_server_of_this_machine_is_found(tmp_path):
    context = Context.from_process(tmp_path)
    result = module.local_servers(context, ask=False)
    if not result.servers:
        pytest.skip("no program serves models on this machine")
    assert all(one.models for one in result.servers)
