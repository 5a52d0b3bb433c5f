"""Owns the option by which an environment lets its user choose how model-written code is isolated."""

from __future__ import annotations

from skillgit.errors import ConfigError
from skillgit.plugin.card import shared_options
from skillgit.sandbox.mechanisms import Mode
from skillgit.sandbox.sandbox import Sandbox

(OPTION,) = shared_options("sandbox")
"""What an environment declares that runs such code."""


def chosen(value: object) -> Sandbox:
    """Return the sandbox that the option's value names; a SandboxError if this machine does not offer it."""
    if value not in set(Mode):
        words = ", ".join(mode.value for mode in Mode)
        raise ConfigError(f"env.sandbox is '{value}'; it must be one of {words}", hint="auto chooses the strongest")
    return Sandbox(Mode(str(value)))
