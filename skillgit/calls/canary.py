"""The tiny question by which one sees whether a model answers at all; what it answers does not matter."""

from __future__ import annotations

from skillgit.plugin.backend import user

QUESTION = (user("Reply with OK."),)
STAGE = "canary"
"""The stage that such questions are charged to, where doubt came up in the middle of a run."""
