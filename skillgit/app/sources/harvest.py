"""``skillgit tasks draft --from sessions``: sessions that people had with their coding agents become drafts of tasks.

Sessions are read (``sessions``), the requests in them that a skill was for are found (``harvest_episodes``), what must
not be written down is taken out (``harvest_redaction``), and a draft is made: a task with the files as they were, and a
check that its own rehearsal has proved. A command becomes the check only if it fails over the files as they were and
passes over those that the person ended with, in the sandbox and with nothing else of the machine; else a judge grades
by what the person said next. Nothing is sent anywhere unless criteria are asked for. Drafts stay in the private folder
of the repository; a person reviews them before any run uses them.
"""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import hmac
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import cast

from skillgit.app.setup.plan import Plan
from skillgit.app.sources.draft_review import DRAFT_FILES, DRAFT_ROWS, drafts_lock, folder_of_drafts
from skillgit.app.sources.harvest_episodes import Episode, NotDrafted, episodes, names_skill
from skillgit.app.sources.harvest_redaction import SecretValues, SessionRedactor, file_name_of
from skillgit.app.sources.requests import DraftRequest
from skillgit.app.sources.sessions.agents import SessionSearch, home_of
from skillgit.app.sources.sessions.session import AgentSession, NoTurn, SessionAgent
from skillgit.app.sources.tasks import DRAFT, REVIEWED, Row
from skillgit.app.sources.tasks_draft import RubricWriter
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.skills_here import reviewed_tasks
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import SandboxError, SkillgitError, UsageError
from skillgit.files import read_plain, write_file
from skillgit.plugin.data_rows import read_rows
from skillgit.plugin.environment import Environment, Judge
from skillgit.plugin.registry import load_environment
from skillgit.plugin.seed_folder import write_files
from skillgit.store.project_files import ProjectFiles
from skillgit.store.repo import Repo

_SALT, _GROUPS = "salt", "groups.json"
_DIGEST = 16  # hex digits of a salted digest
_AGE = re.compile(r"(\d{1,5})d")
_BEFORE, _PROJECT, _CHECK = "before", "project", "check.py"
_OURS = ("id", "status", "group", "task_type")  # fields of a draft that no session says
_MOST_FILES, _MOST_BYTES = 20, 200_000  # that a target is shown
_MOST_PROJECT_FILES, _MOST_PROJECT_BYTES = 60, 400_000  # that a check has besides
_MOST_COMMANDS, _SECONDS = 3, 20.0  # that are tried for a draft, and that one may take
_MOST_DIFF = 6_000
_NAMED = 3  # files that a remark names
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSummary:
    id: str
    title: str  # the first line of the request, redacted
    agent: str
    use: str
    signals: tuple[str, ...]
    check: str  # ``command`` or ``judge``; ``untried`` if a dry run leaves open which
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvested:
    path: Path  # of the drafts; not written by a dry run
    drafts: tuple[DraftSummary, ...]
    sessions: int  # that were read
    turns: int  # prompts of people in them
    left_out: dict[str, int]  # reason to number of prompts and sessions that no person led
    not_drafted: dict[str, int]  # reason to number of turns; with the drafts they are all turns
    other_projects: int  # in which sessions were not read
    redacted: int  # different values that were taken out of requests and their files
    places: tuple[str, ...]  # folders whose sessions were looked for; none means all
    source: str  # the file or folder that was named; empty where sessions were looked for
    is_met: bool  # whether a session names the skill
    unknown: dict[str, int]  # kinds of record that no reader knows, by agent and version
    remarks: tuple[str, ...]
    cost: Cost | None  # of criteria that a model wrote
    is_dry_run: bool


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


