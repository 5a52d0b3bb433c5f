from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.setup.config.resolved import is_local
from skillgit.app.setup.config.schema import env_settings, keys
from skillgit.domain.untrusted.allowed_settings import BACKENDS, TAKEN, of_own_run, of_stranger
from skillgit.plugin import registry

REFUSED = {
    "env.agent",
    "env.agent_args",
    "env.agent_model",
    "env.data_path",
    "env.data_root",
    "env.delivery",
    "env.docs_dir",
    "env.engine",
    "env.environment",
    "env.environment_args",
    "env.environments",
    "env.grader_environment",
    "env.host_network",
    "env.image_dir",
    "env.local_sandbox",
    "env.library",
    "env.model_url",
    "env.modules",
    "env.network",
    "env.one_try",
    "env.python",
    "env.repositories",
    "env.roles",
    "env.root_filesystem",
    "env.scale",
    "env.score_key",
    "env.search",
    "env.search_auth_env",
    "env.search_path",
    "env.search_provider",
    "env.search_url",
    "env.skill_init",
    "env.split_dir",
    "env.split_field",
    "env.task",
    "env.task_args",
    "env.task_file",
    "env.type_field",
    "env.variables",
    "optimizer.check",
}
"""What needs the user's own word: paths, addresses, credentials, programs, tasks that are code, the sandbox."""


def known_keys() -> set[str]:
    """Return every key of the schema and of the environments that come with skillgit."""
    names = [
        plugin.name
        for plugin in registry.installed(registry.ENVIRONMENTS)
        if plugin.reference.startswith("skillgit_envs.")
    ]
    infos = [registry.load_environment(name, Path()).info for name in names]
    return {key for info in infos for key in keys(env_settings(info))}


def test_every_key_is_taken_or_refused_on_purpose():
    known = {key for key in known_keys() if not is_local(key)}
    assert known - TAKEN.keys() == REFUSED, "decide whether a stranger may set it"
    assert TAKEN.keys() <= known, "a key that does not exist any more"


def test_every_backend_is_a_stranger_s_choice_or_not_on_purpose():
    """Agents are programs, ``handoff`` and ``replay`` read and write files: none of them is."""
    plugins = registry.installed(registry.BACKENDS)
    names = {plugin.name for plugin in plugins if plugin.reference.startswith("skillgit_backends.")}
    agents = {"claude_code_exec", "codex_exec", "copilot_exec", "opencode_exec"}
    assert names - BACKENDS == {*agents, "handoff", "replay"}, "decide whether a stranger may choose it"


def test_the_backends_that_a_stranger_may_choose_take_no_path():
    for name in BACKENDS:
        assert registry.load_backend(name, Path()).info.paths == {}


def test_no_setting_of_any_backend_counts_where_a_stranger_recorded_it():
    """The folder of handoff, the file of replay and every address, program and variable of a key are among them.

    So is the backend that answers an agent's questions: it spends money, and its name may be that of a file with code.
    """
    for plugin in registry.installed(registry.BACKENDS):
        names = {*registry.load_backend(plugin.name, Path()).info.paths, "base_url", "path", "dir", "api_key_env"}
        names |= {"model_backend", "pass_env", "allow_root", "network_access"}
        for prefix in (plugin.name, "target", "optimizer", "judge", f"target_{plugin.name}"):
            for key in (f"model.{prefix}_{name}" for name in names):
                assert of_stranger({key: "x"}).refusals == {key: "x"}


def test_no_path_of_an_environment_counts_where_a_stranger_recorded_it():
    """The games of ALFWorld are found by a manifest, which may name any file; so nobody else names the manifest."""
    places = {f"env.{name}" for name in ("data_path", "split_dir", "data_root", "image_dir", "docs_dir")}
    assert places.isdisjoint(TAKEN)
    for plugin in registry.installed(registry.ENVIRONMENTS):
        options = registry.load_environment(plugin.name, Path()).info.options
        assert {f"env.{option.name}" for option in options if option.path}.isdisjoint(TAKEN)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["../x", "/etc", "~/x", "-x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(known_keys())) | st.text(), JSON, max_size=8))
def test_no_value_that_counts_is_a_path_or_an_option_of_a_program(settings):
    recorded = of_stranger(settings)
    written = {key for key, value in settings.items() if value not in ("", None)}
    assert recorded.settings.keys() | recorded.refusals.keys() == written
    assert recorded.settings.keys().isdisjoint(recorded.refusals)
    for value in recorded.settings.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                assert not text.startswith(("/", "-", "~", "."))
                assert ".." not in text
                assert text.isprintable()


@pytest.mark.parametrize("settings", [{}, {"env.data_path": "/x", "a.b": object()}])
def test_all_of_one_s_own_counts(settings):
    assert of_own_run(settings).settings == settings
    assert of_own_run(settings).refusals == {}
