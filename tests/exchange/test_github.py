from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from program import refs
from sample_run import RUN

if TYPE_CHECKING:
    from pathlib import Path

    from hosts import Person

ADDRESS = "https://github.com/acme/skills.git"


@pytest.fixture
def new(host, ann, tmp_path) -> Person:
    """Somebody whose remote is on GitHub, which is the host here, and has no such repository yet."""
    ann.git("remote", "add", "hub", ADDRESS)
    ann.git("config", f"url.{host.url('missing').removesuffix('missing.git')}.insteadOf", "https://github.com/")
    ann.env["PATH"] = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    return ann


def gh(folder: Path, script: str) -> None:
    folder.mkdir()
    program = folder / "gh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_without_gh_it_says_what_to_create(new):
    done = new.push("hub", code=5)
    assert done.err == (
        "skillgit: there is no repository at hub, or you may not see it\n"
        "hint: create acme/skills at https://github.com/new, without a README or a licence, and push again\n"
    )


def test_gh_is_named_and_not_used_unless_somebody_agrees(new, tmp_path):
    gh(tmp_path / "bin", "exit 70")
    done = new.push("hub", code=5)
    assert (
        "hint: skillgit push --yes creates it as a private repository: gh repo create acme/skills --private" in done.err
    )


def test_gh_creates_the_repository_and_the_push_goes_on(new, host, tmp_path):
    made = host.folder / "acme" / "skills.git"
    gh(
        tmp_path / "bin",
        f'[ "$*" = "repo create acme/skills --private" ] || exit 9\n'
        f'git init -q --bare --initial-branch=main "{made}" && git -C "{made}" config http.receivepack true',
    )
    done = new.push("hub", "--yes")
    assert "created the private repository acme/skills on GitHub" in done.err
    assert f"refs/heads/run/{RUN}" in refs(made)


def test_a_failure_of_gh_is_told(new, tmp_path):
    gh(tmp_path / "bin", "echo 'not logged in' >&2; exit 4")
    done = new.push("hub", "--yes", code=5)
    assert done.err == "skillgit: gh could not create acme/skills: not logged in\nhint: gh auth status\n"
