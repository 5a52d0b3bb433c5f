"""Whether the history of a run keeps its invariants: its refs, its events, and what each commit and note holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import takewhile

from skillgit.app.recorded.run_record import trains_description
from skillgit.app.upkeep.event_checks import MERGE, count_problems, fold_problems, parent_problems, rival_problems
from skillgit.app.upkeep.evidence_checks import (
    content_problems,
    kept_problems,
    lacking_files,
    plan_problems,
    unpublished_problem,
)
from skillgit.domain.address import parse, version_label
from skillgit.domain.document_rewrite import ProposalKind, RewriteError, changed_hunks, folder_hunks, rewritten
from skillgit.domain.edit import Edit, EditSource, EditStatus, Op, apply
from skillgit.domain.event import CANDIDATES, Event
from skillgit.domain.event_kinds import AddressKind, EventKind
from skillgit.domain.evidence_names import PATCH
from skillgit.domain.finding import REPAIR, Finding, Severity
from skillgit.domain.proposal import EDITS_SHOWN, EditRecord, Origin
from skillgit.domain.protected_regions import frontmatter, protected, slow_guidance, with_appendix, with_slow_guidance
from skillgit.domain.skill import DOCUMENT, Skill, hidden_characters
from skillgit.domain.untrusted.file_names import (
    DEPTH,
    PATH_BYTES,
    entry_name,
    git_fault,
    name_fault,
    name_key,
    path_fault,
    shown,
)
from skillgit.domain.untrusted.json_limits import loads
from skillgit.domain.untrusted.model_text import SkillText, clean_line, verbatim
from skillgit.errors import HistoryError, RevisionNotFoundError, SkillError, SkillgitError, UnsafeNameError
from skillgit.plugin.skill_library import changes_description_alone
from skillgit.store import history, history_reader, integrity, notes, refs, trailers
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import read_chain, read_evidence
from skillgit.store.integrity import Blob, GitError, Object, Tree
from skillgit.store.repair import bring_back, lost_event, unpublished
from skillgit.store.repo import UNSHALLOW, Repo, first_parents, message_of
from skillgit.store.trailer_table import TRAILERS, bearers
from skillgit.store.tree import content_of

_SHORT = 12
_SHORTER = frozenset({Origin.PRUNE, Origin.COMPRESS})
"""Origins of candidates that say less than the base, or the same in fewer words."""


def check_run(repo: Repo, run: str, *, budget: Callable[[int], int] | None = None) -> list[Finding]:
    """Return what is wrong with ``run``; ``budget`` maps a step to its configured edit budget, if that is known."""
    tips = repo.tips(run)
    if not tips and not repo.damaged_refs(run):
        raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
    try:
        # The chain goes first: a run that is being trained may only have more events than evidence, never fewer.
        chain, branches = read_chain(repo, run), history.sources(repo, run, tips)
    except (HistoryError, RevisionNotFoundError) as error:
        return [Finding(sentence=error.message)]
    problems = [*_damaged_refs(repo, run)]
    if not branches:
        if not problems and (late := unpublished(repo, run, [], chain)) is not None:
            return [unpublished_problem(late)]
        return problems or [Finding(sentence=_without_branch(repo, run))]
    try:
        records = history_reader.read_run(repo, run)
    except (HistoryError, RevisionNotFoundError, SkillError) as error:
        if repo.raw.is_shallow:
            return [Finding(sentence=f"{error.message}; {UNSHALLOW} brings it")]
        unreadable = dict.fromkeys(problem for branch in branches for problem in _unreadable(repo, branch.tip))
        return [*(unreadable or [Finding(sentence=error.message)]), *_lost_problems(repo, run, [])]
    commits = _CommitChecks(repo, records, is_training=budget is not None)
    of_commits = ((record, sentence) for record in records for sentence in commits.problems(record))
    of_fold = list(fold_problems(run, records, budget))
    for record, sentence in (*of_fold, *of_commits):
        problems.append(Finding(commit=record.commit, sentence=sentence))
    problems += _text_problems(repo, records)
    for record, sentence in (*plan_problems(repo, records), *rival_problems(records)):
        problems.append(Finding(commit=record.commit, sentence=sentence))
    at = {record.commit: record for record in records}
    for branch in branches:
        tip = at.get(branch.tip)
        if branch.ref.kind is refs.RefKind.REJECTED and tip is not None and tip.branch != branch.ref.local:
            sentence = f"{refs.short(branch.ref.local)} holds the candidate of {refs.short(tip.branch)}"
            problems.append(Finding(commit=branch.tip, sentence=sentence))
    problems += kept_problems(repo, run, records, tips, chain)
    if findings := list(_lost_problems(repo, run, [] if of_fold else records)):
        return problems + findings  # what follows from a line that is not the run's says nothing
    if refs.run_branch(run) in tips:  # a clone makes what it lacks with the first event that is written there
        problems += _derived_problems(run, records, tips)
    return problems


def _lost_problems(repo: Repo, run: str, records: Sequence[Recorded]) -> Iterator[Finding]:
    if (newest := lost_event(repo, run, records)) is not None:
        sentence = f"{refs.short(newest.branch)} does not go on from {newest.event.address.label}"
        yield Finding(commit=newest.commit, sentence=f"{sentence}; {bring_back(repo, run, newest.commit)}")


def _without_branch(repo: Repo, run: str) -> str:
    newest = lost_event(repo, run, [])
    hint = f"; {bring_back(repo, run, newest.commit)}" if newest is not None else ""
    return f"it has refs, and its branch {refs.short(refs.run_branch(run))} is gone{hint}"


def _damaged_refs(repo: Repo, run: str) -> Iterator[Finding]:
    for name in repo.damaged_refs(run):
        ref = refs.parse(name)
        if ref is not None and ref.kind not in {refs.RefKind.TAG, refs.RefKind.BEST}:
            sentence = f"the file of {refs.short(name)} holds no commit; git reflog {refs.short(name)} may say which"
            yield Finding(sentence=sentence)


def _unreadable(repo: Repo, tip: str) -> Iterator[Finding]:
    if repo.dead_ends.get(tip, False) is None:
        yield Finding(commit=tip, sentence="no event on the way back from here starts the run")
        return
    try:
        for commit in first_parents(repo, tip):
            if not trailers.has_trailers(message_of(commit)):
                continue
            try:
                event = history_reader.decoded(repo, commit).event
            except HistoryError as error:
                yield Finding(commit=str(commit.id), sentence=error.message)
                continue
            if event.kind is EventKind.RUN_STARTED:
                return
        yield Finding(commit=str(commit.id), sentence="the branch goes back to here, and no event starts the run")
    except (HistoryError, RevisionNotFoundError, GitError) as error:
        yield Finding(sentence=getattr(error, "message", str(error)))


def _derived_problems(run: str, records: Sequence[Recorded], tips: Mapping[str, str]) -> Iterator[Finding]:
    """Yield tags and branches that are not where the events of the run have them."""
    edits = takewhile(lambda record: record.event.kind is EventKind.EDITED, reversed(records))
    waiting = {record.commit for record in edits}  # the event that follows a person's commit brings its tag
    for update in history.derived_updates(run, records, tips):
        if update.new in waiting and update.name not in tips:
            continue
        tip, name = tips.get(update.name, ""), refs.short(update.name)
        if update.new is None:
            sentence = f"{name} is a version that the run does not have"
        elif not tip:
            sentence = f"{name} is missing; it belongs to commit {update.new[:_SHORT]}"
        else:
            sentence = f"{name} points to commit {tip[:_SHORT]}, not to {update.new[:_SHORT]}"
        yield Finding(commit=update.new or tip, sentence=sentence, hint=REPAIR)


class _CommitChecks:
    """Checks the commits of one run, each against its event and its evidence, in their order.

    An import knows no digests of items, and need not have every file.
    """

    def __init__(self, repo: Repo, records: Sequence[Recorded], *, is_training: bool) -> None:
        self._repo, self._is_training = repo, is_training
        self._versions = history.versions(records)
        self._guidance = frozenset(record.commit for record in records if record.event.kind is EventKind.SLOW_PROPOSED)
        first = records[0].event
        self._is_import = first.kind is EventKind.RUN_STARTED and not first.splits
        self._present = set[str]()
        self._names = NameChecks(repo)

    def problems(self, record: Recorded) -> Iterator[str]:
        yield from parent_problems(record, self._guidance, self._versions)
        yield from _trailer_problems(self._repo, record)
        yield from count_problems(record.event, is_import=self._is_import)
        if not self._is_import:
            yield from lacking_files(self._repo, record, is_training=self._is_training)
        yield from self._names.problems(record)
        if missing := list(integrity.missing_objects(self._repo, record, self._present)):
            yield from missing
            return
        try:
            yield from self._tree_problems(record)
            if not record.evidence or not any(integrity.missing_files(self._repo, record.evidence, self._present)):
                yield from self._evidence_problems(record)
        except (GitError, KeyError, ValueError, RecursionError) as error:
            yield f"git cannot read what it builds on: {error}"

    def _skill(self, record: Recorded, commit: str = "") -> Skill:
        """Return the skill of ``record`` as its own commit, or another one, has it."""
        return history_reader.skill_at(self._repo, commit or record.commit, record.event.skill)

    def _tree_problems(self, record: Recorded) -> Iterator[str]:
        event, versions = record.event, self._versions
        try:
            yield from self._foreign_changes(record)
            skill = self._skill(record)
            target = _restored(record)
            if target in versions and self._skill(record, versions[target]).digest != skill.digest:
                yield f"the skill is not that of {version_label(target)}, which it restores"
            if event.joined in versions:
                rival = self._skill(record, versions[event.joined])
                lines = {clean_line(line) for _, text in rival.text_files() for line in text.splitlines()}
                if event.changes and not any((edit.text in lines) is (edit.sign == "+") for edit in event.changes):
                    name = version_label(event.joined)
                    yield f"it says that it took up {name}, and nothing that it changes is from there"
            if event.kind is EventKind.SLOW_MERGED and len(record.parents) == MERGE:
                base, guided_skill = (self._skill(record, parent) for parent in record.parents)
                merged_text = with_slow_guidance(base.document, slow_guidance(guided_skill.document))
                if base.with_text(DOCUMENT, merged_text).digest != skill.digest:
                    yield "the skill is not that of its first parent with the guidance of the second"
        except SkillgitError as error:
            if not isinstance(error.__cause__, UnsafeNameError):  # `NameChecks` reports each name
                yield f"the skill cannot be read: {error.message}"

    def _foreign_changes(self, record: Recorded) -> Iterator[str]:
        event = record.event
        if event.kind in {EventKind.RUN_STARTED, EventKind.EDITED} or not record.parents:
            return
        parent = self._repo.commit(record.parents[0])
        if str(parent.tree_id) == record.tree:
            return
        if event.kind in {EventKind.SKIPPED, EventKind.MEASURED, EventKind.RUN_FINISHED}:
            yield "the commit changes files, though its event changes nothing"
            return
        exceptions = {history_reader.MEMORY} if event.kind is EventKind.SLOW_PROPOSED else set()
        for delta in self._repo.commit(record.commit).tree.diff_to_tree(parent.tree).deltas:
            path = delta.new_file.path
            if path not in exceptions and not path.startswith(f"{event.skill}/"):
                yield f"the commit changes '{path}', which is not part of {event.skill}"

    def _evidence_problems(self, record: Recorded) -> Iterator[str]:
        event = record.event
        files = read_evidence(self._repo, record.evidence) if record.evidence else None
        if files is None:
            return
        yield from content_problems(event, files, is_import=self._is_import)
        if event.kind not in CANDIDATES or PATCH not in files or event.base not in self._versions:
            return
        if event.origin is not Origin.MERGE and not _restores(event):  # else a whole text, not edits of the base
            yield from self._patch_problems(record, event, files[PATCH])

    def _patch_problems(self, record: Recorded, event: Event, content: bytes) -> Iterator[str]:
        try:
            document = loads(content)
            edits = [_edit(row) for row in document["edits"] if row["status"] == EditStatus.APPLIED]
            skipped_count = len(document["edits"]) - len(edits)
            body = verbatim(str(document["rewrite"])) if "rewrite" in document else None
            notes = [verbatim(str(note)) for note in document["appendix"]] if "appendix" in document else None
            is_lines = document.get("lines") is True
        except (ValueError, TypeError, KeyError):
            yield "patch.json in the evidence cannot be read"
            return
        edit_records = tuple(replace(edit, fixed=None, broken=None) for edit in event.edits)
        if tuple(EditRecord.of(edit) for edit in edits)[:EDITS_SHOWN] != edit_records:
            yield "the edits in the evidence are not those of the commit"
        patch = event.patch
        if not self._is_import and (patch.applied, patch.skipped) != (len(edits), skipped_count):
            counts = f"applied={len(edits)} skipped={skipped_count}"
            yield f"the commit says applied={patch.applied} skipped={patch.skipped}, and the evidence says {counts}"
        try:
            base, skill = self._skill(record, self._versions[event.base]), self._skill(record)
        except SkillgitError:
            # _tree_problems has said so
            return
        if (notes is None) != (event.appendix is None) or (event.appendix and len(notes or ()) != event.appendix.total):
            yield "the appendix in the evidence is not that of the commit"
            return
        # Reminders alone are not a rewrite.
        if body is not None if patch.mode.proposals is ProposalKind.EDITS else body is None and edits:
            yield f"the evidence is not that of the update mode {patch.mode}"
        elif body is not None:
            yield from _rewrite_problems(base, skill, body, edits, notes)
        elif is_lines and event.origin.intervenes:
            # What is taken from elsewhere may bring other files than the document; what shortens the document does not.
            if event.origin in _SHORTER and base.with_text(DOCUMENT, skill.document).digest != skill.digest:
                yield f"the {event.origin} after step {event.step} changes files besides {DOCUMENT}"
            yield from _hunk_problems(changed_hunks, base, skill, edits, EditSource.HUMAN)
        elif is_lines and event.origin is Origin.STEP:
            yield from _hunk_problems(folder_hunks, base, skill, edits, EditSource.MIXED)
            if not _keeps_frame(base, skill) and not (_keeps_frame(base, skill, described=True) and self._may_describe):
                yield f"what is protected in {DOCUMENT} is not that of the base"
            if _no_texts(base) != _no_texts(skill):
                yield "files that are not text differ from those of the base"
        elif _with_notes(apply(base, edits).skill, notes).digest != skill.digest:
            name = version_label(event.base)
            yield f"the patch in the evidence, applied to {name}, does not give the committed skill"

    @cached_property
    def _may_describe(self) -> bool:
        """Whether the run trains the description, which is all of the frontmatter that may change."""
        return trains_description(self._repo, history_reader.read_commit(self._repo, self._versions[0]))


def _trailer_problems(repo: Repo, record: Recorded) -> Iterator[str]:
    """Yield which trailers the commit of ``record`` has that no event of its kind has, or that its kind fixes."""
    event = record.event
    if event.kind is EventKind.EDITED:
        return
    block = trailers.parse_block(message_of(repo.commit(record.commit)))
    for key in dict.fromkeys(trailer.key for trailer in TRAILERS):
        if event.kind not in bearers(key) and block.all(key):
            yield f"the commit has the trailer {trailers.PREFIX}{key}, which {event.kind} never has"
    if event.kind is not EventKind.RUN_STARTED:
        origin = event.of
        if origin and not ((address := parse(origin)) and address.run):
            yield f"it was taken from {shown(origin)}, which is the address of no event"
        return
    for key in ("Version", "Base", "Epoch"):
        if (value := block.one(key)) not in {"", "0"}:
            yield f"a run starts with {trailers.PREFIX}{key} 0, and this one with {value}"
    if not event.fork_of:
        return
    address = parse(event.fork_of)
    parent = record.parents[0] if record.parents else ""
    if address is None or not address.run or address.kind is not AddressKind.VERSION:
        yield f"it is a fork of {shown(event.fork_of)}, which is the address of no version"
    elif not parent or repo.has_object(parent):  # else a shallow clone
        try:
            version = _version_at(repo, parent) if parent else None
        except SkillgitError:
            if repo.raw.is_shallow:
                return
            version = None
        if version != (address.run, address.number):
            yield f"it is a fork of {event.fork_of}, and its parent is another commit"


def _version_at(repo: Repo, commit: str) -> tuple[str, int | None]:
    """Return the run and the version at ``commit``; that of a person's edit is counted from the event before it."""
    if trailers.has_trailers(message_of(repo.commit(commit))):
        event = history_reader.read_commit(repo, commit).event
        return event.run, event.new_version
    run, _, version = history_reader.place_of(repo, commit)
    return run, version


