from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from skillgit.cli import main
from skillgit.errors import RevisionNotFoundError

sys.path.insert(0, str(Path(__file__).parent))

import cli_sample

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a command line did."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()


_OUTSIDE = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "SKILLGIT_PAGER", "PAGER", "GIT_PAGER")


@pytest.fixture
def skillgit(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes], tmp_path
) -> Callable[..., Ended]:
    """Run a command line in this process, at the sample's time, in an empty folder."""
    for name in _OUTSIDE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SKILLGIT_CLOCK", cli_sample.NOW.isoformat())
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ended:
        code = main.run(list(arguments))
        captured = capsysbinary.readouterr()
        return Ended(code=code, out=captured.out, err=captured.err.decode())

    return run


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[object, ...]]]:
    """Let a use case return a value, or raise it; the answer collects what it is called with.

    Where one is asked, there is no run that cannot be read, and one that was stopped within a step.
    """
    monkeypatch.setattr("skillgit.app.workspace.workspace.Workspace.index", SimpleNamespace(broken={}))
    monkeypatch.setattr("skillgit.app.history.status.spent_on_unfinished", lambda _: cli_sample.UNFINISHED)
    monkeypatch.setattr("skillgit.app.history.item.item_words", lambda *_: {})
    lack = RevisionNotFoundError("there are no runs yet", hint="skillgit train")
    monkeypatch.setattr("skillgit.app.workspace.revision.lack_of_runs", lambda _: lack)

    def replace(verb: str, result: object) -> list[tuple[object, ...]]:
        calls: list[tuple[object, ...]] = []

        def stand_in(context: object = None, *args: object, **kwargs: object) -> object:
            del context
            calls.append((*args, kwargs) if kwargs else args)
            if isinstance(result, BaseException):
                raise result
            return result

        module, _, name = verb.rpartition(".")
        monkeypatch.setattr(f"skillgit.app.{module}.{name}", stand_in)
        return calls

    return replace
