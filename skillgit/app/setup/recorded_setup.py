"""What a run was trained with, and what it takes to measure as it did; and what differs from that here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from skillgit.app.recorded.run_record import recorded_items, start_record, started
from skillgit.app.setup import comparable_conditions
from skillgit.app.setup.basis import Lender
from skillgit.app.setup.comparable_conditions import CONFIG, environment_change
from skillgit.app.setup.config.load import NAME_ONE, load_recorded, named_keys
from skillgit.app.setup.config.resolved import ResolvedConfig, read_document, recorded_settings
from skillgit.app.setup.run_setup import Setup, refuse_samples, set_up
from skillgit.app.setup.servers import as_variables_named, check_address, identified_routes
from skillgit.app.setup.skill_tasks import load_for_skill
from skillgit.app.workspace.request import OnTerms
from skillgit.app.workspace.skill_choice import name_of
from skillgit.app.workspace.workspace import BRING, Workspace
from skillgit.domain.conditions import Aspect
from skillgit.domain.evaluation import Split, item_set_digest
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.served_model import ServedModel
from skillgit.domain.untrusted.allowed_settings import RecordedSettings, of_own_run, of_stranger
from skillgit.errors import ConfigError, DataError, NotFoundError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.store.evidence import read_evidence
from skillgit.store.exchange.remotes import may_have_evidence
from skillgit.store.history_reader import read_commit
from skillgit.store.seals import is_own, local_settings


def measuring_setup(
    workspace: Workspace,
    lender: Lender | None,
    terms: OnTerms,
    *,
    gates: bool = False,
    skill: str = "",
) -> Setup:
    """Return what to measure with: by the configuration of ``terms``, else by the one that the run ``lender`` recorded.

    ``gates`` says whether a gate decides on what is measured. ``skill`` is the folder of the skill that is measured,
    where no run says it.
    """
    if terms.config is not None:
        path = skill or (workspace.index.skill_path(lender.run) if lender is not None else "")
        config = load_for_skill(workspace, terms.config, terms.overrides, skill=path)
        setup = set_up(config, gates=gates)
        if lender is not None:
            name = name_of(workspace.index.skill_path(lender.run))
            refuse_samples(setup.config, setup.task.environment, name, "measured")
        return identified(workspace, setup)
    if lender is None:
        where, command = workspace.repo.unfetched
        hint = f"{where}: {command}; or {NAME_ONE}" if where else NAME_ONE
        raise UsageError("no run here trains this skill, so no configuration is known", hint=hint)
    config = recorded_config(workspace, lender.run, terms.overrides)
    with _as_recorded(workspace, lender.run, NAME_ONE), own_addresses(workspace, lender.run):
        setup = replace(set_up(config, gates=gates), run=lender.run, reason=lender.reason)
    start = _own_start(workspace, lender.run)
    if start is not None:
        check_address(lender.run, start, setup.routes)
    return identified(workspace, setup)


def _own_start(workspace: Workspace, run: str) -> Event | None:
    """Return the first event of a run that was begun here; a stranger's names no address that may be suggested."""
    start = start_record(workspace, run)
    is_ours = start is not None and is_own(workspace.repo, start=start.commit)
    return start.event if start is not None and is_ours and start.event.kind is EventKind.RUN_STARTED else None


@contextmanager
def own_addresses(workspace: Workspace, run: str) -> Iterator[None]:
    """Let errors in a block name the address that a variable gave ``run`` when it began here."""
    start = _own_start(workspace, run) if run in queries.run_names(workspace.index) else None
    with nullcontext() if start is None else as_variables_named(run, start):
        yield


def identified(workspace: Workspace, setup: Setup) -> Setup:
    """Return ``setup`` with what its servers say about their models, or else what is known of them here."""

    def recorded(server: ServedModel) -> ServedModel | None:
        for run in queries.run_names(workspace.index):
            start = started(workspace, run)
            for model in () if start is None else start.served:
                if (model.model, model.address) == (server.model, server.address) and model.facts:
                    return replace(server, facts=model.facts)
        return None

    path = workspace.repo.private_dir / "ledger.db"
    return replace(setup, routes=identified_routes(setup.routes, path, recorded))