def _restored(record: Recorded) -> int:
    """Return the version whose text the event restores, also one that the gate refused; -1 if it restores none."""
    event = record.event
    if event.kind is EventKind.REVERTED:
        return event.target
    number = event.of.removeprefix(f"{event.run}/v") if event.kind is EventKind.REJECTED and _restores(event) else ""
    return int(number) if number.isdecimal() else -1


def _restores(event: Event) -> bool:
    earlier = event.origin is Origin.REVERT and event.title.startswith("back to v")
    return event.origin is Origin.RESTORE or earlier


def _edit(row: Mapping[str, object]) -> Edit:
    return Edit(
        op=Op(str(row["op"])),
        file=str(row["file"]),
        anchor=verbatim(str(row.get("anchor", ""))),
        content=verbatim(str(row.get("content", ""))),
        support=int(str(row.get("support", 1))),
        source=EditSource(str(row.get("source", EditSource.FAILURE))),
    )


def _hunk_problems(
    hunks: Callable[..., tuple[Edit, ...]], base: Skill, skill: Skill, edits: Sequence[Edit], usual: EditSource
) -> Iterator[str]:
    """Yield that ``edits``, which only say which lines changed, are not those that ``hunks`` finds."""
    support, source = (edits[0].support, edits[0].source) if edits else (1, usual)
    if hunks(base, skill, support=support, source=source) != tuple(edits):
        yield "the edits in the evidence are not what changed in the base"


