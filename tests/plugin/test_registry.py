from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from skillgit.errors import NotFoundError, UsageError
from skillgit.plugin.registry import BACKENDS, ENVIRONMENTS, installed, load_backend, load_environment

if TYPE_CHECKING:
    from pathlib import Path


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
    (tmp_path / "mine.py").write_text("class Mine: pass\n")
    assert load_environment("mine.py:Mine", tmp_path).__name__ == "Mine"
    with pytest.raises(UsageError, match="has no class 'Other'"):
        load_environment("mine.py:Other", tmp_path)
    with pytest.raises(NotFoundError, match="no environment file"):
        load_environment("yours.py:Mine", tmp_path)


def test_a_file_that_breaks_is_the_users_error(tmp_path: Path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match="cannot be loaded: division by zero"):
        load_environment("broken.py:Mine", tmp_path)
