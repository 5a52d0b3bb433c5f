"""What came in or went out: installs, exports, imports, and what other repositories got or gave; what to type next."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Final, assert_never

from skillgit.app.proposals.proposal import ProposeReport, SkillProposal, Upshot
from skillgit.app.proposals.usefulness import SkillOnModel, UsefulnessReport
from skillgit.app.skill_format.folder_contents import FileChange
from skillgit.domain.address import version_label
from skillgit.domain.usefulness import Advice
from skillgit.view import diff, numbers
from skillgit.view.gate import following
from skillgit.view.surface import Screen, Style
from skillgit.view.table import Column, Table
from skillgit.view.text import facts, inert, one_line, table, under, wrap

if TYPE_CHECKING:
    from skillgit.app.deliver.install import InstallResult, InstallState, UninstallResult
    from skillgit.app.deliver.installed import Installed
    from skillgit.app.deliver.plugin import BuiltPlugin
    from skillgit.app.exchange.pull import Cloned, FetchedRef, Joined, Pulled
    from skillgit.app.exchange.push import Pushed, SentRef
    from skillgit.app.sources.plugin_evals import ImportedEvals
    from skillgit.app.sources.skillopt.outputs import Imported


_COMMIT = re.compile(r"[0-9a-f]{40}")
_SIGNS = {"added": "A", "removed": "D", "changed": "M"}


def would_change(changes: Sequence[FileChange]) -> Iterator[str]:
    for change in changes:
        yield f"{_SIGNS[change.status]}  {one_line(change.path or '.')}"


def differences(changes: Sequence[FileChange], screen: Screen) -> Iterator[str]:
    for change in changes:
        text = inert(change.diff)
        yield from diff.coloured(text, screen) if screen.colour else diff.plain(text)


def installed(result: InstallResult) -> Iterator[str]:
    path = one_line(result.place)
    instead = f" instead of {_standing(result.before)}" if result.before is not None else ""
    if result.held:
        yield f"{path} holds {_called(result.name)} already"
    elif not result.written:
        yield f"would put {_called(result.name)} at {path}{instead}"
    else:
        yield f"{path} holds {_called(result.name)}{instead}; back: skillgit uninstall --to {quote(result.place)}"


def uninstalled(result: UninstallResult) -> Iterator[str]:
    again = "nothing" if result.restored is None else _standing(result.restored)
    path = one_line(result.place)
    if result.written:
        yield f"{path} holds {again} again"
    else:
        yield f"would leave nothing at {path}" if result.restored is None else f"would bring back {again} to {path}"


def _condition(row: Installed) -> str:
    if not row.name:
        return "not from this repository"
    return row.state if row.time is not None else f"{row.state}, by {row.source}"


INSTALLED: Final[Table[Installed]] = Table(
    schema="adopted/1",
    rows="places",
    plain="place skill name state newer time commit release source",
    columns=(
        Column("name", head="", show=lambda row: _called(row.name) or "unknown"),
        Column("release", head="", only_if=lambda rows, _: any(row.release for row in rows)),
        Column("state", head="", show=_condition),
        Column("place", head="", show=lambda row: f"{one_line(row.place)}{row.newer and f'   newer: {row.newer}'}"),
    ),
    empty="nothing was installed from here",
)


def _standing(standing: InstallState) -> str:
    if not standing.name:
        return "what did not come from here"
    return f"an edited {_called(standing.name)}" if standing.by_hand else _called(standing.name)


def _called(name: str) -> str:
    return numbers.short(name) if _COMMIT.fullmatch(name) else name


def lines(result: Imported, screen: Screen) -> Iterator[str]:
    more = "" if result.written == result.events else f", of which {result.written} are new"
    verb = "would import" if result.dry_run else "imported"
    events = f"{verb} {numbers.plural(result.events, 'event')} as {result.run}{more}"
    yield screen.dotted(
        (
            f"already imported as {result.run}" if result.already else events,
            numbers.plural(result.versions, "version"),
            f"{result.rejected} rejected",
            f"{result.skipped} skipped",
        )
    )
    gain = numbers.delta(result.best_score - result.first_score)
    yield f"{version_label(result.best)} scores {numbers.score(result.best_score)}, {gain} over the seed"
    if not result.dry_run:
        yield following((f"skillgit log {result.run}", f"skillgit diff {result.run}/v0 {result.run}/best"), screen)


_JOINED = {
    "new": "new",
    "forward": "went forward",
    "up_to_date": "up to date",
    "ahead": "ahead, not pushed",
    "diverged": "diverged",
    "refused": "left as it is",
}
_KINDS = {
    "run": "run",
    "slow": "slow line",
    "best": "best",
    "rejected": "rejected candidate",
    "tags": "tag",
    "notes": "notes",
    "evidence": "evidence",
    "dropped": "list of dropped evidence",
    "attic": "attic",
    "plan": "configuration",
}
_NOTES = "refs/notes/skillgit/evals"
_COUNTED = {"rejected", "tags"}


def pushed(result: Pushed, screen: Screen) -> Iterator[str]:
    yield f"{'would push' if result.dry_run else 'push'} to {result.remote}, {result.url}"
    move, refusal = "to push" if result.dry_run else "pushed", screen.paint(Style.REJECTED, "rejected")
    words = {"pushed": move, "up_to_date": "up to date", "rejected": refusal}
    rows = [
        (owner, words[state], f"{_named(refs)}{f': {reason}' if reason else ''}")
        for (owner, state, reason), refs in _grouped(result.refs).items()
    ]
    yield from table(rows, align="lll", indent="  ")
    if not result.refs:
        yield "  nothing to push"


def _grouped(refs: Iterable[SentRef]) -> dict[tuple[str, str, str], list[str]]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for ref in refs:
        owner = ref.run or ("notes" if ref.ref == _NOTES else ref.ref.removeprefix("refs/heads/"))
        if not ref.run and ref.ref.startswith("refs/tags/"):
            owner = "releases"
        groups.setdefault((owner, ref.state.value, ref.reason), []).append(ref.ref)
    return groups


def _named(refs: Sequence[str]) -> str:
    """Return what kinds of refs these are, with how many there are of those that are many."""
    if len(refs) == 1 and (refs[0] == _NOTES or _kind(refs[0]) not in _KINDS):
        return ""
    kinds = Counter(_kind(ref) for ref in refs)
    return ", ".join(
        numbers.plural(number, _KINDS[kind]) if kind in _COUNTED else _KINDS[kind] for kind, number in kinds.items()
    )


def _kind(ref: str) -> str:
    parts = ref.split("/")
    return parts[1] if parts[1] in {"tags", "notes"} else parts[2]


def pulled(result: Pulled, screen: Screen) -> Iterator[str]:
    yield f"{'would pull' if result.dry_run else 'pull'} from {result.remote}, {result.url}"
    yield from _joined(result, screen)
    if result.dry_run and result.fetched:
        yield from _fetched(result.fetched)


def _fetched(refs: Sequence[FetchedRef]) -> Iterator[str]:
    yield "new there"
    by_run: dict[str, list[str]] = {}
    for ref in refs:
        by_run.setdefault(ref.run, []).append(ref.ref)
    rest = len(by_run.pop("", []))
    yield from table([(run, _named(names)) for run, names in by_run.items()], align="ll", indent="  ")
    if rest:
        yield f"  {numbers.plural(rest, 'other ref')}"


def _joined(result: Pulled, screen: Screen) -> Iterator[str]:
    rows = [_joined_row(result.trunk, result.main, screen)] if result.main is not None else []
    if result.releases:
        rows.append(("releases", "new", ", ".join(result.releases)))
    rows += [_joined_row(entry.run, entry, screen) for entry in result.runs]
    if result.notes:
        rows.append(("notes", "joined", ""))
    yield from table(rows, align="lll", indent="  ")
    if not result.runs:
        yield "  it has no runs"


def _joined_row(name: str, entry: Joined, screen: Screen) -> tuple[str, str, str]:
    word = _JOINED[entry.state.value]
    if entry.state.value in {"diverged", "refused"}:
        return name, screen.paint(Style.REJECTED, word), entry.reason
    count = numbers.plural(entry.moved, "ref") if entry.moved and entry.run else ""
    return name, word, "; ".join(part for part in (count, entry.note) if part)


def cloned(result: Cloned, screen: Screen) -> Iterator[str]:
    yield f"cloned {result.pulled.url} into {result.path}"
    yield from _joined(result.pulled, screen)
    yield following((f"cd {quote(str(result.path))}", "skillgit log"), screen)


def plugin_built(result: BuiltPlugin, screen: Screen) -> Iterator[str]:
    path = one_line(result.place)
    versions = ", ".join(
        f"{skill.name} {version_label(skill.version) if skill.version is not None else numbers.short(skill.commit)}"
        for skill in result.skills
    )
    cases = [numbers.plural(result.cases, "eval case")] if result.cases else []
    match result.state:
        case "written":
            yield screen.dotted((f"{path} holds the plug-in {result.name} {result.version}", versions, *cases))
            yield f"try it: claude --plugin-dir {quote(f'{result.place}/{result.name}')}"
        case "unchanged":
            yield screen.dotted((f"{path} holds this already: {result.name} {result.version}", versions, *cases))
        case "differs":
            yield f"{path} is not what would be built: {result.name} {result.version}"
            yield from would_change(result.changes)
        case _:
            assert_never(result.state)


def evals_imported(result: ImportedEvals) -> Iterator[str]:
    if result.tasks:
        drafts = f", {numbers.plural(len(result.drafts), 'draft')} among them" if result.drafts else ""
        yield f"added {numbers.plural(len(result.tasks), 'task')} to {one_line(str(result.path))}{drafts}"
    if result.triggers:
        yield f"added {numbers.plural(len(result.triggers), 'trigger')} to {one_line(str(result.triggers_path))}"
    if result.present:
        yield f"{numbers.plural(len(result.present), 'case')} of these names had been there, and were left alone"
    for kind, count in result.unmatched.items():
        yield f"no check equals {numbers.plural(count, f'grader {one_line(kind)}', f'graders {one_line(kind)}')}"
    if result.drafts:
        yield f"next: skillgit tasks review {quote(str(result.path))}"


_ANSWERS = {
    Upshot.PROPOSED: Style.ACCEPTED,
    Upshot.STANDS: Style.ACCEPTED,
    Upshot.NOTHING_NEW: Style.FAINT,
    Upshot.NO_BETTER: Style.REJECTED,
    Upshot.CANNOT_TELL: Style.REVERTED,
    Upshot.BEHIND: Style.REVERTED,
    Upshot.UNFINISHED: Style.REVERTED,
    Upshot.FAILED: Style.REJECTED,
}


def proposed(report: ProposeReport, screen: Screen) -> Iterator[str]:
    for index, proposal in enumerate(report.proposals):
        answer = screen.paint(_ANSWERS[proposal.answer], proposal.answer)
        rows = _proposal_facts(proposal, report.base, screen)
        yield from _of_skill(proposal, answer, rows, screen, is_first=not index)


def _of_skill(
    entry: SkillProposal | SkillOnModel, answer: str, rows: Iterable[tuple[str, str]], screen: Screen, *, is_first: bool
) -> Iterator[str]:
    if not is_first:
        yield ""
    yield f"{screen.paint(Style.STRONG, entry.skill)}  {answer}"
    if entry.sentence:
        yield from wrap(one_line(entry.sentence), screen.width)
    yield from facts(rows, screen, label=8)


def _proposal_facts(proposal: SkillProposal, base: str, screen: Screen) -> Iterator[tuple[str, str]]:
    if gain := proposal.gain:
        yield gain.metric, f"{numbers.score(gain.after)}, was {numbers.score(gain.before)}"
        chance = f"{numbers.chance(gain.p)} one-sided, {numbers.plural(gain.n, f'{gain.split} item')}"
        yield "gain", f"{numbers.delta(gain.delta)}, {numbers.spread(gain.interval, gain.too_few)}, {chance}"
        yield "gate", f"{gain.policy} at {gain.alpha:g}"
    if proposal.run:
        version = "" if proposal.version is None else version_label(proposal.version)
        yield "run", screen.dotted((proposal.run, version, f"from {numbers.short(proposal.base)}"))
    if proposal.commit:
        yield "branch", screen.dotted((one_line(proposal.branch), numbers.short(proposal.commit), proposal.remote))
    if proposal.url:
        yield "request", one_line(proposal.url)
    if proposal.cost.calls:
        yield "cost", numbers.cost(proposal.cost, screen)
    yield from under("next", _after_proposal(proposal, base))


def _after_proposal(proposal: SkillProposal, base: str) -> Iterator[str]:
    if proposal.hint:
        yield one_line(proposal.hint)
    elif proposal.commit and not proposal.url:
        branch = one_line(proposal.branch)
        yield f"git diff {one_line(base)}...{branch}"
        push = f"git push REMOTE {branch}; gh pr create --head {branch} --fill"
        yield f"skillgit propose --pull-request, or: {push}"


_ACTIONS = {Advice.KEEP: Style.ACCEPTED, Advice.RETRAIN: Style.REVERTED, Advice.RETIRE: Style.REJECTED}


def usefulness(report: UsefulnessReport, screen: Screen) -> Iterator[str]:
    """Yield what each model makes of each skill, and what a server lists."""
    for each in report.listed:
        new = f"new: {', '.join(map(one_line, each.new))}" if each.new else "none is new"
        yield f"{one_line(each.server)}: {numbers.plural(each.known, 'model')} known, {new}"
    for index, entry in enumerate(report.skills):
        action = f": {screen.paint(_ACTIONS[entry.action], entry.action)}" if entry.compared is not None else ""
        answer = f"{one_line(entry.model)}  {entry.answer}{action}"
        rows = _usefulness_facts(entry, report.base, screen)
        yield from _of_skill(entry, answer, rows, screen, is_first=not index and not report.listed)


def _usefulness_facts(entry: SkillOnModel, base: str, screen: Screen) -> Iterator[tuple[str, str]]:
    if pair := entry.compared:
        yield pair.metric, f"{numbers.score(entry.score)}, without {numbers.score(entry.without)}"
        chance = f"{numbers.chance(pair.p or 0.0)} for a gain, {numbers.chance(entry.p_worse or 0.0)} for a loss"
        yield "gain", f"{numbers.delta(pair.delta)}, {numbers.spread(pair.interval, pair.too_few)}, {chance}"
        yield "items", f"{pair.n} of {entry.of} {pair.split}, {len(pair.fixed)} higher, {len(pair.broken)} lower"
    if entry.text:
        yield "text", one_line(entry.text)
        yield "by", one_line(entry.basis.sentence)
    if entry.commit:
        yield "branch", screen.dotted((one_line(entry.branch), numbers.short(entry.commit)))
    if entry.url:
        yield "request", one_line(entry.url)
    for sentence in entry.warnings:
        yield "", one_line(sentence)
    if entry.cost.calls:
        yield "cost", numbers.cost(entry.cost, screen)
    if entry.hint or entry.commit:
        yield "next", one_line(entry.hint or f"git diff {base}...{entry.branch}")
