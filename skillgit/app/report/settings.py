"""The settings that a run recorded when it began, each with whether somebody chose it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillgit.app.config.recorded import read_document
from skillgit.app.config.schema import SECTIONS
from skillgit.errors import ConfigError
from skillgit.plugin.redaction import redact_json
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.app.workspace import Workspace

Chosen = Literal["default", "set", "environment", "backend"]
"""Where a value comes from, as far as a run records it: the default of skillgit; somebody, for it is another one; an
option of the environment or of a backend, whose defaults are its own."""

_CONFIG = "config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of a run.

    Attributes:
        key: The key, dotted.
        value: Its value as JSON; credentials are masked.
        chosen: Where it comes from.
    """

    key: str
    value: str
    chosen: Chosen


def recorded_settings(workspace: Workspace, evidence: str) -> tuple[Setting, ...]:
    """Return the settings in the evidence of the start of a run; none where it is not here or cannot be read."""
    files = (read_evidence(workspace.repo, evidence, (_CONFIG,)) if evidence else None) or {}
    if _CONFIG not in files:
        return ()
    try:
        document = read_document(files[_CONFIG], "the run")
    except ConfigError:
        return ()
    ordered = sorted(document, key=lambda name: list(SECTIONS).index(name) if name in SECTIONS else len(SECTIONS))
    return tuple(setting for section in ordered for setting in _section(section, document[section]))


def _section(section: str, values: Mapping[str, object]) -> Iterator[Setting]:
    shape = SECTIONS.get(section)
    known = shape.model_fields if shape else {}
    usual = shape.model_construct().model_dump(mode="json", warnings=False) if shape else {}
    for name in sorted(values):
        value = values[name]
        chosen: Chosen = "set"
        if name not in known:
            chosen = "backend" if section == "model" else "environment" if section == "env" else "set"
        elif name in usual and usual[name] == value:
            chosen = "default"
        yield Setting(key=f"{section}.{name}", value=_json(value), chosen=chosen)


def _json(value: object) -> str:
    return json.dumps(redact_json(value), ensure_ascii=False)
