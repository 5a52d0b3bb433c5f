"""The process that has TextWorld loaded and forks one process for each game.

It is started as ``python -m skillgit_envs.alfworld.fork_server FD FOLDER``: a socket to the program, and a
folder of its own. On the socket come frames of a letter and a token: ``S`` with another socket attached starts a game
that talks over it, ``K`` kills the game with that token and everything that it started. When the program ends, however
it does, the socket closes, and all games end with this process. No game inherits the program's environment variables,
for this process was started without them.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

from skillgit_envs.alfworld.simulator import FRAME, START

CPU_SECONDS = 900
MEMORY_BYTES = 4 << 30


def main() -> None:
    """Serve until the program closes its end of the socket."""
    # TextWorld overwrites the arguments of the process.
    descriptor, folder = int(sys.argv[1]), Path(sys.argv[2])
    games: dict[int, int] = {}
    try:
        fault = _prepare(folder)
        with socket.socket(fileno=descriptor) as control:
            for letter, token, descriptors in _frames(control):
                if letter == START:
                    games[token] = _start(control, descriptors[0], fault)
                elif token in games:
                    _end(games.pop(token))
    finally:
        for process in games.values():
            _end(process)
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path) -> str:
    """Load the engine; return why it cannot be loaded, or nothing."""
    # Importing alfworld creates this folder.
    os.environ["ALFWORLD_DATA"] = str(folder / "data")
    cache = folder / "parsed"
    cache.mkdir()
    try:
        from skillgit_envs.alfworld import engine  # noqa: PLC0415 - slow to import

        engine.install(cache)
        engine.warm_up()
        # What is there now is never collected, so that forks go on sharing its pages.
        gc.freeze()
    except Exception as error:  # noqa: BLE001 - every game reports what is wrong with the installation
        return f"the engine cannot be loaded: {type(error).__name__}: {error}"
    return ""


def _frames(control: socket.socket) -> Iterator[tuple[bytes, int, list[int]]]:
    data, descriptors = b"", list[int]()
    while True:
        more, more_descriptors, _, _ = socket.recv_fds(control, FRAME.size - len(data), 1)
        if not more:
            return
        data, descriptors = data + more, [*descriptors, *more_descriptors]
        if len(data) == FRAME.size:
            letter, token = FRAME.unpack(data)
            yield letter, token, descriptors
            data, descriptors = b"", []


def _start(control: socket.socket, descriptor: int, fault: str) -> int:
    process = os.fork()
    if process:
        os.close(descriptor)
        with suppress(OSError):  # the game may be faster
            os.setpgid(process, process)
        return process
    status = 1
    try:
        os.setpgid(0, 0)
        control.close()
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        with socket.socket(fileno=descriptor) as connection:
            _play(connection, fault)
        status = 0
    finally:
        os._exit(status)


def _end(process: int) -> None:
    # It is a child that was not waited for, so that the number cannot be someone else's.
    with suppress(OSError):
        os.killpg(process, signal.SIGKILL)
    with suppress(OSError):
        os.waitpid(process, 0)


def _play(connection: socket.socket, fault: str) -> None:
    """Play one game: a line with the game comes in, then a line for each command; each is answered with a line."""
    with connection.makefile("rw", encoding="utf-8", newline="\n") as stream:
        try:
            for answer in [{"fault": fault}] if fault else _answers(cast("TextIO", stream)):
                stream.write(json.dumps(answer) + "\n")
                stream.flush()
        except Exception as error:  # noqa: BLE001 - an error of a strange game is reported and ends this game only
            stream.write(json.dumps({"fault": f"{type(error).__name__}: {error}"}) + "\n")


def _answers(stream: TextIO) -> Iterator[dict[str, Any]]:
    from skillgit_envs.alfworld import engine  # noqa: PLC0415 - slow to import

    opening = json.loads(stream.readline() or "null")
    if opening is None:
        return
    game = engine.opened(opening)
    observation, info = game.reset()
    yield {"observation": observation, **info, "over": info["won"]}
    for line in iter(stream.readline, ""):
        observation, _, is_terminal, is_truncated, info = game.step(json.loads(line)["command"])
        yield {"observation": observation, **info, "over": is_terminal or is_truncated}


if __name__ == "__main__":
    main()