def harvest(context: Context, request: DraftRequest) -> Harvested | Plan:
    """Draft tasks for a skill from sessions; a dry run writes nothing, and is a plan where a model would be asked."""
    repo = Repo.discover(context.directory)
    folder = folder_of_drafts(repo.private_dir, request.subject)
    writer = RubricWriter(context, request) if request.rubric else None
    with _alone(folder.parent, context, is_dry_run=request.dry_run) as salt:
        search = _Harvest(context, request, repo.workdir or context.directory, folder, salt)
        drafts = search.run()
        by_judge = [draft.row for draft in drafts if draft.kind == "judge"]
        if writer is not None and request.dry_run:
            return writer.plan(by_judge, {"skill": request.subject, "drafts": str(len(drafts))})
        cost, reasons = writer.write(by_judge, search.redactor.text) if writer is not None and by_judge else (None, [])
        if drafts and not request.dry_run:
            search.save(drafts)
        return search.report(drafts, cost, reasons)


@contextmanager
def _alone(folder: Path, context: Context, *, is_dry_run: bool) -> Iterator[bytes]:
    """Hold the lock of the drafts, and give the salt of their digests; a dry run makes neither."""
    file = folder / _SALT
    if is_dry_run:
        yield read_plain(file) if file.is_file() else context.entropy(32)
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with drafts_lock(folder):
        if not file.is_file():
            write_file(file, context.entropy(32), mode=0o600)
        yield read_plain(file)


