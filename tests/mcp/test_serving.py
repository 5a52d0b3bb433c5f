from __future__ import annotations

import asyncio
import json
import signal
import subprocess

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from program import SKILLGIT, skillgit, surroundings
from trained_runs import RUN, user

from skillgit import mcp as package
from skillgit.errors import UsageError
from skillgit.mcp.server import http_server, link_of, listen, server_of
from skillgit.plugin.plugin_identity import install_command

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
JSON = {"accept": "application/json, text/event-stream"}


def test_an_agent_speaks_with_it_on_stdin_and_stdout(trained):
    words = [*SKILLGIT[1:], "-C", str(trained), "mcp"]

    async def play():
        async with Client(StdioServerParameters(command=SKILLGIT[0], args=words, env=surroundings())) as client:
            return (await client.call_tool("runs", {})).structured_content

    answer = asyncio.run(play())
    assert [run["name"] for run in answer["runs"]] == [RUN]


def test_only_this_machine_gets_an_answer_and_no_page_of_another_site(trained):
    async def play():
        with listen(0) as listener:
            link, server = link_of(listener), http_server(server_of(user(trained)), listener)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            host = link.removeprefix("http://").removesuffix("/mcp")
            port = host.rpartition(":")[2]
            async with httpx2.AsyncClient(headers=JSON) as client:
                answers = [
                    await client.post(link, json=LIST, headers=headers)
                    for headers in (
                        {},
                        {"host": f"localhost:{port}", "origin": f"http://localhost:{port}"},
                        {"host": f"evil.example:{port}"},
                        {"host": "127.0.0.1"},
                        {"origin": "http://evil.example"},
                        {"origin": f"http://localhost:{port}.evil.example"},
                        {"origin": "null"},
                    )
                ]
                answers.append(
                    await client.post(link, content=b"x" * (1 << 19), headers={"content-type": "application/json"})
                )
            server.should_exit = True
            await serving
            return answers

    answers = asyncio.run(play())
    assert [answer.status_code for answer in answers] == [200, 200, 421, 421, 403, 403, 403, 413]
    assert "why" in {tool["name"] for tool in json.loads(answers[0].content)["result"]["tools"]}


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_port_that_does_not_exist_is_refused(port):
    with pytest.raises(UsageError, match=f"cannot listen on port {port}"):
        listen(port)


def test_a_port_that_is_taken_is_named():
    with listen(0) as listener, pytest.raises(UsageError, match="cannot listen on"):
        listen(listener.getsockname()[1])


def test_serve_answers_agents_over_http(trained):
    """With ``--mcp``, on a port of this machine, until it is interrupted; and each answer is of its own moment."""
    command = (*SKILLGIT, "-C", str(trained), "serve", "--mcp", "--port", "0")
    with subprocess.Popen(command, env=surroundings(), stdout=subprocess.PIPE, text=True) as process:
        link = process.stdout.readline().strip()
        answer = httpx2.post(link, json=LIST, headers=JSON)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert "why" in {tool["name"] for tool in answer.json()["result"]["tools"]}


def test_a_missing_extra_is_named_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setattr(package, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="mcp needs the extra 'mcp'") as refusal:
        package.require_extra()
    assert refusal.value.hint == install_command("mcp")


def test_stdin_that_ends_ends_it(trained):
    assert skillgit("mcp", cwd=trained).out == ""