def _keeps_frame(base: Skill, skill: Skill, *, described: bool = False) -> bool:
    """Say whether what is protected is as it was; ``described`` allows another description."""
    if not described:
        return protected(base.document) == protected(skill.document)
    own, new = (each.document.removeprefix(frontmatter(each.document)) for each in (base, skill))
    return protected(own) == protected(new) and changes_description_alone(base.document, skill.document)


def _no_texts(skill: Skill) -> dict[str, bytes]:
    texts = dict(skill.text_files())
    return {path: content for path, content in skill.files.items() if path not in texts}


def _with_notes(skill: Skill, notes: Sequence[SkillText] | None) -> Skill:
    return skill if notes is None else skill.with_text(DOCUMENT, with_appendix(skill.document, notes))


def _rewrite_problems(
    base: Skill, skill: Skill, body: SkillText, edits: Sequence[Edit], notes: Sequence[SkillText] | None
) -> Iterator[str]:
    """Yield where the new text in the evidence, or the lines that are said to have changed, are not the commit's."""
    try:
        text = rewritten(base, body)
    except RewriteError as error:
        yield f"the rewrite in the evidence does not keep what is protected in the base: {error}"
        return
    if _with_notes(text, notes).digest != skill.digest:
        yield "the rewrite in the evidence, put into the base, does not give the committed skill"
    if any(_hunk_problems(changed_hunks, base, text, edits, EditSource.MIXED)):
        yield "the edits in the evidence are not what the rewrite changed in the base"


