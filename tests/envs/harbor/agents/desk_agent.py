"""An agent of Harbor's whose program runs in the task's environment and asks the model over HTTP."""

from __future__ import annotations

from pathlib import Path

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities

PROGRAM = Path(__file__).with_name("asking.py")


class DeskAgent(BaseAgent):
    capabilities = AgentCapabilities(skills=True)

    @staticmethod
    def name():
        return "desk"

    def version(self):
        return "1"

    async def setup(self, environment):
        await environment.upload_file(PROGRAM, "/installed-agent/asking.py")

    async def run(self, instruction, environment, context):
        del context
        variables = {**self._extra_env, "INSTRUCTION": instruction, "SKILLS": str(self.skills_dir)}
        result = await environment.exec("python3 /installed-agent/asking.py", env=variables)
        (self.logs_dir / "asking.txt").write_text(f"{result.stdout}{result.stderr}")
        if result.return_code:
            raise RuntimeError(f"the desk gave up: {result.stderr}")