class _Harvest:
    def __init__(self, context: Context, request: DraftRequest, tree: Path, folder: Path, salt: bytes) -> None:
        self._context, self._request, self._folder, self._salt, self._tree = context, request, folder, salt, tree
        self._projects, self.redactor = _Projects(), SessionRedactor.of(context.environ, tree)
        self._places = self._allowed_folders()
        self._search = SessionSearch(
            projects=tuple(
                dict.fromkeys(form for folder_ in self._places for form in (folder_.absolute(), folder_.resolve()))
            ),
            since=_since(request.since, context.clock()),
            original=self._projects.original,
            snapshot=self._projects.snapshot,
        )
        rows = [folder / DRAFT_ROWS, reviewed_tasks(tree, request.subject)]
        self._ids = {str(row.fields.get("id")) for file in rows if file.is_file() for row in read_rows(file)}
        groups = folder.parent / _GROUPS
        links = json.loads(read_plain(groups)) if groups.is_file() else {}
        self._groups = {str(link): str(group) for link, group in links.items()} if isinstance(links, dict) else {}
        self._plugin = load_environment("tasks", context.directory)
        self._refusal = ""  # why no command could be tried; empty if they can
        self._turns = set[str]()  # ids of prompts that were met, also in a session that this one is a fork of
        self._values, self._names = set[str](), set[str]()  # values that were taken out, and names of skills
        self._sessions = self._count = 0
        self._unknown, self._not_drafted = Counter[str](), Counter[NotDrafted]()

    def _allowed_folders(self) -> list[Path]:
        """Return the folders of the projects whose sessions are read; none if all are."""
        if self._request.all_projects:
            return []
        folders = [self._context.directory / project for project in self._request.projects] or [self._tree]
        if missing := next((folder for folder in folders if not folder.is_dir()), None):
            raise UsageError(f"there is no folder {missing}", hint="check --project, or read --all-projects")
        return folders

    def run(self) -> list[HarvestedDraft]:
        drafts: list[HarvestedDraft] = []
        for session in self._read():
            self._sessions += 1
            for kind, number in session.unknown.items():
                self._unknown[f"{session.agent.value} {session.version}: {kind}"] += number
            try:
                drafts += list(self._of(session))
            except (ValueError, TypeError, LookupError, ArithmeticError, OSError) as error:
                self._search.unreadable.append(f"{session.path.name} cannot be read: {error}")
        # A session that was read later may have said what is a secret in an earlier one.
        for draft in drafts:
            mask_again(draft, self.redactor.secrets)
        return drafts

    def _read(self) -> Iterator[AgentSession]:
        source, _, path = self._request.source.partition(":")
        if path:
            yield from self._search.at(self._context.directory / Path(path).expanduser())
            return
        if source == SessionAgent.ATIF:
            raise UsageError("trajectories in ATIF are kept nowhere in particular", hint="--from atif:PATH")
        for agent in (SessionAgent(source),) if source in set(SessionAgent) else SessionAgent:
            yield from self._search.sessions(agent, home_of(agent, self._context.environ))

    def _of(self, session: AgentSession) -> Iterator[HarvestedDraft]:
        old_ids = {turn.id for turn in session.turns} & self._turns
        self._names.update(session.offers, session.bodies, *(turn.uses for turn in session.turns))
        self._turns |= {turn.id for turn in session.turns}
        # The group is the same for forks and resumptions of a session, and differs for other sessions.
        links = [self._digest(link) for link in session.links]
        group = next((self._groups[link] for link in links if link in self._groups), "")
        group = group or self._digest(next(iter(session.links), session.id))
        self._groups |= dict.fromkeys(links, group)
        for turns, episode in episodes(session, self._request.subject):
            new = [turn for turn in turns if turn.id not in old_ids]
            self._search.left_out[NoTurn.DUPLICATE] += len(turns) - len(new)
            self._count += len(new)
            is_new = turns[0] in new
            self._not_drafted[NotDrafted.FOLLOW_UP] += len(new) - is_new
            draft = self._draft(episode) if is_new and isinstance(episode, Episode) else episode
            if isinstance(draft, HarvestedDraft):
                draft.row |= {"group": group, "origin": draft.origin}
                yield draft
            elif is_new and isinstance(draft, NotDrafted):
                self._not_drafted[draft] += 1

    def _digest(self, text: str) -> str:
        return hmac.new(self._salt, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:_DIGEST]

    def _draft(self, episode: Episode) -> HarvestedDraft | NotDrafted:
        moment = _moment(episode.turns[-1].date)
        if moment is not None and moment < self._search.since:
            return NotDrafted.OLDER
        redactor = self.redactor.fresh(episode.texts())
        texts = _Texts(self._projects.root(episode.session), redactor)
        draft = self._made(episode, texts)
        if isinstance(draft, NotDrafted):
            return draft
        if draft.id in self._ids:
            return NotDrafted.KNOWN
        self._ids.add(draft.id)
        self._values |= redactor.values
        if not self._request.dry_run and not self._refusal:
            self._prove(draft, episode, texts)
        if not draft.row.get("criteria") and "check" not in draft.row:
            return NotDrafted.NO_SIGNAL
        is_task = self._request.dry_run or draft.kind == "command" or self._is_task(draft)
        return draft if is_task else NotDrafted.UNUSABLE

    def _made(self, episode: Episode, texts: _Texts) -> HarvestedDraft | NotDrafted:
        """Return the draft of an episode, judged by what the person said."""
        states = _states(episode, texts)
        if isinstance(states, NotDrafted):
            return states
        before, final = states
        if len(before) > _MOST_FILES or sum(map(len, (*before.values(), *final.values()))) > _MOST_BYTES:
            return NotDrafted.TOO_LARGE
        skill, follow_up = self._request.subject, texts.text(episode.follow_up)
        identity = "h-" + self._digest(f"task {episode.request.id}")[:12]
        folder = f"{DRAFT_FILES}/{identity}/{_BEFORE}"
        criteria = [_CORRECTED.format(follow_up)] if follow_up else []
        criteria += [_CHANGED.format(_diff(before, final))] if final else []
        row: Row = {"id": identity, "status": DRAFT, "prompt": texts.text(episode.request.prompt)}
        if before or final:
            row["context"] = (_SHOWN.format(folder) if before else "") + _HAND_IN
        if before:
            row["files"] = [folder]
        row |= {"criteria": criteria, "task_type": skill}
        commands = tuple(texts.text(command) for command in episode.verified_commands[:_MOST_COMMANDS])
        session = episode.session
        files = self._projects.of(Path(session.directory))
        commit = files.full_id(session.commit) if files is not None and session.commit else ""
        version, date = _WORD.fullmatch(session.version), _DATE.match(episode.request.date)
        origin: Row = {
            "agent": session.agent.value,
            "version": version[0] if version else "",
            "session": self._digest(f"session {session.id}"),
            "date": date[0] if date else "",
            "skill": skill,
            "use": episode.use.value,
            "tree": _skill_tree(session, skill, files, commit, texts.root) if files is not None else "",
            "commit": commit,
            "project": self._digest(f"project {texts.root}"),
            "signals": [signal.value for signal in episode.signals],
            "follow_up": follow_up,
        }
        return HarvestedDraft(
            id=identity,
            row=row,
            files={f"{_BEFORE}/{name}": text.encode() for name, text in before.items()},
            final=final,
            commands=commands if final else (),
            origin=origin,
        )

    def _prove(self, draft: HarvestedDraft, episode: Episode, texts: _Texts) -> None:
        """Give ``draft`` the first command as check that fails with the files before and passes with the last ones."""
        program = Path(__file__).with_name("harvest_check.py").read_bytes()
        folder, outputs = f"{DRAFT_FILES}/{draft.id}", {name: text.encode() for name, text in draft.final.items()}
        for command in draft.commands:
            extra = {
                f"{_PROJECT}/{name}": text.encode() for name, text in self._project(episode, command, texts, draft)
            }
            files = {**draft.files, **extra, _CHECK: program}
            names = [f"{folder}/{name}" for name in dict.fromkeys(path.partition("/")[0] for path in files)]
            check = {"type": "command", "command": ["python", f"{folder}/{_CHECK}", command], "files": names}
            row = {name: value for name, value in draft.row.items() if name != "criteria"} | {"check": check}
            scores = list[float]()
            try:
                for products in ({}, outputs):
                    with self._loaded(draft.id, row, files) as (environment, item):
                        trajectory = Trajectory(item_id=item.id, turns=(), answer="", products=products)
                        score, _ = asyncio.run(environment.score(item, trajectory, cast("Judge", None)))
                        scores.append(score.hard)
            except SandboxError as error:
                self._refusal = error.message
                return
            except SkillgitError:
                continue  # the command takes too long, or its files cannot all be written here
            if scores == [0.0, 1.0]:
                draft.row, draft.files = row, files
                return

    def _is_task(self, draft: HarvestedDraft) -> bool:
        """Say whether the environment takes the draft for a task."""
        try:
            with self._loaded(draft.id, draft.row, draft.files):
                return True
        except SkillgitError:
            return False

    @contextmanager
    def _loaded(self, identity: str, row: Row, files: Mapping[str, bytes]) -> Iterator[tuple[Environment, Item]]:
        """Write a draft as the reviewed task that a run would use, in a folder that is removed, and load it."""
        with TemporaryDirectory(prefix="skillgit-harvest-") as name:
            data = Path(name) / "tasks.jsonl"
            (data.parent / DRAFT_FILES).mkdir()
            write_files(data.parent / DRAFT_FILES / identity, files)
            # A file with splits needs a task in each.
            fillers: list[Row] = [{"prompt": f"{split}?", "answer": "-", "split": split.value} for split in Split]
            rows = [{**row, "status": REVIEWED, "split": Split.TRAIN.value}, *fillers[1:]]
            data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
            options = {option.name: option.default for option in self._plugin.info.options}
            options |= {"split_mode": "ratio", "data_path": str(data), "check_timeout": _SECONDS}
            environment = self._plugin(options, self._context.directory)
            yield environment, environment.items(Split.TRAIN)[0]

    def _project(
        self, episode: Episode, command: str, texts: _Texts, draft: HarvestedDraft
    ) -> Iterator[tuple[str, str]]:
        """Yield further files of the project that a command may need: all of a small one, else those that it names."""
        repository, revision = self._projects.begun(episode.session)
        if repository is None:
            contents = {texts.path(path): text for path, text in episode.request.files.items()}
            yield from ((name, texts.text(text)) for name, text in contents.items() if name and name in command)
            return
        listing = dict(repository.listing(revision, _MOST_PROJECT_FILES + 1))
        is_small = len(listing) <= _MOST_PROJECT_FILES and sum(listing.values()) <= _MOST_PROJECT_BYTES
        for name in listing if is_small else dict.fromkeys(_PATH.findall(command)):
            if name.startswith(".") or f"{_BEFORE}/{name}" in draft.files:
                continue
            text = _decoded(repository.content(revision, name))
            if text is not None and (path := texts.path(str(texts.root / name))):
                yield path, texts.text(text)

    def save(self, drafts: list[HarvestedDraft]) -> None:
        """Write the files of drafts, and then their rows at once; what a killed harvest left behind is overwritten."""
        (self._folder / DRAFT_FILES).mkdir(mode=0o700, parents=True, exist_ok=True)
        for draft in drafts:
            shutil.rmtree(self._folder / DRAFT_FILES / draft.id, ignore_errors=True)
            write_files(self._folder / DRAFT_FILES / draft.id, draft.files, durable=True)
        file = self._folder / DRAFT_ROWS
        text = read_plain(file, most=None).decode() if file.is_file() else ""
        rows = "".join(f"{json.dumps(draft.row, ensure_ascii=False)}\n" for draft in drafts)
        write_file(self._folder.parent / _GROUPS, json.dumps(self._groups).encode(), mode=0o600)
        write_file(file, f"{text}{rows}".encode(), mode=0o600)

    def report(self, drafts: list[HarvestedDraft], cost: Cost | None, reasons: list[str]) -> Harvested:
        refusals = [f"no command was tried: {self._refusal}"] if self._refusal else []
        if foreign := self._search.foreign:
            files = f"{len(foreign)} {'file is' if len(foreign) == 1 else 'files are'} neither a session nor in ATIF"
            refusals.append(f"{files}: {', '.join(foreign[:_NAMED])}{' …' if foreign[_NAMED:] else ''}")
        is_dry_run = self._request.dry_run
        return Harvested(
            path=self._folder / DRAFT_ROWS,
            drafts=tuple(
                DraftSummary(
                    id=draft.id,
                    title=str(draft.row["prompt"]).strip().partition("\n")[0],
                    agent=str(draft.origin["agent"]),
                    use=str(draft.origin["use"]),
                    signals=tuple(map(str, cast("list[str]", draft.origin["signals"]))),
                    check="untried" if is_dry_run and draft.commands else draft.kind,
                    files=len(draft.files),
                )
                for draft in drafts
            ),
            sessions=self._sessions,
            turns=self._count,
            left_out={reason.value: number for reason, number in self._search.left_out.items() if number},
            not_drafted={reason.value: number for reason, number in self._not_drafted.items() if number},
            other_projects=len(self._search.other_projects),
            redacted=len(self._values),
            places=tuple(map(str, self._places)),
            source=self._request.source.partition(":")[2],
            is_met=any(names_skill(name, self._request.subject) for name in self._names),
            unknown={self.redactor.text(kind): number for kind, number in self._unknown.items()},
            remarks=tuple(map(self.redactor.text, (*self._search.unreadable, *refusals, *reasons))),
            cost=cost,
            is_dry_run=is_dry_run,
        )


