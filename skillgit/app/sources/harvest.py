"""``skillgit tasks harvest``: sessions that people had with their coding agents become drafts of tasks.

It reads, and sends nothing anywhere unless criteria are asked for. Drafts stay in the private folder of the repository,
with files as they were before the work; a person reviews them before any run uses them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from skillgit.app.setup.plan import Plan
from skillgit.app.sources.harvest_drafts import DraftTrial, HarvestedDraft, Projects, draft_of, mask_again
from skillgit.app.sources.harvest_episodes import Episode, NotDrafted, episodes, names_skill
from skillgit.app.sources.harvest_redaction import SessionRedactor
from skillgit.app.sources.pending_draft import DRAFT_FILES, DRAFT_ROWS, DRAFTS, drafts_lock, folder_of_drafts
from skillgit.app.sources.sessions.reading import SessionSearch, home_of
from skillgit.app.sources.sessions.session import AgentSession, NoTurn, SessionAgent
from skillgit.app.sources.tasks_draft import RubricWriter
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.skills_here import reviewed_tasks
from skillgit.domain.cost import Caps, Cost
from skillgit.errors import UsageError
from skillgit.files import read_plain, write_file
from skillgit.plugin.data_rows import read_rows
from skillgit.plugin.seed_folder import write_files
from skillgit.store.repo import Repo

_SALT, _GROUPS = "salt", "groups.json"
_DIGEST = 16  # hex digits of a salted digest
_AGE = re.compile(r"(\d{1,5})d")


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestRequest:
    skill: str
    source: str = ""  # an agent, or a path; empty for every agent of this machine
    since: str = ""  # a date, or an age like 7d
    projects: tuple[Path, ...] = ()  # none means the work tree
    all_projects: bool = False
    rubric: bool = False  # ask the judge's model for criteria
    config: str | None = None  # None takes skillgit's ``tasks/default``
    overrides: tuple[str, ...] = ()
    caps: Caps = field(default_factory=Caps)
    dry_run: bool = False


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
    is_met: bool  # whether a session names the skill
    unknown: dict[str, int]  # kinds of record that no reader knows, by agent and version
    remarks: tuple[str, ...]
    cost: Cost | None  # of criteria that a model wrote
    is_dry_run: bool


def harvest(context: Context, request: HarvestRequest) -> Harvested | Plan:
    """Draft tasks for a skill from sessions; a dry run writes nothing, and is a plan where a model would be asked."""
    repo = Repo.discover(context.directory)
    folder = folder_of_drafts(repo.private_dir, request.skill)
    writer = RubricWriter(context, request.config, request.overrides, request.caps) if request.rubric else None
    with _alone(repo.private_dir / DRAFTS, context, is_dry_run=request.dry_run) as salt:
        search = _Harvest(context, request, repo, folder, salt)
        drafts = search.run()
        by_judge = [draft for draft in drafts if draft.kind == "judge"]
        if writer is not None and request.dry_run:
            return writer.plan(by_judge, {"skill": request.skill, "drafts": str(len(drafts))})
        cost, reasons = writer.write(by_judge, search.redactor) if writer is not None and by_judge else (None, [])
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
    def __init__(self, context: Context, request: HarvestRequest, repo: Repo, folder: Path, salt: bytes) -> None:
        self._context, self._request, self._folder, self._salt = context, request, folder, salt
        self._tree = repo.workdir or context.directory
        self._projects = Projects()
        self.redactor = SessionRedactor.of(context.environ, self._tree)
        self._trial = DraftTrial(context.directory, self._projects)
        self._search = SessionSearch(
            projects=self._allowed(),
            since=_since(request.since, context.clock()),
            original=self._projects.original,
            snapshot=self._projects.snapshot,
        )
        self._ids = set(self._known_ids())
        self._groups: dict[str, str] = self._read_groups()
        self._turns = set[str]()  # ids of prompts that were met, also in a session that this one is a fork of
        self._redacted, self._names = set[str](), set[str]()  # values that were taken out, and names of skills
        self._sessions = self._count = 0
        self._unknown, self._not_drafted = Counter[str](), Counter[NotDrafted]()

    def run(self) -> list[HarvestedDraft]:
        drafts: list[HarvestedDraft] = []
        for session in self._found():
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

    def _found(self) -> Iterator[AgentSession]:
        source = self._request.source
        if source and source not in set(SessionAgent):
            yield from self._search.at(self._context.directory / source)
            return
        for agent in (SessionAgent(source),) if source else SessionAgent:
            yield from self._search.sessions(agent, home_of(agent, self._context.environ))

    def _of(self, session: AgentSession) -> Iterator[HarvestedDraft]:
        repeated = {turn.id for turn in session.turns} & self._turns
        self._names.update(session.offers, session.bodies, *(turn.uses for turn in session.turns))
        self._turns |= {turn.id for turn in session.turns}
        group = self._group(session)
        for turns, episode in episodes(session, self._request.skill):
            new = [turn for turn in turns if turn.id not in repeated]
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

    def _draft(self, episode: Episode) -> HarvestedDraft | NotDrafted:
        if not self._is_recent(episode):
            return NotDrafted.OLDER
        redactor = self.redactor.fresh(episode.texts())
        draft = draft_of(episode, self._request.skill, self._projects, redactor, self._digest)
        if isinstance(draft, NotDrafted):
            return draft
        if draft.id in self._ids:
            return NotDrafted.KNOWN
        self._ids.add(draft.id)
        self._redacted |= redactor.values
        if not self._request.dry_run and not self._trial.refusal:
            self._trial.prove(draft, episode, redactor)
        if not draft.row.get("criteria") and "check" not in draft.row:
            return NotDrafted.NO_SIGNAL
        is_fine = self._request.dry_run or draft.kind == "command" or self._trial.accepts(draft)
        return draft if is_fine else NotDrafted.UNUSABLE

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
        refusal = self._trial.refusal
        remarks = [*self._search.unreadable, *([f"no command was tried: {refusal}"] if refusal else []), *reasons]
        return Harvested(
            path=self._folder / DRAFT_ROWS,
            drafts=tuple(_summary(draft, is_tried=not self._request.dry_run) for draft in drafts),
            sessions=self._sessions,
            turns=self._count,
            left_out={reason.value: number for reason, number in self._search.left_out.items() if number},
            not_drafted={reason.value: number for reason, number in self._not_drafted.items() if number},
            other_projects=len(self._search.other_projects),
            redacted=len(self._redacted),
            places=tuple(map(str, self._folders())),
            is_met=any(names_skill(name, self._request.skill) for name in self._names),
            unknown={self.redactor.text(kind): number for kind, number in self._unknown.items()},
            remarks=tuple(map(self.redactor.text, remarks)),
            cost=cost,
            is_dry_run=self._request.dry_run,
        )

    def _folders(self) -> list[Path]:
        """Return the folders of the projects whose sessions are read; none if all are."""
        if self._request.all_projects:
            return []
        folders = [self._context.directory / project for project in self._request.projects] or [self._tree]
        if missing := next((folder for folder in folders if not folder.is_dir()), None):
            raise UsageError(f"there is no folder {missing}", hint="check --project, or read --all-projects")
        return folders

    def _allowed(self) -> tuple[Path, ...]:
        return tuple(
            dict.fromkeys(form for folder in self._folders() for form in (folder.absolute(), folder.resolve()))
        )

    def _known_ids(self) -> Iterator[str]:
        for file in (self._folder / DRAFT_ROWS, reviewed_tasks(self._tree, self._request.skill)):
            if file.is_file():
                yield from (str(row.fields.get("id")) for row in read_rows(file))

    def _read_groups(self) -> dict[str, str]:
        file = self._folder.parent / _GROUPS
        rows = json.loads(read_plain(file)) if file.is_file() else {}
        return {str(link): str(group) for link, group in rows.items()} if isinstance(rows, dict) else {}

    def _group(self, session: AgentSession) -> str:
        """Return what tells this session from others, but not from its forks and resumptions."""
        links = [self._digest(link) for link in session.links]
        group = next((self._groups[link] for link in links if link in self._groups), None)
        group = group or self._digest(next(iter(session.links), session.id))
        self._groups |= dict.fromkeys(links, group)
        return group

    def _digest(self, text: str) -> str:
        return hmac.new(self._salt, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:_DIGEST]

    def _is_recent(self, episode: Episode) -> bool:
        try:
            date = datetime.fromisoformat(episode.turns[-1].date)
        except ValueError:
            return True
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() >= self._search.since


def _summary(draft: HarvestedDraft, *, is_tried: bool) -> DraftSummary:
    signals: Mapping[str, object] = draft.origin
    names = signals["signals"]
    return DraftSummary(
        id=draft.id,
        title=draft.title,
        agent=str(draft.origin["agent"]),
        use=str(draft.origin["use"]),
        signals=tuple(map(str, names)) if isinstance(names, list) else (),
        check=draft.kind if is_tried or not draft.commands else "untried",
        files=len(draft.files),
    )


def _since(text: str, now: datetime) -> float:
    """Return the moment that ``--since`` means, in seconds since 1970."""
    if not text:
        return 0.0
    if match := _AGE.fullmatch(text):
        return (now - timedelta(days=int(match[1]))).timestamp()
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--since is '{text}', neither a date nor an age", hint="write 2026-11-20 or 7d") from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
