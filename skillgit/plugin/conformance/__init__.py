"""A test kit for plug-ins: whether an environment or a backend keeps the promises of its contract.

A test calls :func:`check_backend` or :func:`check_environment`; what is broken is reported in one error, sentence by
sentence. Nothing here needs a test framework.
"""

from __future__ import annotations

from skillgit.plugin.conformance.backend import check_backend
from skillgit.plugin.conformance.case import ConformanceError
from skillgit.plugin.conformance.environment import check_environment

__all__ = ["ConformanceError", "check_backend", "check_environment"]