class _Projects:
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
            for files in self._copies(session.copies):
                if any(files.listing(session.tree, 1)):
                    return files, session.tree
        return self.of(Path(session.directory)) if session.commit else None, session.commit

    def original(self, session: AgentSession, path: str) -> str | None:
        """Return the text of a file in the commit that a session began with."""
        files, root = self.of(Path(session.directory)), self.root(session)
        if files is None or not session.commit or not PurePosixPath(path).is_relative_to(root):
            return None
        return _decoded(files.content(session.commit, str(PurePosixPath(path).relative_to(root))))

    def snapshot(self, folder: Path, tree: str, path: str) -> str | None:
        """Return the text of a file in a tree of a repository that a program keeps somewhere below ``folder``."""
        contents = (files.content(tree, path) for files in self._copies(folder))
        return next((text for content in contents if (text := _decoded(content)) is not None), None)

    def _copies(self, folder: Path) -> Iterator[ProjectFiles]:
        repositories = (self.of(entry) for entry in sorted(folder.glob("*")) if (entry / "HEAD").is_file())
        return (files for files in repositories if files is not None)


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
        try:  # wherever links lead today
            is_inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.root))
        except (ValueError, OSError):
            return ""
        parts = PurePosixPath(path).parts
        if not is_inside or not PurePosixPath(path).is_relative_to(self.root) or ".." in parts or ".git" in parts:
            return ""
        return self._redactor.path(str(PurePosixPath(path).relative_to(self.root)))


