from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from stand_ins import HANG, SKILL, first_note, is_alive, noted, trivia, write_agent

from skillgit.domain.evaluation import Loading
from skillgit.errors import BackendError, ConfigError, FatalBackendError, PromptTooLongError, RetryableBackendError
from skillgit.plugin.backend import Backend, Image, Message, Reply, Request, Tool, ToolCall, Usage, user
from skillgit_backends.codex_exec import CodexExecBackend

ANSWERS = """
say({"type": "thread.started", "thread_id": "t1"})
say({"type": "item.completed", "item": {"type": "error", "message": "Model metadata not found."}})
say({"type": "turn.started"})
say({"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}})
say({"type": "item.started", "item": {"type": "command_execution", "command": "ls"}})
say({"type": "item.completed", "item": {"type": "command_execution", "command": "ls",
     "aggregated_output": "x" * 5_000_000, "exit_code": 0, "status": "completed"}})
say({"type": "error", "message": "Reconnecting... 1/5"})
say({"type": "item.completed", "item": {"type": "agent_message", "text": "first thoughts"}})
say({"type": "item.completed", "item": {"type": "agent_message", "text": "<answer>Seine</answer>"}})
say({"type": "turn.completed", "usage": {"input_tokens": 1200, "cached_input_tokens": 200,
     "cache_write_input_tokens": 0, "output_tokens": 30, "reasoning_output_tokens": 10}})
"""
REPLY = Reply(
    text="<answer>Seine</answer>",
    usage=Usage(tokens_in=1200, tokens_out=30, cached=200, reasoning=10),
    loading=Loading.UNKNOWN,
)
SECRETS = ("ANTHROPIC_API_KEY", "AZURE_OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PLANTED_SECRET")


@pytest.fixture(autouse=True)
def _a_key_and_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("CODEX_API_KEY", "sk-codex-0123456789abcdef")
    for name in SECRETS:
        monkeypatch.setenv(name, f"secret-of-{name}")


def ask(path: str, request: Request | None = None, **settings: Any) -> Reply:
    async def asked() -> Reply:
        backend = CodexExecBackend({"path": path, **settings})
        try:
            return await backend.complete(request or trivia())
        finally:
            await backend.aclose()

    return asyncio.run(asked())


def fails(folder: Path, body: str, **settings: Any) -> BackendError:
    path, _ = write_agent(folder, body)
    with pytest.raises(BackendError) as caught:
        ask(path, **settings)
    return caught.value


def test_it_is_a_backend():
    assert isinstance(CodexExecBackend({}), Backend)


def test_an_answer_with_its_usage(tmp_path: Path):
    path, _ = write_agent(tmp_path, ANSWERS)
    assert ask(path) == REPLY


def test_the_last_message_is_read_from_its_file(tmp_path: Path):
    path, _ = write_agent(tmp_path, ANSWERS + "Path(option('--output-last-message')).write_text('whole answer')")
    assert ask(path).text == "whole answer"


def test_what_the_agent_is_given(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note(given=sys.stdin.read())" + ANSWERS)
    ask(path, trivia(reasoning_effort="high"), sandbox="read-only")
    (seen,) = noted(notes)
    assert SKILL in seen["files"][".agents/skills/searchqa/SKILL.md"]
    assert seen["given"].startswith("$searchqa\n\n<instructions>\nYou answer trivia.")
    assert seen["given"].endswith("Which river runs through Paris?")
    assert SKILL not in seen["given"]
    words = seen["arguments"]
    assert words[:2] == ["exec", "--json"]
    assert words[-1] == "-"
    assert {"--sandbox=read-only", "--model=a-model", "--skip-git-repo-check"} <= set(words)
    overrides = {word for before, word in pairwise(words) if before == "-c"}
    assert {
        'approval_policy="never"',
        "analytics.enabled=false",
        'model_reasoning_effort="high"',
        'shell_environment_policy.inherit="core"',
        "sandbox_workspace_write.network_access=false",
        'web_search="disabled"',
    } <= overrides
    assert f"--cd={seen['folder']}" in words


def test_the_agents_home_is_its_own_and_not_temporary(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path)
    (seen,) = noted(notes)
    environment = seen["environment"]
    assert seen["home"] == {}
    assert environment["HOME"] != str(Path.home())
    assert environment["CODEX_HOME"] == f"{environment['HOME']}/.codex"
    assert not Path(environment["CODEX_HOME"]).is_relative_to(environment["TMPDIR"])
    assert not Path(environment["HOME"]).exists()


def test_no_secret_but_the_key_of_the_model_reaches_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EXTRA", "passed on")
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path, pass_env="EXTRA, ABSENT")  # noqa: S106 - names
    environment = noted(notes)[0]["environment"]
    assert environment["CODEX_API_KEY"] == "sk-codex-0123456789abcdef"
    assert environment["EXTRA"] == "passed on"
    assert not [name for name in SECRETS if name in environment]
    assert "secret-of" not in str(environment)


