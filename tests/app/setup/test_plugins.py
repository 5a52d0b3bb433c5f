from __future__ import annotations

import pytest

from skillgit.app.setup.plugins import backend, backends, environment, environments
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
