from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import pytest
from wire.rough import Rough, rough_server

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.config.schema import SECTIONS, EnvSettings
from skillgit.app.setup.models import find_routes
from skillgit.errors import BackendError, ConfigError
from skillgit.plugin import registry
from skillgit.plugin.backend import user

OPENAI = ("model.backend=openai_chat", "model.target=m", "model.optimizer=m")
ROLES = ("target", "optimizer", "judge")


@pytest.fixture
def routes(empty):
    def find(*overrides):
        return find_routes(load_config(empty, "demo", overrides), ROLES)

    return find


def test_no_role_shares_its_backend_and_the_judge_has_the_optimizers_model(routes):
    found = routes("model.optimizer=analyst", "model.target=agent")
    assert len({id(route.backend) for route in found.values()}) == 3
    assert [found[role].name for role in ROLES] == ["offline/agent", "offline/analyst", "offline/analyst"]
    assert routes("model.judge=reader")["judge"].name == "offline/reader"


def test_calls_to_one_account_share_a_lane_and_others_do_not(routes, monkeypatch):
    same = routes(*OPENAI, "model.openai_chat_base_url=http://h/v1", "model.target_temperature=0.5")
    assert len({route.lane for route in same.values()}) == 1
    apart = routes(*OPENAI, "model.openai_chat_base_url=http://h/v1", "model.target_api_key_env=MINE")
    assert apart["target"].lane != apart["optimizer"].lane == apart["judge"].lane
    assert {route.lane for route in routes(*OPENAI).values()} == {""}
    monkeypatch.setenv("TARGET_OPENAI_API_KEY", "sk-of-its-own")
    by_environment = routes(*OPENAI)
    assert by_environment["target"].lane != by_environment["optimizer"].lane == ""


def test_the_time_of_a_call_is_that_of_the_configuration_then_of_the_backend_then_two_minutes(routes):
    models = ("model.target=m", "model.optimizer=m")
    agents = (*models, "model.target_backend=codex_exec", "model.optimizer_backend=claude_code_exec")
    assert [routes()[role].timeout_s for role in ROLES] == [120, 120, 120]
    assert [routes(*agents)[role].timeout_s for role in ROLES] == [600, 600, 600]
    longer = routes(*agents, "model.target_timeout_s=1800.0", "calls.timeout_s=30")
    assert [longer[role].timeout_s for role in ROLES] == [1800, 30, 30]
    assert routes(*agents, "env.exec_timeout=45")["target"].timeout_s == 45


def test_a_role_may_think_harder_than_the_others(routes):
    found = routes("model.reasoning_effort=low", "model.optimizer_reasoning_effort=high")
    assert [found[role].reasoning_effort for role in ROLES] == ["low", "high", "low"]


@pytest.mark.parametrize("backend", ["openai_chat", "openai_compatible", "claude_chat", "qwen_chat", "codex_exec"])
def test_a_backend_is_not_asked_for_the_offline_backend_s_model(routes, backend):
    with pytest.raises(ConfigError, match=r"model\.target is 'reader', a model of the backend offline") as refused:
        routes(f"model.target_backend={backend}")
    assert refused.value.hint == f"name a model of {backend}: -o model.target=MODEL"
    local = [] if backend == "codex_exec" else [f"model.{backend}_base_url=http://127.0.0.1:1/v1"]
    with pytest.raises(ConfigError, match=r"model\.optimizer is 'analyst'"):
        routes(f"model.backend={backend}", "model.target=m", *local)
    named = routes(f"model.backend={backend}", "model.target=reader", "model.optimizer=analyst", *local)
    assert named["target"].name == f"{backend}/reader"


def test_a_wrong_setting_is_named_as_it_was_written(routes):
    for written in ("model.target_base_ulr=x", "model.target_openai_chat_base_ulr=x", "model.openai_chat_base_ulr=x"):
        with pytest.raises(ConfigError) as caught:
            routes(*OPENAI, written)
        assert f"'{written.partition('=')[0]}'" in caught.value.message
    with pytest.raises(ConfigError, match=r"model\.target_timeout_s is 0"):
        routes(*OPENAI, "model.target_timeout_s=0")


def test_the_folder_of_a_handoff_is_beside_the_configuration_by_default(empty):
    (empty.directory / "sub").mkdir()
    (empty.directory / "sub" / "my.yaml").write_text("model: {backend: handoff}\nenv: {name: searchqa}\n")
    found = find_routes(load_config(empty, "sub/my.yaml"), ROLES)
    folders = {route.backend._folder for route in found.values()}
    assert [folder.path for folder in folders] == [empty.directory / "sub" / "handoff"], "and they share its lists"


