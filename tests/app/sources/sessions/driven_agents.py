"""Agents in a terminal of tmux, as people drive them: keys are sent when the screen or a file says that it is time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

PATIENCE = 60.0
KEY = "sk-ant-api03-0123456789abcdefghijklmnop"


def program(name: str) -> str:
    return os.environ.get(f"SKILLGIT_{name.upper()}") or shutil.which(name) or ""


class Terminal:
    """A window of a tmux server of its own."""

    def __init__(self, socket: Path) -> None:
        self._socket = str(socket)

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "w")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "w", *keys)

    def type(self, text: str, then: str = "Enter") -> None:
        self.tmux("send-keys", "-t", "w", "-l", text)
        wait_for(lambda: "".join(text.split())[-20:] in "".join(self.screen.split()), lambda: self.screen)
        self.keys(then)

    def until(self, *words: str, absent: str = "") -> None:
        def is_there() -> bool:
            screen = self.screen
            return any(word in screen for word in words) and not (absent and absent in screen)

        wait_for(is_there, lambda: f"{words}:\n{self.screen}")


def wait_for(condition: Callable[[], bool], describe: Callable[[], str], patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(describe())
        time.sleep(0.05)


@contextmanager
def terminal(command: list[str], folder: Path, environment: Mapping[str, str], socket: Path) -> Iterator[Terminal]:
    window = Terminal(socket)
    variables = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
    words = ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *command]
    window.tmux("new-session", "-d", "-s", "w", "-x", "160", "-y", "50", "-c", str(folder), *words)
    try:
        yield window
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], capture_output=True, check=False)


def claude_settings(config: Path, project: Path) -> None:
    """Write what the program asks at its first start: a theme, a key, and trust in the folder."""
    config.mkdir(parents=True, exist_ok=True)
    trust = {"hasTrustDialogAccepted": True, "projectOnboardingSeenCount": 9, "hasCompletedProjectOnboarding": True}
    document = {
        "hasCompletedOnboarding": True,
        "lastOnboardingVersion": "9.9.9",
        "theme": "dark",
        "numStartups": 9,
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(project): trust},
    }
    (config / ".claude.json").write_text(json.dumps(document))


def claude_environment(config: Path, url: str, home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(config),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "IS_SANDBOX": "1",
    }
