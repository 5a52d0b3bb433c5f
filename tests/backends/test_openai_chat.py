"""OpenAI and Azure: where calls go and as whom."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from wire import wire_server

from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import Request, Tool, user
from skillgit.plugin.plugin_identity import install_command
from skillgit_backends import openai_chat
from skillgit_backends.openai_chat import OpenAIChatBackend

HELLO = Request(model="echo", messages=(user("hello"),))
TOOL = Tool(name="look", description="", parameters={})
VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_VERSION", "AZURE_OPENAI_AD_TOKEN")
AZURE = ("ENDPOINT", "API_VERSION", "API_KEY", "AUTH_MODE", "AD_SCOPE", "MANAGED_IDENTITY_CLIENT_ID")


@pytest.fixture(autouse=True)
def _clean(monkeypatch):
    for name in (*VARIABLES, *(f"AZURE_OPENAI_{name}" for name in AZURE)):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def wire():
    with wire_server(keep=True) as server:
        yield server


def answer(request=HELLO, **settings):
    async def ask():
        asked = OpenAIChatBackend(settings)
        try:
            return await asked.complete(request)
        finally:
            await asked.aclose()

    return asyncio.run(ask())


def test_the_usual_variables_are_enough(wire, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", f"{wire.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual")
    assert answer().text == "hello"
    assert wire.log()[0].headers["authorization"] == "Bearer sk-usual"


def test_a_local_server_needs_no_key(wire):
    assert answer(base_url=f"{wire.url}/v1").text == "hello"


def test_azure_with_a_key(wire, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"{wire.url}/")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "az-key")
    assert answer().text == "hello"
    (entry,) = wire.log()
    assert entry.path == "/openai/deployments/echo/chat/completions?api-version=2024-12-01-preview"
    assert entry.headers["api-key"] == "az-key"
    assert "max_completion_tokens" in entry.document


def test_a_model_that_only_responses_knows_is_asked_there_by_a_version_that_has_it(wire, monkeypatch):
    monkeypatch.setenv("MY_KEY", "az-key")
    assert answer(replace(HELLO, model="codex-echo"), azure_endpoint=wire.url, api_key_env="MY_KEY").text == "hello"
    assert wire.log()[0].path == "/openai/responses?api-version=2025-04-01-preview"


def test_openai_itself_is_asked_by_the_dialect_that_knows_the_request(wire, monkeypatch):
    monkeypatch.setattr("skillgit_backends.backend_settings.Endpoint.official", property(lambda _: True))
    base_url = f"{wire.url}/v1"
    answer(HELLO, base_url=base_url)
    answer(replace(HELLO, tools=(TOOL,)), base_url=base_url)
    answer(replace(HELLO, tools=(TOOL,), reasoning_effort="max"), base_url=base_url)
    answer(replace(HELLO, model="gpt-5.4-pro-echo"), base_url=base_url)
    answer(replace(HELLO, model="gpt-5.4-pro-echo"), base_url=base_url, api="chat")
    assert [entry.dialect for entry in wire.log()] == ["chat", "chat", "responses", "responses", "chat"]
    assert wire.log()[2].document["reasoning"] == {"effort": "xhigh"}
    assert "max_completion_tokens" in wire.log()[0].document


def az(folder, body, code=0):
    program = folder / "az"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{body}\nEND\nexit {code}\n")
    program.chmod(0o755)


def test_azure_as_whoever_is_signed_in_to_the_cli(wire, monkeypatch, tmp_path):
    az(tmp_path, json.dumps({"accessToken": "cli-token", "expires_on": 4102444800, "expiresOn": "2100-01-01 00:00:00"}))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "not this one")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/not-here")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", wire.url)
    assert answer(azure_endpoint=wire.url, auth_mode="azure_cli").text == "hello"
    (entry,) = wire.log()
    assert entry.headers["authorization"] == "Bearer cli-token"
    assert "api-key" not in entry.headers


def test_not_signed_in_to_the_cli_is_an_error_that_says_so(wire, monkeypatch, tmp_path):
    az(tmp_path, "Please run 'az login' to setup account.", code=1)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", wire.url)
    with pytest.raises(FatalBackendError, match="signing in to Azure failed") as error:
        answer()
    assert "az login" in error.value.hint
    assert wire.log() == []


@contextmanager
def identity_server():
    asked = []

    class Identity(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, dict(self.headers)))
            body = json.dumps({"access_token": "id-token", "expires_on": 4102444800, "resource": "r"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Identity)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_azure_as_the_identity_of_the_machine(wire, monkeypatch):
    with identity_server() as (url, asked):
        monkeypatch.setenv("IDENTITY_ENDPOINT", url)
        monkeypatch.setenv("IDENTITY_HEADER", "h")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", wire.url)
        monkeypatch.setenv("AZURE_OPENAI_AUTH_MODE", "managed_identity")
        monkeypatch.setenv("AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID", "who-i-am")
        assert answer().text == "hello"
    assert wire.log()[0].headers["authorization"] == "Bearer id-token"
    assert "who-i-am" in asked[0][0]
    assert "cognitiveservices.azure.com" in asked[0][0]


def test_without_the_extra_the_error_says_what_to_install(wire, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "azure.identity.aio", None)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", wire.url)
    with pytest.raises(FatalBackendError, match="azure-identity") as error:
        answer(auth_mode="managed_identity")
    assert install_command("azure") in error.value.hint


def test_what_it_says_of_itself_needs_no_network():
    assert openai_chat.OpenAIChatBackend.info.needs_network
    assert openai_chat.OpenAIChatBackend.info.models == ()
