"""The ``offline`` backend: two rule-driven models that rehearse a training run without network, key or learning.

``offline/reader`` answers questions from search results, ``offline/analyst`` proposes edits to the reader's skill.
Neither is a language model; both are deterministic.
"""

from __future__ import annotations

from skillgit_backends.offline.backend import OfflineBackend

__all__ = ["OfflineBackend"]
