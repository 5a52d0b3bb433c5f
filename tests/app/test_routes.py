from __future__ import annotations

import pytest

from skillgit.app.config import load_config
from skillgit.app.routes import find_routes
from skillgit.errors import ConfigError

OPENAI = ("model.backend=openai_chat", "model.target=m", "model.optimizer=m")
ROLES = ("target", "optimizer", "judge")


@pytest.fixture
def routes(empty):
    def find(*overrides):
        return find_routes(load_config(empty, "demo", overrides), ROLES)

    return find


def test_no_role_shares_its_backend_and_the_judge_has_the_optimizers_model(routes):
    found = routes("model.optimizer=a", "model.target=b")
    assert len({id(route.backend) for route in found.values()}) == 3
    assert [found[role].name for role in ROLES] == ["offline/b", "offline/a", "offline/a"]
    assert routes("model.judge=c")["judge"].name == "offline/c"


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
    agents = ("model.target_backend=codex_exec", "model.optimizer_backend=claude_code_exec")
    assert [routes()[role].timeout_s for role in ROLES] == [120, 120, 120]
    assert [routes(*agents)[role].timeout_s for role in ROLES] == [600, 600, 600]
    longer = routes(*agents, "model.target_timeout_s=1800.0", "calls.timeout_s=30")
    assert [longer[role].timeout_s for role in ROLES] == [1800, 30, 30]
    assert routes(*agents, "env.exec_timeout=45")["target"].timeout_s == 45


def test_a_role_may_think_harder_than_the_others(routes):
    found = routes("model.reasoning_effort=low", "model.optimizer_reasoning_effort=high")
    assert [found[role].reasoning_effort for role in ROLES] == ["low", "high", "low"]


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
