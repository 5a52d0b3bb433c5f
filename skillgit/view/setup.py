"""What a machine and a configuration have: models, environments and backends, and data."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from skillgit.domain.finding import Severity
from skillgit.plugin.environment import EnvironmentInfo, PublicSource, SourceKind
from skillgit.view import numbers
from skillgit.view.findings import DATA
from skillgit.view.json_values import named_values, picked
from skillgit.view.numbers import plural, short
from skillgit.view.surface import Screen, Style
from skillgit.view.text import cut, facts, fit, headed, inert, one_line, pad, table, width, wrap

if TYPE_CHECKING:
    from skillgit.app.setup.environment_profile import (
        EnvironmentProfile,
        ItemSample,
        ProfiledEnvironment,
        Requirement,
        ScorerChoice,
    )
    from skillgit.app.setup.plugins import InstalledPlugin, StrategyInfo
    from skillgit.app.sources.data_check import DataCheck
    from skillgit.app.sources.data_fetch import FetchedData
    from skillgit.app.train.doctor import Checkup, RoleHealth
    from skillgit.app.train.local_servers import LocalServers
    from skillgit.app.workspace.invitations import Invitation
    from skillgit.plugin.backend import BackendInfo, Price
    from skillgit.plugin.backend_settings import Knob
    from skillgit.plugin.shortcuts import ShortcutReport


_SHORTCUTS = 6  # of them that are shown at once; --json has all
_RULE = 60  # columns of a rule
_TYPES = 4
_FORMS = {"choice": "with choices", "free answer": "with free answers"}


def checked(check: DataCheck, screen: Screen) -> Iterator[str]:
    if check.splits:
        rows = [
            (
                split.split,
                f"{split.items:,}",
                f"{split.used:,}",
                f"{100 * split.step:.2f}",
                f"{100 * split.detectable:.1f}" if split.detectable is not None else "-",
                split.digest,
                ", ".join([f"{name} {items}" for name, items in split.types.items()][:_TYPES])
                + (f" and {len(split.types) - _TYPES} more" if len(split.types) > _TYPES else ""),
            )
            for split in check.splits
        ]
        head, *body = table(
            [("split", "items", "used", "one item", "shows from", "digest", "types"), *rows], align="lrrrrll"
        )
        yield from (screen.paint(Style.FAINT, head), *body, "")
    if check.shortcuts is not None and check.shortcuts.shortcuts:
        yield from (*_shortcuts(check.shortcuts, screen), "")
    if check.findings:
        yield from (*DATA.lines(check.findings, screen), "")
    warnings = sum(finding.severity is Severity.WARNING for finding in check.findings)
    yield f"{check.environment}: {plural(len(check.findings) - warnings, 'fault')}, {plural(warnings, 'warning')}"
    for note in check.notes:
        yield from wrap(note, screen.width)


def _shortcuts(report: ShortcutReport, screen: Screen) -> Iterator[str]:
    """Yield what answers score that need no question, the best first."""
    forms = {shortcut.form for shortcut in report.shortcuts}
    heads = ("without the question", "score", "right", "by chance", "of", "items" if len(forms) > 1 else "")
    rows = [
        (
            fit(one_line(shortcut.rule), _RULE, screen.glyphs.ellipsis),
            numbers.score(shortcut.score),
            f"{shortcut.right:,.4g}",
            f"{shortcut.chance * shortcut.answers:,.3g}",
            f"{shortcut.answers:,}" + (f" of {shortcut.n:,}" if shortcut.answers < shortcut.n else ""),
            _FORMS[shortcut.form] if len(forms) > 1 else "",
        )
        for shortcut in report.shortcuts
    ]
    yield from headed(heads, rows[:_SHORTCUTS], screen, align="lrrrll")
    if len(rows) > _SHORTCUTS:
        yield f"and {len(rows) - _SHORTCUTS} more that score less, which --json lists"


def checkup_document(checkup: Checkup) -> dict[str, object]:
    """Return the document of a check-up, where a role says as ``error`` and ``hint`` why it cannot be called."""
    document = named_values(checkup) | {"exit_code": checkup.exit_code}
    return document | {"roles": [*map(_role_document, checkup.roles)]}


def _role_document(role: RoleHealth) -> dict[str, object]:
    fault = role.fault
    sentences = {"error": "" if fault is None else fault.sentence, "hint": "" if fault is None else fault.hint}
    pairs = ((name, value) for name, value in named_values(role).items())
    return {
        key: text for name, value in pairs for key, text in (sentences if name == "fault" else {name: value}).items()
    }


def data_document(check: DataCheck) -> dict[str, object]:
    fields = picked(check, "environment splits findings notes exit_code shortcuts")
    return fields | {"findings": [*map(DATA.record, check.findings)]}


def fetched(dataset: FetchedData, screen: Screen) -> Iterator[str]:
    yield f"{dataset.source} at {screen.paint(Style.OID, short(dataset.revision))}, in {dataset.place}"
    yield from table([(file.path, plural(file.items, "item")) for file in dataset.files], align="lr", indent="  ")
    if dataset.assets:
        yield f"  {plural(dataset.assets, 'file')} that items name"
    yield f"licence: {dataset.licence or 'unknown'}"
    if dataset.repeated:
        yield f"left out {plural(dataset.repeated, 'row')} that stood there already"
    if dataset.same:
        yield f"{plural(dataset.same, 'row')} repeat others; a division keeps repetitions on one side"
    yield f"use it with {shlex.join(word for option in dataset.options for word in ('-o', option))}"


_LABEL = 13
_SOURCES = {
    "configuration": "by model.context_window",
    "server": "as the server says",
    "table": "by the table of {date}",
}


def lines(checkup: Checkup, screen: Screen) -> Iterator[str]:
    machine, where = checkup.machine, checkup.repository
    programs = ((program.name, program.path or f"not found; it {program.purpose}") for program in machine.programs)
    machine_facts = (
        ("python", f"{machine.python} on {machine.system}"),
        ("git", machine.git or "not found; it is needed to look at differences"),
        ("sqlite", machine.sqlite),
        *programs,
        ("repository", f"{where.path}, {plural(where.runs, 'run')}" if where else "none around this folder"),
    )
    yield from facts(machine_facts, screen, label=_LABEL)
    for role in checkup.roles:
        yield ""
        name = screen.paint(Style.STRONG, f"{role.backend}/{role.model}")
        yield from facts([(role.role, name)], screen, label=_LABEL)
        of_role = ((f"  {label}", text) for label, text in _role(role, checkup, screen) if text)
        yield from facts(of_role, screen, label=_LABEL)


def reasons(checkup: Checkup, screen: Screen) -> Iterator[str]:
    """Yield why models cannot be called, to be the last that is read."""
    for finding in checkup.findings:
        yield from wrap("; ".join(filter(None, (finding.message, finding.hint))), screen.width)


def _role(role: RoleHealth, checkup: Checkup, screen: Screen) -> Iterator[tuple[str, str]]:
    yield "calls", " ".join(filter(None, (role.place, role.version))) if role.place else ""
    if role.model_backend:
        address = f" at {role.model_place}" if role.model_place else ""
        yield "asks", f"{role.model_backend}{address}, metered"
    yield "as", role.credential
    yield "with", ", ".join(f"{name} {json.dumps(value)}" for name, value in role.parameters.items())
    if role.fault is not None:
        yield "answers", screen.paint(Style.REJECTED, f"no: {role.fault.sentence}")
    elif role.answers is None:
        yield "answers", "on this machine" if role.is_local else "not asked"
    else:
        by = f", as {role.answered_by}" if role.answered_by else ""
        yield "answers", screen.paint(Style.ACCEPTED, f"yes, in {role.latency_ms} ms{by}")
    yield "hint", "" if role.fault is None else role.fault.hint
    if role.counted is not None:
        yield "tokens", "counted by the provider" if role.counted else "not counted by the provider, estimated"
    price = role.price
    if price is None:
        yield "price", "unknown; set model.prices to cap and count dollars"
    elif not price.usd_in and not price.usd_out:
        yield "price", "nothing"
    else:
        sources = {"configuration": "by model.prices", "backend": "as the backend says"}
        source = sources.get(role.price_source, f"by the table of {checkup.prices_of}")
        usd_in, usd_out = numbers.money(price.usd_in), numbers.money(price.usd_out)
        yield "price", f"{usd_in} in, {usd_out} out for a million tokens, {source}"
    room = role.room
    if room is None:
        return
    if room.context is None:
        prompt = f"; the longest prompt has about {room.prompt:,} tokens"
        yield "context", f"unknown; set model.context_window to check it{prompt}"
        return
    source = _SOURCES[room.source].format(date=checkup.contexts_of)
    verdicts = {
        "near": f", its reply may have {room.reply:,}: some calls may be refused",
        "too long": ": it does not fit",
    }
    longest = f"the longest prompt has about {room.prompt:,}{verdicts.get(role.fit, '')}"
    yield "context", f"{room.context:,} tokens {source}; {longest}"


def local_lines(result: LocalServers, screen: Screen) -> Iterator[str]:
    """Show the servers of this machine with their models."""
    if not result.servers:
        yield f"looked at {', '.join(f'127.0.0.1:{port}' for port in result.ports)}"
    for number, server in enumerate(result.servers):
        if number:
            yield ""
        name = " ".join(filter(None, (screen.paint(Style.STRONG, server.program), one_line(server.version))))
        slots = f", {plural(server.slots, 'call')} at a time" if server.slots else ""
        yield f"{name}  {screen.paint(Style.FAINT, server.address)}{slots}"
        rows = [
            (
                f"  {one_line(model.name)}",
                f"{model.context:,}" if model.context else "unknown",
                "yes" if model.is_loaded else "no",
                model.schemas,
                one_line(model.detail),
            )
            for model in server.models
        ]
        if rows:
            head, *body = table([("  model", "context", "loaded", "JSON schemas", ""), *rows], align="lrlll")
            yield from (screen.paint(Style.FAINT, head.rstrip()), *(line.rstrip() for line in body))
        else:
            yield "  no models"


_COLUMNS = 100  # of a description at most
_HEAD_LINES, _TAIL_LINES = 10, 4  # of a longer text, that are shown


def every_plugin(entries: Sequence[InstalledPlugin], screen: Screen) -> Iterator[str]:
    """List plug-ins under the names of their kinds."""
    for number, (kind, group) in enumerate(groupby(entries, key=lambda entry: entry.kind)):
        if number:
            yield ""
        yield screen.paint(Style.FAINT, kind.value)
        rows = list(group)
        names = max(width(entry.name) for entry in rows)
        for entry in rows:
            summary = (entry.info.summary if entry.info else entry.error) or entry.reference
            if entry.info and not entry.reference.startswith("skillgit"):
                summary = f"{entry.reference}: {summary}"  # whose it is
            excerpt = cut(summary, max(20, screen.width - names - 4), screen)
            text = screen.paint(Style.REJECTED, excerpt) if entry.error else excerpt
            yield f"  {screen.paint(Style.STRONG, pad(entry.name, names))}  {text}".rstrip()


def plugin_lines(entry: InstalledPlugin, screen: Screen) -> Iterator[str]:
    """Describe one plug-in."""
    screen = replace(screen, width=min(screen.width or _COLUMNS, _COLUMNS))
    yield f"{screen.paint(Style.STRONG, entry.name)}  {screen.paint(Style.FAINT, entry.reference)}"
    if entry.info is not None:
        yield from wrap(entry.info.summary, screen.width)
        yield from _LINES[entry.kind.value](entry, screen)


def _environment_lines(entry: ProfiledEnvironment, screen: Screen) -> Iterator[str]:
    info: EnvironmentInfo | None = entry.info
    profile = entry.profile
    if info is None:
        return
    if profile.fault:
        yield from _block("not all of it can be shown here", [profile.fault], screen)
    yield from _block("scorer", [info.scorer], screen)
    yield from _pairs("scorers, as env.scorer", [_scorer(scorer) for scorer in profile.scorers if scorer.name], screen)
    yield from _pairs("needs", [_need(need) for need in profile.needs], screen)
    yield from _block("data", _data(info, profile), screen)
    if info.licence:
        yield from _block("licence", [info.licence], screen)
    if info.public is not None:
        yield from _block("public data", _public(info.name, info.public), screen)
    if info.task_types:
        yield from _block("task types", [", ".join(info.task_types)], screen)
    yield from _pairs("fields of an item", list(info.fields.items()), screen)
    if profile.sample is not None:
        yield from _sample(profile.sample, screen)
    options = [
        (option.name, f"{option.type.__name__}, default {_default(option.default)}: {option.help}")
        for option in info.options
    ]
    yield from _pairs("options, as env.NAME", options, screen)


def _default(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def _scorer(scorer: ScorerChoice) -> tuple[str, str]:
    marks = [mark for mark, holds in (("default", scorer.default), ("asks a judge", scorer.judge)) if holds]
    return scorer.name, f"{scorer.summary} ({', '.join(marks)})" if marks else scorer.summary


def _need(need: Requirement) -> tuple[str, str]:
    if need.present is None:
        return need.name, f"{need.purpose}; skillgit doctor CONFIG says whether there is one"
    return need.name, f"{need.purpose} ({'' if need.present else 'not here: '}{need.detail})"


def _data(info: EnvironmentInfo, profile: EnvironmentProfile) -> Iterator[str]:
    yield info.source
    if profile.counts:
        yield f"items that come with it: {', '.join(f'{count} {split}' for split, count in profile.counts.items())}"
    if profile.calls is not None:
        least, most = profile.calls.target
        grading = f", of a judge at most {profile.calls.judge[1]}" if profile.calls.judge[1] else ""
        calls = f"{most}" if least == most else f"{least} to {most}"
        yield f"calls of the target to evaluate the test items: {calls}{grading}"
    if profile.shortcut is not None:
        best = profile.shortcut
        yield f"without the question, {one_line(best.rule)} scores {numbers.score(best.score)} on all of these items"


def _public(name: str, source: PublicSource) -> Iterator[str]:
    address = source.place.replace("{revision}", source.revision)
    if source.kind is SourceKind.MANUAL:
        yield address + (f" at {source.revision}" if source.revision else "")
        yield source.layout
        return
    yield f"{address} at {source.revision or 'the newest revision'}"
    subsets = f"; other data: --subset {' or '.join(source.subsets)}" if source.subsets else ""
    splits = f"; divided: --ids {' or '.join(source.splits)}" if source.splits else ""
    yield f"skillgit plugins {name} --fetch DIR{subsets}{splits}"
    yield f"or by hand: {source.layout}"
    yield from (f"known of them: {defect.sentence} ({defect.source})" for defect in source.defects)


def _sample(sample: ItemSample, screen: Screen) -> Iterator[str]:
    hidden = any(not field.shown for field in sample.fields)
    note = "; the prompt has nothing of those with a *" if hidden else ""
    yield ""
    yield screen.paint(Style.FAINT, f"an item of the {sample.split} split{note}")
    rows = [("id", sample.id), ("task type", sample.task_type)]
    rows += [(f"{field.name}{'' if field.shown else ' *'}", _value(field.value)) for field in sample.fields]
    names = max(width(name) for name, _ in rows)
    for name, text in rows:
        for number, line in enumerate(_folded(text, screen, names + 4)):
            yield f"  {pad(name if number == 0 else '', names)}  {line}".rstrip()
    yield ""
    tools = f"; tools on offer: {', '.join(sample.tools)}" if sample.tools else ""
    yield from (screen.paint(Style.FAINT, line) for line in wrap(f"its prompt, with the seed skill{tools}", _COLUMNS))
    for turn in sample.prompt:
        yield f"  {screen.paint(Style.REF, turn.role)}"
        yield from (f"    {line}".rstrip() for line in _folded(turn.content, screen, 4))
        yield from (f"    {picture.text}" for picture in turn.pictures)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _folded(text: str, screen: Screen, indent: int) -> list[str]:
    """Return the lines of ``text``, broken to fit behind ``indent`` columns, without the middle of a long one."""
    columns = max(20, screen.width - indent)
    lines = [
        fit(part, columns, screen.glyphs.ellipsis)
        for line in inert(text).splitlines() or [""]
        for part in textwrap.wrap(line, columns, replace_whitespace=False) or [""]
    ]
    left_out = len(lines) - _HEAD_LINES - _TAIL_LINES
    if left_out <= 1:
        return lines
    gap = f"[{screen.glyphs.ellipsis} {plural(left_out, 'more line')}]"
    return [*lines[:_HEAD_LINES], screen.paint(Style.FAINT, gap), *lines[-_TAIL_LINES:]]


def _backend_lines(entry: InstalledPlugin, screen: Screen) -> Iterator[str]:
    info: BackendInfo | None = entry.info
    if info is None:
        return
    yield from _block("network", ["needed" if info.needs_network else "not needed"], screen)
    yield from _block("models", [" ".join(info.models) if info.models else "any"], screen)
    prices = [(model, _backend_price(price)) for model, price in info.prices.items()]
    yield from _pairs("US dollars for a million tokens", prices, screen)
    settings = [(name, _setting(setting)) for name, setting in (info.settings or {}).items()]
    yield from _pairs(f"settings, as model.{info.name}_NAME, or model.ROLE_NAME for one role", settings, screen)


def _setting(setting: Knob) -> str:
    default = "not sent" if setting.default is None else json.dumps(setting.default)
    choices = ", ".join(choice or '""' for choice in setting.choices)
    return f"default {default}: {setting.meaning}{f' (one of {choices})' if choices else ''}"


def _backend_price(price: Price) -> str:
    cache = (("from the cache", price.usd_cached), ("into the cache", price.usd_cache_write))
    prices = (("in", price.usd_in), ("out", price.usd_out), *cache)
    return ", ".join(f"${usd:g} {label}" for label, usd in prices if usd is not None)


def _strategy_lines(entry: InstalledPlugin, screen: Screen) -> Iterator[str]:
    info: StrategyInfo | None = entry.info
    if info is None:
        return
    if info.description:
        paragraphs = [" ".join(paragraph.split()) for paragraph in info.description.split("\n\n")]
        yield from _block("what it does", paragraphs, screen)
    keys = [(setting.key, f"default {setting.default}: {setting.meaning}") for setting in info.keys]
    yield from _pairs("keys of the configuration that matter to it", keys, screen)


_LINES: Mapping[str, Callable[[Any, Screen], Iterator[str]]] = {
    "environment": _environment_lines,
    "backend": _backend_lines,
    "strategy": _strategy_lines,
}


def _block(title: str, texts: Iterable[str], screen: Screen) -> Iterator[str]:
    yield ""
    yield screen.paint(Style.FAINT, title)
    for text in texts:
        yield from wrap(text, screen.width, indent="  ")


def _pairs(title: str, pairs: Sequence[tuple[str, str]], screen: Screen) -> Iterator[str]:
    if not pairs:
        return
    yield ""
    yield screen.paint(Style.FAINT, title)
    names = max(width(name) for name, _ in pairs)
    for name, text in pairs:
        columns = max(20, screen.width - names - 4) if screen.width else 0
        for number, line in enumerate(wrap(text, columns) if text else [""]):
            yield f"  {pad(name if number == 0 else '', names)}  {line}".rstrip()


def invited(rows: Sequence[Invitation], now: datetime) -> Iterator[str]:
    """Say who has a link to the pages of ``serve``."""
    if not rows:
        yield "no one has been invited; skillgit serve --invite NAME makes a link"
        return
    cells = [
        (
            inert(row.name),
            row.role.value,
            numbers.ago(row.created, now),
            numbers.ago(row.used, now) if row.used else "never",
        )
        for row in rows
    ]
    yield from table([("name", "may be", "invited", "last seen"), *cells], align="llll")
