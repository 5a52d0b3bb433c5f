"""When unreachable objects are collected: while nobody presses a key, since a full collection holds one up.

Widgets refer to each other in circles. With some screens opened and left, Python would look through all objects in the
middle of a key, for a twentieth of a second and longer.
"""

from __future__ import annotations

import gc
import time
from typing import Final

QUIET: Final = 1.0
"""Seconds without a key after which there is time."""
_USUAL, _MOST = 10, 200
"""Collections of younger objects after which all are looked through: where nobody waits, and whatever happens."""


class Collector:
    """Puts full collections off until there is time for them; there is one in a process."""

    def __init__(self) -> None:
        self._used = time.monotonic()

    def wait(self) -> None:
        """Collect nothing until :meth:`take_over`."""
        gc.disable()

    def take_over(self) -> None:
        """Leave out what is there now, which is needed to the end, and put collections off from now on."""
        gc.freeze()
        gc.enable()
        youngest, younger, _ = gc.get_threshold()
        gc.set_threshold(youngest, younger, _MOST)

    def used(self) -> None:
        """Take note that the user does something."""
        self._used = time.monotonic()

    def rest(self) -> None:
        """Collect if there is enough to look through and nobody waits."""
        if gc.get_count()[2] >= _USUAL and time.monotonic() - self._used >= QUIET:
            gc.collect()