def _states(episode: Episode, texts: _Texts) -> tuple[dict[str, str], dict[str, str]] | NotDrafted:
    """Return the files that matter as they were before, and those that were changed as they were in the end."""
    before, final = dict[str, str](), dict[str, str]()
    folders = [PurePosixPath(folder) for folder, _ in episode.session.bodies.values()]  # of skills

    def name_of(path: str) -> str:
        return "" if any(PurePosixPath(path).is_relative_to(folder) for folder in folders) else texts.path(path)

    for turn in episode.turns:
        for path, text in turn.reads.items():
            if name := name_of(path):
                before.setdefault(name, texts.text(text))
    for edit in (edit for turn in episode.turns for edit in turn.edits):
        name = name_of(edit.path)
        if not name:
            continue
        if edit.after is None:
            return NotDrafted.UNKNOWN_FILES
        if name not in final:
            before.pop(name, None)
            if edit.before is not None:
                before[name] = texts.text(edit.before)
        final[name] = texts.text(edit.after)
    return before, {name: text for name, text in final.items() if before.get(name) != text}


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


def _skill_tree(session: AgentSession, skill: str, files: ProjectFiles, commit: str, root: PurePosixPath) -> str:
    """Return the tree of the skill's folder in the project's commit, if the text that was loaded is the one there."""
    folder, body = session.bodies.get(skill, ("", ""))
    if not (commit and folder and PurePosixPath(folder).is_relative_to(root)):
        return ""
    path = str(PurePosixPath(folder).relative_to(root))
    document = _decoded(files.content(commit, f"{path}/SKILL.md")) or ""
    parts = _ARGUMENT.split(re.sub(r"\A---\n.*?\n---\n", "", document, flags=re.DOTALL))
    return files.folder_id(commit, path) if document and all(part.strip() in body for part in parts) else ""


