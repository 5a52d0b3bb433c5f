"""``make bench-history``: what questions to a history cost from 1,000 to 100,000 events, against git in the same run.

``python tests/bench/history.py 1k 10k`` measures fewer sizes, ``… long`` a long skill only. Rounds are interleaved and
figures are medians. Histories are written by ``bench.histories``: a hundred runs, packed, the last one unfinished.

A rebuild stands against ``git log --all --format=%B``, which reads every message once, in two ways. ``rebuild_ratio``
is about the work: the rebuild of the index from git, from opening the repository to a closed file, in a process that
has its modules loaded and has seen nothing of the repository. Nothing is taken off git, not even its start of two
milliseconds. ``first_look_ratio`` is about what a person waits for: ``skillgit status`` without an index, from its
start to its end, the start of Python included, as everything else here is measured. The first one says how the cost
grows, the second one is the fair figure for somebody at a prompt, and at 1,000 events it is mostly the start.

``blame_s_5000_lines`` and ``report_s_5000_lines`` are the commands for a skill of 5,000 lines, a tenth of which every
version changes. ``git_blame_s_5000_lines`` is git's for the same file with the options that follow moves, as ours are
followed. A report tells what each rule was in the versions before: ``git_blame_all_s_5000_lines`` is git's of every
version, one after another. ``start_s`` is what ``skillgit --version`` takes.
"""

from __future__ import annotations

import io
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import measure
from bench.histories.fast_import import START, Stream, write_history, write_runs
from bench.histories.long_skill import write_long
from bench.histories.story import PATH, run_story

from skillgit.index import refresh
from skillgit.store import commit_message, refs
from skillgit.store.event_writer import RunWriter
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from bench.histories.fast_import import History
    from bench.histories.story import Chapter

SIZES = measure.sized({"1k": 1_000, "10k": 10_000, "100k": 100_000}, {"1k": 100})
LONG = "long"
LINES = measure.sized(5_000, 50)
SKILLGIT = str(Path(sys.executable).with_name("skillgit"))
ROUNDS = measure.sized(5, 1)
REBUILDS = measure.sized({"1k": 5, "10k": 3, "100k": 1}, dict.fromkeys(SIZES, 1))
WRITTEN = measure.sized(300, 20)
"""Events of each writer."""
FRESH = 10
"""Commits that a refresh takes in."""
_ENV = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}


def main(names: list[str]) -> None:
    """Measure the sizes called ``names``, or all."""
    unknown = set(names) - {*SIZES, LONG}
    if unknown:
        sys.exit(f"no such sizes: {', '.join(sorted(unknown))}; there are {', '.join([*SIZES, LONG])}")
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        if not names or LONG in names:
            figures |= _long_skill(Path(folder) / LONG)
        # loads what is loaded when it is needed, and leaves no name behind that another history has too
        refresh.rebuild(Repo.discover(write_history(Path(folder) / "first", 400).path)).close()
        refs.parse.cache_clear()
        for name in [size for size in SIZES if not names or size in names]:
            began = time.perf_counter()
            history = write_history(Path(folder) / name, SIZES[name])
            figures[f"generated_s_{name}"] = round(time.perf_counter() - began, 1)
            figures |= _size(name, history)
            shutil.rmtree(history.path)
        if names != [LONG]:
            figures |= _writers(Path(folder))
    rows = [("figure", "value"), *((key, str(value)) for key, value in figures.items())]
    measure.report(f"Histories against git, medians of {ROUNDS} interleaved rounds", rows, figures)


def _size(name: str, history: History) -> dict[str, float]:
    ours, theirs = [], []
    for _ in range(REBUILDS[name]):
        ours.append(_rebuilt(history.path))
        theirs.append(_seconds(lambda: _git(history.path, "log", "--all", "--format=%B")))
    figures = {f"rebuild_s_{name}": round(median(ours), 2), f"git_log_all_s_{name}": round(median(theirs), 2)}
    figures[f"rebuild_ratio_{name}"] = round(median(ours) / median(theirs), 2)
    index = refresh.path_of(Repo.discover(history.path))
    first_look = ["sh", "-c", f"rm -f {index}* && {SKILLGIT} status"]
    whole = {"first look": first_look, "git log": ["git", "log", "--all", "--format=%B"]}
    timings = measure.commands(whole, cwd=history.path, rounds=REBUILDS[name], env=_ENV)
    figures[f"first_look_s_{name}"] = round(timings["first look"].wall_ms / 1000, 2)
    figures[f"first_look_ratio_{name}"] = round(timings["first look"].wall_ms / timings["git log"].wall_ms, 2)
    # a packed file that is younger than two seconds is not trusted to stay as it is
    time.sleep(measure.sized(2, 0))
    refresh.open_index(Repo.discover(history.path)).close()
    figures |= _commands(name, history)
    figures[f"refresh_ms_{name}"] = round(_refreshed(history), 1)
    return figures


def _long_skill(path: Path) -> dict[str, float]:
    write_long(path, LINES)
    refresh.open_index(Repo.discover(path)).close()
    versions = _git(path, "tag", "--list", "--sort=version:refname", f"{LONG}/v*").decode().split()
    file = f"{PATH}/SKILL.md"
    git = ["git", "blame", "-M", "-C"]
    every = "\n".join(f"{' '.join(git)} {version} -- {file} || exit" for version in versions)
    timings = measure.commands(
        {
            "blame": [SKILLGIT, "blame", versions[-1]],
            "git_blame": [*git, versions[-1], "--", file],
            "report": [SKILLGIT, "report", LONG, "--output", "report.html"],
            "git_blame_all": ["sh", "-c", every],
            "start": [SKILLGIT, "--version"],
        },
        cwd=path,
        rounds=ROUNDS,
        env=_ENV,
    )
    lines = "_5000_lines"
    seconds = {name: round(timing.wall_ms / 1000, 3) for name, timing in timings.items()}
    return {f"{name}_s{'' if name == 'start' else lines}": taken for name, taken in seconds.items()}


