"""``skillgit backends``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.options import complete_backends
from skillgit.cli.plugin_listing import plugin_command
from skillgit.cli.render.plugins import backend as described

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.plugins import BackendEntry

_HELP = """\
List the model backends, or describe one.

NAME is a backend of the list, or path/to/file.py:Class.
"""


def _found(context: Context, name: str | None) -> tuple[BackendEntry, ...]:
    from skillgit.app.plugins import backend, backends  # noqa: PLC0415 - see the package

    return backends(context) if name is None else (backend(context, name),)


command = plugin_command(
    "backends", _HELP, rows="backends", find=_found, describe=described, complete=complete_backends
)