def mask_again(draft: HarvestedDraft, secrets: SecretValues) -> None:
    """Take out of a draft what has turned out to be a secret since it was made; its program stays as it is."""

    def name(path: str) -> str:
        return "/".join(file_name_of(secrets.masked(part)) for part in path.split("/"))

    def value(part: object, key: str = "") -> object:
        if isinstance(part, str):
            return name(part) if key == "files" else secrets.masked(part)
        if isinstance(part, dict):
            return {key: value(entry, key) for key, entry in part.items()}
        return [value(entry, key) for entry in part] if isinstance(part, list) else part

    draft.row = {key: row if key in _OURS else value(row, key) for key, row in draft.row.items()}
    masked_files = dict[str, bytes]()
    for path, content in draft.files.items():
        text = None if path == _CHECK else _decoded(content)
        masked_files[name(path)] = content if text is None else secrets.masked(text).encode()
    draft.files = masked_files
    draft.final = {name(path): secrets.masked(text) for path, text in draft.final.items()}


def _decoded(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _since(text: str, now: datetime) -> float:
    """Return the moment that ``--since`` means, in seconds since 1970."""
    if match := _AGE.fullmatch(text):
        return (now - timedelta(days=int(match[1]))).timestamp()
    moment = _moment(text) if text else 0.0
    if moment is None:
        raise UsageError(f"--since is '{text}', neither a date nor an age", hint="write 2026-11-20 or 7d")
    return moment


def _moment(text: str) -> float | None:
    """Return a date, of UTC where it names no zone, in seconds since 1970; None if it is not one."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
