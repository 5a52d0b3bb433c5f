"""Configurations: found, merged, typed, and explained.

Importing this package loads pydantic and yaml; commands that need a configuration import it when they are called.
"""

from __future__ import annotations

from skillgit.app.setup.config.files import ValueOrigin, shipped
from skillgit.app.setup.config.load import load_config, load_recorded, named_keys
from skillgit.app.setup.config.resolved import ConfigEntry, ResolvedConfig

__all__ = ["ConfigEntry", "ResolvedConfig", "ValueOrigin", "load_config", "load_recorded", "named_keys", "shipped"]
