"""What a machine and a configuration have: models, data and drafts of tasks."""

from __future__ import annotations

import json
from itertools import groupby
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.view import numbers
from skillgit.view.numbers import plural, short
from skillgit.view.surface import Screen, Style
from skillgit.view.text import facts, pad, table, width, wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillgit.app.sources.data_check import DataCheck, DataFinding, Severity, SplitSummary
    from skillgit.app.sources.data_fetch import FetchedData
    from skillgit.app.sources.tasks import Reviewed, TaskDraft
    from skillgit.app.sources.tasks_draft import Drafted
    from skillgit.app.train.doctor import Checkup, Machine, RoleHealth


_HEAD = ("split", "items", "used", "one item", "shows from", "digest", "types")
_TYPES = 4
_STYLES = {"fault": Style.REJECTED, "warning": Style.REVERTED}


def checked(check: DataCheck, screen: Screen) -> Iterator[str]:
    """Yield the splits, what is wrong with them, and what they can tell."""
    if check.splits:
        rows = [_HEAD, *(_split(split) for split in check.splits)]
        head, *body = table(rows, align="lrrrrll")
        yield from (screen.paint(Style.FAINT, head), *body, "")
    for (severity, hint), findings in groupby(check.findings, key=lambda finding: (finding.severity, finding.hint)):
        yield from _findings(severity, hint, findings, screen)
        yield ""
    faults = sum(finding.severity == "fault" for finding in check.findings)
    warnings = len(check.findings) - faults
    yield f"{check.environment}: {plural(faults, 'fault')}, {plural(warnings, 'warning')}"
    for note in check.notes:
        yield from wrap(note, screen.width)


def _split(split: SplitSummary) -> tuple[str, ...]:
    types = [f"{name} {items}" for name, items in split.types.items()]
    return (
        split.split,
        f"{split.items:,}",
        f"{split.used:,}",
        f"{100 * split.step:.2f}",
        f"{100 * split.detectable:.1f}" if split.detectable is not None else "-",
        split.digest,
        ", ".join(types[:_TYPES]) + (f" and {len(types) - _TYPES} more" if len(types) > _TYPES else ""),
    )


def _findings(severity: Severity, hint: str, findings: Iterable[DataFinding], screen: Screen) -> Iterator[str]:
    indent = " " * (width("warning") + 2)
    label = pad(screen.paint(_STYLES[severity.value], severity.value), len(indent))
    for finding in findings:
        for number, line in enumerate(wrap(finding.sentence, screen.width, indent)):
            yield f"{label}{line.removeprefix(indent)}" if number == 0 else line
    yield from (screen.paint(Style.FAINT, line) for line in wrap(hint, screen.width, indent))


def fetched(dataset: FetchedData, screen: Screen) -> Iterator[str]:
    """Yield what was written, and how to use it."""
    yield f"{dataset.source} at {screen.paint(Style.OID, short(dataset.revision))}, in {dataset.place}"
    yield from table([(file.path, plural(file.items, "item")) for file in dataset.files], align="lr", indent="  ")
    if dataset.assets:
        yield f"  {plural(dataset.assets, 'file')} that items name"
    yield f"licence: {dataset.licence or 'unknown'}"
    if dataset.repeated:
        yield f"left out {plural(dataset.repeated, 'row')} that stood there already"
    yield f"use it with {' '.join(f'-o {option}' for option in dataset.options)}"


_LABEL = 13
_SOURCES = {
    "configuration": "by model.context_window",
    "server": "as the server says",
    "table": "by the table of {date}",
}


def lines(checkup: Checkup, screen: Screen) -> Iterator[str]:
    yield from facts(_machine(checkup.machine), screen, label=_LABEL)
    where = checkup.repository
    runs = f"{where.path}, {numbers.plural(where.runs, 'run')}" if where is not None else "none around this folder"
    yield from facts([("repository", runs)], screen, label=_LABEL)
    for role in checkup.roles:
        yield ""
        name = screen.paint(Style.STRONG, f"{role.backend}/{role.model}")
        yield from facts([(role.role, name)], screen, label=_LABEL)
        role_facts = ((f"  {label}", text) for label, text in _role(role, checkup, screen))
        yield from facts(role_facts, screen, label=_LABEL)