def recorded_config(workspace: Workspace, run: str, overrides: Sequence[str], hint: str = NAME_ONE) -> ResolvedConfig:
    """Return the configuration that ``run`` recorded, with ``overrides``; ``hint`` says how to name another one."""
    with _as_recorded(workspace, run, hint):
        return load_recorded(workspace.context, f"run {run}", _settings(workspace, run, hint), overrides, hint=hint)


def refused_settings(workspace: Workspace, run: str) -> str:
    """Return the keys that a stranger's ``run`` sets and only the user may set; empty if there are none."""
    try:
        return named_keys(_settings(workspace, run).refusals)
    except SkillgitError:
        return ""


@contextmanager
def _as_recorded(workspace: Workspace, run: str, hint: str) -> Iterator[None]:
    """Let errors about a recorded configuration say that another one can be named, and which items were looked for."""
    try:
        yield
    except (ConfigError, DataError, NotFoundError) as error:
        error.hint = f"{error.hint}; or {hint}" if error.hint else hint
        items = {split: recorded_items(workspace, run, split) or {} for split in Split}
        if isinstance(error, DataError) and any(items.values()):
            sets = (f"{len(rows)} {split} ({item_set_digest(rows)})" for split, rows in items.items())
            error.message += f"; the items of run {run} are {', '.join(sets)}"
        raise


def differences(workspace: Workspace, run: str, setup: Setup) -> tuple[str, ...]:
    """Return what keeps numbers from being comparable with those of ``run``, one sentence each."""
    start, row = start_record(workspace, run), queries.row_of_version(workspace.index, run, 0)
    if start is None or row is None:
        raise UsageError(f"the start of run {run} is not here", hint=NAME_ONE)
    change = environment_change(workspace.repo, start, setup)
    items = f"the items are not those of run {run}" if start.event.splits != setup.splits_digest else ""
    return (*filter(None, (change, items)), *other_models(workspace, row, setup))


def other_models(workspace: Workspace, row: LogRow, setup: Setup) -> tuple[str, ...]:
    """Return how target, judge and their parameters differ from those of the run of ``row``, one sentence each."""
    then = comparable_conditions.of_event(workspace, row, Split.SELECTION)
    if then is None:
        return ()
    every = comparable_conditions.differences(then, comparable_conditions.of_setup(setup, Split.SELECTION))
    verbs = {
        **dict.fromkeys((Aspect.TARGET, Aspect.JUDGE, Aspect.SERVER), ("is", "was")),
        Aspect.PARAMETERS: ("are", "were"),
    }
    sentences = ((difference, *verbs[difference.aspect]) for difference in every if difference.aspect in verbs)
    return tuple(
        f"the {changed_model.aspect} {now} {changed_model.b} here, and {past} {changed_model.a} in run {row.run}"
        for changed_model, now, past in sentences
    )


def _settings(workspace: Workspace, run: str, hint: str = NAME_ONE) -> RecordedSettings:
    """Return what may be acted on of the configuration that ``run`` recorded."""
    if (fault := workspace.index.broken.get(run)) is not None:
        raise fault
    row = queries.row_of_version(workspace.index, run, 0)
    tree = read_commit(workspace.repo, row.commit).evidence if row is not None else ""
    files = read_evidence(workspace.repo, tree, (CONFIG,)) or {}
    if row is None or CONFIG not in files:
        remedy = f", or bring it: {BRING}" if may_have_evidence(workspace.repo, run) else ""
        raise UsageError(f"the configuration of run {run} is not here", hint=f"{hint}{remedy}")
    document = read_document(files[CONFIG], f"run {run}")
    if not is_own(workspace.repo, start=row.commit):
        return of_stranger(recorded_settings(document))
    return of_own_run(recorded_settings(document) | local_settings(workspace.repo, row.commit))
