from __future__ import annotations

import pytest

from skillgit.app.setup.plugins import backend, backends, environment, environments, strategies, strategy
from skillgit.errors import NotFoundError, UsageError
from skillgit.plugin import registry
from skillgit.plugin.registry import Plugin

TOY = "from types import SimpleNamespace\nclass Toy:\n    info = SimpleNamespace(name='toy')\n"


@pytest.fixture
def installed(monkeypatch):
    def install(*plugins):
        monkeypatch.setattr(registry, "installed", lambda _: list(plugins))

    return install


def test_what_is_installed_speaks_for_itself_and_what_is_broken_says_why(empty, installed):
    installed(Plugin(name="broken", reference="no_such_module:Thing"), Plugin(name="none", reference="json:Nothing"))
    for entries in (environments(empty), backends(empty)):
        assert [entry.name for entry in entries] == ["broken", "none"]
        assert "No module named 'no_such_module'" in entries[0].error
        assert "no class 'Nothing'" in entries[1].error
        assert all(entry.info is None for entry in entries)


def test_names_can_be_listed_without_loading_anything(empty, installed):
    installed(Plugin(name="broken", reference="no_such_module:Thing"))
    for entries in (environments(empty, details=False), backends(empty, details=False)):
        assert [(entry.name, entry.reference, entry.info, entry.error) for entry in entries] == [
            ("broken", "no_such_module:Thing", None, "")
        ]


def test_one_is_loaded_by_name_or_from_a_file(empty, installed):
    (empty.directory / "toy.py").write_text(TOY)
    assert environment(empty, "toy.py:Toy").info.name == "toy"
    assert backend(empty, "toy.py:Toy").reference == "toy.py:Toy"
    installed(Plugin(name="broken", reference="no_such_module:Thing"))
    with pytest.raises(UsageError, match="cannot be loaded"):
        environment(empty, "broken")
    with pytest.raises(NotFoundError, match="no backend 'broke'"):
        backend(empty, "broke")


def test_the_plugins_of_this_package_load(empty):
    assert "searchqa" in {entry.name for entry in environments(empty) if entry.info is not None}
    assert "offline" in {entry.name for entry in backends(empty) if entry.info is not None}


STRATEGY = """
raise RuntimeError("imported")


class Mine(Strategy):
    summary: str = "mine " "alone"


class Other:
    summary = f"{1}"
"""


def test_strategies_are_listed_by_what_their_source_says_and_none_is_imported(tmp_path, monkeypatch, installed):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "__init__.py").write_text("raise RuntimeError")
    (tmp_path / "theirs" / "mine.py").write_text(STRATEGY)
    (tmp_path / "broken.py").write_text("class")
    monkeypatch.syspath_prepend(str(tmp_path))
    references = ("theirs.mine:Mine", "theirs.mine:Other", "broken:Mine", "nowhere.at:All")
    installed(*(Plugin(name=str(number), reference=reference) for number, reference in enumerate(references)))
    assert [entry.info.summary for entry in strategies()] == ["mine alone", "", "", ""]
    assert [entry.reference for entry in strategies()] == list(references)


def test_a_strategy_is_described_by_its_document_and_its_keys(empty):
    racing = strategy(empty, "racing")
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
        strategy(empty, "mine.py:Mine")
    (empty.directory / "mine.py").write_text(code.replace("KEYS", "summary = 'mine'"))
    assert strategy(empty, "mine.py:Mine").info.summary == "mine"


def test_every_strategy_of_ours_says_what_it_does(empty):
    for entry in strategies():
        if entry.reference.startswith("skillgit."):
            described = strategy(empty, entry.name).info
            assert described.summary == entry.info.summary != ""
            assert described.keys