def _machine(machine: Machine) -> Iterator[tuple[str, str]]:
    yield "python", f"{machine.python} on {machine.system}"
    yield "git", machine.git or "not found; it is needed to look at differences"
    yield "sqlite", machine.sqlite
    for program in machine.programs:
        yield program.name, program.path or f"not found; it {program.purpose}"


def _role(role: RoleHealth, checkup: Checkup, screen: Screen) -> Iterator[tuple[str, str]]:
    if role.place:
        yield "calls", " ".join(filter(None, (role.place, role.version)))
    if role.credential:
        yield "as", role.credential
    if role.parameters:
        yield "with", ", ".join(f"{name} {json.dumps(value)}" for name, value in role.parameters.items())
    yield "answers", _answer(role, screen)
    if role.hint:
        yield "hint", role.hint
    if role.counted is not None:
        yield "tokens", "counted by the provider" if role.counted else "not counted by the provider, estimated"
    yield "price", _price(role, checkup)
    if role.room is not None:
        yield "context", _context(role, checkup)


def _answer(role: RoleHealth, screen: Screen) -> str:
    if role.error:
        return screen.paint(Style.REJECTED, f"no: {role.error}")
    if role.answers is None:
        return "on this machine" if role.is_local else "not asked"
    by = f", as {role.answered_by}" if role.answered_by else ""
    return screen.paint(Style.ACCEPTED, f"yes, in {role.latency_ms} ms{by}")


def _price(role: RoleHealth, checkup: Checkup) -> str:
    if role.price is None:
        return "unknown; set model.prices to cap and count dollars"
    if not role.price.usd_in and not role.price.usd_out:
        return "nothing"
    text = f"{numbers.money(role.price.usd_in)} in, {numbers.money(role.price.usd_out)} out for a million tokens"
    source = {"configuration": "by model.prices", "backend": "as the backend says"}
    return f"{text}, {source.get(role.price_source, f'by the table of {checkup.prices_of}')}"


def _context(role: RoleHealth, checkup: Checkup) -> str:
    room = role.room
    if room is None or room.context is None:
        prompt = f"; the longest prompt has about {room.prompt:,} tokens" if room is not None else ""
        return f"unknown; set model.context_window to check it{prompt}"
    source = _SOURCES[room.source].format(date=checkup.contexts_of)
    text = f"{room.context:,} tokens {source}; the longest prompt has about {room.prompt:,}"
    return text + {
        "near": f", its reply may have {room.reply:,}: some calls may be refused",
        "too long": ": it does not fit",
    }.get(role.fit, "")


def reviewed(result: Reviewed, screen: Screen) -> Iterator[str]:
    """Yield the drafts that are left, and what to do."""
    if result.accepted:
        yield f"accepted {numbers.plural(len(result.accepted), 'draft')}: {numbers.ids(result.accepted, screen)}"
    for draft in result.drafts:
        yield from _draft(draft, screen)
    if result.drafts:
        count, whole = numbers.plural(len(result.drafts), "draft"), numbers.plural(result.count, "task")
        yield f"{count} of {whole}; no run uses the file"
        yield f"next: edit or delete lines, then skillgit tasks review {quote(str(result.path))} --accept all"
    else:
        yield f"no drafts are left; {numbers.plural(result.count, 'task')}"


def _draft(draft: TaskDraft, screen: Screen) -> Iterator[str]:
    yield f"{screen.paint(Style.STRONG, draft.id)} {screen.paint(Style.FAINT, f'line {draft.line}')}"
    yield from (f"    {line}" for line in draft.prompt.splitlines())
    for name, value in draft.expected.items():
        yield screen.paint(Style.FAINT, f"    {name}: ") + json.dumps(value, ensure_ascii=False)
    yield ""


def drafted(result: Drafted, screen: Screen) -> Iterator[str]:
    """Yield what was drafted, and what to do."""
    count = numbers.plural(len(result.ids), "draft")
    yield f"{count} by {result.model} in {result.path.name} {screen.glyphs.dot} {numbers.cost(result.cost, screen)}"
    yield f"next: skillgit tasks review {quote(str(result.path))}"
