"""Runs trials of Harbor, in a Python that has Harbor and not skillgit: ``trial_runner.py FOLDER [MODULES]``.

Each line of the input is a JSON object, a trial to begin or to cancel, and each line of the output is how one ended.
When the input ends, for any reason, every trial is cancelled and FOLDER is removed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

_LONGEST_LINE = 64 << 20
_SHOWN = 16_000  # characters of what a verifier wrote, its end
_MESSAGE = 2000  # of what an exception says


def config_of(order: dict[str, Any], folder: Path) -> Any:  # noqa: ANN401 - a class that only Harbor's Python has
    from harbor.models.trial.config import (  # noqa: PLC0415 - tests read this file without Harbor
        AgentConfig,
        EnvironmentConfig,
        TaskConfig,
        TrialConfig,
    )

    return TrialConfig(
        task=TaskConfig(path=Path(order["task"])),
        trial_name=order["name"],
        trials_dir=folder / "trials",
        agent=AgentConfig(**order["agent"]),
        environment=EnvironmentConfig(**order["environment"]),
    )


async def run_trial(order: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return how a trial ended; ``valid`` says whether Harbor holds its rewards for the agent's own."""
    from harbor.trial.trial import Trial  # noqa: PLC0415 - as above

    trial_folder = folder / "trials" / order["name"]
    try:
        trial = await Trial.create(config_of(order, folder))
        result = await trial.run()
        steps = result.step_results or []
        errors = [result.exception_info, *(step.exception_info for step in steps)]
        error = next(filter(None, errors), None)
        return {
            "rewards": result.verifier_result.rewards if result.verifier_result else None,
            "valid": getattr(result, "reward_valid", True),
            "error": f"{error.exception_type}: {error.exception_message[:_MESSAGE]}" if error else "",
            "output": verifier_output(trial_folder),
        }
    finally:
        shutil.rmtree(trial_folder, ignore_errors=True)


def verifier_output(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("verifier/test-stdout.txt") if not path.is_symlink())
    return "\n".join(path.read_text(encoding="utf-8", errors="replace")[-_SHOWN:] for path in files)[-_SHOWN:]


class TrialLines:
    """The trials in progress, each with the number that its order has."""

    def __init__(self, folder: Path, output: Any) -> None:  # noqa: ANN401 - a stream of text
        self._folder = folder
        self._output = output
        self._trials: dict[int, asyncio.Task[None]] = {}

    def tell(self, document: dict[str, Any]) -> None:
        with suppress(BrokenPipeError):
            self._output.write(json.dumps(document) + "\n")
            self._output.flush()

    def take(self, line: bytes) -> None:
        order = json.loads(line)
        if "cancel" in order:
            if trial := self._trials.get(order["cancel"]):
                trial.cancel()
            return
        self._trials[order["id"]] = asyncio.create_task(self._run(order))

    async def _run(self, order: dict[str, Any]) -> None:
        ending: dict[str, Any] = {"fault": "it was cancelled"}
        try:
            ending = await run_trial(order, self._folder)
        except Exception as error:  # noqa: BLE001 - what Harbor or a class of the user's raises may be anything
            ending = {"fault": f"{type(error).__name__}: {error}"[:_MESSAGE]}
        finally:
            del self._trials[order["id"]]
            self.tell({"id": order["id"], **ending})

    async def end(self) -> None:
        trials = list(self._trials.values())
        for trial in trials:
            trial.cancel()
        await asyncio.gather(*trials, return_exceptions=True)


async def serve(folder: Path, output: Any) -> None:  # noqa: ANN401 - a stream of text
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb"))
    loop.add_signal_handler(signal.SIGTERM, reader.feed_eof)
    trials = TrialLines(folder, output)
    import harbor.trial.trial  # noqa: F401, PLC0415 - it takes long, and its end is reported

    trials.tell({"harbor": version("harbor")})
    while line := await reader.readline():
        trials.take(line)
    await trials.end()


def main() -> None:
    os.environ["HARBOR_TELEMETRY"] = "off"
    programs = os.environ.get("PATH", os.defpath)  # what is installed next to Harbor, such as podman-compose, is meant
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), programs))
    folder = Path(sys.argv[1])
    temporary = folder / "temporary"  # what Harbor leaves when it is killed is removed with the folder
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary)
    sys.path += sys.argv[2:]
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is not a line of ours
    try:
        asyncio.run(serve(folder, output))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
