from __future__ import annotations

import multiprocessing
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
def begun(monkeypatch):
    """The workers that have begun; in the end all have ended and been waited for."""
    found, begin = [], workers._begin

    def begins(*given):
        found.append(begin(*given))
        return found[-1]

    monkeypatch.setattr(workers, "_begin", begins)
    yield found
    check_ended(found)


def check_ended(crew):
    for worker in crew:
        with pytest.raises(ProcessLookupError):
            os.kill(worker.process, 0)


def test_results_come_in_order_from_all_processes():
    everybody, came = multiprocessing.get_context("fork").Barrier(WORKERS + 1), set()

    def work(job):
        """Let nobody have a second turn before everybody has had one."""
        if os.getpid() not in came:
            came.add(os.getpid())
            everybody.wait(60)
        return with_process(job)

    found = results(work)

    assert [square for square, _ in found] == [job * job for job in JOBS]
    processes = {process for _, process in found}
    assert HERE in processes
    assert len(processes) == WORKERS + 1


def test_few_results_wait_for_a_worker_that_is_slow(begun, monkeypatch):
    go_on, ahead, too_many = multiprocessing.get_context("fork").Event(), [], []
    monkeypatch.setattr(workers, "_AHEAD", 4)

    def work(job):
        if job == 0:
            assert os.getpid() != HERE
            go_on.wait(60)
        elif os.getpid() == HERE:
            ahead.append(job)
            too_many.extend([job] if len(ahead) > 4 and begun[0].brought < 0 else [])
            if len(ahead) == 4:
                go_on.set()
        return job

    with workers.spread(work, JOBS, 1) as found:
        assert list(found) == JOBS
    assert too_many == []


def test_what_does_not_fit_into_the_pipe_of_turns_is_done_here(monkeypatch):
    monkeypatch.setattr(workers, "_widened", lambda _: 4 * workers._TURN)
    assert [square for square, _ in results(with_process)] == [job * job for job in JOBS]


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


def test_who_wants_no_more_results_ends_the_workers(begun):
    with workers.spread(lambda job: "x" * (job << 20), JOBS, WORKERS) as found:
        next(found)

    check_ended(begun)


def test_a_process_with_threads_is_not_forked():
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    assert workers.other_processes() == 0
    ended.set()
    thread.join()
