"""``skillgit doctor`` through real HTTP: what it says of servers that answer, refuse, hang or are not there."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from program import new_repository, skillgit
from soaking import soak

from wire import Faults, wire_server

if TYPE_CHECKING:
    from pathlib import Path

    from wire import Wire

KEY = "sk-proj-PLANTED0123456789abcdefghijklmnop"
CLEAN = dict.fromkeys(
    ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "ANTHROPIC_BASE_URL"), ""
)


def examined(
    folder: Path, url: str, *options: str, code: int = 0, env: dict[str, str] | None = None
) -> dict[str, dict[str, Any]]:
    """Return what doctor says of each role, whose models are at ``url``."""
    keys = {"target_backend": "openai_chat", "target": "echo", "openai_chat_base_url": f"{url}/v1"}
    words = [word for key, value in keys.items() for word in ("-o", f"model.{key}={value}")]
    named = ("-o", "model.openai_chat_api_key_env=PLANTED")
    surroundings = CLEAN | {"PLANTED": KEY} | (env or {})
    ended = skillgit("doctor", "demo", "--json", *words, *named, *options, cwd=folder, env=surroundings, code=code)
    assert KEY not in ended.out + ended.err
    shown = skillgit("doctor", "demo", *words, *named, *options, cwd=folder, env=surroundings, code=code)
    assert KEY not in shown.out + shown.err
    return {role["role"]: role for role in json.loads(ended.out)["roles"]}


def fault(wire: Wire, kind: str) -> None:
    wire.change(faults=Faults(rate=1, kinds=(kind,), row=10**6))


def test_a_model_that_answers_is_told_with_its_name_tokens_and_context(tmp_path):
    with wire_server(keep=True) as wire:
        target = examined(tmp_path, wire.url)["target"]
        calls = [entry for entry in wire.log() if entry.dialect == "chat"]
    assert (target["answers"], target["answered_by"], target["counted"], target["error"]) == (True, "echo", True, "")
    assert target["credential"] == "the key in PLANTED"
    assert target["place"] == wire.url.removeprefix("http://")
    assert target["latency_ms"] >= 0
    assert target["room"]["context"] == 131072
    assert (target["room"]["source"], target["fit"]) == ("server", "fits")
    assert target["price"] is None
    assert [entry.document["max_tokens"] for entry in calls] == [2048, 2048], "one tiny call in each of two check-ups"
    assert {entry.headers["authorization"] for entry in calls} == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("kind", "said", "hint"),
    [
        ("unauthorized", "refused the key (401)", "check the key in PLANTED"),
        soak("unknown_model", "does not exist", "The server has"),
        soak("server_error", "cannot answer now", ""),
    ],
)
def test_a_refusal_is_a_sentence_with_its_hint_and_exit_code_5(tmp_path, kind, said, hint):
    with wire_server() as wire:
        fault(wire, kind)
        target = examined(tmp_path, wire.url, code=5)["target"]
    assert target["answers"] is False
    assert said in target["error"]
    assert hint in target["hint"]


AGENT = """\
#!{python}
import json, os, sys, urllib.request
if "--version" in sys.argv:
    sys.exit(print("1.18.33"))
