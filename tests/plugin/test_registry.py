from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from skillgit.errors import NotFoundError, UsageError
from skillgit.plugin import registry
from skillgit.plugin.registry import BACKENDS, ENVIRONMENTS, find_environment, installed, load_backend, load_environment

if TYPE_CHECKING:
    from pathlib import Path

IMPORT = "from skillgit.plugin.environment import EnvironmentInfo\n"
INFO = "info = EnvironmentInfo(name='mine', summary='', fields={}, scorer='', source='')"


def test_what_ships_is_installed_like_any_other_plugin():
    assert "searchqa" in [plugin.name for plugin in installed(ENVIRONMENTS)]
    assert "offline" in [plugin.name for plugin in installed(BACKENDS)]


def test_listing_imports_no_plugin():
    code = (
        "import sys; from skillgit.plugin.registry import *; installed(ENVIRONMENTS); installed(BACKENDS);"
        "print([name for name in sys.modules if name.startswith(('skillgit_envs', 'skillgit_backends'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_gets_the_nearest(tmp_path: Path):
    with pytest.raises(NotFoundError, match="no environment 'serchqa'") as caught:
        load_environment("serchqa", tmp_path)
    assert caught.value.hint == "did you mean 'searchqa'?"
    with pytest.raises(NotFoundError) as other:
        load_backend("zzz", tmp_path)
    assert "offline" in other.value.hint


def test_a_class_may_live_in_a_file_of_the_user(tmp_path: Path):
    (tmp_path / "mine.py").write_text(f"{IMPORT}class Mine: {INFO}\n")
    assert load_environment("mine.py:Mine", tmp_path).__name__ == "Mine"
    with pytest.raises(UsageError, match="has no class 'Other'"):
        load_environment("mine.py:Other", tmp_path)
    with pytest.raises(NotFoundError, match="no environment file"):
        load_environment("yours.py:Mine", tmp_path)


def test_a_file_that_breaks_is_the_users_error(tmp_path: Path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match="cannot be loaded: division by zero"):
        load_environment("broken.py:Mine", tmp_path)


def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path: Path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(
            f"{IMPORT}import helper\nclass Mine:\n    {INFO}\n    where = helper.WHERE\n    folder = '{folder}'\n"
        )
        (tmp_path / folder / "helper.py").write_text(f"WHERE = '{folder}'\n")
    one, two = (load_environment(f"{folder}/mine.py:Mine", tmp_path) for folder in ("one", "two"))
    assert (one.where, two.where) == ("one", "two")
    assert sys.modules[one.__module__].Mine is one
    assert sys.modules[two.__module__].Mine is two


def test_modules_beside_a_file_are_loaded_anew_with_it_and_hide_nothing_that_is_installed(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        f"{IMPORT}import json\nfrom parts import first\nclass Mine:\n    {INFO}\n"
        "    seen = first.SEEN, json.dumps([])\n"
    )
    (tmp_path / "json.py").write_text("1 / 0\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").touch()
    (tmp_path / "parts" / "first.py").write_text("from .second import SEEN\n")
    for seen in ("1", "2"):
        (tmp_path / "parts" / "second.py").write_text(f"SEEN = {seen}\n")
        assert load_environment("mine.py:Mine", tmp_path).seen == (int(seen), "[]")


def test_the_source_of_a_file_is_its_bytes_with_those_of_the_modules_beside_it(tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        f"{IMPORT}class Mine:\n    {INFO}\n    def go(self):\n        from parts.first import x\nclass Other: {INFO}\n"
    )
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "first.py").write_text("from . import second\nx = 1\n")
    (tmp_path / "parts" / "second.py").write_text("import mine, no_such_module\n")
    (tmp_path / "json").mkdir()

    def source(name: str = "Mine"):
        return find_environment(f"mine.py:{name}", tmp_path).source

    before = source()
    assert before.code
    assert before.identity != source("Other").identity
    (tmp_path / "unrelated.py").touch()
    (tmp_path / "parts" / "third.py").touch()
    assert source() == before
    (tmp_path / "parts" / "second.py").write_text("import mine, no_such_module  # and more\n")
    assert source() != before


def test_an_installed_plugin_is_known_by_name_and_version(tmp_path: Path):
    source = find_environment("searchqa", tmp_path).source
    assert (source.name, source.version, source.code) == ("searchqa", f"skillgit {version('skillgit')}", "")


@pytest.mark.parametrize("editable", [True, False])
def test_a_package_that_is_installed_to_be_edited_is_known_by_its_bytes(tmp_path: Path, monkeypatch, editable):
    name = f"brought_{editable}".lower()
    info, package = tmp_path / f"{name}-1.0.dist-info", tmp_path / name
    info.mkdir()
    package.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[skillgit.envs]\n{name} = {name}.mine:Mine\n")
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///x", "dir_info": {"editable": editable}}))
    (package / "__init__.py").touch()
    (package / "mine.py").write_text(f"from {name} import scoring\n{IMPORT}class Mine: {INFO}\n")
    (package / "scoring.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.cache_clear()
    try:
        before = find_environment(name, tmp_path).source
        (package / "scoring.py").write_text("VALUE = 2\n")
        after = find_environment(name, tmp_path).source
    finally:
        installed.cache_clear()
    assert (before.version, bool(before.code)) == (("", True) if editable else (f"{name} 1.0", False))
    assert (before != after) == editable


@pytest.mark.parametrize("code", ["0", "3", "'enough'", ""])
def test_a_file_that_ends_the_program_cannot_be_loaded(tmp_path, code):
    (tmp_path / "mine.py").write_text(f"import sys\nsys.exit({code})\n")
    for load in (registry.find_environment, registry.find_backend, registry.find_strategy):
        with pytest.raises(UsageError, match=r"mine\.py cannot be loaded: it ends the program, with"):
            load("mine.py:Mine", tmp_path)
