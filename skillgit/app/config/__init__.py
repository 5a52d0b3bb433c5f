"""Configurations: found, merged, typed, and explained.

Importing this package loads pydantic and yaml; commands that need a configuration import it when they are called.
"""

from __future__ import annotations

from skillgit.app.config.leaf import Origin
from skillgit.app.config.load import load_config, load_recorded, named_keys
from skillgit.app.config.resolved import Entry, ResolvedConfig
from skillgit.app.config.sources import shipped

__all__ = ["Entry", "Origin", "ResolvedConfig", "load_config", "load_recorded", "named_keys", "shipped"]
