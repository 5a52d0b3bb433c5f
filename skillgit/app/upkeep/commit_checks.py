"""Whether a commit holds what its event says, tree, evidence and gate, in files and notes that can be used at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from skillgit.app.recorded.run_record import trains_description
from skillgit.app.upkeep.event_checks import final_item_problems, selection_problems
from skillgit.app.upkeep.round_checks import joined_text_problems, look_problems, screening_problems
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import ProposalKind, RewriteError, changed_hunks, folder_hunks, rewritten
from skillgit.domain.edit import Edit, EditSource, EditStatus, Op, apply
from skillgit.domain.evaluation import EvaluationSummary
from skillgit.domain.event import (
    Accepted,
    Edited,
    Measured,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
)
from skillgit.domain.event_kinds import TRAITS
from skillgit.domain.evidence_names import PATCH
from skillgit.domain.proposal import EDITS_SHOWN, BudgetSource, EditRecord, Origin
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
from skillgit.domain.untrusted.model_text import SkillText, verbatim
from skillgit.errors import HistoryError, SkillgitError, UnsafeNameError
from skillgit.plugin.skill_library import changes_description_alone
from skillgit.store import history_reader, notes, refs
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import read_evidence
from skillgit.store.integrity import Blob, GitError, IntegrityProblem, Object, Tree
from skillgit.store.repo import Repo
from skillgit.store.tree import content_of

MERGE = 2
"""How many parents a merge of the slow line has: the run's tip and the slow tip."""


_SHORTER = frozenset({Origin.PRUNE, Origin.COMPRESS})
"""Origins of candidates that say less than the base, or the same in fewer words."""


def budget_problems(event: Accepted | Rejected | Skipped, schedule: Callable[[int], int] | None) -> Iterator[str]:
    """Yield what is wrong with the edit budget of a step; ``schedule`` gives it, where it is known."""
    patch = event.patch
    if (patch.budget is None) != (patch.by is BudgetSource.NONE):
        yield f"step {event.step} had the edit budget {patch.budget}, though it was set by '{patch.by}'"
        return
    if patch.budget is None:
        return
    if event.origin.intervenes:
        yield f"the {event.origin} after step {event.step} had the edit budget {patch.budget}, and it has none"
        return
    if (event.origin is Origin.META) != (patch.by is BudgetSource.META):
        yield f"the reflection on epoch {event.epoch} and its edit budget do not belong together"
    budget_wanted = schedule(event.step) if schedule is not None else patch.budget
    if patch.by not in {BudgetSource.OPTIMIZER, BudgetSource.META} and patch.budget != budget_wanted:
        yield f"step {event.step} had an edit budget of {patch.budget}, and the schedule says {budget_wanted}"
    # early runs wrote the rules down where the budget counts suggestions, too
    counts_rules = patch.rules is not None and patch.mode.proposals is not ProposalKind.SUGGESTIONS
    if counts_rules and (patch.rules or 0) > patch.budget:
        yield f"step {event.step} changes {patch.rules} rules with an edit budget of {patch.budget}"
    if not counts_rules and patch.ranked > patch.budget:
        yield f"step {event.step} chose {patch.ranked} of its proposals with an edit budget of {patch.budget}"


def tree_problems(repo: Repo, record: Recorded, versions: Mapping[int, str]) -> Iterator[str]:
    """Yield what is wrong with the tree of ``record``'s commit; ``versions`` are the commits of the run's versions."""
    event = record.event
    try:
        yield from _foreign_changes(repo, record)
        skill = history_reader.skill_at(repo, record.commit, event.skill)
        target = _restored(record)
        if target in versions:
            expected_skill = history_reader.skill_at(repo, versions[target], event.skill)
            if expected_skill.digest != skill.digest:
                yield f"the skill is not that of {version_label(target)}, which it restores"
        joined = event.joined if isinstance(event, Accepted | Rejected) else None
        if isinstance(event, Accepted | Rejected) and joined is not None and joined in versions:
            yield from joined_text_problems(event, history_reader.skill_at(repo, versions[joined], event.skill))
        if isinstance(event, SlowMerged) and len(record.parents) == MERGE:
            base = history_reader.skill_at(repo, record.parents[0], event.skill)
            guidance = slow_guidance(history_reader.skill_at(repo, record.parents[1], event.skill).document)
            if base.with_text(DOCUMENT, with_slow_guidance(base.document, guidance)).digest != skill.digest:
                yield "the skill is not that of its first parent with the guidance of the second"
    except SkillgitError as error:
        if not isinstance(error.__cause__, UnsafeNameError):  # `NameChecks` reports each name
            yield f"the skill cannot be read: {error.message}"


