"""Where a run begins: a new one on which commit, with which text; one that goes on, with what it began with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.app.recorded.run_record import start_document
from skillgit.app.setup.comparable_conditions import environment_change
from skillgit.app.setup.config.error_sentences import shown
from skillgit.app.setup.config.resolved import ResolvedConfig, is_neutral
from skillgit.app.skill_format.frontmatter import skill_name
from skillgit.app.skill_format.seed import normalise, read_seed, starter
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.run_state import fold
from skillgit.errors import ConfigError, RepositoryNotFoundError, RevisionNotFoundError, SkillError, UsageError
from skillgit.index.refresh import open_index
from skillgit.store import refs, work_tree
from skillgit.store.history_reader import skill_at
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.setup.run_setup import Setup
    from skillgit.app.workspace.context import Context
    from skillgit.domain.event import RunStarted
    from skillgit.domain.skill import Skill
    from skillgit.plugin.environment import Environment
    from skillgit.store.commit_message import Recorded

SKILLS = "skills"  # the folder of a repository that holds its skills


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    path: Path
    skill_path: str
    commit: str  # the commit that ``main`` points at
    created: bool
    added: bool  # whether the skill was added now; otherwise ``main`` had it already


def init(context: Context, directory: Path | None, skill: Path | None, environment: str | None = None) -> Initialised:
    """Make ``directory`` a repository whose ``main`` holds a seed skill, or add the skill to the one that is there.

    Nothing is overwritten: a skill that ``main`` has already stays as it is, and so does everything uncommitted. The
    directory, by default the folder of the context, is made if it is missing. A RepositoryNotFoundError if it is a
    repository that skillgit cannot use.

    The seed is ``skill``, a skill folder, a ``SKILL.md`` or another Markdown file, or that of the ``environment``.
    Without either, a repository that has no skill gets one without rules.
    """
    if skill is not None and environment is not None:
        raise UsageError("a skill and an environment both name a seed", hint="give one of them")
    folder = (context.directory / directory if directory is not None else context.directory).resolve()
    first = _seed(context, skill, environment)
    repo, is_new = _open(folder)
    if first is None:
        there = work_tree.skills_on_main(repo)
        if there:
            commit = repo.tip(refs.MAIN) or ""
            return Initialised(path=_root(repo), skill_path=there[0], commit=commit, created=is_new, added=False)
        first = starter(skill_name(folder.name))
    path = f"{SKILLS}/{first.name}"
    addition = work_tree.add_skill(repo, path, first, time=context.clock())
    open_index(repo).close()  # now, for whoever makes a repository can wait longer than whoever looks into one
    return Initialised(path=_root(repo), skill_path=path, commit=addition.commit, created=is_new, added=addition.is_new)


def _seed(context: Context, skill: Path | None, environment: str | None) -> Skill | None:
    """Return the seed that was asked for; read before anything is made, so that a bad one leaves nothing behind."""
    if skill is not None:
        return read_seed(context.directory / skill)
    if environment is None:
        return None
    from skillgit.plugin.registry import load_environment  # noqa: PLC0415 - loads an environment only if one is named

    plugin = load_environment(environment, context.directory)
    defaults = {option.name: option.default for option in plugin.info.options}
    return normalise(plugin(defaults, context.directory).seed_skill())


def _open(folder: Path) -> tuple[Repo, bool]:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", hint="name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        repo = Repo.discover(folder)
    except RepositoryNotFoundError:
        if (folder / ".git").exists():
            raise
        return Repo.init(folder), True
    return (repo, False) if _root(repo).resolve() == folder else (Repo.init(folder), True)


def _root(repo: Repo) -> Path:
    return repo.workdir or repo.common_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    commit: str
    skill_path: str
    skill: Skill  # version 0
    fork_of: str = ""  # ``<run>/v<N>`` if the parent is a version of another run


def find_beginning(
    workspace: Workspace, config: ResolvedConfig, environment: Environment, start: str | None, path: str = ""
) -> Beginning:
    """Return where a new run begins; ``path`` says which skill is meant at the revision ``start``.

    ``start`` goes before ``env.skill_init``, that before the skill on ``main``, and that before the environment's own
    seed. A RevisionNotFoundError if there is no such revision, or no ``main``; a SkillError if it is not clear which of
    several skills is meant, or the skill is not valid; a ConfigError if a skill of the user's would be trained on the
    samples of an environment for data of the user's.
    """
    beginning = _beginning(workspace, config, environment, start, path)
    options, info = config.options, environment.info
    is_sample = "data_path" in options and not options["data_path"] and not options.get("split_dir")
    if is_sample and info.public is None and beginning.skill.name != environment.seed_skill().name:
        raise ConfigError(
            f"{info.name} has no data, and {beginning.skill.name} would be trained on the samples that come with it",
            hint="name your own: -o env.data_path=FILE",
        )
    return beginning


def _beginning(
    workspace: Workspace, config: ResolvedConfig, environment: Environment, start: str | None, named: str
) -> Beginning:
    if start is not None:
        return _from_revision(workspace, environment, start, named)
    commit = workspace.repo.tip(refs.MAIN)
    if commit is None:
        raise RevisionNotFoundError("the repository has no branch main to start from", hint="skillgit init")
    skill_init = config.values.env.skill_init
    path = None if skill_init else _only_skill(workspace, environment, commit)
    if path is not None:
        return Beginning(commit=commit, skill_path=path, skill=normalise(skill_at(workspace.repo, commit, path)))
    skill = read_seed(Path(skill_init)) if skill_init else normalise(environment.seed_skill())
    return Beginning(commit=commit, skill_path=f"{SKILLS}/{skill.name}", skill=skill)


def first_skill(context: Context, config: ResolvedConfig, environment: Environment) -> Skill:
    """Return the skill that a new run would start with, in a repository or outside of one."""
    try:
        with open_workspace(context) as workspace:
            return find_beginning(workspace, config, environment, None).skill
    except RepositoryNotFoundError:
        path = config.values.env.skill_init
        return read_seed(Path(path)) if path else normalise(environment.seed_skill())


def _from_revision(workspace: Workspace, environment: Environment, start: str, named: str) -> Beginning:
    from skillgit.app.workspace.revision import resolve_in  # noqa: PLC0415 - most runs start from main, and a server waits

    resolution = resolve_in(workspace, start)
    row = resolution.row
    if row is not None and row.version is not None:
        path = workspace.index.skill_path(row.run)
        skill = skill_at(workspace.repo, resolution.commit, path)
        return Beginning(commit=resolution.commit, skill_path=path, skill=skill, fork_of=str(row.address))
    skill_path = named or _only_skill(workspace, environment, resolution.commit)
    if skill_path is None:
        raise SkillError(f"there is no skill at {start}", hint="skills are in skills/<name>/SKILL.md")
    skill = normalise(skill_at(workspace.repo, resolution.commit, skill_path))
    return Beginning(commit=resolution.commit, skill_path=skill_path, skill=skill)


def _only_skill(workspace: Workspace, environment: Environment, commit: str) -> str | None:
    """Return the skill folder that is meant: the only one, or the one that bears the environment's name."""
    paths = work_tree.skills_at(workspace.repo, commit)
    if len(paths) <= 1:
        return paths[0] if paths else None
    name = environment.info.name
    matching = [path for path in paths if path.rpartition("/")[2] == name]
    if matching:
        return matching[0]
    raise SkillError(
        f"the repository has {len(paths)} skills and none of them is called {name}",
        hint=f"choose one with -o env.skill_init={paths[0]}",
    )


