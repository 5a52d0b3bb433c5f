"""By which configuration an evaluation measures: a file that the user names, or the one that the run recorded."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillgit.app import conditions
from skillgit.app.absent_evidence import BRING
from skillgit.app.conditions import CONFIG, Aspect
from skillgit.app.config import load_config, load_recorded, named_keys
from skillgit.app.config.recorded import read_document, settings_of
from skillgit.app.run_start import environment_change, start_record
from skillgit.domain.evaluation import Split
from skillgit.domain.untrusted.settings import of_own_run, of_stranger
from skillgit.errors import ConfigError, DataError, NotFoundError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.store.evidence import read_evidence
from skillgit.store.own_runs import is_own, local_settings
from skillgit.store.reader import read_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.config import ResolvedConfig
    from skillgit.app.context import Context
    from skillgit.app.setup import Setup
    from skillgit.app.workspace import Workspace
    from skillgit.domain.event import RunStarted
    from skillgit.domain.untrusted.settings import RecordedSettings
    from skillgit.index.rows import LogRow

_HINT = "name one with --config CONFIG"


def find_config(
    context: Context, workspace: Workspace, runs: Sequence[str], *, config: str | None, overrides: Sequence[str]
) -> ResolvedConfig:
    """Return the configuration to measure by: ``config`` if it is named, else that of the first of ``runs``.

    Raises:
        ConfigError: It is not valid.
        UsageError: No run tells, or its configuration is not here or not to be trusted.
    """
    if config is not None:
        return load_config(context, config, overrides)
    if not runs:
        raise UsageError("no run tells by which configuration to measure", hint=_HINT)
    run = runs[0]
    with or_name_one():
        return load_recorded(context, f"run {run}", _settings(workspace, run), overrides)


def can_be_found(context: Context, workspace: Workspace, run: str, overrides: Sequence[str]) -> bool:
    """Say whether ``run`` can be measured by the configuration that it recorded, with ``overrides``."""
    try:
        find_config(context, workspace, [run], config=None, overrides=overrides)
    except SkillgitError:
        return False
    return True


def refused_settings(workspace: Workspace, run: str) -> str:
    """Return the keys that a stranger's ``run`` sets and only the user may set; empty if there are none."""
    try:
        return named_keys(_settings(workspace, run).refused)
    except SkillgitError:
        return ""


@contextmanager
def or_name_one() -> Iterator[None]:
    """Let errors about a recorded configuration say that another one can be named."""
    try:
        yield
    except (ConfigError, DataError, NotFoundError) as error:
        error.hint = f"{error.hint}; or {_HINT}" if error.hint else _HINT
        raise


def differences(workspace: Workspace, run: str, setup: Setup) -> tuple[str, ...]:
    """Return what keeps numbers from being comparable with those of ``run``, one sentence each."""
    start, row = start_record(workspace, run), queries.row_of_version(workspace.index, run, 0)
    if start is None or row is None:
        raise UsageError(f"the start of run {run} is not here", hint=_HINT)
    changed = environment_change(workspace.repo, start, setup)
    started: RunStarted = start.event  # type: ignore[assignment]
    items = f"the items are not those of run {run}" if started.splits != setup.splits_digest else ""
    return (*filter(None, (changed, items)), *other_models(workspace, row, setup))


def other_models(workspace: Workspace, row: LogRow, setup: Setup) -> tuple[str, ...]:
    """Return how target, judge and their parameters differ from those of the run of ``row``, one sentence each."""
    then = conditions.of_event(workspace, row, Split.SELECTION)
    if then is None:
        return ()
    every = conditions.differences(then, conditions.of_setup(setup, Split.SELECTION))
    verbs = {Aspect.TARGET: ("is", "was"), Aspect.JUDGE: ("is", "was"), Aspect.PARAMETERS: ("are", "were")}
    told = ((found, *verbs[found.aspect]) for found in every if found.aspect in verbs)
    return tuple(f"the {one.aspect} {now} {one.b} here, and {past} {one.a} in run {row.run}" for one, now, past in told)


def _settings(workspace: Workspace, run: str) -> RecordedSettings:
    """Return what may be acted on of the configuration that ``run`` recorded.

    Raises:
        UsageError: It is not here.
    """
    row = queries.row_of_version(workspace.index, run, 0)
    tree = read_commit(workspace.repo, row.commit).evidence if row is not None else ""
    files = read_evidence(workspace.repo, tree, (CONFIG,)) or {}
    if row is None or CONFIG not in files:
        raise UsageError(
            f"the configuration of run {run} is not here",
            hint=f"{_HINT}, or bring it: {BRING}",
        )
    document = read_document(files[CONFIG], f"run {run}")
    if not is_own(workspace.repo, start=row.commit):
        return of_stranger(settings_of(document))
    return of_own_run(settings_of(document) | local_settings(workspace.repo, row.commit))