class NameChecks:
    """Checks the names that the events of one run bring; each is reported once, at the first event that has it."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo
        self._trees: set[tuple[str, bool]] = set()
        """Trees, each with whether it was looked at by the rules of a skill."""
        self._sentences: set[str] = set()

    def problems(self, record: Recorded) -> Iterator[str]:
        skill = record.event.skill
        if fault := path_fault(skill):
            yield from self._new(f"its skill folder {shown(skill)} is not a valid path: {fault}")
        for sentence in self._faults(record.tree, skill, strict=False):
            yield from self._new(f"its tree has {sentence}")
        for sentence in self._faults(record.evidence, "", strict=True) if record.evidence else ():
            yield from self._new(f"its evidence has {sentence}")

    def _new(self, sentence: str) -> Iterator[str]:
        if sentence not in self._sentences:
            self._sentences.add(sentence)
            yield sentence

    def _faults(self, tree: str, skill: str, *, strict: bool) -> Iterator[str]:
        """Yield every name in ``tree``, and in the folders in it, that cannot be written to, with the reason."""
        waiting = [(tree, "", strict)]
        while waiting:
            oid, path, strict = waiting.pop()
            folder = self._repo.raw.get(oid)
            if not isinstance(folder, Tree) or (oid, strict) in self._trees:
                continue
            if strict or not f"{skill}/".startswith(path):
                # Folders that lead to a skill are looked at again: another event may have its skill elsewhere in them.
                self._trees.add((oid, strict))
            names: dict[str, str] = {}
            for entry in folder:
                name = entry_name(entry.raw_name or b"")
                inside = f"{path}{name}"
                if fault := _fault(name, names, strict=strict):
                    yield f"the name {shown(inside)}: {fault}"
                if isinstance(entry, Tree) and len(inside) <= PATH_BYTES and inside.count("/") < DEPTH:
                    waiting.append((str(entry.id), f"{inside}/", strict or inside == skill))
                elif isinstance(entry, Tree) and len(inside) > PATH_BYTES:
                    yield f"the name {shown(inside)}: it is longer than {PATH_BYTES} bytes"
                elif isinstance(entry, Tree):
                    yield f"the folder {shown(inside)}: it is nested more than {DEPTH} levels deep"


def _fault(name: str, beside: dict[str, str], *, strict: bool) -> str:
    """Return why ``name`` cannot be in a folder; ``beside`` are the names before it, which it is added to."""
    key = name_key(name) if strict else name
    twin = beside.get(key)
    beside[key] = name
    if fault := name_fault(name) if strict else git_fault(name):
        return fault
    if twin == name:
        return "it is there twice"
    return "" if twin is None else f"on some systems it is the same as {shown(twin)}"


def _text_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[Finding]:
    """Yield which files hold hidden characters, each with the first of ``records`` that has it."""
    contents = set[str]()
    for record in records:
        try:
            folder = repo.commit(record.commit).tree[record.event.skill]
            for path, content in _new_files(repo, folder, contents):
                if hidden := hidden_characters(path, content):
                    yield Finding(commit=record.commit, sentence=hidden.sentence, severity=Severity.REMARK)
        except HistoryError as error:  # a file that is too large to be read
            yield Finding(commit=record.commit, sentence=error.message)
        except (GitError, KeyError):
            continue  # what is missing or damaged is reported where objects are checked


def _new_files(repo: Repo, folder: Object, contents: set[str]) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the files of ``folder`` that are not in ``contents``, which is added to."""
    waiting = [(folder, "")]
    while waiting:
        entry, path = waiting.pop()
        if str(entry.id) in contents or path.count("/") > DEPTH:
            continue
        contents.add(str(entry.id))
        if isinstance(entry, Tree):
            inside = [(inner, f"{path}/{inner.name}" if path else str(inner.name)) for inner in entry]
            waiting.extend(reversed(inside))
        elif isinstance(entry, Blob):
            yield path, content_of(repo, entry, path)


_SHOWN = 40


def note_problems(repo: Repo) -> Iterator[Finding]:
    """Yield what is wrong with the notes of all commits.

    A missing commit is no fault: ``gate`` notes what it measured on the head of a pull request, whose branch is never
    pushed, or deleted after the merge, and the note travels all the same.
    """
    try:
        notes_by_commit = notes.read_all(repo)
    except SkillgitError as error:
        yield Finding(sentence=f"{refs.short(refs.NOTES)} cannot be read: {error.message}")
        return
    for commit in notes.oversized(repo):
        sentence = f"its note is larger than {notes.MOST_NOTE >> 20} MiB, and is not read"
        yield Finding(commit=commit, sentence=sentence)
    for commit, lines in notes_by_commit.items():
        for line in lines:
            if notes.parsed(line) is None:
                yield Finding(commit=commit, sentence=f"a line of its note is not a JSON object: '{line[:_SHOWN]}'")
