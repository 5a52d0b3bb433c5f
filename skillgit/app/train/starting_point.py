"""Where a run begins: a new one on which commit, with which text; one that goes on, with what it began with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from skillgit.app.recorded.run_record import start_document
from skillgit.app.setup.comparable_conditions import environment_change
from skillgit.app.setup.config.files import shown
from skillgit.app.setup.config.resolved import ResolvedConfig, is_neutral
from skillgit.app.setup.run_setup import Setup, refuse_samples
from skillgit.app.setup.servers import other_servers
from skillgit.app.skill_format.frontmatter import skill_name
from skillgit.app.skill_format.seed import left_out, normalise, read_seed, starter
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import (
    NO_SKILL,
    WORKTREE,
    resolve,
    revision_words,
    text_source,
    work_tree_differs,
)
from skillgit.app.workspace.skill_choice import SKILLS, choose_skill, meant_of, name_of
from skillgit.app.workspace.skills_here import ends, skills_here, train_hint
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.event import Event
from skillgit.domain.run_state import fold
from skillgit.domain.served_model import ServedModel
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.errors import ConfigError, RepositoryNotFoundError, SkillError, UsageError
from skillgit.index import queries
from skillgit.index.refresh import open_index
from skillgit.index.rows import LogRow
from skillgit.plugin.environment import Environment
from skillgit.plugin.registry import card_folder, load_environment
from skillgit.plugin.seed_folder import read_skill
from skillgit.store import refs, work_tree
from skillgit.store.commit_message import Recorded
from skillgit.store.history_reader import skill_at
from skillgit.store.ignore_rules import ignore_rules
from skillgit.store.repo import Repo
from skillgit.store.trunk import trunk, trunk_tip


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    path: Path
    skill_path: str
    commit: str  # the commit of the trunk
    created: bool
    added: bool  # whether the skill was added now; otherwise the trunk had it already
    branch: str = ""  # the trunk
    source: str = ""  # the folder or file that the seed was copied from; empty where it is used where it is
    left_out: tuple[str, ...] = ()  # files of the seed that are not committed
    differs: bool = False  # whether SKILL.md in the work tree is not the one that was committed
    entries: int = 0  # files that were in the folder before it became a repository
    following: str  # the command that trains the skill


def init(context: Context, directory: Path | None, skill: Path | None, environment: str | None = None) -> Initialised:
    """Make ``directory`` a repository whose trunk holds a seed skill, or add the skill to the one that is there.

    Nothing is overwritten: a skill that the trunk has already stays as it is, and so does everything uncommitted. The
    directory, by default the folder of the context, is made if it is missing. A RepositoryNotFoundError if it is a
    repository that skillgit cannot use.

    The seed is ``skill``, a skill folder, a ``SKILL.md`` or another Markdown file, the name of a skill of the
    repository, or that of the ``environment``. A skill folder inside of the repository is used where it is; every other
    seed is copied to ``skills/``. Without either, a repository that has no skill gets one without rules.
    """
    if skill is not None and environment is not None:
        raise UsageError("a skill and an environment both name a seed", hint="give one of them")
    folder = (context.directory / directory if directory is not None else context.directory).resolve()
    source = context.directory / skill if skill is not None else None
    if source is not None and not source.exists():
        with suppress(RepositoryNotFoundError):  # it may be the name of a skill of the repository
            repo = Repo.discover(folder)
            if there := work_tree.skills_on_trunk(repo):
                return _initialised(repo, choose_skill(str(skill), there), trunk_tip(repo) or "")
    first = read_seed(source) if source is not None else None
    if environment:
        first = normalise(_seed_of(context, environment))
    path_inside = _place(folder, source) if source is not None else ""
    entries = sum(1 for entry in folder.iterdir() if entry.name != ".git") if folder.is_dir() else 0
    if first is None:
        _refuse_starter(context, folder)
    repo, is_new = _open(folder)
    entries = entries if is_new else 0
    if first is None:
        there = work_tree.skills_on_trunk(repo)
        if there:
            return _initialised(repo, there[0], trunk_tip(repo) or "", created=is_new)
        first = starter(skill_name(folder.name))
    path = path_inside or f"{SKILLS}/{first.name}"
    addition = work_tree.add_skill(repo, path, first, time=context.clock())
    open_index(repo).close()  # making a repository may take longer than looking into one
    return replace(
        _initialised(repo, path, addition.commit, created=is_new),
        added=addition.is_new,
        source=str(skill) if source is not None and not path_inside and addition.is_new else "",
        left_out=left_out(source) if source is not None and addition.is_new else (),
        differs=bool(path_inside) and addition.is_new and work_tree.document_differs(repo, path, first),
        entries=entries,
    )


def _initialised(repo: Repo, path: str, commit: str, *, created: bool = False) -> Initialised:
    return Initialised(
        path=repo.workdir or repo.common_dir,
        skill_path=path,
        commit=commit,
        created=created,
        added=False,
        branch=refs.short(trunk(repo)),
        following=train_hint(repo, path),
    )


def _seed_of(context: Context, environment: str) -> Skill:
    """Return the seed of an environment: the skill of its name next to its card, or what its code makes."""
    folder = card_folder(environment)
    if folder is not None and (folder / "skills" / environment).is_dir():
        return read_skill(folder / "skills" / environment)
    plugin = load_environment(environment, context.directory)
    return plugin({option.name: option.default for option in plugin.info.options}, context.directory).seed_skill()


def _place(folder: Path, source: Path) -> str:
    """Return where in the repository at ``folder`` the skill ``source`` is already; empty if it is to be copied.

    A UsageError if git ignores it there.
    """
    skill_folder = source if source.is_dir() else source.parent
    root, skill_folder = folder.resolve(), skill_folder.resolve()
    if (
        (not source.is_dir() and source.name != DOCUMENT)
        or skill_folder == root
        or not skill_folder.is_relative_to(root)
    ):
        return ""
    if _in_another_repository(skill_folder, root):
        return ""
    path = skill_folder.relative_to(root).as_posix()
    with ignore_rules(root) as rules:
        if rules.ignores(skill_folder) and rules.ignores(skill_folder / DOCUMENT):
            raise UsageError(
                f"git ignores {path}, and a run trains what is committed",
                hint=f"git check-ignore -v {quote(path)} names the rule; or cp -r {quote(path)} {SKILLS}/",
            )
    return path


def _in_another_repository(skill_folder: Path, root: Path) -> bool:
    """Say whether ``skill_folder``, below ``root``, belongs to a repository of its own, such as a submodule."""
    inner = (
        folder for folder in (skill_folder, *skill_folder.parents) if folder != root and folder.is_relative_to(root)
    )
    return any((folder / ".git").exists() for folder in inner)


_FEW = 5


def _refuse_starter(context: Context, folder: Path) -> None:
    """Refuse to invent a skill where there are some that are not committed."""
    try:
        if work_tree.skills_on_trunk(Repo.discover(folder)):
            return
    except RepositoryNotFoundError:
        pass
    patterns = (DOCUMENT, f"*/{DOCUMENT}", f"*/*/{DOCUMENT}", f".*/{SKILLS}/*/{DOCUMENT}")
    here = dict.fromkeys(path for pattern in patterns for path in sorted(folder.glob(pattern)))
    own = [path for path in here if not _in_another_repository(path.parent, folder)]
    if own and folder == context.directory.resolve():
        words = [(path if path.parent == folder else path.parent).relative_to(folder).as_posix() for path in own]
        more = " …" if words[_FEW:] else ""
        raise UsageError(
            f"there are skills here that are not committed: {', '.join(words[:_FEW])}{more}",
            hint=f"skillgit init --skill {quote(words[0])}",
        )


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
    is_root = (repo.workdir or repo.common_dir).resolve() == folder
    return (repo, False) if is_root else (Repo.init(folder), True)


_SHORT = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    commit: str  # the parent of version 0
    skill_path: str
    skill: Skill  # version 0
    fork_of: str = ""  # ``<run>/v<N>`` if the parent is a version of another run
    source: str  # where the text of version 0 comes from, in words
    differs: bool = False  # whether the work tree holds another text than the commit that was taken
    is_uncommitted: bool = False  # whether the text is that of the work tree and of no commit before version 0

    @property
    def text(self) -> str:
        """Say which text is trained; where the work tree differs, with both ways out."""
        return f"{self.source}; {work_tree_differs(f'--from {WORKTREE}')}" if self.differs else self.source

    @property
    def record(self) -> str:
        """Return what version 0 says of a text that no commit before it holds; empty for any other."""
        return f"The text is that of {self.source}." if self.is_uncommitted else ""


def find_beginning(
    workspace: Workspace, config: ResolvedConfig, environment: Environment, start: str | None, path: str = ""
) -> Beginning:
    """Return where a new run begins; ``path`` says which skill is meant at the revision ``start``.

    ``start`` goes before ``env.skill_init``, that before the skill at HEAD, that before the skill on ``main``, and that
    before the environment's own seed. A RevisionNotFoundError if there is no such revision, or no commit; a SkillError
    if it is not clear which of several skills is meant, or the skill is not valid; a ConfigError if a skill of the
    user's would be trained on the samples of an environment for data of the user's.
    """
    beginning = _beginning(workspace, config, environment, start, path)
    refuse_samples(config, environment, beginning.skill.name, "trained")
    return beginning


def _beginning(
    workspace: Workspace, config: ResolvedConfig, environment: Environment, start: str | None, word: str
) -> Beginning:
    repo, skill_init = workspace.repo, config.values.env.skill_init
    if start not in (None, WORKTREE):
        resolution = resolve(workspace, start)
        row = resolution.row
        if row is not None and row.version is not None:
            return _at_commit(workspace, resolution.commit, workspace.index.skill_path(row.run), start)
        path = word or skill_at_start(workspace, start, environment.info.name)
        if not path:
            raise SkillError(f"there is no skill at {start}", hint=NO_SKILL)
        return _at_commit(workspace, resolution.commit, path, start)
    tips = ends(repo)
    ref, commit = tips[0]
    if skill_init and start is None:
        if word:
            raise UsageError("--skill and env.skill_init both name a skill", hint="give one of them")
        skill = read_seed(Path(skill_init))
        # A text from elsewhere continues no run, also where HEAD is at a version of one.
        at_run = queries.row_of_commit(workspace.index, commit) is not None
        ref, commit = tips[-1] if at_run else tips[0]
        source = f"{skill_init} (env.skill_init), on {ref} ({commit[:_SHORT]})"
        return Beginning(commit=commit, skill_path=f"{SKILLS}/{skill.name}", skill=skill, source=source)
    path = word or skill_at_start(workspace, start, environment.info.name)
    if start == WORKTREE:
        return _from_work_tree(workspace, path, ref, commit)
    for ref, commit in tips:
        if path and path in work_tree.skills_at(repo, commit):
            differs = commit == repo.head()[1] and work_tree.differs(repo, path)
            return replace(_at_commit(workspace, commit, path, ref), differs=differs)
    if word:
        sentence = f"{' and '.join(ref for ref, _ in tips)} {'do' if tips[1:] else 'does'} not hold {word}"
        runs = f"skillgit runs --skill {quote(word)} lists those that trained it"
        raise SkillError(sentence, hint=f"{runs}; --from RUN/best takes the text of one")
    skill = normalise(environment.seed_skill())
    return Beginning(
        commit=commit,
        skill_path=f"{SKILLS}/{skill.name}",
        skill=skill,
        source=f"the seed of {environment.info.name}, for {ref} ({commit[:_SHORT]}) holds no skill",
        differs=repo.workdir is not None and bool(work_tree.skills_in_work_tree(repo)),
    )


def _from_work_tree(workspace: Workspace, path: str, ref: str, commit: str) -> Beginning:
    repo = workspace.repo
    if not path:
        raise SkillError("the work tree holds no skill", hint=NO_SKILL)
    files, executable = work_tree.folder_files(repo, path)
    if DOCUMENT not in files:
        raise SkillError(f"the work tree holds no {path}/{DOCUMENT}", hint=NO_SKILL)
    if not work_tree.differs(repo, path) and commit == repo.head()[1]:
        return _at_commit(workspace, commit, path, ref)
    return Beginning(
        commit=commit,
        skill_path=path,
        skill=normalise(Skill(name_of(path), files, executable)),
        source=f"{path}/{DOCUMENT} of the work tree, which differs from {revision_words(ref, '', commit)}",
        is_uncommitted=True,
    )


def _at_commit(workspace: Workspace, commit: str, path: str, name: str) -> Beginning:
    """Return a beginning with the text at ``path`` of ``commit``, as a fork where that is the text of a version."""
    row = _version_at(workspace, commit, path)
    if row is not None:
        skill = skill_at(workspace.repo, row.commit, path)
        return Beginning(
            commit=row.commit,
            skill_path=path,
            skill=skill,
            fork_of=str(row.address),
            source=text_source(path, name, str(row.address), row.commit),
        )
    skill = normalise(skill_at(workspace.repo, commit, path))
    source = text_source(path, name, "", commit)
    return Beginning(commit=commit, skill_path=path, skill=skill, source=source)


def _version_at(workspace: Workspace, commit: str, path: str) -> LogRow | None:
    """Return the version whose text ``commit``, an event of its run, has; None for other commits and texts."""
    row = queries.row_of_commit(workspace.index, commit)
    if row is None or workspace.index.skill_path(row.run) != path:
        return None
    if row.version is not None:
        return row
    version = queries.row_of_version(workspace.index, row.run, row.at)
    trees = {work_tree.skill_tree(workspace.repo, oid, path) for oid in (commit, version.commit if version else "")}
    return version if len(trees) == 1 else None


def first_skill(workspace: Workspace, config: ResolvedConfig, environment: Environment) -> Skill:
    """Return the skill that a new run would start with, in a repository or outside of one."""
    try:
        return find_beginning(workspace, config, environment, None, workspace.skill).skill
    except RepositoryNotFoundError:
        path = config.values.env.skill_init
        return read_seed(Path(path)) if path else normalise(environment.seed_skill())


def skill_at_start(workspace: Workspace, start: str | None, environment: str) -> str:
    """Return the skill folder that a new run trains at ``start`` where none is named; empty if there is none.

    A SkillError if there are several and none bears the name of ``environment``.
    """
    repo = workspace.repo
    if start is None:
        return meant_of(skills_here(repo), environment)
    if start == WORKTREE:
        # The skill is the one that HEAD would train; where HEAD has none, the work tree is looked at.
        of_head = meant_of(work_tree.skills_at(repo, ends(repo)[0][1]), environment)
        return of_head or meant_of(work_tree.skills_in_work_tree(repo), environment)
    resolution = resolve(workspace, start)
    row = resolution.row
    if row is not None and row.version is not None:
        return workspace.index.skill_path(row.run)
    return meant_of(work_tree.skills_at(repo, resolution.commit), environment)


_KEYS_SHOWN = 5  # keys that are named where a run cannot go on with another configuration


def check_same_work(repo: Repo, name: str, records: list[Recorded], setup: Setup) -> Event | None:
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
    fork = f"skillgit train --run {name} goes on as it began; --from {name}/v0 --run NAME begins a new run with yours"
    if different == ["environment"]:
        raise ConfigError(change, hint=f"undo that to go on; --from {name}/v0 --run NAME begins a new run with it")
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
    if (servers := other_servers(start_event, setup.routes)) is not None:
        raise _served_otherwise(name, *servers)
    return start_event


def _served_otherwise(run: str, then: ServedModel, now: ServedModel) -> ConfigError:
    """Return the error of a run whose model is another one now: its scores and those to come would not compare."""
    sentence = f"run {run} was begun with {then.description}, and here it is {now.description}"
    another_run = f"--from {run}/best --run NAME begins another run with this one"
    if then.address == now.address:
        return ConfigError(sentence, hint=f"start the server with the earlier model to go on; {another_run}")
    if then.variable and not os.environ.get(then.variable, "").strip():
        sentence += f"; the variable {then.variable}, which named the address, is not set"
        return ConfigError(sentence, hint=f"export {then.variable}={then.address} to go on; {another_run}")
    return ConfigError(sentence, hint=f"name the earlier address to go on; {another_run}")


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
