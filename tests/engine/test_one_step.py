"""How much code one accepted step of the demo enters, which is how much a reader of it has to know."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program import QUICK, new_repository
from trained_runs import user

import skillgit
from skillgit.app.train.requests import TrainRequest
from skillgit.app.train.train import Training, train
from skillgit.domain.event_kinds import EventKind
from skillgit.engine.run_loop import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

ENGINE, WHOLE = (16, 271), (98, 970)
"""Files and functions that an accepted step enters, of engine and strategies and of all rooms: they only fall.

Of all rooms, 96 or 97 files are seen: what watches a step beside it is entered at the pace of the machine."""
ROOT = Path(skillgit.__file__).parents[1]
ROOMS = tuple(f"{ROOT / folder}/" for folder in ("skillgit", "envs", "backends"))


class Tracer:
    """Remembers by step which code of the product is entered, in any task and any thread that works for the step."""

    def __init__(self) -> None:
        self.step = ContextVar("step", default=0)
        self.entered: dict[int, set[CodeType]] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOMS) and (step := self.step.get()):
            self.entered.setdefault(step, set()).add(frame.f_code)

    @contextmanager
    def attached(self) -> Iterator[None]:
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def functions(self, step: int) -> set[tuple[str, str]]:
        """Return the functions and methods, nested ones too; lambdas, comprehensions and module bodies are left out."""
        names = {
            (code.co_filename, code.co_qualname) for code in self.entered[step] if not code.co_name.startswith("<")
        }
        return {(str(Path(file).relative_to(ROOT)), name) for file, name in names}


class AcceptedSteps:
    """A watcher that remembers which steps were accepted."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def progress(self, progress) -> None: ...

    def remark(self, text) -> None: ...

    def happened(self, event, _: str) -> None:
        if event.kind is EventKind.ACCEPTED:
            self.steps.append(event.step)


@pytest.mark.soak
def test_one_accepted_step_is_read_in_few_files(tmp_path, monkeypatch):
    """From the begin of the step until its event is recorded; what the next one does meanwhile is not counted."""
    tracer, watcher = Tracer(), AcceptedSteps()
    take, write = Trainer._step, Training._write

    async def traced_step(trainer, state):
        tracer.step.set(state.step + 1)
        try:
            return await take(trainer, state)
        finally:
            tracer.step.set(0)

    async def traced_write(training, transition, before, after):
        tracer.step.set(transition.event.step)  # a task of its own
        await write(training, transition, before, after)

    monkeypatch.setattr(Trainer, "_step", traced_step)
    monkeypatch.setattr(Training, "_write", traced_write)
    settings = tuple(word for word in QUICK if word != "-o")
    repository = new_repository(tmp_path / "repository")
    with tracer.attached():
        train(user(repository), TrainRequest(config="demo", run="one", overrides=settings), watcher)
    functions = tracer.functions(watcher.steps[0])
    engine = {entry for entry in functions if entry[0].startswith(("skillgit/engine/", "skillgit/strategies/"))}
    assert (count_files(engine), len(engine)) <= ENGINE
    assert (count_files(functions), len(functions)) <= WHOLE


def count_files(functions: set[tuple[str, str]]) -> int:
    return len({file for file, _ in functions})