provider = json.load(open(os.environ["OPENCODE_CONFIG"]))["provider"]["skillgit"]
head = {{"Authorization": "Bearer " + os.environ["SKILLGIT_MODEL_TOKEN"], "Content-Type": "application/json"}}
body = json.dumps({{"model": "any", "messages": [{{"role": "user", "content": sys.stdin.read()}}]}}).encode()
address = provider["options"]["baseURL"] + "/chat/completions"
answer = json.load(urllib.request.urlopen(urllib.request.Request(address, body, head)))
text = answer["choices"][0]["message"]["content"]
print(json.dumps({{"type": "text", "part": {{"text": text}}}}))
print(json.dumps({{"type": "step_finish", "part": {{"reason": "stop"}}}}))
"""


def test_an_agent_is_run_and_the_model_behind_it_is_asked(tmp_path):
    program = tmp_path / "opencode"
    program.write_text(AGENT.format(python=sys.executable))
    program.chmod(0o700)
    agent = ("-o", "model.target_backend=opencode_exec", "-o", f"model.opencode_exec_path={program}")
    with wire_server(keep=True) as wire:
        target = examined(tmp_path, wire.url, *agent)["target"]
        calls = [entry for entry in wire.log() if entry.dialect == "chat"]
        fault(wire, "unauthorized")
        refused = examined(tmp_path, wire.url, *agent, code=5)["target"]
        unset = examined(tmp_path, wire.url, *agent, code=5, env={"PLANTED": ""})["target"]
    assert (target["backend"], target["model_backend"], target["answers"]) == ("opencode_exec", "openai_chat", True)
    assert (target["place"], target["version"]) == (str(program), "1.18.33")
    assert (target["model_place"], target["credential"]) == (wire.url.removeprefix("http://"), "the key in PLANTED")
    assert (target["room"]["context"], target["fit"]) == (131072, "fits")
    assert {entry.document["model"] for entry in calls} == {"echo"}
    assert {entry.headers["authorization"] for entry in calls} == {f"Bearer {KEY}"}
    assert "refused the key (401)" in refused["error"]
    assert "PLANTED" in unset["error"] + unset["hint"]


def test_a_server_that_counts_no_tokens_is_found_out(tmp_path):
    with wire_server() as wire:
        fault(wire, "no_usage")
        target = examined(tmp_path, wire.url)["target"]
    assert (target["answers"], target["counted"]) == (True, False)


def test_parameters_are_shown_and_sent_with_the_question(tmp_path):
    options = ("-o", "model.target_top_p=0.9", "-o", "model.target_seed=7", "-o", "model.target_stop=[END]")
    with wire_server(keep=True) as wire:
        target = examined(tmp_path, wire.url, *options)["target"]
        asked = next(entry.document for entry in wire.log() if entry.dialect == "chat")
        wire.change(faults=Faults(rate=1, kinds=("odd_item",), row=10**6), quote=": Unsupported parameter: 'seed'")
        refused = examined(tmp_path, wire.url, *options, code=5)["target"]
    assert target["parameters"] == {"top_p": 0.9, "seed": 7, "stop": ["END"]}
    assert target["parameters"].items() <= asked.items()
    assert "model.target_seed" in refused["hint"]


def test_a_server_that_hangs_is_left_after_the_time_of_one_call(tmp_path):
    with wire_server() as wire:
        fault(wire, "hang")
        target = examined(tmp_path, wire.url, "-o", "env.exec_timeout=0.3", code=5)["target"]
    assert "within 0.3 s" in target["error"]


def test_a_host_where_nobody_is_is_named(tmp_path):
    target = examined(tmp_path, "http://127.0.0.1:9", code=5)["target"]
    assert "127.0.0.1:9" in target["error"]
    assert "base_url" in target["hint"]


def test_without_calls_nothing_is_asked_and_keys_are_still_looked_for(tmp_path):
    with wire_server() as wire:
        target = examined(tmp_path, wire.url, "--no-call")["target"]
        assert (target["answers"], target["credential"]) == (None, "the key in PLANTED")
        assert {entry.dialect for entry in wire.log()} <= {"models"}
        missing = examined(tmp_path, wire.url, "--no-call", code=5, env={"PLANTED": ""})["target"]
    assert "PLANTED" in missing["error"]


def test_each_role_is_reached_by_settings_of_its_own(tmp_path):
    repository = new_repository(tmp_path / "repository")
    with wire_server() as one, wire_server() as other:
        options = ("model.optimizer_backend=openai_compatible", f"model.optimizer_base_url={other.url}/v1")
        words = [word for option in options for word in ("-o", option)]
        roles = examined(repository, one.url, *words, "-o", "model.optimizer=echo")
        assert [len([e for e in wire.log() if e.dialect == "chat"]) for wire in (one, other)] == [2, 2]
    assert roles["optimizer"]["credential"] == "no key"
    assert roles["optimizer"]["place"] == other.url.removeprefix("http://")
