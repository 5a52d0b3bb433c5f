"""Test kits for plug-ins: whether a backend, an environment or a strategy keeps the promises of its contract.

A test calls one of these functions; what is broken is reported in one :class:`ConformanceError`, sentence by sentence.
They need no test framework, no network and no key.
"""

from skillgit.testing.backend import check_backend
from skillgit.testing.case import ConformanceError
from skillgit.testing.environment import check_environment
from skillgit.testing.strategy import check_strategy

__all__ = ["ConformanceError", "check_backend", "check_environment", "check_strategy"]
