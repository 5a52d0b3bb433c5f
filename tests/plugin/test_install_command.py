"""How an extra is added to a package: from where the package was installed, which may be on no index."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from packaging.requirements import Requirement

from skillgit.plugin import plugin_identity
from skillgit.plugin.plugin_identity import install_command

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def installed_from(tmp_path, monkeypatch):
    """Install a package as the document of PEP 610 says; None is an index."""

    def install(origin: dict[str, object] | None) -> None:
        info = tmp_path / "cards-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cards\nVersion: 1.0\n")
        if origin is not None:
            (info / "direct_url.json").write_text(json.dumps(origin))
        monkeypatch.syspath_prepend(str(tmp_path))

    return install


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (None, ["cards[web]"]),
        ({"url": "file:///home/me/my%20clone", "dir_info": {}}, ["/home/me/my clone[web]"]),
        ({"url": "file:///src/cards", "dir_info": {"editable": True}}, ["-e", "/src/cards[web]"]),
        (
            {"url": "https://example.org/cards.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            [f"cards[web] @ git+https://example.org/cards.git@{COMMIT}"],
        ),
        (
            {
                "url": "ssh://git@example.org/all.git",
                "vcs_info": {"vcs": "git", "commit_id": COMMIT},
                "subdirectory": "py/cards",
            },
            [f"cards[web] @ git+ssh://git@example.org/all.git@{COMMIT}#subdirectory=py/cards"],
        ),
        (
            {"url": "https://example.org/cards-1.0-py3-none-any.whl", "archive_info": {}},
            ["cards[web] @ https://example.org/cards-1.0-py3-none-any.whl"],
        ),
        ({"url": "file:///tmp/cards-1.0.whl", "archive_info": {}}, ["cards[web] @ file:///tmp/cards-1.0.whl"]),
    ],
)
def test_an_extra_comes_from_where_the_package_came_from(installed_from, origin, words):
    installed_from(origin)
    assert shlex.split(install_command("web", "cards")) == ["pip", "install", *words]
    if not words[-1].startswith("/"):
        assert Requirement(words[-1]).extras == {"web"}


def test_where_there_is_no_pip_uv_installs_into_this_environment(monkeypatch):
    monkeypatch.setattr(plugin_identity, "find_spec", lambda _: None)
    assert re.match(r"uv pip install --python \S+ ", install_command("web"))


def test_what_is_not_installed_is_named():
    assert install_command("web", "no-such-package") == "pip install 'no-such-package[web]'"
