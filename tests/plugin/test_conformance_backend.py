"""The kit for backends: those that come with skillgit keep every promise, and each broken one is noticed."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import urllib.request
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from soaking import soak
from stand_ins import write_agent
from wire import wire_server

from skillgit.errors import ConfigError, FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import BackendInfo, Reply, ToolCall, Usage, system, user
from skillgit.testing import ConformanceError, check_backend
from skillgit_backends.claude_chat import ClaudeChatBackend
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend
from skillgit_backends.codex_exec import CodexExecBackend
from skillgit_backends.minimax_chat import MiniMaxChatBackend
from skillgit_backends.offline import OfflineBackend
from skillgit_backends.openai_chat import OpenAIChatBackend
from skillgit_backends.openai_compatible import OpenAICompatibleBackend
from skillgit_backends.qwen_chat import QwenChatBackend

KEY = "sk-PLANTED0123456789abcdefghijklmnop"
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name in ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PLANTED_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture(scope="module")
def wire():
    with wire_server() as running:
        yield running


OPENAI = [
    (OpenAIChatBackend, {"api": "chat"}),
    (OpenAIChatBackend, {"api": "responses"}),
    soak(OpenAICompatibleBackend, {}),
    (QwenChatBackend, {}),
    soak(MiniMaxChatBackend, {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "settings"), OPENAI)
def test_all_that_speak_openai_keep_every_promise(cls, settings, wire):
    def at(url):
        return {**settings, "base_url": f"{url}/v1", "api_key_env": "PLANTED_API_KEY"}

    check_backend(cls, at(wire.url), model="echo", messages=[user("hi")], echoes=True, images=True, misbehaving=at)
    check_backend(cls, at(wire.url), model="tooler", tools=True)


@pytest.mark.slow
def test_claude_chat_keeps_every_promise(wire):
    def at(url):
        return {"base_url": url}

    cls = ClaudeChatBackend
    check_backend(cls, at(wire.url), model="echo", messages=[user("hi")], echoes=True, images=True, misbehaving=at)
    check_backend(cls, at(wire.url), model="tooler", tools=True)


def test_the_offline_reader_keeps_every_promise():
    item = json.loads((ROOT / "envs/skillgit_envs/searchqa/data/train/items.json").read_text())[0]
    prompt = (ROOT / "envs/skillgit_envs/searchqa/prompts/system.md").read_text().replace("{skill}", "")
    asked = f"<context>\\n{item['context']}\\n</context>\\n\\n<question>\\n{item['question']}\\n</question>"
    check_backend(OfflineBackend, {}, model="reader", messages=[system(prompt), user(asked)])


CLAUDE = """
sys.stdin.read()
say({"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "stop_reason": "end_turn",
     "result": "Hello", "usage": {"input_tokens": 10, "output_tokens": 2}})
