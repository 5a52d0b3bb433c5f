"""How long the rest of a run takes, when every rollout takes a second and every other stage none."""

import pytest

from skillgit.app.train.forecast import Forecast, Workload
from skillgit.engine.search import Progress, Stage

WORK = Workload(epochs=2, per_epoch=2, batch=4, selection=10, reflects=False, slow=6, end=30)
STEP = 4 + 10
SLOW = 6 + 10


class Run:
    """A run of ``WORK``; each rollout takes a second."""

    def __init__(self) -> None:
        self.forecast, self.seconds = Forecast(WORK), 0.0

    def roll(self, stage: Stage, step: int, count: int, total: int) -> None:
        for done in range(count + 1):
            self.seconds += 1.0 if done else 0.0
            self.forecast.follow(
                Progress(epoch=1, epochs=2, step=step, steps=4, stage=stage, done=done, total=total), self.seconds
            )

    @property
    def left(self) -> float | None:
        return self.forecast.seconds_left(self.seconds)


def test_the_rest_is_that_of_the_whole_run():
    run = Run()
    assert run.left is None, "nothing was rolled out yet"
    run.roll(Stage.BASELINE, 0, 10, 10)
    assert run.left == pytest.approx(4 * STEP + SLOW + 30)
    run.roll(Stage.ROLLOUT, 1, 4, 4)
    assert run.left == pytest.approx(10 + 3 * STEP + SLOW + 30)
    run.roll(Stage.EVALUATE, 1, 10, 10)
    assert run.left == pytest.approx(3 * STEP + SLOW + 30)
    for step in (2, 3, 4):
        run.roll(Stage.ROLLOUT, step, 4, 4)
        run.roll(Stage.EVALUATE, step, 10, 10)
    assert run.left == pytest.approx(SLOW + 30), "the last step is not the end"
    run.roll(Stage.SLOW, 4, 6, 0)
    assert run.left == pytest.approx(10 + 30)
    run.roll(Stage.EVALUATE, 4, 10, 10)
    assert run.left == pytest.approx(30)
    run.roll(Stage.TEST, 4, 15, 30)
    assert run.left == pytest.approx(15)
    assert run.forecast.share(run.seconds) == pytest.approx(1 - 15 / (10 + 4 * STEP + SLOW + 30))
    run.roll(Stage.TEST, 4, 30, 30)
    assert run.left == 0


def test_gates_that_stop_early_make_later_evaluations_shorter():
    run = Run()
    run.roll(Stage.BASELINE, 0, 10, 10)
    run.roll(Stage.ROLLOUT, 1, 4, 4)
    run.roll(Stage.EVALUATE, 1, 2, 10)
    run.roll(Stage.ROLLOUT, 2, 0, 4)
    assert run.left == pytest.approx(3 * (4 + 2) + SLOW + 30)


def test_waiting_counts():
    run = Run()
    run.roll(Stage.BASELINE, 0, 5, 10)
    assert run.forecast.seconds_left(run.seconds + 3) == pytest.approx(run.left - 3)
