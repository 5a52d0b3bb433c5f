"""How the tests of the environment ``inspect`` make one and let it work."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the script is the model of other processes, too


@pytest.fixture
def made():
    """Make an environment for one of the own tasks, or with the options given."""
    from own_tasks import NAMES  # noqa: PLC0415 - it needs Inspect

    from skillgit_envs.inspect import InspectEnvironment  # noqa: PLC0415 - as above

    def make(name="", **options):
        usual = {"task_file": f"own_tasks.py@{name}", **NAMES.get(name, {})} if name else {}
        return InspectEnvironment({**usual, **options}, HERE)

    return make


@pytest.fixture
def _leaves_nothing(tmp_path, monkeypatch, capfd):
    """Inspect has a home and a folder for temporary files of its own, in which nothing may be left."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "TMPDIR"):
        folder = tmp_path / "private" / name
        folder.mkdir(parents=True)
        monkeypatch.setenv(name, str(folder))
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "private" / "TMPDIR"))
    before = dict(os.environ)
    yield
    assert [path for path in (tmp_path / "private").rglob("*") if not path.is_dir()] == []
    assert [path.name for path in (tmp_path / "private" / "TMPDIR").iterdir()] == []
    assert dict(os.environ) == before | {"PYTEST_CURRENT_TEST": os.environ["PYTEST_CURRENT_TEST"]}
    assert capfd.readouterr() == ("", "")
