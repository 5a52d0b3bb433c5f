"""What is built can be installed elsewhere and works there, with all that it needs inside."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import skillgit

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
OURS = ("skillgit", "skillgit_envs", "skillgit_backends")


def run(*command: str | Path, cwd: Path, home: Path | None = None) -> str:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home or cwd), "LC_ALL": "C.UTF-8", "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(source: Path, target: str, into: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", into, cwd=source)
    (made,) = into.iterdir()
    return made


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of programs of an environment that has the wheel; its dependencies are lent by this one."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=venv.parent)
    python = venv / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=venv.parent)
    site = next((venv / "lib").glob("python*")) / "site-packages"
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n" + sysconfig.get_path("platlib") + "\n")
    return venv / "bin"


def test_the_wheel_claims_only_names_of_its_own(wheel: Path):
    tops = {name.partition("/")[0] for name in names(wheel)}
    about = f"skillgit-{skillgit.__version__}"
    assert tops == {*OURS, f"{about}.dist-info", f"{about}.data"}


def test_the_wheel_brings_the_manual_pages(wheel: Path):
    pages = {path.name for path in (ROOT / "docs" / "man").iterdir()}
    assert "skillgit-log.1" in pages
    assert {name.rpartition("/")[2] for name in names(wheel) if ".data/data/share/man/man1/" in name} == pages


def test_the_wheel_holds_everything_that_is_no_code(wheel: Path):
    held = names(wheel)
    for package in (ROOT / "skillgit", ROOT / "envs" / "skillgit_envs", ROOT / "backends" / "skillgit_backends"):
        files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert {path.relative_to(package.parent).as_posix() for path in files} <= held
    configs = {path.relative_to(ROOT).as_posix() for path in (ROOT / "configs").rglob("*.yaml")}
    assert {f"skillgit/{path}" for path in configs} <= held
    assert {f"{package}/py.typed" for package in OURS} <= held
    assert any(name.endswith("/licenses/LICENSE") for name in held)
    assert not [name for name in held if "__pycache__" in name or "/tests/" in name]


def test_the_wheel_from_the_source_distribution_is_the_same(wheel: Path, tmp_path: Path):
    archive = build(ROOT, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    assert (source / "Makefile").is_file()
    assert names(build(source, "wheel", tmp_path / "wheel")) == names(wheel)


def test_an_installed_skillgit_is_not_this_checkout(installed: Path, tmp_path: Path):
    code = f"import {', '.join(OURS)}; print({', '.join(f'{name}.__file__' for name in OURS)})"
    paths = [Path(path) for path in run(installed / "python", "-c", code, cwd=tmp_path).split()]
    assert all(path.is_relative_to(installed.parent) for path in paths)


def test_an_installed_skillgit_says_its_version(installed: Path, tmp_path: Path):
    assert run(installed / "skillgit", "--version", cwd=tmp_path).startswith(f"skillgit {skillgit.__version__}")
    assert run(installed / "python", "-m", "skillgit", "--version", cwd=tmp_path).startswith("skillgit ")


def test_an_installed_skillgit_knows_its_plugins(installed: Path, tmp_path: Path):
    listed = run(installed / "skillgit", "plugins", cwd=tmp_path)
    assert all(name in listed for name in ("searchqa", "offline", "racing"))


def test_an_installed_skillgit_finds_its_configurations(installed: Path, tmp_path: Path):
    shown = run(installed / "skillgit", "config", "demo", cwd=tmp_path)
    assert "env.name=searchqa\n" in shown
    assert "model.target_backend=offline\n" in shown


def test_an_installed_skillgit_has_its_prompts_and_data(installed: Path, tmp_path: Path):
    code = (
        "from pathlib import Path\n"
        "from skillgit.domain.evaluation import Split\n"
        "from skillgit.engine.prompt_sections import prompts_digest\n"
        "from skillgit.plugin.registry import load_environment\n"
        "environment = load_environment('searchqa', Path())({}, Path())\n"
        "print(len(environment.items(Split.TRAIN)), environment.seed_skill().name)\n"
        "print(environment.digest, prompts_digest())\n"
        "assert environment.taxonomy()\n"
    )
    count, skill, *digests = run(installed / "python", "-c", code, cwd=tmp_path).split()
    assert int(count) > 0
    assert skill == "searchqa"
    assert len(digests) == 2