def test_the_account_is_linked_so_that_it_can_be_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CODEX_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-something-else")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "mine"))
    account = tmp_path / "mine" / "auth.json"
    account.parent.mkdir()
    account.write_text("old")
    path, notes = write_agent(
        tmp_path, "note(); (Path(os.environ['CODEX_HOME']) / 'auth.json').write_text('renewed')" + ANSWERS
    )
    assert ask(path) == REPLY
    assert noted(notes)[0]["home"] == {".codex/auth.json": "old"}
    assert "CODEX_API_KEY" not in noted(notes)[0]["environment"]
    assert account.read_text() == "renewed"


def test_the_usual_key_counts_if_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CODEX_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual")
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path)
    assert noted(notes)[0]["environment"]["CODEX_API_KEY"] == "sk-usual"


def test_without_a_login_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CODEX_API_KEY")
    error = fails(tmp_path, "note()" + ANSWERS)
    assert isinstance(error, FatalBackendError)
    assert "not logged in" in error.message
    assert noted(tmp_path / "notes") == []


def test_a_provider_of_ones_own_needs_no_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CODEX_API_KEY")
    monkeypatch.setenv("LOCAL_KEY", "local-secret-0123456789")
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path, base_url="http://127.0.0.1:1/v1", api_key_env="LOCAL_KEY")
    (seen,) = noted(notes)
    assert seen["environment"]["LOCAL_KEY"] == "local-secret-0123456789"
    assert 'model_provider="skillgit"' in seen["arguments"]
    assert any('env_key="LOCAL_KEY"' in word and '"http://127.0.0.1:1/v1"' in word for word in seen["arguments"])
    assert "local-secret" not in str(seen["arguments"])


def test_a_usual_key_does_not_go_to_a_host_that_a_configuration_names(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path, base_url="http://elsewhere.example/v1")
    assert "CODEX_API_KEY" not in noted(notes)[0]["environment"]


def test_a_profile_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "mine"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work.config.toml").write_text("x = 1")
    (tmp_path / "mine" / "config.toml").write_text("mine = 1")
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path, profile="work")
    assert noted(notes)[0]["home"] == {".codex/work.config.toml": "x = 1"}
    assert "--profile=work" in noted(notes)[0]["arguments"]
    with pytest.raises(FatalBackendError, match="no profile"):
        ask(path, profile="absent")


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("unexpected status 500 Internal Server Error: oh", RetryableBackendError),
        ("exceeded retry limit, last status: 429 Too Many Requests", RetryableBackendError),
        ("unexpected status 401 Unauthorized: bad key sk-codex-0123456789abcdef", FatalBackendError),
        ("Codex ran out of room in the model's context window.", PromptTooLongError),
    ],
)
def test_a_failed_turn_is_an_error_whatever_was_said_before(tmp_path: Path, message: str, kind: type[BackendError]):
    events = f"say({{'type': 'error', 'message': {message!r}}})\n"
    events += f"say({{'type': 'turn.failed', 'error': {{'message': {message!r}}}}})\n"
    error = fails(tmp_path, ANSWERS + events + "sys.exit(1)")
    assert type(error) is kind
    assert "sk-codex" not in error.message


def test_a_failed_turn_counts_without_an_exit_code_too(tmp_path: Path):
    error = fails(tmp_path, ANSWERS + "say({'type': 'turn.failed', 'error': {'message': 'status 503'}})")
    assert isinstance(error, RetryableBackendError)


def test_an_exit_code_is_an_error_though_there_is_an_answer(tmp_path: Path):
    assert "exit code 3" in fails(tmp_path, ANSWERS + "sys.exit(3)").message


def test_a_command_line_that_it_does_not_like_is_not_repeated(tmp_path: Path):
    error = fails(tmp_path, "print(\"error: unexpected argument '--json' found\", file=sys.stderr); sys.exit(2)")
    assert isinstance(error, FatalBackendError)
    assert "--json" in error.message


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_not_logged_in_is_an_error_and_no_answer(tmp_path: Path, stream: str):
    error = fails(tmp_path, f"print('Not logged in', file=sys.{stream}); sys.exit(1)")
    assert isinstance(error, FatalBackendError)
    assert "not logged in" in error.message
    assert "codex login" in error.hint


@pytest.mark.parametrize(
    "body",
    [
        "print('all is well')",
        ANSWERS.rpartition('say({"type": "turn.completed"')[0],
        "say({'type': 'turn.completed', 'usage': {}})",
        ANSWERS + "os.kill(os.getpid(), 9)",
    ],
    ids=["no events", "breaks off", "says nothing", "killed"],
)
def test_no_whole_answer_is_no_answer(tmp_path: Path, body: str):
    assert isinstance(fails(tmp_path, body), RetryableBackendError)


def test_usage_that_is_not_told_is_estimated_and_that_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path, _ = write_agent(
        tmp_path,
        "say({'type': 'item.completed', 'item': {'type': 'agent_message', 'text': 'four' * 10}})\n"
        "say({'type': 'turn.completed'})",
    )
    with caplog.at_level(logging.WARNING):
        usage = ask(path).usage
    assert usage.tokens_out == 10
    assert usage.tokens_in > 10
    assert "estimated" in caplog.text


