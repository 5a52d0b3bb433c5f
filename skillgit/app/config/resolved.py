"""A configuration that is ready for use: typed values, where each comes from, and what identifies it in history.

The digest identifies what a run was asked to do. These keys are left out of it, for they cannot change results, and a
run may be continued with others:

- ``budget.*``: when to stop, not what to do;
- ``calls.concurrency``, ``calls.attempts``, ``calls.timeout_s``, ``calls.item_timeout_s``, ``calls.patience_s``,
  ``calls.requests_per_minute``, ``calls.tokens_per_minute``, ``calls.hedge``, ``env.exec_timeout``,
  ``gradient.analyst_workers``: how fast, and how patiently;
- ``model.prices``, ``model.contexts``: what a call is said to cost, and how long it may be;
- ``train.diagnose_after``, ``train.preflight``: what is told on the way, and what is checked before;
- ``env.data_path``, ``env.split_dir``, ``env.skill_init``, ``gate.pinned``, and options of an environment that are
  paths: the content behind them has digests of its own;
- keys of a backend that end in ``_base_url``, ``_path``, ``_dir``, ``_api_key_env``, ``_timeout_s`` and the like: where
  it is reached, and how patiently;
- ``env.out_root``, ``env.split_output_dir``: they have no effect.

``calls.max_output_tokens`` and ``calls.temperature`` are part of it.

Keys that came after runs had been recorded (``LATER``) are left out of the digest and of what is recorded while they
have their defaults, so that a run that was begun without them goes on, and an equal run has equal commits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from skillgit.app.config.leaf import nested
from skillgit.app.config.paths import PATHS, PLUGINS
from skillgit.app.config.roles import settings_of, written_as
from skillgit.domain.ids import short_digest
from skillgit.plugin.registry import BACKENDS, installed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillgit.app.config.leaf import Origin
    from skillgit.app.config.schema import Config

NEUTRAL = frozenset(
    {
        "budget.max_calls",
        "budget.max_tokens",
        "budget.max_usd",
        "calls.attempts",
        "calls.concurrency",
        "calls.hedge",
        "calls.item_timeout_s",
        "calls.patience_s",
        "calls.requests_per_minute",
        "calls.timeout_s",
        "calls.tokens_per_minute",
        "env.data_path",
        "env.exec_timeout",
        "env.out_root",
        "env.skill_init",
        "env.split_dir",
        "env.split_output_dir",
        "gate.pinned",
        "gradient.analyst_workers",
        "model.contexts",
        "model.prices",
        "train.diagnose_after",
        "train.preflight",
    }
)
"""Keys that are not part of the digest."""

LATER = frozenset(
    {
        "optimizer.check",
        "optimizer.files",
        "optimizer.max_file_tokens",
        "target.companions",
        "target.max_companion_tokens",
    }
)
"""Keys that identify a run only with another value than their default."""

_WHERE = re.compile(
    r"\w+_(?:base_url|path|dir|api_key_env|timeout_s|settle_s|pass_env|request_retries|azure_endpoint|azure_client_id)"
)
"""Settings of a backend that say where it is reached and how patiently, not what it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key for ``skillgit config``: its value as it was written, and where that is."""

    key: str
    value: object
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedConfig:
    """A configuration with everything filled in.

    Attributes:
        name: What the user asked for.
        path: The file.
        root: The folder that relative paths in the environment's own options refer to.
        values: Typed values; paths are absolute.
        options: What the environment is constructed with.
        entries: Every key in the order of the sections; paths are spelled as they were written.
        notes: What the user should know: other names of keys, keys without effect.
        places: Keys of the environment that are paths.
    """

    name: str
    path: Path
    root: Path
    values: Config
    options: Mapping[str, str | float | bool]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()
    places: frozenset[str] = frozenset()

    @property
    def document(self) -> dict[str, dict[str, object]]:
        """The configuration as nested JSON values, with paths as they were written: evidence of a run."""
        return _nested(tuple(entry for entry in self.entries if not self._is_usual(entry)))

    @property
    def digest(self) -> str:
        """Identify what a run is asked to do; see the module for the keys that are left out."""
        identifying = (
            entry
            for entry in self.entries
            if not is_neutral(entry.key) and entry.key not in self.places and not self._is_usual(entry)
        )
        return short_digest(_nested(tuple(identifying)))

    def _is_usual(self, entry: Entry) -> bool:
        """Say whether ``entry`` is a later key with its default."""
        if entry.key not in LATER:
            return False
        section, _, name = entry.key.partition(".")
        settings = getattr(self.values, section)
        return bool(getattr(settings, name) == type(settings).model_fields[name].default)

    def origin(self, key: str) -> Origin:
        """Return where ``key`` comes from."""
        return next(entry.origin for entry in self.entries if entry.key == key)

    def backend(self, role: str) -> str:
        """Return the name of the backend of ``role``; the judge has the optimizer's if it has none of its own."""
        name: str = getattr(self.values.model, f"{role}_backend")
        return name or self.values.model.optimizer_backend

    def settings(self, role: str) -> dict[str, object]:
        """Return the settings of the backend of ``role``, under the names that the backend knows.

        A judge without a backend of its own has the optimizer's settings, and its own on top.
        """
        backends = [plugin.name for plugin in installed(BACKENDS)]
        return settings_of(self.values.model.backend_settings, self.players(role), self.backend(role), backends)

    def players(self, role: str) -> tuple[str, ...]:
        """Return the roles whose settings ``role`` has, its own last."""
        return ("optimizer", role) if role == "judge" and not self.values.model.judge_backend else (role,)

    def origin_of_setting(self, role: str, setting: str) -> str:
        """Return the key that ``setting`` of a role's backend was, or would be, written as."""
        return written_as(self.values.model.backend_settings, self.players(role), self.backend(role), setting)

    def variant(self, role: str) -> str:
        """Identify those settings of a role's backend that may change what it answers; empty if there are none."""
        said = {name: value for name, value in self.settings(role).items() if not _WHERE.fullmatch(f"x_{name}")}
        return short_digest(said) if said else ""


def is_neutral(key: str) -> bool:
    """Say whether ``key`` cannot change results, so that it is no part of the digest."""
    section, _, name = key.partition(".")
    return key in NEUTRAL or nested(key) in NEUTRAL or (section == "model" and bool(_WHERE.fullmatch(name)))


def _nested(entries: tuple[Entry, ...]) -> dict[str, dict[str, object]]:
    document: dict[str, dict[str, object]] = {}
    for entry in entries:
        section, _, name = entry.key.partition(".")
        outer = nested(entry.key)
        if outer:
            whole = document[section].setdefault(outer.partition(".")[2], {})
            cast("dict[str, object]", whole)[entry.key.removeprefix(f"{outer}.")] = entry.value
        else:
            document.setdefault(section, {})[name] = entry.value
    return document


SPELLED = frozenset((*PATHS, *PLUGINS))
"""Keys that are recorded as they were written, for their absolute form differs from machine to machine."""