def _restored(record: Recorded) -> int:
    """Return the version whose text the event restores, also one that the gate refused; -1 if it restores none."""
    event = record.event
    if isinstance(event, Reverted):
        return event.target
    number = event.of.removeprefix(f"{event.run}/v") if isinstance(event, Rejected) and _restores(event) else ""
    return int(number) if number.isdecimal() else -1


def _restores(event: Accepted | Rejected) -> bool:
    earlier = event.origin is Origin.REVERT and event.title.startswith("back to v")
    return event.origin is Origin.RESTORE or earlier


def _foreign_changes(repo: Repo, record: Recorded) -> Iterator[str]:
    if isinstance(record.event, RunStarted | Edited) or not record.parents:
        return
    parent = repo.commit(record.parents[0])
    if str(parent.tree_id) == record.tree:
        return
    if isinstance(record.event, Skipped | Measured | RunFinished):
        yield "the commit changes files, though its event changes nothing"
        return
    exceptions = {history_reader.MEMORY} if isinstance(record.event, SlowProposed) else set()
    changes = repo.commit(record.commit).tree.diff_to_tree(parent.tree)
    for delta in changes.deltas:
        path = delta.new_file.path
        if path not in exceptions and not path.startswith(f"{record.event.skill}/"):
            yield f"the commit changes '{path}', which is not part of {record.event.skill}"


def evidence_problems(repo: Repo, record: Recorded, versions: Mapping[int, str], *, is_import: bool) -> Iterator[str]:
    """Yield what the evidence of ``record``, as far as it is here, contradicts; an import need not have every file."""
    event = record.event
    files = read_evidence(repo, record.evidence) if record.evidence else None
    if files is None:
        return
    if isinstance(event, RunFinished):
        yield from _placebo_problems(event, files.get("placebo.json"))
        yield from final_item_problems(event, files, is_import=is_import)
    yield from screening_problems(event, files)
    yield from look_problems(event, files)
    summary = getattr(event, "evaluation", None) if TRAITS[event.kind].has_outcomes else None
    if isinstance(summary, EvaluationSummary) and "selection.json" in files:
        yield from selection_problems(files, summary, getattr(event, "verdict", None))
    if isinstance(event, Accepted | Rejected) and (event.origin is Origin.MERGE or _restores(event)):
        return  # a whole text, not edits of the base
    if PATCH in files:
        yield from _patch_problems(repo, record, files[PATCH], versions, is_import=is_import)


def _placebo_problems(event: RunFinished, content: bytes | None) -> Iterator[str]:
    if event.placebo is None and content is None:
        return
    try:
        rows = loads(content or b"[]")
        counts = len(rows), sum(bool(row["accepted"]) for row in rows)
    except (ValueError, TypeError, KeyError):
        yield "placebo.json in the evidence cannot be read"
        return
    if event.placebo is None or counts != (event.placebo.n, event.placebo.accepted):
        yield "the evidence tells of other placebos than the commit"


def _patch_problems(
    repo: Repo, record: Recorded, content: bytes, versions: Mapping[int, str], *, is_import: bool
) -> Iterator[str]:
    event = record.event
    if not isinstance(event, Accepted | Rejected) or event.base not in versions:
        return
    try:
        document = loads(content)
        edits = [_edit(row) for row in document["edits"] if row["status"] == EditStatus.APPLIED]
        skipped_count = len(document["edits"]) - len(edits)
        body = verbatim(str(document["rewrite"])) if "rewrite" in document else None
        notes = [verbatim(str(note)) for note in document["appendix"]] if "appendix" in document else None
    except (ValueError, TypeError, KeyError):
        yield "patch.json in the evidence cannot be read"
        return
    yield from _edit_problems(event, edits, skipped_count, is_import=is_import)
    try:
        base = history_reader.skill_at(repo, versions[event.base], event.skill)
        skill = history_reader.skill_at(repo, record.commit, event.skill)
    except SkillgitError:
        # tree_problems has said so
        return
    if (notes is None) != (event.appendix is None) or (event.appendix and len(notes or ()) != event.appendix.total):
        yield "the appendix in the evidence is not that of the commit"
        return
    # Reminders alone are no rewrite.
    if body is not None if event.patch.mode.proposals is ProposalKind.EDITS else body is None and edits:
        yield f"the evidence is not that of the update mode {event.patch.mode}"
        return
    if body is not None:
        yield from _rewrite_problems(base, skill, body, edits, notes)
    elif event.origin.intervenes and document.get("lines") is True:
        yield from _line_problems(event, base, skill, edits)
    elif event.origin is Origin.STEP and document.get("lines") is True:
        yield from _folder_problems(base, skill, edits, lambda: _may_describe(repo, versions))
    elif _with_notes(apply(base, edits).skill, notes).digest != skill.digest:
        yield f"the patch in the evidence, applied to {version_label(event.base)}, does not give the committed skill"