_KEYS_SHOWN = 5  # keys that are named where a run cannot go on with another configuration


def check_same_work(repo: Repo, name: str, records: list[Recorded], setup: Setup) -> RunStarted | None:
    """Return the run's first event, if there is one and it was started to do what ``setup`` asks for."""
    if not records:
        return None
    start_event = fold(record.event for record in records).start
    differences = {
        "configuration": start_event.config != setup.config_digest,
        "items": start_event.splits != setup.splits_digest,
        "environment": bool(change := environment_change(repo, records[0], setup)),
    }
    different = [aspect for aspect, differs in differences.items() if differs]
    fork = f"skillgit train --run {name} goes on as it began; --from {name}/v0 --run NAME begins anew with yours"
    if different == ["environment"]:
        raise ConfigError(change, hint=f"undo that to go on; --from {name}/v0 --run NAME begins anew with it")
    if different:
        changes = _changed_keys(repo, records[0], setup) if differences["configuration"] else {}
        if different == ["configuration"] and changes.keys() == {"train.num_epochs"}:
            fork = f"--from {name}/best --run NAME goes on from its best version, and knows what was tried there"
        if "configuration" not in different:  # as it began, it would meet the same
            fork = (
                f"put back what has changed to go on; skillgit train CONFIG --from {name}/v0 --run NAME begins a run"
                " with what is here"
            )
        words = {"configuration": "another configuration", "items": "other items", "environment": "another environment"}
        sentence = f"run {name} was started with {' and '.join(words[aspect] for aspect in different)}"
        raise ConfigError(sentence + _differences(changes, unknown=different == ["configuration"]), hint=fork)
    return start_event


def _changed_keys(repo: Repo, first: Recorded, setup: Setup) -> dict[str, str]:
    """Return the keys whose values are not those that the run recorded, each with both of them in words."""
    config, old = setup.config, start_document(repo, first.evidence, "config.json")
    if not old:
        return {}
    new, changes = config.document, dict[str, str]()
    for section in sorted({*old, *new}):
        old_values = old.get(section)
        before: dict[str, object] = old_values if isinstance(old_values, dict) else {}
        after = new.get(section, {})
        for key in sorted({*before, *after}):
            full_name = f"{section}.{key}"
            if before.get(key) != after.get(key) and not is_neutral(full_name) and full_name not in config.path_keys:
                changes[full_name] = f"was {shown(before.get(key))} and is {shown(after.get(key))}"
    return changes


def _differences(changes: Mapping[str, str], *, unknown: bool) -> str:
    if not changes:
        return ", or by a skillgit with other prompts" if unknown else ""
    rest = f" and {len(changes) - _KEYS_SHOWN} more" if len(changes) > _KEYS_SHOWN else ""
    return f": {', '.join(f'{key} {words}' for key, words in list(changes.items())[:_KEYS_SHOWN])}{rest}"