def test_calls_at_once_share_nothing(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note()\nwhile len(list(NOTES.glob('*.json'))) < 6: time.sleep(0.01)" + ANSWERS)

    async def all_at_once() -> list[Reply]:
        backend = CodexExecBackend({"path": path})
        return await asyncio.gather(*(backend.complete(trivia()) for _ in range(6)))

    assert asyncio.run(all_at_once()) == [REPLY] * 6
    seen = noted(notes)
    for place in ("HOME", "CODEX_HOME", "TMPDIR"):
        assert len({one["environment"][place] for one in seen}) == 6
    assert len({one["folder"] for one in seen}) == 6


@pytest.mark.skipif(sys.platform != "linux", reason="who is alive is read from /proc")
def test_a_cancelled_call_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    path, notes = write_agent(tmp_path, HANG)

    async def cancelled() -> list[int]:
        task = asyncio.create_task(CodexExecBackend({"path": path}).complete(trivia()))
        children = (await first_note(notes, task))["children"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return children

    assert not any(map(is_alive, asyncio.run(cancelled())))
    assert list(scratch.iterdir()) == []


def test_a_call_takes_its_time_at_most(tmp_path: Path):
    error = fails(tmp_path, HANG, timeout_s=0.5)
    assert isinstance(error, RetryableBackendError)
    assert "0.5 s" in error.message


def test_tools_are_offered_and_called_through_a_schema(tmp_path: Path):
    answer = '{"content": "", "tool_calls": [{"name": "look", "arguments": "{\\"at\\": 1}"}]}'
    say = f"say({{'type': 'item.completed', 'item': {{'type': 'agent_message', 'text': {answer!r}}}}})\n"
    body = "note(given=sys.stdin.read(), schema=Path(option('--output-schema')).read_text())" + ANSWERS + say
    path, notes = write_agent(tmp_path, body)
    look = Tool(name="look", description="Looks.", parameters={"type": "object"})
    reply = ask(path, trivia(tools=(look,)))
    assert reply.tool_calls == (ToolCall(id="call_1", name="look", arguments='{"at": 1}'),)
    assert reply.finish_reason == "tool_calls"
    (seen,) = noted(notes)
    assert '"name": "look"' in seen["given"]
    assert "tool_calls" in seen["schema"]
    with pytest.raises(RetryableBackendError, match="form"):
        ask(write_agent(tmp_path, ANSWERS)[0], trivia(tools=(look,)))


def test_pictures_are_attached(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    picture = Message(role="user", parts=(Image(media_type="image/png", data="cG5n"),))
    ask(path, Request(model="m", messages=(picture,)))
    (seen,) = noted(notes)
    assert seen["files"] == {"pictures/01.png": "png"}
    assert f"--image={seen['folder']}/pictures/01.png" in seen["arguments"]
    assert seen["arguments"][-1] == "-"


def test_a_temperature_is_refused_and_not_ignored():
    with pytest.raises(FatalBackendError, match="temperature"):
        ask("codex", Request(model="m", messages=(user("x"),), temperature=0.5))


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"sandbx": "read-only"}, "codex_exec_sandbox"),
        ({"sandbox": "danger-full-access"}, "read-only"),
        ({"approval_policy": "on-request"}, "never"),
        ({"profile": "../x"}, "letters"),
        ({"timeout_s": 0}, "more than 0"),
        ({"base_url": "http://h", "model_provider": "openai"}, "another name"),
    ],
)
def test_settings_that_are_not_allowed(settings: dict[str, object], part: str):
    with pytest.raises(ConfigError) as caught:
        CodexExecBackend(settings)
    assert part in f"{caught.value.message} {caught.value.hint}"


def test_a_probe_tells_version_and_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CODEX_API_KEY")
    body = """
if ARGUMENTS == ["--version"]:
    print("codex-cli 0.169.0")
elif ARGUMENTS == ["login", "status"]:
    print("API key configured - sk-zzz12***67890", file=sys.stderr)
    sys.exit(0 if (Path(os.environ["CODEX_HOME"]) / "auth.json").exists() else 1)
"""
    path, _ = write_agent(tmp_path, body)
    backend = CodexExecBackend({"path": path})
    found = asyncio.run(backend.probe())
    assert (found.version, found.ready) == ("0.169.0", False)
    assert "codex login" in found.detail
    (tmp_path / "auth.json").write_text("{}")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    found = asyncio.run(backend.probe())
    assert found.ready
    assert "sk-" not in str(found)
    monkeypatch.setenv("CODEX_API_KEY", "sk-codex-0123456789abcdef")
    assert "sk-" not in str(asyncio.run(backend.probe()))
    with pytest.raises(FatalBackendError, match="cannot be started"):
        asyncio.run(CodexExecBackend({"path": str(tmp_path / "nothing")}).probe())
