from __future__ import annotations

import os
import signal
import threading

import pytest

from skillgit.index import workers

HERE = os.getpid()
WORKERS = 3
JOBS = list(range(20))


def with_process(job):
    return job * job, os.getpid()


def stopping(job):
    """Fail in every way that a worker can, at some of the jobs, and never in this process."""
    if os.getpid() != HERE:
        if job == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        if job == 8:
            raise RuntimeError("a worker cannot do this")
        if job == 12:
            return lambda: "cannot be sent"
    return job * job


def results(work, count=WORKERS):
    with workers.spread(work, JOBS, count) as found:
        return list(found)


@pytest.fixture(autouse=True)
def nobody_is_left(monkeypatch):
    """Make sure that all workers have ended and been waited for; what it returns does so at once."""
    begun, begin = [], workers._begin

    def begins(work, jobs):
        begun.append(begin(work, jobs))
        return begun[-1]

    def check():
        for worker in begun:
            with pytest.raises(ProcessLookupError):
                os.kill(worker.process, 0)

    monkeypatch.setattr(workers, "_begin", begins)
    yield check
    check()


def test_results_come_in_order_from_several_processes():
    found = results(with_process)

    assert [square for square, _ in found] == [job * job for job in JOBS]
    processes = {process for _, process in found}
    assert len(processes) == WORKERS
    assert HERE not in processes


def test_without_workers_it_is_done_here():
    assert {process for _, process in results(with_process, 0)} == {HERE}


def test_results_may_be_larger_than_what_can_wait():
    assert [len(text) for text in results(lambda job: "x" * (job << 18))] == [job << 18 for job in JOBS]


def test_what_workers_fail_at_is_done_here():
    assert results(stopping) == [job * job for job in JOBS]


def test_an_error_is_raised_where_it_belongs():
    with workers.spread(lambda job: 6 // (5 - job), JOBS, WORKERS) as found:
        assert [next(found) for _ in range(5)] == [1, 1, 2, 3, 6]
        with pytest.raises(ZeroDivisionError):
            next(found)


def test_who_wants_no_more_results_ends_the_workers(nobody_is_left):
    with workers.spread(lambda job: "x" * (job << 20), JOBS, WORKERS) as found:
        next(found)

    nobody_is_left()


def test_a_process_with_threads_is_not_forked():
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    assert workers.other_processes() == 0
    ended.set()
    thread.join()
