from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any

import pytest
from cancelling import cancelled_after
from stand_ins import HANG, SKILL, first_note, is_alive, noted, running, trivia, write_agent

from skillgit.domain.evaluation import Loading
from skillgit.errors import (
    BackendError,
    ConfigError,
    FatalBackendError,
    PromptTooLongError,
    RefusalError,
    RetryableBackendError,
    UnusableAnswerError,
)
from skillgit.plugin.backend import Backend, Image, Message, Reply, Request, Tool, ToolCall, Usage, user
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend

if TYPE_CHECKING:
    from pathlib import Path

ANSWERS = """
say({"type": "system", "subtype": "init", "tools": ["Read", "Skill"]})
say({"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Skill", "input": {"skill": "s"}}]}})
say({"type": "user", "message": {"content": [{"type": "tool_result", "content": "x" * 5_000_000}]}})
say({"type": "result", "subtype": "success", "is_error": False, "num_turns": 2, "stop_reason": "end_turn",
     "result": "<answer>Seine</answer>", "usage": {"input_tokens": 1, "output_tokens": 1},
     "modelUsage": {
         "big": {"inputTokens": 100, "outputTokens": 7, "cacheReadInputTokens": 20, "cacheCreationInputTokens": 50},
         "small": {"inputTokens": 10, "outputTokens": 3}}})
"""
REPLY = Reply(
    text="<answer>Seine</answer>",
    usage=Usage(tokens_in=180, tokens_out=10, cached=20, cache_written=50),
    loading=Loading.NOT_LOADED,
)
NOT_LOGGED_IN = """
say({"type": "assistant", "message": {"content": [{"type": "text", "text": "Not logged in"}]},
     "error": "authentication_failed"})
say({"type": "result", "subtype": "success", "is_error": True, "api_error_status": None,
     "result": "Not logged in \u00b7 Please run /login"})
sys.exit(1)
"""
SECRETS = ("OPENAI_API_KEY", "CODEX_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PLANTED_SECRET")


@pytest.fixture(autouse=True)
def _a_key_and_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    for name in SECRETS:
        monkeypatch.setenv(name, f"secret-of-{name}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def ask(path: str, request: Request | None = None, **settings: Any) -> Reply:
    return asyncio.run(ClaudeCodeExecBackend({"path": path, **settings}).complete(request or trivia()))


def fails(folder: Path, body: str, **settings: Any) -> BackendError:
    path, _ = write_agent(folder, body)
    with pytest.raises(BackendError) as caught:
        ask(path, **settings)
    return caught.value


def result(**told: Any) -> str:
    return f"say({ ({'type': 'result', 'subtype': 'success', 'is_error': False, **told})!r})\n"


def test_it_is_a_backend():
    assert isinstance(ClaudeCodeExecBackend({}), Backend)


def test_an_answer_with_the_usage_of_all_models(tmp_path: Path):
    path, _ = write_agent(tmp_path, ANSWERS)
    assert ask(path) == REPLY


def test_the_events_may_come_as_one_list(tmp_path: Path):
    usage = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 7}
    path, _ = write_agent(
        tmp_path, f"say([{{'type': 'system'}}, { ({'type': 'result', 'result': 'yes', 'usage': usage})!r}])"
    )
    usage_of_call = Usage(tokens_in=120, tokens_out=7, cached=20)
    assert ask(path) == Reply(text="yes", usage=usage_of_call, loading=Loading.UNKNOWN)