def _rebuilt(path: Path) -> float:
    """Return the seconds that a rebuild takes in a process of its own, which has loaded everything and seen nothing."""
    end, far = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_rebuild, args=(path, far))
    process.start()
    far.close()
    seconds: float = end.recv()
    process.join()
    return seconds


def _rebuild(path: Path, far: Connection) -> None:
    far.send(_seconds(lambda: refresh.rebuild(Repo.discover(path)).close()))


def _commands(name: str, history: History) -> dict[str, float]:
    run = next(iter(history.events))
    newest = sum(ref.startswith(refs.version_tag(run, 0)[:-1]) for ref in history.refs) - 1
    old, new = f"{run}/v{min(3, newest - 1)}", f"{run}/v{min(7, newest)}"
    timings = measure.commands(
        {
            "log": [SKILLGIT, "log", "-n", "50", run],
            "git log": ["git", "log", "-n", "50", f"run/{run}"],
            "diff": [SKILLGIT, "diff", old, new],
            "git diff": ["git", "diff", old, new],
            "blame": [SKILLGIT, "blame", new],
            "git blame": ["git", "blame", new, "--", f"{PATH}/SKILL.md"],
        },
        cwd=history.path,
        rounds=ROUNDS,
        env=_ENV,
    )
    figures = {
        f"log_ms_{name}": round(timings["log"].wall_ms, 1),
        f"log_extra_cpu_ms_{name}": round(timings["log"].cpu_ms - timings["git log"].cpu_ms, 1),
    }
    for verb in ("diff", "blame"):
        ours, theirs = timings[verb], timings[f"git {verb}"]
        figures[f"{verb}_ms_{name}"] = round(ours.wall_ms, 1)
        figures[f"{verb}_ratio_{name}"] = round(ours.wall_ms / theirs.wall_ms, 2)
    return figures


def _refreshed(history: History) -> float:
    """Return the milliseconds that an open index needs to take in new commits of one run."""
    repo, taken = Repo.discover(history.path), []
    story = islice(run_story(history.open_run, history.seeds[history.open_run]), history.events[history.open_run], None)
    writer = RunWriter(repo, history.open_run, _clock())
    with refresh.open_index(repo) as index:
        for _ in range(ROUNDS):
            for chapter in islice(story, FRESH):
                writer.append(chapter.event, chapter.skill, chapter.evidence)
            taken.append(_seconds(index.refresh))
    return median(taken) * 1000


def _writers(folder: Path) -> dict[str, float]:
    """Write one run in three ways, in turn: event by event, with ``git commit``, and with ``git fast-import``."""
    chapters = list(islice(run_story("demo", 1), WRITTEN))
    stream = io.BytesIO()
    write_runs(Stream(stream), {"demo": WRITTEN}, {"demo": 1})
    taken: dict[str, list[float]] = {"writer": [], "commit": [], "fast_import": []}
    for turn in range(measure.sized(3, 1)):
        homes = {name: folder / f"{name}-{turn}" for name in taken}
        for home in homes.values():
            _git(folder, "init", "-q", "-b", "main", str(home))
        taken["writer"].append(_seconds(partial(_append, homes["writer"], chapters)))
        taken["commit"].append(_seconds(partial(_commit, homes["commit"], chapters)))
        command = ("fast-import", "--quiet")
        taken["fast_import"].append(_seconds(partial(_git, homes["fast_import"], *command, stdin=stream.getvalue())))
    seconds = {name: median(found) for name, found in taken.items()}
    objects = homes["writer"] / ".git" / "objects"
    loose = _bytes(objects)
    _git(homes["writer"], "gc", "-q", "--prune=now")
    return {
        "write_events_per_s": round(WRITTEN / seconds["writer"], 1),
        "write_ratio_commit": round(seconds["commit"] / seconds["writer"], 2),
        "write_ratio_fast_import": round(seconds["fast_import"] / seconds["writer"], 3),
        "bytes_per_event_loose": round(loose / WRITTEN),
        "bytes_per_event_packed": round(_bytes(objects) / WRITTEN),
    }


def _append(home: Path, chapters: list[Chapter]) -> None:
    writer = RunWriter(Repo.discover(home), "demo", _clock())
    for chapter in chapters:
        writer.append(chapter.event, chapter.skill, chapter.evidence)


def _commit(home: Path, chapters: list[Chapter]) -> None:
    signed = ("-c", "user.name=n", "-c", "user.email=e@localhost")
    document = home / PATH / "SKILL.md"
    document.parent.mkdir(parents=True)
    for chapter in chapters:
        if chapter.skill is not None:
            document.write_text(chapter.skill.document, encoding="utf-8")
            _git(home, "add", PATH)
        text = commit_message.encode(chapter.event, "").encode()
        _git(home, *signed, "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "-", stdin=text)


def _clock() -> Callable[[], object]:
    minutes: Iterator[int] = count()
    return lambda: START + timedelta(days=300, minutes=next(minutes))


def _git(where: Path, *words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", *words], cwd=where, input=stdin, capture_output=True, check=True).stdout


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _bytes(folder: Path) -> int:
    """Return what the files under ``folder`` take on the disk."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main(sys.argv[1:])
