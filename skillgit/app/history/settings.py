"""The settings that a run recorded when it began."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillgit.app.recorded.run_record import start_record
from skillgit.app.setup.config.resolved import read_document
from skillgit.app.setup.config.schema import SECTIONS
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import BRING, open_workspace
from skillgit.errors import ConfigError, UsageError
from skillgit.index.evidence_rows import CONFIG
from skillgit.plugin.redaction import redact_json
from skillgit.store.evidence import read_evidence
from skillgit.store.exchange.remotes import may_have_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace


_PUSH_AGAIN = "ask whoever trained it to push it again with a newer version, which sends the configuration along"
Chosen = Literal["default", "set", "environment", "backend"]
"""Where a value comes from, as far as a run records it: the default of skillgit; someone, for it is another one; an
option of the environment or of a backend, whose defaults are its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """One setting of a run; the value as JSON."""

    key: str
    value: str
    chosen: Chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    run: str
    settings: tuple[RunSetting, ...]


def run_settings(context: Context, revision: str) -> RunSettings:
    """Return the settings of the run that ``revision`` is of."""
    with open_workspace(context) as workspace:
        run = event_in(workspace, revision).run
        start = start_record(workspace, run)
        settings = recorded_settings(workspace, start.evidence) if start is not None else ()
        if not settings:
            remedy = f"bring it: {BRING}" if may_have_evidence(workspace.repo, run) else _PUSH_AGAIN
            raise UsageError(f"the configuration of run {run} is not here", hint=remedy)
    return RunSettings(run=run, settings=settings)


def recorded_settings(workspace: Workspace, evidence: str) -> tuple[RunSetting, ...]:
    """Return the settings in the evidence of the start of a run; none where it is not here or cannot be read."""
    files = (read_evidence(workspace.repo, evidence, (CONFIG,)) if evidence else None) or {}
    if CONFIG not in files:
        return ()
    try:
        document = read_document(files[CONFIG], "the run")
    except ConfigError:
        return ()
    names = sorted(document, key=lambda name: list(SECTIONS).index(name) if name in SECTIONS else len(SECTIONS))
    return tuple(setting for section in names for setting in _section(section, document[section]))


def _section(section: str, values: Mapping[str, object]) -> Iterator[RunSetting]:
    shape = SECTIONS.get(section)
    fields = shape.model_fields if shape else {}
    usual = shape.model_construct().model_dump(mode="json", warnings=False) if shape else {}
    for name in sorted(values):
        value = values[name]
        source: Chosen = "set"
        if name not in fields:
            source = "backend" if section == "model" else "environment" if section == "env" else "set"
        elif name in usual and usual[name] == value:
            source = "default"
        yield RunSetting(key=f"{section}.{name}", value=_json(value), chosen=source)


def _json(value: object) -> str:
    return json.dumps(redact_json(value), ensure_ascii=False)
