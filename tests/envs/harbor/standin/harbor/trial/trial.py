"""A trial that ends as the task's instruction says, each line of it a word and what belongs to it."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace


class Trial:
    def __init__(self, config):
        self.config = config
        self.folder = config.trials_dir / config.trial_name

    @classmethod
    async def create(cls, config):
        return cls(config)

    async def run(self):
        verifier = self.folder / "verifier"
        verifier.mkdir(parents=True)
        sys.stdout.write("a library prints this\n")
        words = dict(line.split(" ", 1) for line in (self.config.task.path / "instruction.md").read_text().splitlines())
        error = words.get("error")
        result = SimpleNamespace(
            step_results=None,
            verifier_result=SimpleNamespace(rewards=json.loads(words["rewards"])) if "rewards" in words else None,
            reward_valid="rewards" in words and "invalid" not in words,
            exception_info=error and SimpleNamespace(exception_type=error, exception_message="it failed"),
        )
        token = self.config.agent.env["OPENAI_API_KEY"]
        (verifier / "test-stdout.txt").write_text(words.get("output", "").replace("TOKEN", token))
        if "die" in words:
            die_once(Path(words["die"]))
        if "raise" in words:
            raise ValueError(words["raise"])
        if "wait" in words:
            note(words["wait"], str(self.folder))
            try:
                await asyncio.sleep(1000)
            finally:
                note(words["wait"], "ended")
        return result


def note(path, text):
    draft = Path(f"{path}.draft")
    draft.write_text(text)
    draft.rename(path)


def die_once(mark):
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