"""
CODEX = """
sys.stdin.read()
say({"type": "thread.started", "thread_id": "t"})
say({"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "Hello"}})
say({"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 2, "cached_input_tokens": 0}})
"""


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "body"), [(ClaudeCodeExecBackend, CLAUDE), soak(CodexExecBackend, CODEX)])
def test_agents_keep_every_promise(cls, body, tmp_path):
    path, _ = write_agent(tmp_path, body)
    settings = {"path": path} | ({"allow_root": True} if cls is ClaudeCodeExecBackend else {})
    check_backend(cls, settings, model="a-model", messages=[user("Say hello.")])


class Good:
    """Repeats the last user message; over HTTP if it has an address, in the simplest way there is."""

    info = BackendInfo(name="good", summary="Repeats", models=("echo",), needs_network=False)
    text = staticmethod(lambda request: request.messages[-1].text)

    def __init__(self, settings):
        if set(settings) - {"url"}:
            raise ConfigError("no such setting", hint="remove it")
        self.url = settings.get("url")
        self.answered = 0

    async def complete(self, request):
        if self.url:
            await self.fetch()
        await asyncio.sleep(0)
        self.answered += 1
        if request.tools and request.messages[-1].role != "tool":
            call = ToolCall(id="1", name=request.tools[0].name, arguments="{}")
            return self.reply(
                Reply(text="", usage=Usage(tokens_in=1, tokens_out=1), finish_reason="tool_calls", tool_calls=(call,))
            )
        return self.reply(Reply(text=self.text(request), usage=Usage(tokens_in=1, tokens_out=1)))

    def reply(self, reply):
        return reply

    async def fetch(self):
        host, _, port = self.url.removeprefix("http://").partition(":")
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(b"POST / HTTP/1.1\r\nauthorization: Bearer " + KEY.encode() + b"\r\n\r\n")
                answer = (await reader.read()).decode()
            finally:
                writer.close()
        except OSError as error:
            raise RetryableBackendError("broke", hint="") from error
        raise self.judged(answer)

    def judged(self, answer):
        status = int(answer.split(" ")[1]) if answer else 0
        after = re.search(r"retry-after: (\d+)", answer)
        if status in (0, 429) or status >= 500:
            return RetryableBackendError("later", hint="", retry_after=float(after.group(1)) if after else None)
        return FatalBackendError(f"status {status}", hint="")

    async def aclose(self):
        self.url = None


def at(url):
    return {"url": url}


def examined(cls, **more):
    check_backend(cls, **{"model": "echo", "echoes": True, "tools": True, "images": True, "misbehaving": at, **more})


def test_a_good_one_passes():
    examined(Good)


def broken(**changes):
    return type("Broken", (Good,), changes)


def said(**changes):
    return broken(reply=lambda _self, reply: replace(reply, **changes))


def used(**counts):
    return said(usage=Usage(**{"tokens_in": 1, "tokens_out": 1, **counts}))


def ignoring(self, _settings):
    self.url, self.answered = None, 0


def connecting(self, settings):
    Good.__init__(self, settings)
    with socket.socket() as one:
        one.connect_ex(("127.0.0.1", 9))
        try:
            one.connect(("127.0.0.1", 9))
        except OSError:
            return


def closing_once(self):
    if self.url == "closed":
        raise RuntimeError("closed before")
    self.url = "closed"


async def aclosing_once(self):
    closing_once(self)


async def only_once(self, request):
    if self.answered:
        raise FatalBackendError("one question at most", hint="")
    return await Good.complete(self, request)


async def deaf(self, request):
    reply = await Good.complete(self, request)
    try:
        await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        await asyncio.sleep(0.5)
    return reply


LAST = {"text": ""}


def late(request):
    """Return what was asked just before: an answer to another question."""
    before, LAST["text"] = LAST["text"], request.messages[-1].text
    return before or "first"


def raw(_self, answer):
    return FatalBackendError(answer, hint="")


BROKEN = {
    "has no info": broken(info="a backend"),
    "info.name is 'my backend'": broken(info=BackendInfo(name="my backend", summary="Repeats")),
    "info.summary is empty": broken(info=BackendInfo(name="x", summary=" ")),
    "but not 'echo'": broken(info=BackendInfo(name="x", summary="x", models=("other",))),
    "cannot be made": broken(__init__=lambda _self, _settings: 1 / 0),
    "uses the network while it is made": broken(__init__=connecting),
    "silently ignores a setting": broken(__init__=ignoring),
    "has no text": said(text=" "),
    "finish_reason is 'end_turn'": said(finish_reason="end_turn"),
    "calls tools though none is on offer": said(tool_calls=(ToolCall(id="1", name="x", arguments="{}"),)),
    "not a whole number": used(tokens_in=-1),
    "usage.tokens_in is 0": used(tokens_in=0),
    "usage.tokens_out is 0": used(tokens_out=0),
    "usage.cached is more": used(cached=2),
    "usage.reasoning is more": used(reasoning=2),
    "complete returns str": broken(reply=lambda _self, _reply: "hello"),
    "a plain request raises RuntimeError": broken(
        reply=lambda _self, _reply: (_ for _ in ()).throw(RuntimeError("no"))
    ),
    "the same request again raises": broken(complete=only_once),
    "letters change": broken(
        text=staticmethod(lambda request: request.messages[-1].text.encode("ascii", "ignore").decode())
    ),
    "a request with a lone surrogate raises UnicodeEncodeError": broken(
        text=staticmethod(lambda request: request.messages[-1].text.encode().decode())
    ),
    "get the answer to another question": broken(text=staticmethod(late)),
    "does not call the tool": said(tool_calls=(), text="no tools", finish_reason="stop"),
    "ends as 'stop'": said(finish_reason="stop"),
    "has no id": said(tool_calls=(ToolCall(id="", name="look_up", arguments="{}"),)),
    "which is not on offer": said(tool_calls=(ToolCall(id="1", name="other", arguments="{}"),)),
    "are not a JSON object": said(tool_calls=(ToolCall(id="1", name="look_up", arguments="[]"),)),
    "a second aclose raises": broken(aclose=aclosing_once),
    "(401) has to be a FatalBackendError": broken(judged=lambda _self, _answer: RetryableBackendError("x", hint="")),
    "(500) has to be a RetryableBackendError": broken(judged=lambda _self, _answer: FatalBackendError("x", hint="")),
    "repeats the key": broken(judged=raw),
    "retry_after is None": broken(judged=lambda self, answer: Good.judged(self, answer.replace("retry-after", "x"))),
    "server that is not there has to be a RetryableBackendError": broken(
        fetch=lambda self: asyncio.to_thread(urllib.request.urlopen, self.url)
    ),
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_each_broken_promise_is_told(sentence, monkeypatch):
    monkeypatch.setattr("skillgit.testing.case._LINGERS_S", 0.5)
    with pytest.raises(ConformanceError, match=re.escape(sentence)) as caught:
        examined(BROKEN[sentence])
    assert str(caught.value).startswith("Broken breaks ")
    assert all(told and "\n" not in told for told in caught.value.broken)


def test_a_call_that_cannot_be_cancelled_is_told(monkeypatch):
    monkeypatch.setattr("skillgit.testing.backend._LINGERS_S", 0.05)
    with pytest.raises(ConformanceError, match="does not end within"):
        examined(broken(complete=deaf), misbehaving=None)


async def lingering(self):
    """Ask and wait in a task of its own, which nobody cancels."""

    async def ask():
        host, _, port = self.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST / HTTP/1.1\r\n\r\n")
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    self.task = asyncio.ensure_future(ask())
    await asyncio.shield(self.task)
    raise RetryableBackendError("broke", hint="")


def test_a_connection_that_outlives_its_call_is_told(monkeypatch):
    monkeypatch.setattr("skillgit.testing.case._LINGERS_S", 0.2)
    with pytest.raises(ConformanceError, match="leaves its connection open"):
        examined(broken(fetch=lingering))


def test_an_endpoint_is_only_looked_at_if_the_backend_can_be_sent_there():
    examined(broken(judged=raw), misbehaving=None)