def _edit_problems(
    event: Accepted | Rejected, edits: Sequence[Edit], skipped_count: int, *, is_import: bool
) -> Iterator[str]:
    records = tuple(replace(record, fixed=None, broken=None) for record in event.edits)
    if tuple(EditRecord.of(edit) for edit in edits)[:EDITS_SHOWN] != records:
        yield "the edits in the evidence are not those of the commit"
    applied_count, skipped_stated = event.patch.applied, event.patch.skipped
    if not is_import and (applied_count, skipped_stated) != (len(edits), skipped_count):
        counts = f"applied={len(edits)} skipped={skipped_count}"
        yield f"the commit says applied={applied_count} skipped={skipped_stated}, and the evidence says {counts}"


def _line_problems(event: Accepted | Rejected, base: Skill, skill: Skill, edits: Sequence[Edit]) -> Iterator[str]:
    """Yield where edits that only say which lines changed, for applying them gives another text, are not the commit's.

    What is taken from elsewhere may bring other files than the document; what shortens the document does not.
    """
    if event.origin in _SHORTER and base.with_text(DOCUMENT, skill.document).digest != skill.digest:
        yield f"the {event.origin} after step {event.step} changes files besides {DOCUMENT}"
    support, source = (edits[0].support, edits[0].source) if edits else (1, EditSource.HUMAN)
    if changed_hunks(base, skill, support=support, source=source) != tuple(edits):
        yield "the edits in the evidence are not what changed in the base"


def _may_describe(repo: Repo, versions: Mapping[int, str]) -> bool:
    return trains_description(repo, history_reader.read_commit(repo, versions[0]))


def _folder_problems(
    base: Skill, skill: Skill, edits: Sequence[Edit], may_describe: Callable[[], bool]
) -> Iterator[str]:
    """Yield where edits that only say which lines of a whole folder changed are not the commit's.

    ``may_describe`` says whether the run trains the description, which is all of the frontmatter that may change.
    """
    support, source = (edits[0].support, edits[0].source) if edits else (1, EditSource.MIXED)
    if folder_hunks(base, skill, support=support, source=source) != tuple(edits):
        yield "the edits in the evidence are not what changed in the base"
    if not _keeps_frame(base, skill) and not (_keeps_frame(base, skill, described=True) and may_describe()):
        yield f"what is protected in {DOCUMENT} is not that of the base"
    if _no_texts(base) != _no_texts(skill):
        yield "files that are no text are not those of the base"


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
    support, source = (edits[0].support, edits[0].source) if edits else (1, EditSource.MIXED)
    if changed_hunks(base, text, support=support, source=source) != tuple(edits):
        yield "the edits in the evidence are not what the rewrite changed in the base"


def _edit(row: Mapping[str, object]) -> Edit:
    return Edit(
        op=Op(str(row["op"])),
        file=str(row["file"]),
        anchor=verbatim(str(row.get("anchor", ""))),
        content=verbatim(str(row.get("content", ""))),
        support=int(str(row.get("support", 1))),
        source=EditSource(str(row.get("source", EditSource.FAILURE))),
    )


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
            yield from self._new(f"its skill folder {shown(skill)} is no path: {fault}")
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


def text_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[IntegrityProblem]:
    """Yield which files hold hidden characters, each with the first of ``records`` that has it."""
    contents = set[str]()
    for record in records:
        try:
            folder = repo.commit(record.commit).tree[record.event.skill]
            for path, content in _new_files(repo, folder, contents):
                if hidden := hidden_characters(path, content):
                    yield IntegrityProblem(commit=record.commit, sentence=hidden.sentence, remark=True)
        except HistoryError as error:  # a file that is too large to be read
            yield IntegrityProblem(commit=record.commit, sentence=error.message)
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


def note_problems(repo: Repo) -> Iterator[IntegrityProblem]:
    """Yield what is wrong with the notes of all commits.

    A missing commit is no problem: ``gate`` notes what it measured on the head of a pull request, whose branch is never
    pushed, or deleted after the merge, and the note travels all the same.
    """
    try:
        notes_by_commit = notes.read_all(repo)
    except SkillgitError as error:
        yield IntegrityProblem(sentence=f"{refs.short(refs.NOTES)} cannot be read: {error.message}")
        return
    for commit in notes.oversized(repo):
        sentence = f"its note is larger than {notes.MOST_NOTE >> 20} MiB, and is not read"
        yield IntegrityProblem(commit=commit, sentence=sentence)
    for commit, lines in notes_by_commit.items():
        for line in lines:
            if notes.parsed(line) is None:
                yield IntegrityProblem(
                    commit=commit, sentence=f"a line of its note is no JSON object: '{line[:_SHOWN]}'"
                )
