"""Reads data files as an environment does that is given them."""

from __future__ import annotations

from pathlib import Path


def items_in(kind, *files, **options):
    """Return the items that an environment of ``kind`` reads from data files, each with its own faults."""
    environment = kind({"data_path": str(files[0]), **options}, Path("/"))
    return list(environment._read(files))
