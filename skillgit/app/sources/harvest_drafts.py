"""From an episode to a draft: a task with the files as they were, and a check that its own rehearsal has proved.

A command becomes the check only if it fails over the files as they were and passes over those that the person ended
with, in the sandbox and with nothing else of the machine; else a judge grades by what the person said next.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import cast

from skillgit.app.sources.harvest_episodes import Episode, NotDrafted
from skillgit.app.sources.harvest_redaction import SecretValues, SessionRedactor, file_name_of
from skillgit.app.sources.pending_draft import DRAFT_FILES
from skillgit.app.sources.sessions.session import AgentSession
from skillgit.app.sources.tasks import DRAFT, REVIEWED, Row
from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import SandboxError, SkillgitError
from skillgit.plugin.environment import Environment, Judge
from skillgit.plugin.registry import load_environment
from skillgit.plugin.seed_folder import write_files
from skillgit.store.project_files import ProjectFiles

_BEFORE, _PROJECT, _CHECK = "before", "project", "check.py"
_OURS = ("id", "status", "group", "task_type")  # fields of a draft that no session says
_MOST_FILES, _MOST_BYTES = 20, 200_000  # that a target is shown
_MOST_PROJECT_FILES, _MOST_PROJECT_BYTES = 60, 400_000  # that a check has besides
_MOST_COMMANDS, _SECONDS = 3, 20.0  # that are tried for a draft, and that one may take
_MOST_DIFF = 6_000
_MOST_COMPARED = 600  # lines of a file, from the first that differs
_SHOWN = "The files below the folder {} are those of a project, before the work. "
_HAND_IN = """Hand in every file of the project that you change or add, whole, in a block of code with its path in the \
project behind the fence, like ```src/name.py. Where you can write files, hand it in as a file of that path instead."""
_CORRECTED = "The person answered a first attempt with the words below. The result follows them without being told:\n{}"
_CHANGED = "The result has the effect on the files that this change has, in whichever way:\n{}"
_WORD = re.compile(r"[\w.+-]{1,40}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_PATH = re.compile(r"\w[\w./-]*")  # in a command
_ARGUMENT = re.compile(r"\$ARGUMENTS|\$\d+|\$\{[^}]{0,200}\}")


class Projects:
    """The repositories that sessions worked in, as far as they are still here."""

    def __init__(self) -> None:
        self._files: dict[Path, ProjectFiles | None] = {}

    def of(self, folder: Path) -> ProjectFiles | None:
        if folder not in self._files:
            self._files[folder] = ProjectFiles.around(folder)
        return self._files[folder]

    def root(self, session: AgentSession) -> PurePosixPath:
        files = self.of(Path(session.directory))
        return PurePosixPath(files.folder if files is not None and files.folder is not None else session.directory)

    def begun(self, session: AgentSession) -> tuple[ProjectFiles | None, str]:
        """Return a repository and the commit or tree in it with which a session began; None if that is unknown."""
        if session.copies is not None and session.tree:
            for folder in sorted(session.copies.glob("*")):
                files = self.of(folder) if (folder / "HEAD").is_file() else None
                if files is not None and any(files.listing(session.tree, 1)):
                    return files, session.tree
        files = self.of(Path(session.directory)) if session.commit else None
        return files, session.commit

    def original(self, session: AgentSession, path: str) -> str | None:
        """Return the text of a file in the commit that a session began with."""
        files, root = self.of(Path(session.directory)), self.root(session)
        if files is None or not session.commit or not PurePosixPath(path).is_relative_to(root):
            return None
        return _decoded(files.content(session.commit, str(PurePosixPath(path).relative_to(root))))

    def snapshot(self, folder: Path, tree: str, path: str) -> str | None:
        """Return the text of a file in a tree of a repository that a program keeps somewhere below ``folder``."""
        repositories = (self.of(entry) for entry in sorted(folder.glob("*")) if (entry / "HEAD").is_file())
        contents = (files.content(tree, path) for files in repositories if files is not None)
        return next((text for content in contents if (text := _decoded(content)) is not None), None)


@dataclass(slots=True, kw_only=True)
class HarvestedDraft:
    id: str
    row: Row
    files: dict[str, bytes]  # below ``files/<id>``
    final: dict[str, str]  # the files that the work changed, as the person ended with them
    commands: tuple[str, ...]
    origin: dict[str, object] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """What the draft proposes to score by: ``command`` or ``judge``."""
        return "command" if "check" in self.row else "judge"

    @property
    def title(self) -> str:
        return str(self.row["prompt"]).strip().partition("\n")[0]


def draft_of(
    episode: Episode, skill: str, projects: Projects, redactor: SessionRedactor, digest: Callable[[str], str]
) -> HarvestedDraft | NotDrafted:
    """Return the draft of an episode, judged by what the person said; ``digest`` is salted."""
    texts = _Texts(projects.root(episode.session), redactor)
    states = _states(episode, texts)
    if isinstance(states, NotDrafted):
        return states
    before, final = states
    if len(before) > _MOST_FILES or sum(map(len, (*before.values(), *final.values()))) > _MOST_BYTES:
        return NotDrafted.TOO_LARGE
    identity = "h-" + digest(f"task {episode.request.id}")[:12]
    folder = f"{DRAFT_FILES}/{identity}/{_BEFORE}"
    follow_up = texts.text(episode.follow_up)
    criteria = [_CORRECTED.format(follow_up)] if follow_up else []
    if final:
        criteria.append(_CHANGED.format(_diff(before, final)))
    row: Row = {"id": identity, "status": DRAFT, "prompt": texts.text(episode.request.prompt)}
    if before or final:
        row["context"] = (_SHOWN.format(folder) if before else "") + _HAND_IN
    if before:
        row["files"] = [folder]
    row |= {"criteria": criteria, "task_type": skill}
    files = {f"{_BEFORE}/{name}": text.encode() for name, text in before.items()}
    commands = tuple(texts.text(command) for command in episode.verified_commands[:_MOST_COMMANDS])
    draft = HarvestedDraft(id=identity, row=row, files=files, final=final, commands=commands if final else ())
    draft.origin = _origin(episode, skill, projects, digest) | {"follow_up": follow_up}
    return draft


def mask_again(draft: HarvestedDraft, secrets: SecretValues) -> None:
    """Take out of a draft what has turned out to be a secret since it was made; its program stays as it is."""

    def name(path: str) -> str:
        return "/".join(file_name_of(secrets.masked(part)) for part in path.split("/"))

    def value(part: object) -> object:
        if isinstance(part, str):
            return secrets.masked(part)
        if isinstance(part, dict):
            rows = cast("Row", part).items()
            return {key: list(map(name, cast("list[str]", row))) if key == "files" else value(row) for key, row in rows}
        return list(map(value, part)) if isinstance(part, list) else part

    draft.row = {field: row if field in _OURS else value({field: row})[field] for field, row in draft.row.items()}  # type: ignore[index]
    draft.files = {
        name(path): content if path == _CHECK else _masked(content, secrets) for path, content in draft.files.items()
    }
    draft.final = {name(path): secrets.masked(text) for path, text in draft.final.items()}


def _masked(content: bytes, secrets: SecretValues) -> bytes:
    text = _decoded(content)
    return content if text is None else secrets.masked(text).encode()


class _Texts:
    """Texts and paths of a session as a draft may have them: relative to the project, and redacted."""

    def __init__(self, root: PurePosixPath, redactor: SessionRedactor) -> None:
        self.root, self._redactor = root, redactor

    def text(self, text: str) -> str:
        if len(self.root.parts) > 1:
            text = text.replace(f"{self.root}/", "").replace(str(self.root), ".")
        return self._redactor.text(text)

    def path(self, path: str) -> str:
        """Return the path of a file as the draft calls it; empty for one that is not of the project."""
        inside = PurePosixPath(path)
        if (
            not self._is_inside(path)
            or not inside.is_relative_to(self.root)
            or ".." in inside.parts
            or ".git" in inside.parts
        ):
            return ""
        return self._redactor.path(str(inside.relative_to(self.root)))

    def _is_inside(self, path: str) -> bool:
        """Say whether a path is in the project, wherever links lead today."""
        try:
            return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root))
        except (ValueError, OSError):
            return False


def _states(episode: Episode, texts: _Texts) -> tuple[dict[str, str], dict[str, str]] | NotDrafted:
    """Return the files that matter as they were before, and those that were changed as they were in the end."""
    before, final = dict[str, str](), dict[str, str]()
    folders = [PurePosixPath(folder) for folder, _ in episode.session.bodies.values()]
    for turn in episode.turns:
        for path, text in turn.reads.items():
            if (name := texts.path(path)) and not _is_below(path, folders):
                before.setdefault(name, texts.text(text))
    for edit in (edit for turn in episode.turns for edit in turn.edits):
        name = texts.path(edit.path)
        if not name or _is_below(edit.path, folders):
            continue
        if edit.after is None:
            return NotDrafted.UNKNOWN_FILES
        if name not in final:
            before.pop(name, None)
            if edit.before is not None:
                before[name] = texts.text(edit.before)
        final[name] = texts.text(edit.after)
    return before, {name: text for name, text in final.items() if before.get(name) != text}


def _is_below(path: str, folders: Iterable[PurePosixPath]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


def _diff(before: Mapping[str, str], final: Mapping[str, str]) -> str:
    text, is_cut = "", False
    for name, content in final.items():
        old, new = before.get(name, "").splitlines(), content.splitlines()
        same = 0
        if max(len(old), len(new)) > _MOST_COMPARED:  # which takes the square of them
            same = next((at for at, (line, twin) in enumerate(zip(old, new, strict=False)) if line != twin), 0)
        window = slice(max(0, same - 3), max(0, same - 3) + _MOST_COMPARED)
        lines = difflib.unified_diff(old[window], new[window], f"a/{name}", f"b/{name}", lineterm="")
        text += "".join(f"{line}\n" for line in lines)
        is_cut = is_cut or max(len(old), len(new)) > window.stop
        if len(text) > _MOST_DIFF:
            text, is_cut = f"{text[:_MOST_DIFF].rpartition(chr(10))[0]}\n", True
            break
    return f"{text}(and more)" if is_cut else text.removesuffix("\n")


def _origin(episode: Episode, skill: str, projects: Projects, digest: Callable[[str], str]) -> dict[str, object]:
    session = episode.session
    files = projects.of(Path(session.directory))
    commit = files.full_id(session.commit) if files is not None and session.commit else ""
    version, date = _WORD.fullmatch(session.version), _DATE.match(episode.request.date)
    return {
        "agent": session.agent.value,
        "version": version[0] if version else "",
        "session": digest(f"session {session.id}"),
        "date": date[0] if date else "",
        "skill": skill,
        "use": episode.use.value,
        "tree": _skill_tree(session, skill, files, commit, projects.root(session)) if files is not None else "",
        "commit": commit,
        "project": digest(f"project {projects.root(session)}"),
        "signals": [signal.value for signal in episode.signals],
    }


def _skill_tree(session: AgentSession, skill: str, files: ProjectFiles, commit: str, root: PurePosixPath) -> str:
    """Return the tree of the skill's folder in the project's commit, if the text that was loaded is the one there."""
    folder, body = session.bodies.get(skill, ("", ""))
    if not (commit and folder and PurePosixPath(folder).is_relative_to(root)):
        return ""
    path = str(PurePosixPath(folder).relative_to(root))
    document = _decoded(files.content(commit, f"{path}/SKILL.md")) or ""
    parts = _ARGUMENT.split(re.sub(r"\A---\n.*?\n---\n", "", document, flags=re.DOTALL))
    return files.folder_id(commit, path) if document and all(part.strip() in body for part in parts) else ""


def _decoded(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


class DraftTrial:
    """Tries drafts the way a run would use them once they are reviewed, in a folder that is removed."""

    def __init__(self, root: Path, projects: Projects) -> None:
        self._root, self._projects = root, projects
        self._plugin = load_environment("tasks", root)
        self.refusal = ""  # why no command could be tried; empty if they can

    def prove(self, draft: HarvestedDraft, episode: Episode, redactor: SessionRedactor) -> None:
        """Give ``draft`` the first of its commands as check that tells the files before from those in the end."""
        texts = _Texts(self._projects.root(episode.session), redactor)
        program = Path(__file__).with_name("harvest_check.py").read_bytes()
        folder = f"{DRAFT_FILES}/{draft.id}"
        for command in draft.commands:
            extra = {f"{_PROJECT}/{name}": content for name, content in self._project(episode, command, texts, draft)}
            files = {**draft.files, **extra, _CHECK: program}
            names = [f"{folder}/{name}" for name in dict.fromkeys(path.partition("/")[0] for path in files)]
            check = {"type": "command", "command": ["python", f"{folder}/{_CHECK}", command], "files": names}
            row = {name: value for name, value in draft.row.items() if name != "criteria"} | {"check": check}
            outputs = {name: text.encode() for name, text in draft.final.items()}
            try:
                scores = [self._score(draft.id, row, files, products) for products in ({}, outputs)]
            except SandboxError as error:
                self.refusal = error.message
                return
            except SkillgitError:
                continue  # the command takes too long, or its files cannot all be written here
            if scores == [0.0, 1.0]:
                draft.row, draft.files = row, files
                return

    def accepts(self, draft: HarvestedDraft) -> bool:
        """Say whether the environment takes the draft for a task."""
        try:
            with self._loaded(draft.id, draft.row, draft.files):
                return True
        except SkillgitError:
            return False

    def _score(self, identity: str, row: Row, files: Mapping[str, bytes], outputs: Mapping[str, bytes]) -> float:
        with self._loaded(identity, row, files) as (environment, item):
            trajectory = Trajectory(item_id=item.id, turns=(), answer="", products=outputs)
            scored, _ = asyncio.run(environment.score(item, trajectory, cast("Judge", None)))
        return scored.hard

    @contextmanager
    def _loaded(self, identity: str, row: Row, files: Mapping[str, bytes]) -> Iterator[tuple[Environment, Item]]:
        """Write a draft as a reviewed task, and load it."""
        with TemporaryDirectory(prefix="skillgit-harvest-") as name:
            data = Path(name) / "tasks.jsonl"
            (data.parent / DRAFT_FILES).mkdir()
            write_files(data.parent / DRAFT_FILES / identity, files)
            # A file with splits needs a task in each.
            fillers: list[Row] = [{"prompt": f"{split}?", "answer": "-", "split": split.value} for split in Split]
            rows = [{**row, "status": REVIEWED, "split": Split.TRAIN.value}, *fillers[1:]]
            data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
            options = {option.name: option.default for option in self._plugin.info.options}
            environment = self._plugin(
                {**options, "split_mode": "ratio", "data_path": str(data), "check_timeout": _SECONDS}, self._root
            )
            yield environment, environment.items(Split.TRAIN)[0]

    def _project(
        self, episode: Episode, command: str, texts: _Texts, draft: HarvestedDraft
    ) -> Iterator[tuple[str, bytes]]:
        """Yield further files of the project that a command may need: all of a small one, else those that it names."""
        session = episode.session
        repository, revision = self._projects.begun(session)
        if repository is None:
            contents = {texts.path(path): text for path, text in episode.request.files.items()}
            yield from (
                (name, texts.text(text).encode()) for name, text in contents.items() if name and name in command
            )
            return
        listing = dict(repository.listing(revision, _MOST_PROJECT_FILES + 1))
        is_small = len(listing) <= _MOST_PROJECT_FILES and sum(listing.values()) <= _MOST_PROJECT_BYTES
        for name in listing if is_small else dict.fromkeys(_PATH.findall(command)):
            if name.startswith(".") or f"{_BEFORE}/{name}" in draft.files:
                continue
            text = _decoded(repository.content(revision, name))
            if text is not None and (path := texts.path(str(texts.root / name))):
                yield path, texts.text(text).encode()
