"""The ``offline`` backend: three rule-driven models that rehearse a training run without network, key or learning.

``offline/reader`` answers questions from search results, ``offline/agent`` plays household games, ``offline/analyst``
proposes edits to the skills of both. None is a language model; all are deterministic.
"""

from __future__ import annotations

from skillgit_backends.offline.backend import OfflineBackend

__all__ = ["OfflineBackend"]
