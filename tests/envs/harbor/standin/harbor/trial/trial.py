"""A trial that ends as the task's instruction says, each line of it a word and what belongs to it."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from urllib.request import Request, urlopen


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
        print("a library prints this")
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
        if "ask" in words:
            await asyncio.to_thread(ask, self.config.agent, words["ask"])
        if "die" in words:
            mark = Path(words["die"])
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        if "raise" in words:
            raise ValueError(words["raise"])
        if "wait" in words:
            Path(words["wait"]).write_text(str(self.folder))
            try:
                await asyncio.sleep(1000)
            finally:
                Path(words["wait"]).write_text("ended")
        return result


def ask(agent, question):
    body = {"model": "any", "messages": [{"role": "user", "content": question}]}
    headers = {"Authorization": f"Bearer {agent.env['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    request = Request(f"{agent.env['OPENAI_BASE_URL']}/chat/completions", json.dumps(body).encode(), headers)
    try:
        urlopen(request).close()
    except OSError as error:
        sys.stderr.write(f"{error}\n")
