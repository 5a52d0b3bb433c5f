"""The former place of a test kit that is in ``skillgit.testing``; removed with the next release."""

from __future__ import annotations


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"skillgit.strategies.conformance is skillgit.testing now: from skillgit.testing import {name}")
