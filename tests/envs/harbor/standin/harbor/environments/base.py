"""What an environment of Harbor's inherits: it knows its task and merges the task's variables with those of a call."""

from dataclasses import dataclass
from types import SimpleNamespace


@dataclass
class ExecResult:
    stdout: str = ""
    stderr: str = ""
    return_code: int = 0


class BaseEnvironment:
    default_user = None
    _network_disabled = True

    def __init__(self, environment_dir, trial_dir, session_id, env):
        self.environment_dir, self.session_id, self._env = environment_dir, session_id, env
        self.trial_paths, self.task_env_config = SimpleNamespace(trial_dir=trial_dir), SimpleNamespace(workdir="")
        self._validate_definition()

    def _merge_env(self, env):
        return {**self._env, **(env or {})} or None

    async def _upload_environment_dir_after_start(self):
        pass