MODULES = sorted(
    path
    for folder in ("backends/skillgit_backends", "skillgit/calls")
    for path in (Path(__file__).parents[3] / folder).rglob("*.py")
)


def hints(path):
    """Yield the texts of hints in a module, with ``{}`` for what is put into them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)


def declared():
    """Return every key that a backend reads, as it names them all itself."""
    names = [plugin.name for plugin in registry.installed(registry.BACKENDS)]
    infos = {name: registry.load_backend(name, Path()).info for name in names}
    return {f"model.{name}_{setting}" for name, info in infos.items() for setting in info.settings}


def test_every_key_that_a_hint_names_exists():
    common = {f"{section}.{name}" for section, kind in SECTIONS.items() for name in kind.model_fields}
    common |= {f"env.{name}" for name in EnvSettings.model_fields}
    own, named = declared(), set()
    assert len(own) > 40
    for path in MODULES:
        for text in hints(path):
            for key in re.findall(r"\b(?:calls|env|model)\.(?:\{\}|[a-z])[a-z_{}]*[a-z}]", text):
                if key.startswith("model.{}_"):
                    assert any(one.endswith(key.removeprefix("model.{}")) or "{}" in key[8:] for one in own), (
                        path,
                        key,
                    )
                elif key not in {"model.invoke", "model.lower"}:
                    named.add(key)
                    assert key in common | own or any(one.startswith(f"{key}_") for one in own), (path, key)
    assert {"calls.timeout_s", "calls.item_timeout_s", "model.claude_chat_base_url"} <= named


@pytest.mark.parametrize(
    ("written", "role", "named"),
    [
        ("model.target_base_url", "target", "model.target_base_url"),
        ("model.target_base_url", "optimizer", "model.openai_chat_base_url"),
        ("model.optimizer_openai_chat_base_url", "optimizer", "model.optimizer_openai_chat_base_url"),
        ("model.optimizer_base_url", "judge", "model.optimizer_base_url"),
        ("model.judge_base_url", "judge", "model.judge_base_url"),
        ("model.openai_chat_base_url", "target", "model.openai_chat_base_url"),
    ],
)
def test_a_redirect_names_the_key_that_set_the_address(written, role, named, routes, monkeypatch):
    monkeypatch.setenv("MINE", "sk-0123456789")
    places = {"location": "http://elsewhere.example/v1"}
    with rough_server(lambda _: Rough(status=307, headers=places)) as server:
        route = routes(*OPENAI, f"{written}={server.url}/v1", "model.openai_chat_api_key_env=MINE")[role]
        if route.backend._settings.base_url:
            assert f"set {named} to" in hint_of(route)


def test_an_address_that_the_environment_sets_is_named_by_its_variable(routes, monkeypatch):
    places = {"location": "file:///etc/passwd"}
    monkeypatch.setenv("TARGET_OPENAI_API_KEY", "sk-0123456789")
    with rough_server(lambda _: Rough(status=307, headers=places)) as server:
        monkeypatch.setenv("TARGET_OPENAI_BASE_URL", f"{server.url}/v1")
        assert hint_of(routes(*OPENAI)["target"]) == "check TARGET_OPENAI_BASE_URL"


def test_a_timeout_and_an_effort_are_named_by_the_keys_of_their_role(routes):
    found = routes("model.target_reasoning_effort=high")
    said = "raise calls.timeout_s, lower model.reasoning_effort"
    assert found["target"].as_written(said) == "raise env.exec_timeout, lower model.target_reasoning_effort"
    assert found["judge"].as_written(said) == said


def hint_of(route):
    async def work():
        try:
            await route.attempt(route.request([user("a")]))
        finally:
            await route.backend.aclose()

    with pytest.raises(BackendError) as caught:
        asyncio.run(work())
    return caught.value.hint


def test_sampling_reaches_the_route_of_its_role_alone(routes):
    found = routes("model.target_top_p=0.5", "model.optimizer_seed=3", "model.target_stop=[END]")
    assert [found[role].top_p for role in ROLES] == [0.5 if role == "target" else None for role in ROLES]
    assert [found[role].seed for role in ROLES] == [3 if role == "optimizer" else None for role in ROLES]
    assert [found[role].stop for role in ROLES] == [("END",) if role == "target" else () for role in ROLES]
    request = found["target"].request(())
    assert (request.top_p, request.seed, request.stop, request.schema) == (0.5, None, ("END",), None)
    assert found["target"].as_written("leave model.stop empty") == "leave model.target_stop empty"
