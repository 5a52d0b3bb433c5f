"""The settings of a run, and how to begin another one with them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from skillgit.app.history.run_list import find_row
from skillgit.app.history.show import RunSetting, run_settings
from skillgit.domain.address import version_label
from skillgit.errors import UsageError
from skillgit.web.rendering import Page, PageRoute, Visit


def settings_page(visit: Visit) -> Page:
    run = find_row(visit.context, visit.parameters["run"])
    absence = None
    settings: tuple[RunSetting, ...] = ()
    try:
        settings = run_settings(visit.context, f"{run.name}/{version_label(0)}").settings
    except UsageError as error:  # its evidence is not here
        absence = error
    return Page(
        template="settings_page.html",
        title="Settings",
        command=("show", f"{run.name}/{version_label(0)}", "--settings"),
        values={
            "run": run,
            "report": {"settings": settings},
            "absence": absence,
            "document": document(setting for setting in settings if setting.chosen != "default"),
        },
    )


def document(settings: Iterable[RunSetting]) -> str:
    """Return ``settings`` as a configuration file: sections of keys, with values as JSON, which is YAML."""
    lines: list[str] = []
    for section, group in groupby(settings, key=lambda setting: setting.key.partition(".")[0]):
        lines += [f"{section}:", *(f"  {setting.key.partition('.')[2]}: {setting.value}" for setting in group)]
    return "\n".join(lines)


ROUTES = (PageRoute(path="/run/{run}/settings", page=settings_page),)