def test_what_the_agent_is_given(tmp_path: Path):
    path, notes = write_agent(
        tmp_path,
        "note(given=sys.stdin.read(), system=Path(option('--append-system-prompt-file')).read_text())" + ANSWERS,
    )
    ask(path, trivia(reasoning_effort="high", max_output_tokens=1234))
    (seen,) = noted(notes)
    assert list(seen["files"]) == [".claude/skills/searchqa/SKILL.md"]
    assert SKILL in seen["files"][".claude/skills/searchqa/SKILL.md"]
    assert seen["given"] == "<task>\nWhich river runs through Paris?\n</task>\n"
    assert seen["system"].startswith("You answer trivia.")
    assert ".claude/skills/searchqa/SKILL.md" in seen["system"]
    assert SKILL not in seen["system"]
    words = " ".join(seen["arguments"])
    assert words.startswith("-p --output-format stream-json --tools Read,Skill --permission-mode dontAsk")
    assert words.endswith("--effort high --model a-model --verbose")
    assert "--setting-sources project --strict-mcp-config --no-session-persistence" in words
    assert seen["environment"]["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "1234"
    assert "IS_SANDBOX" not in seen["environment"]


def test_a_task_is_never_a_command(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note(given=sys.stdin.read())" + ANSWERS)
    ask(path, Request(model="m", messages=(user("/help"),)))
    assert not noted(notes)[0]["given"].startswith("/")


def test_only_the_key_of_the_model_and_a_home_of_its_own_reach_the_agent(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path)
    (seen,) = noted(notes)
    environment = seen["environment"]
    assert environment["ANTHROPIC_API_KEY"] == "sk-ant-0123456789abcdef"
    assert not [name for name in SECRETS if name in environment]
    assert "secret-of" not in str(environment)
    assert environment["HOME"] != os.environ["HOME"]
    assert seen["home"] == {}


def test_commands_run_apart_unless_that_is_turned_off(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path, tools="Read,Skill,Bash", allowed_tools="Bash")
    (seen,) = noted(notes)
    assert seen["environment"]["CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"] == "1"
    assert "--allowedTools Bash" in " ".join(seen["arguments"])


def test_a_usual_key_does_not_go_to_a_host_that_a_configuration_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path, base_url="http://elsewhere.example")
    ask(path, base_url="http://elsewhere.example", api_key_env="ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://elsewhere.example")
    ask(path, base_url="http://elsewhere.example")
    keys = [seen["environment"]["ANTHROPIC_API_KEY"] for seen in noted(notes)]
    assert keys == ["none", "sk-ant-0123456789abcdef", "sk-ant-0123456789abcdef"]


def test_the_account_is_copied_without_what_renews_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    (tmp_path / ".credentials.json").write_text('{"claudeAiOauth": {"accessToken": "a", "refreshToken": "r"}}')
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path)
    assert noted(notes)[0]["home"] == {}
    (tmp_path / "notes").joinpath(next((tmp_path / "notes").glob("*.json")).name).unlink()
    ask(path, api_key_env="")
    (seen,) = noted(notes)
    assert seen["home"] == {".claude/.credentials.json": '{"claudeAiOauth": {"accessToken": "a"}}'}
    assert "ANTHROPIC_API_KEY" not in seen["environment"]
    assert "CLAUDE_CONFIG_DIR" not in seen["environment"]


def test_a_token_counts_if_there_is_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "long-lasting")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://h")
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    ask(path)
    environment = noted(notes)[0]["environment"]
    assert environment["CLAUDE_CODE_OAUTH_TOKEN"] == "long-lasting"  # noqa: S105 - a stand-in
    assert environment["ANTHROPIC_BASE_URL"] == "http://h"


def test_root_is_refused_unless_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    path, notes = write_agent(tmp_path, "note()" + ANSWERS)
    with pytest.raises(FatalBackendError, match="root") as caught:
        ask(path)
    assert "allow_root" in caught.value.hint
    assert noted(notes) == []
    assert ask(path, allow_root=True) == REPLY
    assert noted(notes)[0]["environment"]["IS_SANDBOX"] == "1"


@pytest.mark.parametrize("body", [NOT_LOGGED_IN, "print('Not logged in \u00b7 Please run /login'); sys.exit(1)"])
def test_not_logged_in_is_an_error_and_no_answer(tmp_path: Path, body: str):
    error = fails(tmp_path, body)
    assert isinstance(error, FatalBackendError)
    assert "not logged in" in error.message
    assert "claude auth login" in error.hint


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (429, "API Error: Request rejected (429) \u00b7 slow down", RetryableBackendError),
        (529, "API Error: 529 Overloaded.", RetryableBackendError),
        (500, "API Error: 500 {}.", RetryableBackendError),
        (None, "API Error: Unable to connect to API (ConnectionRefused)", RetryableBackendError),
        (401, "Invalid API key sk-ant-0123456789abcdef", FatalBackendError),
        (404, "There's an issue with the selected model (x). It may not exist", FatalBackendError),
        (400, "Prompt is too long", PromptTooLongError),
    ],
)
def test_an_error_flag_counts_whatever_the_subtype_says(
    tmp_path: Path, status: int | None, said: str, kind: type[BackendError]
):
    for end in ("sys.exit(1)", "sys.exit(0)"):
        error = fails(tmp_path, result(is_error=True, api_error_status=status, result=said) + end)
        assert type(error) is kind
        assert "sk-ant" not in error.message


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (result(subtype="error_max_turns"), RetryableBackendError),
        (result(result=""), UnusableAnswerError),
        ("print('all is well')", RetryableBackendError),
        (ANSWERS + "os.kill(os.getpid(), 9)", RetryableBackendError),
        (result(result="I cannot", stop_reason="refusal"), RefusalError),
        ("print(\"error: unknown option '--x'\", file=sys.stderr); sys.exit(1)", FatalBackendError),
        ("print('error: bubblewrap is required', file=sys.stderr); sys.exit(1)", FatalBackendError),
    ],
)
def test_what_is_no_answer_is_an_error(tmp_path: Path, body: str, kind: type[BackendError]):
    assert type(fails(tmp_path, body)) is kind


