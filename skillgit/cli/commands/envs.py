"""``skillgit envs``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.cli.options import complete_environments
from skillgit.cli.plugin_listing import plugin_command
from skillgit.cli.render.plugins import environment as described

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.app.plugins import EnvironmentEntry

_HELP = """\
List the environments, or describe one.

NAME is an environment of the list, or path/to/file.py:Class. It is described by the fields of its items, its options,
its scorer, and where its data come from.
"""


def _found(context: Context, name: str | None) -> tuple[EnvironmentEntry, ...]:
    from skillgit.app.plugins import environment, environments  # noqa: PLC0415 - see the package

    return environments(context) if name is None else (environment(context, name),)


command = plugin_command(
    "envs", _HELP, rows="environments", find=_found, describe=described, complete=complete_environments
)
