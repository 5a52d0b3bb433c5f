from __future__ import annotations

import pytest

from skillgit.app.setup.plugins import PluginKind, kinds_of, listed, plugin_named
from skillgit.errors import NotFoundError, SkillgitError, UsageError
from skillgit.plugin import registry
from skillgit.plugin.registry import Plugin

TOY = """
from skillgit.plugin.backend import BackendInfo
from skillgit.plugin.environment import EnvironmentInfo
from skillgit.strategies import Strategy

class Toy:
    info = EnvironmentInfo(name="toy", summary="", fields={}, scorer="", source="")

class Toyish(Toy): ...

class Reader:
    info = BackendInfo(name="reader", summary="reads")

class Plan(Strategy):
    summary = "plans"
    async def propose(self, search): ...

class Bare: ...

class Wrong:
    info = "toy"

def function(): ...

toy = Toy()
number = 3
"""
KINDS = {
    "Toy": PluginKind.ENVIRONMENT,
    "Toyish": PluginKind.ENVIRONMENT,
    "Reader": PluginKind.BACKEND,
    "Plan": PluginKind.STRATEGY,
}
OTHERS = ("Bare", "Wrong", "function", "number", "toy")


@pytest.fixture
def installed(monkeypatch):
    def install(*plugins):
        monkeypatch.setattr(registry, "installed", lambda _: list(plugins))

    return install


def test_what_is_installed_speaks_for_itself_and_what_is_broken_says_why(empty, installed):
    installed(Plugin(name="broken", reference="no_such_module:Thing"), Plugin(name="none", reference="json:Nothing"))
    for entries in (listed(empty, PluginKind.ENVIRONMENT), listed(empty, PluginKind.BACKEND)):
        assert [entry.name for entry in entries] == ["broken", "none"]
        assert "No module named 'no_such_module'" in entries[0].error
        assert "no class 'Nothing'" in entries[1].error
        assert all(entry.info is None for entry in entries)


def test_one_is_loaded_by_name_or_from_a_file(empty, installed):
    (empty.directory / "toy.py").write_text(TOY)
    assert plugin_named(empty, PluginKind.ENVIRONMENT, "toy.py:Toy").info.name == "toy"
    assert plugin_named(empty, PluginKind.BACKEND, "toy.py:Reader").reference == "toy.py:Reader"
    installed(Plugin(name="broken", reference="no_such_module:Thing"))
    with pytest.raises(UsageError, match="cannot be loaded"):
        plugin_named(empty, PluginKind.ENVIRONMENT, "broken")
    with pytest.raises(NotFoundError, match="no backend 'broke'"):
        plugin_named(empty, PluginKind.BACKEND, "broke")


@pytest.mark.parametrize("name", [*KINDS, *OTHERS])
def test_a_class_in_a_file_is_of_the_kind_that_it_says_and_refused_as_any_other_in_a_sentence(empty, name):
    (empty.directory / "toy.py").write_text(TOY)
    own = KINDS.get(name)
    for kind in PluginKind:
        if kind is own:
            assert plugin_named(empty, kind, f"toy.py:{name}").info.summary is not None
            continue
        with pytest.raises(UsageError, match=f"^{kind} toy.py:{name} has to be a class ") as refusal:
            plugin_named(empty, kind, f"toy.py:{name}")
        assert refusal.value.hint == "docs/extending.md shows one"
    if own:
        assert kinds_of(empty, f"toy.py:{name}") == (own,)
    elif name != "toy":
        with pytest.raises(UsageError, match="has to be the class of an environment, a backend or a strategy"):
            kinds_of(empty, f"toy.py:{name}")


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("tyo.py:Toy", "there is no plug-in file .*/tyo.py$", "did you mean 'toy.py'?"),
        ("far/x.py:Toy", "there is no plug-in file .*/far/x.py$", "name a Python file, a colon and the class in it"),
        ("toy.py:Raeder", "has no class 'Raeder'$", "did you mean 'Reader'?"),
    ],
)
def test_a_file_or_class_that_is_not_there_speaks_of_the_file_and_of_no_configuration(empty, name, message, hint):
    (empty.directory / "toy.py").write_text(TOY)
    with pytest.raises(SkillgitError, match=message) as refusal:
        kinds_of(empty, name)
    assert refusal.value.hint == hint


def test_the_plugins_of_this_package_load(empty):
    assert "searchqa" in {entry.name for entry in listed(empty, PluginKind.ENVIRONMENT) if entry.info is not None}
    assert "offline" in {entry.name for entry in listed(empty, PluginKind.BACKEND) if entry.info is not None}


STRATEGY = """
raise RuntimeError("imported")


class Mine(Strategy):
    summary: str = "mine " "alone"


class Other:
    summary = f"{1}"
"""


def test_strategies_are_listed_by_what_their_source_says_and_none_is_imported(tmp_path, monkeypatch, installed, empty):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "__init__.py").write_text("raise RuntimeError")
    (tmp_path / "theirs" / "mine.py").write_text(STRATEGY)
    (tmp_path / "broken.py").write_text("class")
    monkeypatch.syspath_prepend(str(tmp_path))
    references = ("theirs.mine:Mine", "theirs.mine:Other", "broken:Mine", "nowhere.at:All")
    installed(*(Plugin(name=str(number), reference=reference) for number, reference in enumerate(references)))
    assert [entry.info.summary for entry in listed(empty, PluginKind.STRATEGY)] == ["mine alone", "", "", ""]
    assert [entry.reference for entry in listed(empty, PluginKind.STRATEGY)] == list(references)


def test_a_strategy_is_described_by_its_document_and_its_keys(empty):
    racing = plugin_named(empty, PluginKind.STRATEGY, "racing")
    assert racing.info.description.startswith("Rounds of several steps")
    assert racing.info.keys[0].key == "train.round_steps"
    assert racing.info.keys[0].default == "4"
    assert racing.info.keys[0].meaning
    code = (
        "from skillgit.strategies import Strategy\n"
        "class Mine(Strategy):\n    KEYS\n    async def propose(self, search): ...\n"
    )
    (empty.directory / "mine.py").write_text(code.replace("KEYS", "keys = ('train.luck',)"))
    with pytest.raises(UsageError, match=r"there is no key train\.luck"):
        plugin_named(empty, PluginKind.STRATEGY, "mine.py:Mine")
    (empty.directory / "mine.py").write_text(code.replace("KEYS", "summary = 'mine'"))
    assert plugin_named(empty, PluginKind.STRATEGY, "mine.py:Mine").info.summary == "mine"


def test_every_strategy_of_ours_says_what_it_does(empty):
    for entry in listed(empty, PluginKind.STRATEGY):
        if entry.reference.startswith("skillgit."):
            described = plugin_named(empty, PluginKind.STRATEGY, entry.name).info
            assert described.summary == entry.info.summary != ""
            assert described.keys