def test_an_exit_code_is_an_error_though_there_is_an_answer(tmp_path: Path):
    assert "exit code 3" in fails(tmp_path, ANSWERS + "sys.exit(3)").message


def test_a_cut_answer_says_so_and_untold_usage_is_estimated(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path, _ = write_agent(tmp_path, result(result="four" * 10, stop_reason="max_tokens"))
    with caplog.at_level(logging.WARNING):
        reply = ask(path)
    assert reply.finish_reason == "length"
    assert reply.usage.tokens_out == 10
    assert "estimated" in caplog.text


def test_calls_at_once_share_nothing(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note()\nwhile len(list(NOTES.glob('*.json'))) < 6: time.sleep(0.01)" + ANSWERS)

    async def all_at_once() -> list[Reply]:
        backend = ClaudeCodeExecBackend({"path": path})
        return await asyncio.gather(*(backend.complete(trivia()) for _ in range(6)))

    assert asyncio.run(all_at_once()) == [REPLY] * 6
    assert len({one["environment"]["HOME"] for one in noted(notes)}) == 6


def test_a_call_takes_its_time_at_most(tmp_path: Path):
    assert isinstance(fails(tmp_path, HANG, timeout_s=0.5), RetryableBackendError)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="who is alive is read from /proc")  # noqa: PTH112
def test_a_cancelled_call_leaves_no_process(tmp_path: Path):
    path, notes = write_agent(tmp_path, HANG)

    async def cancelled() -> list[int]:
        backend = ClaudeCodeExecBackend({"path": path})
        task = asyncio.create_task(backend.complete(trivia()))
        children = (await first_note(notes, task))["children"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return children

    assert not any(map(is_alive, asyncio.run(cancelled())))


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="who is alive is read from /proc")  # noqa: PTH112
def test_a_call_that_is_cancelled_at_any_step_of_its_start_ends_with_its_process(tmp_path: Path):
    path, _ = write_agent(tmp_path, HANG)

    for steps in range(9):
        asyncio.run(cancelled_after(ClaudeCodeExecBackend({"path": path}).complete(trivia()), steps))
        assert not running(path), steps


def test_tools_are_offered_and_called_through_a_schema(tmp_path: Path):
    answer = {"content": "so", "tool_calls": [{"name": "look", "arguments": "{}"}]}
    path, notes = write_agent(tmp_path, "note()" + result(result="done", structured_output=answer).join("\n\n"))
    look = Tool(name="look", description="Looks.", parameters={"type": "object"})
    reply = ask(path, trivia(tools=(look,)))
    assert (reply.text, reply.tool_calls) == ("so", (ToolCall(id="call_1", name="look", arguments="{}"),))
    assert "--json-schema" in noted(notes)[0]["arguments"]


def test_pictures_are_put_where_the_agent_may_read_them(tmp_path: Path):
    path, notes = write_agent(tmp_path, "note(given=sys.stdin.read())" + ANSWERS)
    picture = Message(role="user", parts=(Image(media_type="image/png", data="cG5n"),))
    ask(path, Request(model="m", messages=(picture,)))
    (seen,) = noted(notes)
    assert seen["files"] == {"pictures/01.png": "png"}
    assert "pictures/01.png" in seen["given"]


def test_a_temperature_is_refused_and_not_ignored():
    with pytest.raises(FatalBackendError, match="temperature"):
        ask("claude", Request(model="m", messages=(user("x"),), temperature=0.5))


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"alow_root": True}, "claude_code_exec_allow_root"),
        ({"permission_mode": "yolo"}, "dontAsk"),
        ({"allow_root": "yes"}, "true or false"),
        ({"timeout_s": -1}, "more than 0"),
    ],
)
def test_settings_that_are_not_allowed(settings: dict[str, object], part: str):
    with pytest.raises(ConfigError) as caught:
        ClaudeCodeExecBackend(settings)
    assert part in f"{caught.value.message} {caught.value.hint}"


def test_a_probe_tells_version_and_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    body = """
if ARGUMENTS == ["--version"]:
    print("2.1.197 (Claude Code)")
elif ARGUMENTS == ["auth", "status"]:
    there = (Path(os.environ["HOME"]) / ".claude" / ".credentials.json").exists()
    say({"loggedIn": there, "authMethod": "none"})
    sys.exit(0 if there else 1)
"""
    path, _ = write_agent(tmp_path, body)
    backend = ClaudeCodeExecBackend({"path": path})
    found = asyncio.run(backend.probe())
    assert (found.version, found.ready) == ("2.1.197", False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    (tmp_path / ".credentials.json").write_text('{"claudeAiOauth": {"accessToken": "a"}}')
    assert asyncio.run(backend.probe()).ready
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef")
    found = asyncio.run(backend.probe())
    assert found.ready
    assert "sk-ant" not in str(found)
