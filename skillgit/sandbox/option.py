"""Owns the option by which an environment lets its user choose how model-written code is isolated."""

from __future__ import annotations

from skillgit.errors import ConfigError
from skillgit.plugin.environment import Option
from skillgit.sandbox.mechanisms import Mode
from skillgit.sandbox.sandbox import Sandbox

OPTION = Option(
    name="sandbox",
    type=str,
    default=Mode.AUTO.value,
    help=(
        "How model-written code is isolated: 'bubblewrap', 'landlock', 'auto' for the stronger one that works, "
        "or 'none'."
    ),
    values={
        Mode.AUTO.value: "the stronger one of bubblewrap and Landlock that works here",
        Mode.BUBBLEWRAP.value: "namespaces of its own",
        Mode.LANDLOCK.value: "the machine's namespaces, with files and calls to the kernel refused",
        Mode.NONE.value: "limits on time, memory and processes only",
    },
)
"""What an environment declares that runs such code."""


def chosen(value: object) -> Sandbox:
    """Return the sandbox that the option's value names; a SandboxError if this machine does not offer it."""
    if value not in set(Mode):
        words = ", ".join(mode.value for mode in Mode)
        raise ConfigError(f"env.sandbox is '{value}'; it must be one of {words}", hint="auto chooses the strongest")
    return Sandbox(Mode(str(value)))
