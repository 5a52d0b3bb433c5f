from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from trained_runs import user

from skillgit.app.train import run_report as publishing_module
from skillgit.app.train.run_report import Publisher, publishing
from skillgit.app.workspace.command_journal import CommandRecord
from skillgit.app.workspace.live import (
    End,
    LiveLook,
    LiveProgress,
    RunLimits,
    Standing,
    decoded,
    encoded,
    live,
    stop_after_step,
    stop_now,
)
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import FailedToEvaluate, Scored
from skillgit.domain.trajectory import Item, Rollout, Trajectory
from skillgit.engine.search import Progress, Stage
from skillgit.errors import BudgetError, NotFoundError, ProviderFailureError, StoppedError
from skillgit.store import lock as lock_files
from skillgit.store.lock import RunLock

RUN = "small"
NOW = datetime(2026, 11, 21, tzinfo=UTC)
PLACE = Progress(
    epoch=1, epochs=2, step=1, steps=4, stage=Stage.BASELINE, done=0, total=0, score=0.5, best=0.6, spent=Cost(calls=7)
)
PLANTED = "sk-proj-PLANTED0123456789abcdefghijklmnop"


class Seen:
    """A watcher that remembers what it was handed."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def progress(self, progress) -> None:
        self.told.append(progress)

    def happened(self, event, commit) -> None:
        self.told.append((event, commit))

    def remark(self, text) -> None:
        self.told.append(text)


def rollout(item: str, outcome: Scored | FailedToEvaluate, feedback: str = "", kind: str = "default") -> Rollout:
    trajectory = None if isinstance(outcome, FailedToEvaluate) else Trajectory(
        item_id=item, turns=(), answer="", feedback=feedback
    )  # fmt: skip
    return Rollout(item=Item(id=item, content={}, task_type=kind), trajectory=trajectory, outcome=outcome)


def stage(name: Stage, done: int, total: int, step: int = 1) -> Progress:
    return replace(PLACE, stage=name, done=done, total=total, step=step)


@pytest.fixture
def look(repo):
    """Return how the run is going, as another process sees it."""

    def at(run: str = RUN, **options: object) -> LiveLook:
        return live(user(repo.workdir), run, **options)

    return at


@pytest.fixture
def lock(repo):
    return RunLock(repo, RUN, lambda: NOW)


@pytest.fixture
def published(repo, lock):
    """Publish what a scenario tells, under the lock of the run."""

    def tell(*told: object, caps: Caps | None = None, end: BaseException | None = None) -> Seen:
        seen = Seen()

        async def scenario(publisher: Publisher) -> None:
            for one in told:
                if isinstance(one, Progress):
                    publisher.progress(one)
                elif isinstance(one, str):
                    publisher.remark(one)
                elif isinstance(one, list):
                    publisher.hold(*one)
                else:
                    publisher.rolled(*one)
            publisher._publish(asyncio.get_running_loop())
            if end is not None:
                raise end

        with publishing(repo, RUN, seen, caps=caps or Caps(), command=f"skillgit train demo --run {RUN}") as publisher:
            asyncio.run(scenario(publisher))
        return seen

    with lock:
        yield tell


def test_a_run_that_was_never_trained_here_is_idle(look):
    assert look() == LiveLook(run=RUN, standing=Standing.IDLE)
    assert look("") == LiveLook(run="", standing=Standing.IDLE)
    assert look("", last=RUN).run == RUN


def test_a_process_that_holds_the_run_and_told_nothing_is_starting(look, lock):
    with lock:
        assert look() == LiveLook(run=RUN, standing=Standing.STARTING, pid=os.getpid())
        assert look("", pid=os.getpid()).run == RUN
        assert look("", pid=1) == LiveLook(run="", standing=Standing.STARTING, pid=1)


def test_what_a_trainer_tells_is_seen_by_others_and_by_its_own_watcher(published, look):
    told = (PLACE, stage(Stage.ROLLOUT, 3, 8), *("waits" for _ in range(9)), "5 steps brought nothing")
    seen = published(["rehearsal, not language models"], *told, caps=Caps(max_calls=90, max_usd=2.5))
    assert seen.told == ["rehearsal, not language models", *told]
    found = look()
    assert (found.standing, found.pid) == (Standing.RUNNING, os.getpid())
    snapshot = found.snapshot
    assert (snapshot.epoch, snapshot.step, snapshot.steps, snapshot.stage) == (1, 1, 4, "rollout")
    assert (snapshot.done, snapshot.total, snapshot.score, snapshot.best) == (3, 8, 0.5, 0.6)
    assert snapshot.limits == RunLimits(calls=90, tokens=None, usd=2.5)
    assert snapshot.spent.calls == 7
    assert snapshot.remarks[-1] == "5 steps brought nothing"
    assert snapshot.conditions == ("rehearsal, not language models",), "which holds whatever comes after it"


@pytest.mark.parametrize("first", [Cost(), Cost(calls=3, tokens_in=5, usd=0.5, unpriced=2)])
@pytest.mark.parametrize("more", [Cost(calls=1, usd=0.25), Cost(calls=4, tokens_out=7, usd=0.125, unpriced=1)])
def test_a_pace_is_of_what_was_spent_lately_and_knows_of_which_calls_the_price_is_unknown(first, more):
    recent = publishing_module._less(first + more, first)
    assert recent == replace(more, seconds=recent.seconds)


@pytest.mark.parametrize("asked", [RUN, ""])
@pytest.mark.parametrize(
    "case",
    [
        (("train", "demo", "--run", RUN), True, False, True),
        (("train", "demo", "--run", RUN), True, True, True),
        (("train", "demo", "--run", RUN), False, False, False),
        (("eval", RUN), True, False, False),
    ],
)
def test_from_its_launch_on_a_run_is_starting(repo, look, monkeypatch, asked, case):
    """Also if an earlier process has told how it ended; once the launched one has, that is what is said."""
    words, runs, is_old, is_starting = case
    record = CommandRecord(folder=repo.private_dir, id="1", time=NOW, by="x", words=words, pid=7, runs=runs)
    monkeypatch.setattr("skillgit.app.workspace.live.commands", lambda _: (record,))
    end = LiveProgress(run=RUN, pid=1, command="", limits=RunLimits(), end=End(outcome="stopped", message=""))
    if is_old:
        lock_files.publish(repo, RUN, encoded(end).encode())
    found = look(asked, last=RUN)
    assert (found.standing is Standing.STARTING) == is_starting
    assert found.pid == (7 if is_starting else 0)
    lock_files.publish(repo, RUN, encoded(replace(end, pid=7)).encode())
    assert look(asked, last=RUN).standing is Standing.ENDED


def test_stages_are_those_of_the_step(published, look):
    ends = replace(PLACE, step=2, stage=Stage.EVALUATE)
    published(PLACE, stage(Stage.ROLLOUT, 8, 8), stage(Stage.AGGREGATE, 0, 0), stage(Stage.EVALUATE, 5, 8))
    assert [(count.stage, count.done) for count in look().snapshot.stages] == [
        ("rollout", 8),
        ("aggregate", 0),
        ("evaluate", 5),
    ]
    published(stage(Stage.EVALUATE, 5, 8), ends)
    assert (look().snapshot.stage, look().snapshot.stages) == ("", ())


def test_failing_items_are_those_of_the_newest_stage_that_rolls_out(published, look):
    failed, passed = Scored(0.0, 0.5), Scored(1.0, 1.0)
    published(
        stage(Stage.ROLLOUT, 0, 9),
        (rollout("t1", failed, 'expected "a"'), Stage.ROLLOUT),
        stage(Stage.EVALUATE, 0, 9),
        (rollout("q1", failed, 'expected "a"', "date"), Stage.EVALUATE),
        (rollout("q2", failed, 'expected "b"', "date"), Stage.EVALUATE),
        (rollout("q3", passed), Stage.EVALUATE),
        (rollout("q4", FailedToEvaluate("timed out")), Stage.EVALUATE),
        (rollout("q5", failed), Stage.SLOW),
        (rollout("q1", passed), Stage.EVALUATE),
    )
    found = look().snapshot
    assert (found.failed, found.rolled, found.looked_at) == (2, 4, "evaluate")
    assert [(group.task_type, group.example, group.items) for group in found.failing] == [
        ("date", 'expected "b"', ("q2",)),
        ("default", "not evaluated: timed out", ("q4",)),
    ]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ProviderFailureError("openai does not answer", hint="skillgit doctor"), "provider-failure"),
        (BudgetError("the cap"), "budget"),
        (StoppedError("run small is stopped"), "stopped"),
        (NotFoundError("no such seed"), "failed"),
        (ValueError("a bug"), "failed"),
    ],
)
def test_how_a_process_ends_is_told_and_no_request_to_stop_is_left(error, outcome, repo, published, look):
    lock_files.request_stop(repo, RUN, os.getpid())
    with pytest.raises(type(error)):
        published(PLACE, end=error)
    found = look()
    assert (found.standing, found.pid, found.snapshot.end.outcome) == (Standing.ENDED, 0, outcome)
    assert str(error) in found.snapshot.end.message
    assert lock_files.stop_requested(repo, RUN) == 0


def test_a_process_that_is_gone_without_a_word_is_not_running_for_ever(repo, look):
    program = (
        "import os, signal, sys; from pathlib import Path; from datetime import UTC, datetime\n"
        "from skillgit.store.repo import Repo; from skillgit.store.lock import RunLock\n"
        "from skillgit.app.train.run_report import publishing; from skillgit.domain.cost import Caps\n"
        "repo = Repo.discover(Path(sys.argv[1]))\n"
        "with RunLock(repo, 'small', lambda: datetime.now(UTC)), "
        "publishing(repo, 'small', None, caps=Caps(), command='skillgit train demo --run small'):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(repo.workdir)], check=False)
    assert ended.returncode == -9
    found = look()
    assert (found.standing, found.pid, found.snapshot.end) == (Standing.KILLED, 0, None)
    assert look("", pid=found.snapshot.pid).run == RUN


@pytest.mark.usefixtures("published")
def test_what_an_earlier_process_told_is_not_taken_for_news(repo, look):
    old = LiveProgress(run=RUN, pid=1, command="", limits=RunLimits(), end=End(outcome="stopped", message=""))
    lock_files.publish(repo, RUN, encoded(old).encode())
    assert (look().standing, look().snapshot) == (Standing.STARTING, None)


def test_a_request_to_stop_reaches_the_process_that_it_was_meant_for(published, repo, look):
    published(PLACE)
    seen = Publisher(repo, look().snapshot, Seen())
    assert not seen.asked_to_stop
    assert stop_after_step(user(repo.workdir), RUN) == os.getpid()
    assert seen.asked_to_stop
    assert look().standing is Standing.STOPPING
    assert not Publisher(repo, replace(look().snapshot, pid=1), Seen()).asked_to_stop
    seen.begin()
    assert not seen.asked_to_stop


@pytest.mark.parametrize("stop", [stop_after_step, stop_now])
def test_nobody_can_be_asked_to_stop_where_nobody_trains(stop, repo):
    with pytest.raises(NotFoundError, match="no process is training small"):
        stop(user(repo.workdir), RUN)


@pytest.mark.usefixtures("published")
def test_stopping_now_is_what_ctrl_c_does(repo, monkeypatch):
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    assert stop_now(user(repo.workdir), RUN) == os.getpid()
    assert sent == [(os.getpid(), 2)]


def test_publishing_is_rare_however_much_happens(repo, monkeypatch):
    written: list[bytes] = []
    monkeypatch.setattr(publishing_module, "publish", lambda _repo, _run, document: written.append(document))
    every = 0.05
    monkeypatch.setattr(publishing_module, "EVERY_S", every)
    publisher = Publisher(repo, LiveProgress(run=RUN, pid=1, command="", limits=RunLimits()), Seen())

    async def busy() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for done in range(20_000):
            publisher.progress(stage(Stage.ROLLOUT, done + 1, 20_000))
            if done % 500 == 0:
                await asyncio.sleep(0)
        await asyncio.sleep(3 * every)  # the last publication is due within one of them
        return loop.time() - began

    seconds = asyncio.run(busy())
    assert len(written) <= seconds / every + 2
    assert json.loads(written[-1])["done"] == 20_000, "the last word is not lost"


def test_a_reader_never_sees_half_of_it_however_slow_it_is(published, repo, look):
    published(PLACE)
    snapshot, over = look().snapshot, threading.Event()

    def write() -> None:
        for number in range(2_000):
            lock_files.publish(repo, RUN, encoded(replace(snapshot, done=number, remarks=("x" * number,))).encode())
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while not over.is_set():
        seen.append(look().snapshot)
    writer.join()
    assert all(found is not None for found in seen)
    assert [found.done for found in seen] == sorted(found.done for found in seen)


def test_no_credential_is_published(published, repo, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "abcdefgh-12345678-secret")
    said = f"the answer {PLANTED} is wrong"
    with pytest.raises(ProviderFailureError):
        published(
            (rollout("q1", Scored(0.0, 0.0), said), Stage.BASELINE),
            "used abcdefgh-12345678-secret",
            end=ProviderFailureError(f"401 for {PLANTED}"),
        )
    document = lock_files.published(repo, RUN)
    assert decoded(document) is not None
    assert PLANTED.encode() not in document
    assert b"12345678-secret" not in document


def test_a_disk_that_takes_nothing_does_not_stop_the_run(published, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(publishing_module, "publish", full)
    assert published(PLACE).told == [PLACE]


@pytest.mark.parametrize("document", [b"", b"{", b"[]", b'{"run": 1}', b"\xff"])
def test_a_document_that_cannot_be_read_is_none(document, repo, look):
    lock_files.publish(repo, RUN, document)
    assert look() == LiveLook(run=RUN, standing=Standing.IDLE)


def test_a_snapshot_reads_as_it_was_written(published, look):
    published(PLACE, stage(Stage.ROLLOUT, 3, 8), (rollout("q1", Scored(0.0, 0.5), "half\ud800"), Stage.ROLLOUT))
    snapshot = look().snapshot
    assert decoded(encoded(snapshot).encode()) == snapshot
