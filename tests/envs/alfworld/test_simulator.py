"""The games run in processes of their own; they end with whoever wanted them, and nothing of the program is in them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from household_games import POTATO, WINS
from soaking import soak

from skillgit.errors import EnvironmentFaultError
from skillgit_envs.alfworld import simulator as client
from skillgit_envs.alfworld.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def soon(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


async def played(simulator: Simulator, opening: dict[str, Any] = POTATO, steps: int = 50) -> list[client.State]:
    async with simulator.game() as game:
        states = [await game.start(opening, steps)]
        for command in WINS:
            if not states[-1].over:
                states.append(await game.step(command))
    return states


def test_a_game_is_won_when_its_goal_is_reached(simulator):
    states = asyncio.run(played(simulator))
    assert states[0].observation.startswith("You are in the middle of a room.")
    assert "Your task is to: heat some potato and put it in diningtable." in states[0].observation
    assert [(state.won, state.over) for state in states] == [(False, False)] * 6 + [(True, True)]
    assert "move potato 1 to diningtable 1" in states[-2].commands
    assert "help" not in states[0].commands


def test_the_cap_ends_a_game_without_a_win(simulator):
    states = asyncio.run(played(simulator, steps=3))
    assert [(state.won, state.over) for state in states] == [(False, False)] * 3 + [(False, True)]


def test_a_command_that_is_not_possible_changes_nothing_and_takes_a_step(simulator):
    async def play() -> list[client.State]:
        async with simulator.game() as game:
            return [await game.start(POTATO, 2), await game.step("dance"), await game.step("")]

    before, first, second = asyncio.run(play())
    assert first.observation == second.observation == "Nothing happens."
    assert first.commands == before.commands
    assert (first.over, second.over) == (False, True)


def test_many_games_run_at_once_and_none_waits_for_another(simulator):
    async def play() -> list[list[client.State]]:
        async with simulator.game() as idle:
            await idle.start(POTATO, 50)
            return await asyncio.gather(*(played(simulator) for _ in range(4)))

    assert all(states[-1].won for states in asyncio.run(play()))


def test_a_game_that_cannot_be_made_is_a_fault_of_the_environment_and_ends_alone(simulator):
    wrong = {"recipe": {**POTATO["recipe"], "target": "Sofa"}}
    with pytest.raises(EnvironmentFaultError, match="a kitchen has no Sofa"):
        asyncio.run(played(simulator, wrong))
    with pytest.raises(EnvironmentFaultError, match="a game cannot be played"):
        asyncio.run(played(simulator, {"game": {"pddl_domain": "", "grammar": "", "pddl_problem": ""}}))
    assert asyncio.run(played(simulator))[-1].won


def test_a_game_file_is_not_a_program(simulator, expert, tmp_path):
    (game,) = expert("build", [POTATO])
    trap = tmp_path / "trap"
    game["grammar"] = game["grammar"].replace("r.name or r.id", f"open('{trap}', 'w').name")
    with pytest.raises(EnvironmentFaultError, match="more than a game's grammar may say"):
        asyncio.run(played(simulator, {"game": game}))
    assert not trap.exists()


def test_a_game_ends_with_its_block_however_it_is_left(simulator):
    asyncio.run(played(simulator))
    server = simulator._server.pid

    async def left(error: BaseException | None) -> None:
        async with simulator.game() as game:
            await game.start(POTATO, 50)
            assert children(server)
            if error is not None:
                raise error

    async def cancelled() -> None:
        task = asyncio.create_task(left(None))
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(left(None))
    assert soon(lambda: not children(server))
    with pytest.raises(RuntimeError, match="stop"):
        asyncio.run(left(RuntimeError("stop")))
    assert soon(lambda: not children(server))
    asyncio.run(cancelled())
    assert soon(lambda: not children(server))


def test_a_game_that_hangs_is_given_up_and_killed(simulator, monkeypatch):
    async def play() -> None:
        async with simulator.game() as game:
            await game.start(POTATO, 50)
            (process,) = children(simulator._server.pid)
            os.kill(process, signal.SIGSTOP)
            monkeypatch.setattr(client, "STEP_SECONDS", 0.1)
            await game.step("look")

    with pytest.raises(EnvironmentFaultError, match="has not answered"):
        asyncio.run(play())
    assert soon(lambda: not children(simulator._server.pid))


def test_a_game_that_dies_is_told(simulator):
    async def play() -> None:
        async with simulator.game() as game:
            await game.start(POTATO, 50)
            os.kill(children(simulator._server.pid)[0], signal.SIGKILL)
            await game.step("look")

    with pytest.raises(EnvironmentFaultError, match="ended before its time"):
        asyncio.run(play())


@pytest.mark.soak
def test_after_the_server_has_died_another_one_is_started():
    simulator = Simulator()
    asyncio.run(played(simulator))
    simulator._server.kill()
    simulator._server.wait()
    assert asyncio.run(played(simulator))[-1].won
    simulator.close()


PROGRAM = """
import asyncio, os, sys
from skillgit_envs.alfworld.simulator import Simulator
simulator = Simulator()
async def main():
    async with simulator.game() as game:
        await game.start({opening}, 50)
        print(simulator._server.pid, flush=True)
        {end}
asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", soak("sys.exit(3)"), soak("pass")])
def test_when_the_program_ends_its_games_and_their_folder_end_too(end, tmp_path):
    program = PROGRAM.format(opening=json.dumps(POTATO), end=end)
    environ = {**os.environ, "TMPDIR": str(tmp_path), "SECRET_API_KEY": "hidden"}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    server = int(done.stdout)
    assert soon(lambda: not Path(f"/proc/{server}").exists() or "Z" in Path(f"/proc/{server}/stat").read_text())
    assert soon(lambda: not list(tmp_path.iterdir()))


def test_no_game_knows_the_variables_of_the_program(simulator):
    asyncio.run(played(simulator))
    seen = Path(f"/proc/{simulator._server.pid}/environ").read_bytes()
    assert b"hidden" not in seen
    assert b"PATH=" in seen
